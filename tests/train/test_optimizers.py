"""The optimizers of a run beside torch's own, and a run that stops with each of them."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import optim

import composer
from composer.train import TrainSettings, resume, train
from composer.train.loop import build_optimizer
from composer.train.optimization.decay_groups import hidden_matrices, param_groups
from composer.train.optimization.optimizers import OPTIMIZERS
from tests.train.test_resume import RECIPE, same

GIVEN = {
    "adamw": {"beta1": 0.8, "beta2": 0.9, "eps": 1e-6},
    "adam": {"beta1": 0.8, "beta2": 0.9, "eps": 1e-6},
    "nadam": {"beta1": 0.8, "beta2": 0.9, "eps": 1e-6},
    "sgd": {"momentum": 0.7},
    "adafactor": {},
    "muon": {"beta1": 0.8, "beta2": 0.9, "eps": 1e-6, "momentum": 0.7},
}
BETAS = {"betas": (0.8, 0.9), "eps": 1e-6}
THEIRS = {
    "adamw": lambda groups: optim.AdamW(groups, **BETAS),
    "adam": lambda groups: optim.Adam(groups, **BETAS),
    "nadam": lambda groups: optim.NAdam(groups, **BETAS, decoupled_weight_decay=True),
    "sgd": lambda groups: optim.SGD(groups, momentum=0.7),
    "adafactor": lambda groups: optim.Adafactor(groups),
}
SIZES = {"n_layers": 2, "d_model": 16, "n_heads": 2, "vocab": 31, "context": 16}


def model_of(recipe):
    """Return a tiny model of the zoo."""
    sizes = {**SIZES, "n_kv_heads": 1, "hidden": 24} if recipe == "llama3" else SIZES
    return composer.load(recipe, sizes).compile(seed=0)


def steps(model, optimizer, count=3):
    """Update the weights a few times by the gradients of one batch."""
    tokens = torch.randint(31, (2, 8), generator=torch.Generator().manual_seed(1))
    model.eval()
    for step in range(count):
        composer.loss(model, {"tokens": tokens, "targets": tokens.roll(-1, 1)}).total.backward()
        for group in optimizer.param_groups:
            group["lr"] = 0.01 / (step + 1)
        optimizer.step()
        optimizer.zero_grad()


@pytest.mark.parametrize("name", THEIRS)
def test_steps_are_those_of_torch(name):
    """With decay by role, and the settings in their places."""
    model = model_of("gpt2")
    other = copy.deepcopy(model)
    steps(model, build_optimizer(model, TrainSettings(optimizer=name, weight_decay=0.1, **GIVEN[name])))
    steps(other, THEIRS[name](param_groups(other, weight_decay=0.1)))
    for (place, ours), theirs in zip(model.named_parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, msg=lambda text, place=place: f"{place}: {text}")


def test_every_optimizer_is_tried():
    """A new row needs an entry here."""
    assert OPTIMIZERS.keys() == GIVEN.keys() == {*THEIRS, "muon"}


@pytest.mark.parametrize("recipe", ["gpt2", "llama3"])
def test_muon_trains_the_matrices_inside_and_adamw_all_else(recipe):
    """The embedding and the head are AdamW's, tied or not."""
    model = model_of(recipe)
    other = copy.deepcopy(model)
    steps(model, build_optimizer(model, TrainSettings(optimizer="muon", weight_decay=0.1, **GIVEN["muon"])))
    inside = [p for name, p in other.named_parameters() if p.dim() == 2 and name.startswith("layers.")]
    assert hidden_matrices(other) == {*inside}
    rest = [p for p in other.parameters() if p not in {*inside}]
    words = {other.get_parameter("embed.weight"), other.get_parameter("head.weight")}
    pair = [
        optim.Muon(inside, weight_decay=0.1, momentum=0.7, adjust_lr_fn="match_rms_adamw"),
        optim.AdamW(
            [
                {"params": [p for p in rest if p in words], "weight_decay": 0.1},
                {"params": [p for p in rest if p not in words], "weight_decay": 0.0},
            ],
            **BETAS,
        ),
    ]

    class Both:
        param_groups = [group for each in pair for group in each.param_groups]

        def step(self):
            for each in pair:
                each.step()

        def zero_grad(self):
            for each in pair:
                each.zero_grad()

    steps(other, Both())
    for (place, ours), theirs in zip(model.named_parameters(), other.named_parameters(), strict=True):
        # torch's Muon makes matrices orthogonal in bfloat16, of which sums of a CPU without AVX-512 differ from time to time
        torch.testing.assert_close(ours, theirs[1], rtol=0, atol=5e-5, msg=lambda text, place=place: f"{place}: {text}")


def test_experts_in_one_tensor_are_adamws():
    """Muon is for matrices."""
    model = composer.load("mixtral", {**SIZES, "n_kv_heads": 1, "hidden": 24, "n_experts": 4}).compile(seed=0)
    assert all(model.roles[name] != "experts" for name, p in model.named_parameters() if p in hidden_matrices(model))
    assert any(role == "experts" for role in model.roles.values())
    steps(model, build_optimizer(model, TrainSettings(optimizer="muon")))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_run_that_stops_goes_on_bit_for_bit(name, build, data, tokenizer, settings, change, quiet, tmp_path):
    """With the state of each optimizer, and a schedule of its own."""
    own = change(settings, optimizer=name, schedule="wsd", decay_ratio=0.4)
    train(build(RECIPE), tokenizer, data, own, tmp_path / "whole", recipe=RECIPE, show=quiet())

    def die(step):
        if step == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(build(RECIPE), tokenizer, data, own, tmp_path / "run", recipe=RECIPE, show=quiet(die))
    resume(tmp_path / "run", build=build, show=quiet())
    same(tmp_path / "run", tmp_path / "whole")
