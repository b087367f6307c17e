"""Runs with a teacher, on rewards and with hidden spans: one that dies and goes on is the run that never stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import composer
from composer.train import (
    ByteTokenizer,
    TrainSettings,
    characters_of,
    marked,
    objective_of,
    open_reference_model,
    read_table,
    resume,
    tokenize,
    train,
    windows_of,
)
from composer.train.data.preferences import examples_for
from tests.train.small import TEXT, Quiet
from tests.train.test_forecasting import FORECASTER, table_of, wave
from tests.train.test_preferences import JUDGE, written
from tests.train.test_resume import same

SMALL = {"d_model": 16, "n_layers": 1, "n_heads": 2}
SETTINGS: dict[str, Any] = {
    **{"steps": 6, "batch_size": 3, "grad_accum": 2, "seq_len": 16, "learning_rate": 1e-2, "warmup_steps": 1},
    **{"log_every": 1, "validate_every": 3, "validation_batches": 2, "save_every": 2},
}
Start = Callable[[Path, Quiet], object]
"""Trains in a folder, with a display."""


def text_in(folder: Path) -> Path:
    """Write the text, and return its path."""
    path = folder / "sheep.txt"
    path.write_text(TEXT, encoding="utf-8", newline="")
    return path


def distilled(folder: Path) -> Start:
    """Return the start of a run with a teacher that is a run itself."""
    tokenizer, path = characters_of(TEXT), text_in(folder)
    recipe = composer.load("gpt_mini", {**SMALL, "vocab": tokenizer.size, "dropout": 0.1})
    data = tokenize(TEXT, tokenizer, path=path)
    first = TrainSettings(steps=1, batch_size=2, seq_len=8)
    train(recipe.compile(seed=7), tokenizer, data, first, folder / "teacher", recipe=recipe.text, show=Quiet())

    def begin(run: Path, show: Quiet) -> object:
        settings = TrainSettings(**SETTINGS, distillation_weight=0.7)
        teacher = open_reference_model(folder / "teacher")
        return train(recipe.compile(seed=0), tokenizer, data, settings, run, recipe=recipe.text, reference=teacher, show=show)

    return begin


def rewarded(folder: Path) -> Start:
    """Return the start of a run on preferences that trains a reward model."""
    recipe, table = composer.load(JUDGE), read_table([written(folder / "pairs.jsonl")])
    data = examples_for("reward", table, recipe.program, ByteTokenizer(), seq_len=16)
    settings = TrainSettings(**SETTINGS, objective="reward")
    return lambda run, show: train(
        recipe.compile(seed=0), ByteTokenizer(), data, settings, run, recipe=recipe.text, show=show
    )  # fmt: skip


def infilled(folder: Path) -> Start:
    """Return the start of a run that hides spans of random lengths."""
    settings = TrainSettings(**SETTINGS, objective="infilling")
    tokenizer = marked(characters_of(TEXT), "denoising", settings)
    sizes = {"d_model": 16, "n_heads": 2, "n_layers": 1, "n_encoder_layers": 1, "hidden": 16}
    recipe = composer.load("bart", {**sizes, "vocab": tokenizer.size, "context": 32})
    data = objective_of("denoising", tokenizer, settings).tokenize(TEXT, path=text_in(folder))
    return lambda run, show: train(recipe.compile(seed=0), tokenizer, data, settings, run, recipe=recipe.text, show=show)


def forecasting(folder: Path) -> Start:
    """Return the start of a run on windows of a series."""
    recipe, table = composer.load(FORECASTER), read_table([table_of(folder / "t.csv", wave(60))])
    columns = ("past=load", "past=wind")
    data = windows_of(table, recipe.program, columns=columns, seq_len=16)
    settings = TrainSettings(**SETTINGS, objective="forecast", columns=columns)
    return lambda run, show: train(
        recipe.compile(seed=0), ByteTokenizer(), data, settings, run, recipe=recipe.text, show=show
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", [distilled, rewarded, infilled, forecasting])
def test_a_run_that_dies_goes_on_bit_for_bit(kind, tmp_path):
    """It dies after its third or fifth step, before that is saved: what it drew since the last checkpoint is drawn again."""
    begin = kind(tmp_path)
    begin(tmp_path / "whole", Quiet())
    run = tmp_path / "run"

    def die_at(step: int) -> Callable[[int], None]:
        def after(at: int) -> None:
            if at == step:
                raise KeyboardInterrupt

        return after

    with pytest.raises(KeyboardInterrupt):
        begin(run, Quiet(die_at(3)))
    with pytest.raises(KeyboardInterrupt):
        resume(run, show=Quiet(die_at(5)))
    resume(run, show=Quiet())
    same(run, tmp_path / "whole")
