"""Runs that choose by a trial whether torch.compile compiles their layers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
import torch

import composer
from composer.train import ActivationSizes, TrainSettings, characters_of, resume, tokenize, train
from composer.train import compile_choice as choosing
from composer.train.run.reader import read_run
from tests.train.small import TEXT, Quiet

TOKENIZER = characters_of(TEXT)
SETTINGS = TrainSettings(steps=6, batch_size=2, seq_len=8, validate_every=0, save_every=2, compile="auto", seed=3)


@pytest.fixture
def run(tmp_path):
    """Trains a small GPT with dropout; returns its folder and what it noted."""
    path = tmp_path / "sheep.txt"
    path.write_text(TEXT, encoding="utf-8", newline="")
    data = tokenize(TEXT, TOKENIZER, path=path)
    sizes = {"vocab": TOKENIZER.size, "d_model": 16, "n_layers": 2, "n_heads": 2, "context": 8, "dropout": 0.1}

    def make(name, after=lambda step: None, callbacks=(), **settings):
        show = Quiet(after)
        model = composer.load("gpt2", sizes).compile(seed=0)
        chosen = replace(SETTINGS, **settings)
        with suppress(KeyboardInterrupt):
            train(model, TOKENIZER, data, chosen, tmp_path / name, recipe=model.recipe.text, show=show, callbacks=callbacks)
        return tmp_path / name, show.notes

    return make


def weights(folder):
    """Return the weights of the last step."""
    saved = read_run(folder)
    return saved.checkpoint(saved.name(None)).model


def stopped(step):
    """Stop a run before its fifth step is saved."""
    if step == 5:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("seconds", "steps", "noted"),
    [
        ([9, 1, 2, 3, 40, 0.7, 0.6, 0.5], 1000, "compile: block, since a step takes 500 ms in place of 1e+03 ms"),
        ([9, 1, 2, 3, 40, 0.99, 0.98, 1.1], 10**9, "compile: off, since a step takes 1e+03 ms, and 980 ms compiled"),
        ([9, 1, 2, 3, 40, 0.9, 0.9, 0.9], 399, "compile: off, since a step takes 1e+03 ms, and 900 ms compiled"),
        ([0.2], 1000, "compile: off, since a run of about 200 s is too short to pay for it"),
    ],
    ids=["faster", "hardly faster", "takes longer to compile", "short"],
)
def test_what_pays_is_compiled(run, monkeypatch, seconds, steps, noted):
    """By the fastest step with and without, the first of each aside, and the steps over which it must pay."""
    left = iter(seconds)
    monkeypatch.setattr(choosing, "seconds_of", lambda step, device: next(left))
    monkeypatch.setattr("composer.train.api.fit", lambda *given, **named: None)
    folder, said = run("run", steps=steps)
    assert said == [noted] and not [*left]
    assert noted.startswith(f"compile: {read_run(folder).settings.compile}, ")


def test_without_a_compiler_nothing_is_tried(run, monkeypatch):
    """On a CPU, where torch.compile needs one."""
    monkeypatch.setattr(choosing.shutil, "which", lambda name: None)
    monkeypatch.setattr(choosing, "seconds_of", lambda step, device: pytest.fail("a step is tried"))
    assert run("run", steps=2)[1] == ["compile: off, since no C++ compiler is found"]


def test_the_trial_leaves_no_trace(run):
    """A run that chose to compile nothing equals one that was told so, with dropout, bit for bit; and it resumes as it began."""
    (tried, said), (told, silent) = run("tried"), run("told", compile="off")
    assert len(said) == 1 and silent == [] and read_run(tried).settings == read_run(told).settings
    part, _ = run("part", stopped)
    resume(part, settings=SETTINGS, show=Quiet())
    for name, value in weights(told).items():
        assert torch.equal(weights(tried)[name], value) and torch.equal(weights(part)[name], value), name


@pytest.mark.exhaustive
def test_what_a_trial_compiled_does_not_reach_the_run(run, monkeypatch):
    """A run that chose `block` after it ran compiled equals one that was told so, bit for bit; and it resumes as it began."""
    if not choosing.has_compiler():
        pytest.skip("torch.compile needs a C++ compiler")
    told, _ = run("told", compile="block")
    monkeypatch.setattr(choosing, "SHORTEST", 0.0)
    monkeypatch.setattr(choosing, "GAIN", float("-inf"))
    measured, tried = [], choosing._tried
    monkeypatch.setattr(choosing, "_tried", lambda *given: measured.append(tried(*given)) or choosing.CompileChoice("block", ""))
    (whole, _), (part, _) = run("whole"), run("part", stopped)
    resume(part, settings=SETTINGS, show=Quiet())
    assert len(measured) == 2
    for name, value in weights(told).items():
        assert torch.equal(weights(whole)[name], value) and torch.equal(weights(part)[name], value), name


def test_what_is_watched_is_not_compiled(run):
    """Where a callback cannot look into compiled modules."""
    folder, said = run("run", callbacks=[ActivationSizes()], steps=2)
    assert "cannot be watched" in said[0] and read_run(folder).settings.compile == "off"
