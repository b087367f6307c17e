"""muP: a wide model trains as the narrow one does, by initial values and learning rates that follow from both recipes."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import composer
from composer.cli import main
from composer.train import TrainingError, TrainSettings, coordinate_check, mup_init, width_scales
from composer.train.loop import build_optimizer, update
from tests.train.small import TEXT
from tests.train.test_resume import same

GPT = {"vocab": 20, "n_layers": 2, "head.tie": None}
NARROW = ("d_model=16", "n_heads=2")
TORCH_LINEAR = """
recipe: perceptron
params: {width: 64}
inputs: {x: "float[batch, 6]", label: "int[batch]?"}
graph:
  up: {type: linear, out: width}
  relu: relu
  inside: {type: linear, out: width}
  head: {type: linear, out: 5}
outputs: {logits: head}
losses: {class: {type: cross_entropy, in: head, target: label}}
"""


def wide(**sizes: Any) -> Any:
    """Return a GPT four times as wide as the narrow one."""
    return composer.load("gpt_mini", {**GPT, "d_model": 64, "n_heads": 8, **sizes}).compile(seed=0)


def batch() -> dict[str, torch.Tensor]:
    """Return a batch of tokens."""
    return {"tokens": torch.randint(20, (4, 16), generator=torch.Generator().manual_seed(0))}


def test_matrices_follow_the_width_that_they_read():
    """Table 3 of the paper: the spread of what is drawn, relative to the narrow model, whatever the recipe draws."""
    for text, narrow, sizes in (("gpt_mini", NARROW, {**GPT, "d_model": 64, "n_heads": 8}), (TORCH_LINEAR, ("width=16",), {})):
        recipe = composer.load(text, sizes)
        model, small = recipe.compile(seed=0), recipe.with_overrides([*narrow]).compile(seed=0)
        mup_init(model, narrow)
        hidden, head, embed = (
            ("layers.0.ffn.body.up.weight", "head.weight", "embed.weight")
            if sizes
            else ("inside.weight", "head.weight", "up.weight")
        )
        scales = width_scales(model, narrow)
        for name, spread, rate in ((hidden, 1 / 2, 1 / 4), (head, 1 / 4, 1 / 4), (embed, 1, 1)):
            ratio = float(model.get_parameter(name).detach().std() / small.get_parameter(name).detach().std())
            assert ratio == pytest.approx(spread, rel=0.15)
            assert scales[name].rate == rate
    assert scales["inside.bias"].rate == 1


def test_experts_and_routers_are_matrices_too():
    """The first axis of experts is not a width, and a router has as many outputs as before."""
    sizes = {"vocab": 20, "d_model": 64, "n_layers": 1, "n_heads": 8, "n_kv_heads": 4, "hidden": 96, "n_experts": 4}
    model = composer.load("mixtral", sizes).compile(seed=0)
    scales = width_scales(model, ["d_model=32", "n_heads=4", "n_kv_heads=2", "hidden=48"])
    of_experts = [name for name, role in model.roles.items() if role == "experts"]
    assert of_experts and all(scales[name].rate == 1 / 2 for name in of_experts)
    assert [scales[name].start for name in of_experts] == pytest.approx([0.5**0.5] * len(of_experts))
    (router,) = (name for name in scales if "gate.weight" in name and name not in of_experts)
    assert (scales[router].start, scales[router].rate) == (0.5, 0.5)


def test_each_parameter_has_its_learning_rate_and_the_same_decay():
    """The first step of Adam moves each number by its learning rate, whatever the gradient."""
    model = wide()
    settings = TrainSettings(mup=NARROW, weight_decay=0.5, max_grad_norm=0.0, eps=1e-12)
    before = {name: value.detach().double().clone() for name, value in model.named_parameters()}
    update(model, build_optimizer(model, settings), [batch()], settings, rate=0.01)
    for name, rate in (("layers.1.attn.body.q.weight", 1 / 4), ("head.weight", 1 / 4), ("embed.weight", 1)):
        moved = model.get_parameter(name).detach().double() - before[name] * (1 - 0.01 * 0.5)
        assert float(moved.abs().median()) == pytest.approx(0.01 * rate, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("optimizer", "rate"), [("adamw", 0.01), ("nadam", 0.01), ("sgd", 0.1), ("muon", 0.01)])
def test_what_layers_compute_changes_alike_at_all_widths(optimizer, rate):
    """With muP; without, more in a wider model."""
    recipe = composer.load("gpt_mini", GPT)
    widths = {width: {"d_model": width, "n_heads": width // 8} for width in (16, 64, 128)}
    given = {"optimizer": optimizer, "learning_rate": rate, "seeds": 2}
    with_mup = coordinate_check(recipe, batch(), widths, mup=NARROW, **given).slopes
    without = coordinate_check(recipe, batch(), widths, **given).slopes
    assert all(abs(slope) < 0.25 for slope in with_mup.values())
    assert all(without[name] > 0.5 for name in ("layers.0", "layers.1", "head"))


@pytest.mark.parametrize(
    ("sizes", "narrow", "message"),
    [
        (
            {"head.tie": {"weight": "embed.weight"}},
            NARROW,
            r"yaml:35: `head.weight` is tied to `embed.weight`, which needs other",
        ),
        (
            {},
            ("d_model=16",),
            r"yaml:28: the heads of `layers.0.attn.body` have the width 8, and 2 .* be scaled by 0.1768, and are",
        ),
        ({}, (*NARROW, "n_layers=1"), r"`layers.1.attn.body.k.weight` is in one of the wide and the narrow model alone"),
        ({}, ("d_mode=16",), r"the narrow model has errors: there is no param or node called `d_mode`"),
    ],
)
def test_what_has_no_narrow_model_is_refused_at_its_place(sizes, narrow, message):
    with pytest.raises(TrainingError, match=message):
        width_scales(wide(**sizes), narrow)


def test_latent_attention_compares_in_two_parts_of_its_width():
    """Which are wider together."""
    sizes = {"vocab": 20, "d_model": 16, "n_layers": 1, "n_heads": 2}
    sizes |= {
        "layers.attn.body": {"type": "latent_attention", "heads": 2, "kv_rank": 4, "nope_dim": 8, "rope_dim": 4, "mask": "causal"}
    }
    model = composer.load("gpt_mini", {**sizes, "head.tie": None}).compile(seed=0)
    with pytest.raises(TrainingError, match=r"`layers.0.attn.body` have the width 12, and 6 in the narrow model"):
        width_scales(model, ["d_model=8", "layers.attn.body.nope_dim=2"])


def test_scores_that_are_scaled_by_the_width_of_heads_are_right():
    """Where the heads become wider, by 1 / head_dim times what it is in the narrow model."""
    model = wide(**{"layers.attn.body.scale": 1 / math.sqrt(2) / 4})
    assert width_scales(model, ["d_model=16", f"layers.attn.body.scale={1 / math.sqrt(2)}"])["head.weight"].rate == 1 / 4
    with pytest.raises(TrainingError, match=r"`mup` is .* which adafactor does not read; `optimizer` must be adamw or adam or"):
        TrainSettings(mup=NARROW, optimizer="adafactor")
    with pytest.raises(TrainingError, match=r"`weight_decay` is 0.1, which adam adds to the gradient, and muP has no rule"):
        TrainSettings(mup=NARROW, optimizer="adam")


@pytest.mark.parametrize(
    ("optimizer", "hidden", "head", "embed"),
    [("adam", 1 / 4, 1 / 4, 1), ("nadam", 1 / 4, 1 / 4, 1), ("sgd", 1, 1 / 4, 4), ("muon", 1 / 2, 1 / 4, 1)],
)
def test_rules_of_learning_rates_are_those_of_the_papers(optimizer, hidden, head, embed):
    """Table 3 of Tensor Programs V for Adam and SGD; for Muon a spectral norm of steps that does not depend on the width."""
    model = wide()
    settings = TrainSettings(mup=NARROW, optimizer=optimizer, weight_decay=0.0)
    rates = {parameter: group["rate"] for group in build_optimizer(model, settings).param_groups for parameter in group["params"]}
    for name, rate in (
        ("layers.0.ffn.body.up.weight", hidden),
        ("head.weight", head),
        ("embed.weight", embed),
        ("norm.weight", embed),
    ):
        assert rates[model.get_parameter(name)] == rate


@pytest.mark.slow
def test_a_run_keeps_its_narrow_model(tmp_path, monkeypatch):
    """What is resumed is, to the bit, what never stopped."""
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text(TEXT, encoding="utf-8")
    sizes = [part for each in ("d_model=32", "n_heads=4", "n_layers=1", "head.tie=null") for part in ("--set", each)]
    narrow = [part for each in NARROW for part in ("--mup", each)]
    start = ["train", "gpt_mini", *sizes, *narrow, "--data", "a.txt", "--batch-size", "2", "--seq-len", "8", "--cache", "off"]
    assert main([*start, "--steps", "4", "--save-every", "2", "--run", "run"]) == 0
    shutil.copytree("run", "whole")
    assert main(["train", "--resume", "run", "--checkpoint", "step-000002", "--cache", "off"]) == 0
    same(Path("run"), Path("whole"))
