"""Paths are taken as text and as objects."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import composer
from composer.decode import Request, generate
from composer.train import (
    TrainingError,
    TrainSettings,
    characters_of,
    load_tokenizer,
    open_run,
    read_text,
    resume,
    save_tokenizer,
    tokenize,
    train,
)
from composer.weights import PublishedCheckpoint, load_published, save_published

TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "vocab": 19, "context": 16}
either = pytest.mark.parametrize("kind", [str, Path])


@either
def test_published_weights_and_configurations(kind: Callable[[Any], Any], tmp_path: Path) -> None:
    """A file, and the folder around it."""
    recipe = composer.load("gpt2", overrides=TINY)
    model, other = recipe.compile(seed=0), recipe.compile(seed=1)
    save_published(model, kind(tmp_path / "model.safetensors"))
    for place in (tmp_path, tmp_path / "model.safetensors"):
        with PublishedCheckpoint(kind(place)) as tensors:
            assert tensors.shapes
        load_published(other, kind(place))
        assert torch.equal(other.embed.weight, model.embed.weight)
    save_published(other, kind(tmp_path))
    assert {file.name for file in tmp_path.iterdir()} == {"model.safetensors"}
    config = {"model_type": "gpt2", "n_layer": 3, "n_embd": 8, "n_head": 2, "vocab_size": 19, "n_positions": 16}
    config |= dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.1)
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for place in (tmp_path, tmp_path / "config.json"):
        assert composer.load("gpt2").with_config(kind(place)).program.untyped.params["n_layers"] == 3


@either
def test_pictures(kind: Callable[[Any], Any], tmp_path: Path) -> None:
    """Of a model, and of a difference."""
    recipe = composer.load("gpt2", overrides=TINY)
    recipe.draw().save(kind(tmp_path / "model.svg"))
    recipe.diff(composer.load("gpt2", overrides={**TINY, "d_model": 16})).draw().save(kind(tmp_path / "difference.svg"))
    assert {file.name for file in tmp_path.iterdir()} == {"model.svg", "difference.svg"}


@either
def test_runs(kind: Callable[[Any], Any], tmp_path: Path) -> None:
    """The text, the tokenizer, the run."""
    file, run = tmp_path / "text.txt", tmp_path / "run"
    file.write_text("to be or not to be\n" * 40, encoding="utf-8")
    text = read_text(kind(file))
    tokenizer = characters_of(text)
    save_tokenizer(tokenizer, kind(tmp_path / "tokenizer.json"))
    assert load_tokenizer(kind(tmp_path / "tokenizer.json")) == tokenizer
    data = tokenize(text, tokenizer, path=kind(file))
    assert data.path == file
    recipe = composer.load("gpt2", overrides={**TINY, "vocab": tokenizer.size})
    train(recipe.compile(seed=0), tokenizer, data, TrainSettings(steps=2, batch_size=2, seq_len=8), kind(run), recipe=recipe.text)
    assert resume(kind(run), steps=3, data=kind(file))
    opened = open_run(kind(run))
    assert opened.step == 3
    assert len(generate(opened.model, [[1]], Request(max_new_tokens=2))[0]) == 2
    with pytest.raises(TrainingError, match="is a run folder already"):
        train(recipe.compile(seed=0), tokenizer, data, TrainSettings(steps=2), kind(run), recipe=recipe.text)
