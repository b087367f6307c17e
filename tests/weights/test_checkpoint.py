"""Checkpoints on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest
import torch
from safetensors.torch import save_file

import composer
from composer.diagnostics import RecipeError
from composer.lower import Model
from composer.weights import PublishedCheckpoint, load_published, mapping, save_published
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
    """In one diagnostic; a file outside of the folder is never opened."""
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(RecipeError) as error:
        PublishedCheckpoint(tmp_path if name.endswith((".json", ".txt")) else file)
    assert [diagnostic.code for diagnostic in error.value.diagnostics] == [code]


def test_files_of_torch_and_numpy_are_read_too(tmp_path: Path) -> None:
    """A pickle of which nothing but tensors is read, a folder of pieces of one, and an archive of arrays: all bit for bit."""
    torch.save({"a": A, "b": B}, tmp_path / "model.pt")
    folder, pieces = tmp_path / "folder", tmp_path / "pieces"
    folder.mkdir()
    pieces.mkdir()
    torch.save({"a": A, "b": B}, folder / "pytorch_model.bin")
    torch.save({"a": A}, pieces / "one.bin")
    torch.save({"b": B}, pieces / "two.bin")
    index = {"weight_map": {"a": "one.bin", "b": "two.bin"}}
    (pieces / "pytorch_model.bin.index.json").write_text(json.dumps(index), encoding="utf-8")
    numpy.savez(tmp_path / "plain.npz", a=A.numpy(), b=B.numpy().astype(">f4"))
    numpy.savez_compressed(tmp_path / "small.npz", a=A.numpy(), b=B.numpy())
    for path in (tmp_path / "model.pt", folder, pieces, tmp_path / "plain.npz", tmp_path / "small.npz"):
        with PublishedCheckpoint(str(path)) as tensors:
            assert dict(tensors.shapes) == {"a": (2, 3), "b": (4,)} and len(tensors) == 2
            assert torch.equal(tensors["a"], A) and torch.equal(tensors["b"], B)


class Runs:
    """Runs code when it is unpickled by a reader that allows it."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.file,))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"state_dict": {"a": A}, "epoch": 3}, '["state_dict"]'),
        ({"a": A, "steps": 3}, "the tensors alone"),
        ([A, B], "by name"),
        (Runs, "without running code"),
    ],
)
def test_a_pickle_of_other_things_is_refused(tmp_path: Path, content: object, says: str) -> None:
    """With what to pass instead; code in it is not run."""
    mark = tmp_path / "mark"
    torch.save({"a": A, "x": Runs(mark)} if content is Runs else content, tmp_path / "model.bin")
    with pytest.raises(RecipeError) as error:
        PublishedCheckpoint(tmp_path / "model.bin")
    (wrong,) = error.value.diagnostics
    assert wrong.code == "unreadable-file" and says in wrong.message + wrong.hint and not mark.exists()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("model.bin", b"\x80\x02}q\x00.", "weights_only=True"),
        ("model.npz", b"PK\x05\x06", "not a file of arrays"),
        ("model.h5", b"\x89HDF", "TensorFlow"),
        ("model.gguf", b"GGUF", "llama.cpp"),
        ("gone.npz", None, "no such file"),
        ("gone.pt", None, "no such file"),
    ],
)
def test_what_would_work_is_told(tmp_path: Path, name: str, content: bytes | None, says: str) -> None:
    """Of a file in another format, and of a folder that holds one."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(RecipeError) as error:
        PublishedCheckpoint(tmp_path / name)
    (wrong,) = error.value.diagnostics
    assert says in wrong.message + wrong.hint
    if name != "model.bin":
        with pytest.raises(RecipeError) as error:
            PublishedCheckpoint(tmp_path)
        (wrong,) = error.value.diagnostics
        assert wrong.hint == ("" if content is None else f"name a file: {name}")


def test_objects_in_an_archive_are_not_read(tmp_path: Path) -> None:
    """They are pickles."""
    numpy.savez(tmp_path / "a.npz", a=numpy.array([Runs(tmp_path / "mark")], dtype=object))
    with pytest.raises(RecipeError):
        PublishedCheckpoint(tmp_path / "a.npz")
    assert not (tmp_path / "mark").exists()


TINY = {"n_layers": 2, "d_model": 8, "n_heads": 2, "vocab": 11, "context": 4}


def test_a_model_is_filled_from_arrays_by_name_and_from_paths_as_text(tmp_path: Path) -> None:
    """What `state_dict` would hold, as arrays of numpy; a folder, as a string; what is open already."""
    source = composer.load("gpt2", TINY).compile(seed=0)
    save_published(source, str(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    with PublishedCheckpoint(tmp_path) as opened:
        arrays = {name: tensor.numpy() for name, tensor in opened.items()}
        for given in (arrays, str(tmp_path), tmp_path / "model.safetensors", opened, dict(opened)):
            model = composer.load("gpt2", TINY).compile(seed=1)
            load_published(model, given)
            theirs = source.state_dict()
            assert all(torch.equal(tensor, theirs[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"model": {"wte.weight": A}}, '["model"]'),
        ({"wte.weight": [1.0, 2.0]}, "'wte.weight' is a list"),
        ({3: A}, "3 is none"),
        ({"wte.weight": numpy.array(["x"])}, "<U1"),
    ],
)
def test_what_are_no_tensors_by_name_is_refused(given: dict[str, object], says: str) -> None:
    """Before anything is changed."""
    model = composer.load("gpt2", TINY).compile(seed=1)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    if says == "<U1":
        made = mapping_of(model)
        given = {name: numpy.zeros(shape, dtype="<U1" if name == "ln_f.bias" else "<f4") for name, shape in made.items()}
    with pytest.raises(RecipeError) as error:
        load_published(model, given)
    assert says in "".join(each.message + each.hint for each in error.value.diagnostics)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def mapping_of(model: Model) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the published tensors of a model."""
    checkpoints = model.program.untyped.recipe.checkpoints
    assert checkpoints is not None
    return dict(mapping(checkpoints, None, {name: tuple(one.shape) for name, one in model.state_dict().items()}).published)


def test_a_model_type_that_is_mistyped_is_marked_where_it_is_written(tmp_path: Path) -> None:
    """In the folder's `config.json`, or as the argument."""
    model = composer.load("gpt2", TINY).compile(seed=1)
    save_published(model, tmp_path)
    (tmp_path / "config.json").write_text('{"x": {"model_type": 1},\n "model_type": "gtp2"}', encoding="utf-8")
    for arguments, place in (((tmp_path,), (2, 16, 22)), ((tmp_path, "gtp2"), (1, 1, 5))):
        with pytest.raises(RecipeError) as error:
            load_published(model, *arguments)
        (wrong,) = error.value.diagnostics
        assert (wrong.span.line, wrong.span.column, wrong.span.end_column) == place and wrong.hint == "did you mean gpt2?"
