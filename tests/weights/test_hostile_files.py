"""A stranger's checkpoint or configuration is read or refused in one line: nothing runs, nothing hangs, nothing grows."""

from __future__ import annotations

import json
import os
import pickle
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import composer
from composer.diagnostics import RecipeError
from composer.weights import PublishedCheckpoint, load_published, save_published
from composer.weights import published_files as files
from tests.operations import at_most

ONE, INDEX = "model.safetensors", "model.safetensors.index.json"
TINY = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}


def refused(path: Path) -> str:
    """Return the code of the one diagnostic with which a checkpoint is refused."""
    with pytest.raises(RecipeError) as stopped:
        PublishedCheckpoint(path)
    (found,) = stopped.value.diagnostics
    assert "\n" not in found.message
    return found.code


def header(content: bytes, length: int | None = None) -> bytes:
    """Return the beginning of a safetensors file."""
    return struct.pack("<Q", len(content) if length is None else length) + content


@pytest.mark.parametrize(
    "name",
    [
        *("../x.safetensors", "/etc/passwd", "a/b.safetensors", "..", ".", "", "a\0b.safetensors", "x.safetensors/.."),
        *("C:/x.safetensors", 3, None, ["x.safetensors"], {"a": "b"}, True),
    ],
)
def test_an_index_names_files_beside_it(tmp_path: Path, name: object) -> None:
    """And no others, nor anything that is no name."""
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": name}}), encoding="utf-8")
    assert refused(tmp_path) == "unreadable-file"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[" * 200_000, "unreadable-file"),
        ('{"weight_map": ' + '{"a":' * 100_000, "unreadable-file"),
        ('{"weight_map": {"a": ' + "9" * 100_000 + "}}", "unreadable-file"),
        ('{"weight_map": {"a": 1e999}}', "unreadable-file"),
        ("\udcff", "unreadable-file"),
        ("null", "unreadable-file"),
        (" " * 2000, "too-large"),
    ],
    ids=["brackets", "objects", "digits", "infinity", "no UTF-8", "null", "large"],
)
def test_an_index_that_is_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: str) -> None:
    """At any depth, with numbers of any length, and before it is parsed if it is too large."""
    if code == "too-large":
        monkeypatch.setattr(files, "MAX_JSON_BYTES", 1000)
    (tmp_path / INDEX).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert refused(tmp_path) == code
    (tmp_path / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    if code == "too-large":
        with pytest.raises(RecipeError, match="at most 1000 bytes"):
            files.type_of(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("name", [ONE, INDEX, "shard.safetensors"])
def test_a_pipe_or_a_folder_is_no_file_of_a_checkpoint(tmp_path: Path, name: str) -> None:
    """Nor is a device that is linked; none is waited for."""
    makers: dict[str, Callable[[Path], object]] = {
        "pipe": os.mkfifo,
        "folder": Path.mkdir,
        "device": lambda path: path.symlink_to("/dev/zero"),
    }
    for kind, make in makers.items():
        folder = tmp_path / kind
        folder.mkdir()
        make(folder / name)
        if name == "shard.safetensors":
            (folder / INDEX).write_text(json.dumps({"weight_map": {"a": name}}), encoding="utf-8")
        assert refused(folder) in {"not-a-file", "missing-file"}


@pytest.mark.parametrize(
    "content",
    [
        header(b"{", 2**63),
        header(b"{", 2**40),
        header(b"{" * 100_000),
        header(json.dumps({"a": {"dtype": "F32", "shape": [2**40, 2**20], "data_offsets": [0, 8]}}).encode()) + b"\0" * 8,
        header(json.dumps({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 2**50]}}).encode()) + b"\0" * 8,
        header(json.dumps({"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}}).encode()) + b"\0" * 8,
        header(json.dumps({"a": {"dtype": "X", "shape": [2], "data_offsets": [0, 8]}}).encode()) + b"\0" * 8,
        header(b"\xff\xfe{}"),
        b"",
        b"\x80\x02c",
        pickle.dumps({"a": 1}),
    ],
    ids=["2^63", "2^40", "braces", "shape", "end", "order", "dtype", "no UTF-8", "empty", "pickle opcodes", "pickle"],
)
def test_a_header_that_lies_is_refused(tmp_path: Path, content: bytes) -> None:
    """Before anything of its size is allocated."""
    (tmp_path / ONE).write_bytes(content)
    tracemalloc.start()
    assert refused(tmp_path / ONE) == refused(tmp_path) == "unreadable-file"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20


CONFIG = {"model_type": "gpt2", "n_layer": 24, "n_embd": 1024, "n_head": 16, "n_positions": 1024, "vocab_size": 50257}
VALUES = {
    "a huge number": 10**400,
    "infinity": float("inf"),
    "no number": float("nan"),
    "a negative": -5,
    "a long text": "x" * 100_000,
    "code": "__import__('os').system('touch ran')",
    "an expression": "9 ** 9 ** 9",
    "a reference": "${n_layer}",
    "a mapping": {"type": "linear", "out": 3},
    "a second key": "1\nextends: /etc/passwd",
    "a path": "../../secret.yaml",
    "a list": list(range(50_000)),
    "a truth": True,
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("key", ["n_layer", "activation_function", "model_type"])
def test_a_value_of_a_configuration_is_a_number_or_a_known_word(tmp_path: Path, key: str, value: object) -> None:
    """It never becomes a piece of a recipe, however it looks, and is judged at once."""
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, key: value}), encoding="utf-8")
    with at_most(3_000_000), pytest.raises(RecipeError) as stopped:
        _ = composer.load("gpt2").with_config(tmp_path).program
    assert not (tmp_path / "ran").exists()
    assert "Traceback" not in str(stopped.value)


def test_a_configuration_is_bounded(tmp_path: Path) -> None:
    """In bytes and in depth."""
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "x": "y" * 4 * 2**20}), encoding="utf-8")
    with pytest.raises(RecipeError) as stopped:
        composer.load("gpt2").with_config(tmp_path)
    assert stopped.value.diagnostics[0].code == "too-large"
    for depth in (17, 100_000):
        deep = '{"a":' * depth + "1" + "}" * depth
        (tmp_path / "config.json").write_text('{"model_type": "gpt2", "x": ' + deep + "}", encoding="utf-8")
        with pytest.raises(RecipeError) as stopped:
            composer.load("gpt2").with_config(tmp_path)
        assert stopped.value.diagnostics[0].code == "unreadable-file"


@pytest.mark.parametrize("way", ["tensors", "arrays", "model.safetensors", "pytorch_model.bin", "model.npz"])
@pytest.mark.parametrize("dtype", ["int64", "bool", "complex64"])
def test_numbers_that_are_no_floats_are_not_taken_for_weights(tmp_path: Path, way: str, dtype: str) -> None:
    """They are refused by name before anything is loaded, whichever way they come."""
    recipe = composer.load("gpt2", TINY)
    save_published(recipe.compile(seed=0), tmp_path / "floats.safetensors")
    tensors = load_file(tmp_path / "floats.safetensors")
    tensors["h.1.ln_1.weight"] = torch.ones(32).to(getattr(torch, dtype))
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    file = tmp_path / way
    writers: dict[str, Callable[[], object]] = {
        ".safetensors": lambda: save_file(tensors, file), ".bin": lambda: torch.save(tensors, file),
        ".npz": lambda: np.savez(file, **arrays),
    }  # fmt: skip
    source = tensors if way == "tensors" else arrays if way == "arrays" else file
    writers.get(file.suffix, lambda: None)()
    model = recipe.compile(seed=1)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(RecipeError, match=r"h\.1\.ln_1\.weight holds numbers of \w+ in the checkpoint") as stopped:
        load_published(model, source)
    assert [each.code for each in stopped.value.diagnostics] == ["checkpoints-dtype"]
    assert all(tensor.equal(before[name]) for name, tensor in model.state_dict().items())


def test_an_index_says_what_is_where(tmp_path: Path) -> None:
    """A tensor in two files, one that is in none, and one that is in another file."""
    for name, inside in {"a.safetensors": ["x", "y"], "b.safetensors": ["z"], "c.safetensors": ["y"]}.items():
        save_file({each: torch.zeros(2) for each in inside}, tmp_path / name)
    good = {"x": "a.safetensors", "y": "a.safetensors", "z": "b.safetensors"}
    for homes, message in [
        (good, ""),
        ({**good, "w": "b.safetensors"}, "the index says that w is here"),
        ({**good, "y": "b.safetensors"}, "the index says that y is here"),
        ({**good, "y": "c.safetensors"}, "a file beside this one has y too"),
    ]:
        (tmp_path / INDEX).write_text(json.dumps({"weight_map": homes}), encoding="utf-8")
        if not message:
            with PublishedCheckpoint(tmp_path) as checkpoint:
                assert sorted(checkpoint) == ["x", "y", "z"]
            continue
        with pytest.raises(RecipeError, match=message):
            PublishedCheckpoint(tmp_path)
