"""Runs of a second, whose models know next to nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import composer
from composer.train import TrainSettings, characters_of, marked, objective_of, train
from composer.train.data.documents import read_documents
from tests.train.small import TEXT, Quiet

SIZES = {"d_model": 16, "n_heads": 2}


@pytest.fixture
def run_of(tmp_path: Path) -> Callable[..., Path]:
    """Trains a recipe for three steps on a text, and returns the run folder."""

    def trained(name: str = "gpt2", text: str = TEXT, settings: TrainSettings | None = None, **overrides: object) -> Path:
        path = tmp_path / "text.txt"
        path.write_text(text, encoding="utf-8", newline="")
        recipe = composer.load(name, SIZES | overrides)
        task = recipe.task or ""
        tokenizer = marked(characters_of(text), task)
        recipe = recipe.with_overrides({"vocab": tokenizer.size})
        data = objective_of(task, tokenizer).tokenize(read_documents([path]), path=path)
        settings = settings or TrainSettings(steps=3, batch_size=3, seq_len=12, warmup_steps=1, learning_rate=0.02, log_every=9)
        model = recipe.compile(seed=3)
        return train(model, tokenizer, data, settings, tmp_path / "run", recipe=recipe.text, show=Quiet()).run

    return trained
