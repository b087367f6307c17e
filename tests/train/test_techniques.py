"""Averages of weights, activations that are computed again, compiled modules: each against a run or a loop without it."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import replace

import pytest
import torch

import composer
from composer.train import (
    TrainingError,
    TrainSettings,
    characters_of,
    open_run,
    resume,
    start_from,
    tokenize,
    train,
    validate,
)
from composer.train.data.objectives import objective_of
from composer.train.run.reader import read_run
from composer.train.techniques.recompute import recomputing
from tests.train.small import TEXT, Quiet

TOKENIZER = characters_of(TEXT)
SIZES = {"vocab": TOKENIZER.size, "d_model": 16, "n_layers": 2, "n_heads": 2}
SETTINGS = TrainSettings(
    steps=12, batch_size=3, seq_len=16, learning_rate=3e-3, warmup_steps=2, seed=5, log_every=1, validate_every=5, save_every=5
)


@pytest.fixture
def run(tmp_path):
    """Trains a small GPT with dropout, and returns its folder."""
    path = tmp_path / "sheep.txt"
    path.write_text(TEXT, encoding="utf-8", newline="")
    data = tokenize(TEXT, TOKENIZER, path=path)

    def make(name, after=lambda step: None, *, model=None, **settings):
        chosen = replace(SETTINGS, **settings)
        model = model or compiled()
        with suppress(KeyboardInterrupt):
            train(model, TOKENIZER, data, chosen, tmp_path / name, recipe=model.recipe.text, show=Quiet(after))
        return tmp_path / name

    def compiled(dropout=0.1):
        return composer.load("gpt2", {**SIZES, "dropout": dropout, "context": 16}).compile(seed=0)

    make.model = compiled

    return make


def lines(path):
    """Return the metrics of a run, without times."""
    found = [json.loads(line) for line in (path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{key: value for key, value in line.items() if "second" not in key} for line in found]


def tensors(path):
    """Return all tensors of the latest checkpoint."""
    opened = read_run(path)
    saved = opened.checkpoint(opened.name(None))
    return {**saved.model, **saved.optimizer, **saved.random}


def same(one, other):
    """Return whether two runs are equal bit for bit."""
    mine, theirs = tensors(one), tensors(other)
    return lines(one) == lines(other) and mine.keys() == theirs.keys() and all(mine[key].equal(theirs[key]) for key in mine)


def stop_after(step):
    """Return what stops a run after a step, before it is saved."""

    def after(done):
        if done == step:
            raise KeyboardInterrupt

    return after


def test_the_average_of_the_weights_is_validated_and_opened(run, tmp_path):
    """It moves toward the weights after each step, and does not change how they are trained."""
    plain, kept = run("plain"), run("kept", average=0.75)
    training = ("step", "loss", "gradient_norm", "learning_rate", "tokens")
    assert [[line[key] for key in training] for line in lines(plain)] == [[line[key] for key in training] for line in lines(kept)]
    assert lines(plain)[-1]["validation_loss"] != lines(kept)[-1]["validation_loss"]

    values = []
    model = run.model()
    run("again", lambda step: values.append({key: value.clone() for key, value in model.state_dict().items()}), model=model)
    expected = values[0]
    for value in values[1:]:
        expected = {key: 0.75 * expected[key] + 0.25 * value[key] for key in expected}
    opened = open_run(kept)
    found = opened.model.state_dict()
    assert found.keys() == expected.keys()
    for key in found:
        torch.testing.assert_close(found[key], expected[key], msg=key)
    data = tokenize(TEXT, TOKENIZER, path=tmp_path / "sheep.txt")
    again = validate(opened.model, data, objective_of("causal_lm", TOKENIZER), batch_size=3, seq_len=16)
    assert again.per_token == lines(kept)[-1]["validation_loss"]
    fresh = opened.model.recipe.compile(seed=9)
    start_from(fresh, kept)
    assert all(found[key].equal(value) for key, value in fresh.state_dict().items())


@pytest.mark.parametrize("optimizer", ["adamw", "sgd", "adafactor", "muon"])
def test_a_run_with_an_average_goes_on_as_if_it_had_not_stopped(run, optimizer):
    """With each kind of state beside it."""
    whole, part = run("whole", average=0.9, optimizer=optimizer), run("part", stop_after(8), average=0.9, optimizer=optimizer)
    resume(part, show=Quiet())
    assert same(part, whole)


def test_activations_that_are_computed_again_change_nothing(run):
    """Bit for bit, with dropout; fewer tensors are kept."""
    assert same(run("again", recompute=("layers.*",)), run("plain"))
    model = composer.load("gpt2", {**SIZES, "context": 16}).compile(seed=0)
    tokens = torch.randint(TOKENIZER.size, (3, 16))

    def bytes_kept():
        held: dict[int, int] = {}

        def keep(value):
            held[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
            return value

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
            loss = composer.loss(model, {"tokens": tokens}).total
        return sum(held.values()), loss

    plain, _ = bytes_kept()
    with recomputing(model, ["layers.*"]):
        fewer, loss = bytes_kept()
        loss.backward()
    assert fewer < 0.6 * plain
    assert bytes_kept()[0] == plain  # as before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"recompute": ("layer.*",)}, "`recompute`: no module is called `layer.*`"),
        ({"recompute": ("layers.0.atn",)}, "did you mean `layers.0.attn`"),
        ({"average": 1.0}, "`average` is 1.0; it must be at least 0 and below 1"),
        ({"precision": "fp16"}, "`precision` is fp16; it must be auto or fp32 or bf16"),
        ({"compile": "on"}, "`compile` is on; it must be off or auto or block or whole"),
    ],
)
def test_settings_that_do_not_fit_are_refused(run, tmp_path, settings, message):
    """Before a folder is made."""
    with pytest.raises(TrainingError) as refused:
        run("run", **settings)
    assert message in f"{refused.value} {refused.value.hint}" and not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["block", pytest.param("whole", marks=pytest.mark.exhaustive)])
def test_a_compiled_run_equals_one_that_is_not(run, mode):
    """To rounding; the model is left as it was."""
    if not (shutil.which("g++") or shutil.which("c++")):
        pytest.skip("torch.compile needs a C++ compiler")
    short = {"steps": 4, "validate_every": 2}
    model = run.model(dropout=0)
    plain = run("plain", model=run.model(dropout=0), **short)
    fast = run("fast", model=model, compile=mode, **short)
    numbers = [[line[key] for line in lines(plain) for key in ("loss", "gradient_norm", "validation_loss") if key in line]]
    assert [[line[key] for line in lines(fast) for key in ("loss", "gradient_norm", "validation_loss") if key in line]] == [
        pytest.approx(numbers[0], rel=1e-4)
    ]
    assert all(module._compiled_call_impl is None for module in model.modules())


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", ["block", "whole"])
def test_a_compiled_run_goes_on_as_if_it_had_not_stopped(run, mode):
    """With dropout and activations that are computed again, past a validation, whose last batch has other lengths."""
    if not (shutil.which("g++") or shutil.which("c++")):
        pytest.skip("torch.compile needs a C++ compiler")
    settings = {"compile": mode, "recompute": ("layers.0",)}
    whole, part = run("whole", **settings), run("part", stop_after(8), **settings)
    resume(part, show=Quiet())
    assert same(part, whole)


def test_matrix_products_in_bfloat16(run):
    """Weights, their averages and the optimizer's state stay in fp32; the losses are near, and a run goes on bit by bit."""
    plain, low = run("plain"), run("low", precision="bf16")
    ours, theirs = lines(low), lines(plain)
    assert [line["loss"] for line in ours] != [line["loss"] for line in theirs]
    assert ours[-1]["loss"] == pytest.approx(theirs[-1]["loss"], rel=0.02)
    part = run("part", stop_after(8), precision="bf16")
    resume(part, show=Quiet())
    assert same(part, low)
    assert {value.dtype for value in open_run(low).model.state_dict().values() if value.is_floating_point()} == {torch.float32}
    assert same(run("same", precision="fp32"), plain)  # as `auto` on a CPU
