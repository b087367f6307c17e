"""What the tests of training share: a small text, a small model, and settings for runs of a second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from composer.train import TextData, TrainSettings, characters_of, tokenize
from tests.train.small import TEXT, Quiet, SmallGPT


@pytest.fixture
def tokenizer():
    """The characters of the text."""
    return characters_of(TEXT)


@pytest.fixture
def data(tmp_path: Path, tokenizer) -> TextData:
    """The text in a file, encoded."""
    path = tmp_path / "sheep.txt"
    path.write_text(TEXT, encoding="utf-8", newline="")
    return tokenize(TEXT, tokenizer, path=path)


@pytest.fixture
def build(tokenizer) -> Callable[[str], nn.Module]:
    """Compiles any recipe to the same small GPT, with the same first weights."""

    def compile_recipe(recipe: str) -> nn.Module:
        torch.manual_seed(11)
        return SmallGPT(tokenizer.size)

    return compile_recipe


@pytest.fixture
def settings() -> TrainSettings:
    """Twelve steps of two unequal axes, every step logged."""
    return TrainSettings(
        steps=12, batch_size=3, grad_accum=2, seq_len=7, learning_rate=3e-3, warmup_steps=4, seed=5,
        log_every=1, validate_every=5, validation_batches=4, save_every=5,
    )  # fmt: skip


@pytest.fixture
def quiet() -> type[Quiet]:
    """The display's class."""
    return Quiet


@pytest.fixture
def change() -> Callable[..., TrainSettings]:
    """Settings with some of them replaced."""
    return replace
