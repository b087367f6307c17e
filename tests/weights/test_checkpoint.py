"""Checkpoints on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from composer.diagnostics import RecipeError
from composer.weights import PublishedCheckpoint
from composer.weights.published_files import type_of

A, B = torch.arange(6.0).view(2, 3), torch.arange(4.0)


def test_one_file_and_a_folder_in_pieces_hold_the_same(tmp_path: Path) -> None:
    """Shapes come from the headers, tensors when asked for."""
    save_file({"a": A, "b": B}, tmp_path / "whole.safetensors")
    folder = tmp_path / "folder"
    folder.mkdir()
    save_file({"a": A}, folder / "one.safetensors")
    save_file({"b": B}, folder / "two.safetensors")
    index = {"metadata": {}, "weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    (folder / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    for path in (tmp_path / "whole.safetensors", folder):
        with PublishedCheckpoint(path) as tensors:
            assert tensors.shapes == {"a": (2, 3), "b": (4,)}
            assert torch.equal(tensors["a"], A) and torch.equal(tensors["b"], B)
    assert type_of(folder) == "gpt2"


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("absent.safetensors", None, "missing-file"),
        ("pytorch_model.bin", b"", "unreadable-file"),
        ("cut.safetensors", b"\x40\x00\x00\x00\x00\x00\x00\x00{", "unreadable-file"),
        ("model.safetensors.index.json", b'{"weight_map": {"a": "../a.safetensors"}}', "unreadable-file"),
        ("model.safetensors.index.json", b"{", "unreadable-file"),
        ("model.safetensors.index.json", b'{"weight_map": {"a": "gone.safetensors"}}', "missing-file"),
        ("notes.txt", b"", "missing-file"),
    ],
)
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, name: str, content: bytes | None, code: str) -> None:
    """In one diagnostic; a file outside of the folder is never opened, nor is a pickle."""
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(RecipeError) as error:
        PublishedCheckpoint(tmp_path if name.endswith((".json", ".txt")) else file)
    assert [diagnostic.code for diagnostic in error.value.diagnostics] == [code]
