"""Every damage to a checkpoint, in every format and by every way in: refused by name, with nothing half loaded or written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from safetensors.torch import load_file, save_file

import composer
from composer.diagnostics import RecipeError
from composer.published import export_folder
from composer.weights import load_published
from tests.cli.conftest import Arco, arco
from tests.published.test_importing import Runs
from tests.weights.test_gguf import SETTINGS, SIZES, as_llama_cpp, gguf

__all__ = ["arco"]
Tensors = dict[str, torch.Tensor]
NORM, LAST = "model.norm.weight", "model.layers.1.mlp.up_proj.weight"
INDEX = "model.safetensors.index.json"


def in_shards(tensors: Mapping[str, Any], place: Path, ending: str, save: Callable[[Any, Path], object], index: str) -> None:
    """Write a checkpoint in two files with an index."""
    homes = {name: f"model-{1 + number % 2}{ending}" for number, name in enumerate(sorted(tensors))}
    for file in {*homes.values()}:
        save({name: each for name, each in tensors.items() if homes[name] == file}, place / file)
    (place / index).write_text(json.dumps({"weight_map": homes}), encoding="utf-8")


FORMATS: dict[str, Callable[[Tensors, Path], object]] = {
    "safetensors": lambda tensors, place: save_file(tensors, place / "model.safetensors"),
    "safetensors in shards": lambda tensors, place: in_shards(tensors, place, ".safetensors", save_file, INDEX),
    "bin": lambda tensors, place: torch.save(tensors, place / "pytorch_model.bin"),
    "bin in shards": lambda tensors, place: in_shards(tensors, place, ".bin", torch.save, "pytorch_model.bin.index.json"),
    "npz": lambda tensors, place: numpy.savez(place / "model.npz", **{name: each.numpy() for name, each in tensors.items()}),
    "gguf": lambda tensors, place: (place / "model.gguf").write_bytes(gguf(SETTINGS, as_llama_cpp(tensors))),
}


def without(tensors: Tensors) -> Tensors:
    return {name: each for name, each in tensors.items() if name != NORM}


OF_TENSORS: dict[str, tuple[Callable[[Tensors], Tensors], str]] = {
    "missing": (without, f"the checkpoint lacks 1 tensor: {NORM}"),
    "extra": (lambda tensors: {**tensors, "model.layers.0.input_layernorm.extra": torch.ones(3)},
              "no rule covers 1 published tensor: model.layers.0.input_layernorm.extra"),
    "misshaped": (lambda tensors: {**tensors, NORM: torch.ones(63)}, f"{NORM} is 63 in the checkpoint, but 64 for this recipe"),
    "not finite": (lambda tensors: {**tensors, NORM: tensors[NORM] / 0}, f"{NORM} has numbers that are not finite"),
}  # fmt: skip
"""What is wrong with the tensors, and what is said of it."""


def file_of(place: Path) -> Path:
    """Return the file of a checkpoint that is damaged: of several, the last."""
    return sorted(each for each in place.iterdir() if each.suffix in (".safetensors", ".bin", ".npz", ".gguf"))[-1]


def cut(place: Path) -> None:
    """Leave the last bytes out."""
    file = file_of(place)
    file.write_bytes(file.read_bytes()[:-300])


def flip(place: Path) -> None:
    """Change a bit: of a number where there are checksums, and of the header where there are none."""
    file = file_of(place)
    content = bytearray(file.read_bytes())
    content[len(content) // 2 if file.suffix in (".bin", ".npz") else 9] ^= 0x80
    file.write_bytes(bytes(content))


OF_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "truncated": (cut, ""),
    "corrupt": (flip, ""),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Tensors]:
    """The configuration and the tensors of a small Llama."""
    place = tmp_path_factory.mktemp("sound") / "llama"
    export_folder(composer.load("llama3", SIZES).compile(seed=0), place, "llama")
    return (place / "config.json").read_text(encoding="utf-8"), load_file(place / "model.safetensors")


def written(kind: str, config: str, tensors: Tensors, place: Path) -> Path:
    """Write a published folder, and return what names it: the folder, or the file that holds everything."""
    place.mkdir()
    FORMATS[kind](tensors, place)
    if kind == "gguf":
        return place / "model.gguf"
    (place / "config.json").write_text(config, encoding="utf-8")
    return place


def outcomes(kind: str, named: Path, arco: Arco) -> dict[str, str]:
    """Return what each way in says of a checkpoint, nothing where it is taken; assert that a refusal leaves nothing behind."""
    weights = named / "model.npz" if kind == "npz" else named
    recipe = composer.load("llama3", SIZES)
    model = recipe.compile(seed=5)
    before = {name: each.clone() for name, each in model.state_dict().items()}
    said: dict[str, str] = {}

    def tried(way: str, load: Callable[[], object]) -> None:
        try:
            load()
            said[way] = ""
        except RecipeError as error:
            said[way] = " ".join(f"{each.span.source.name}: {each.message}" for each in error.diagnostics)

    tried("load_published", lambda: load_published(model, weights, "llama"))
    if said["load_published"]:
        assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    if kind != "npz":  # which a folder cannot hold
        tried("composer.load", lambda: composer.load(named).pretrained())
    there = {*Path.cwd().iterdir()}
    done = arco("import", named, *(["--weights", weights] if kind == "npz" else []), "-o", "imported")
    said["arco import"] = "" if done.code == 0 else " ".join(done.err.split())
    assert done.code == 0 or there == {*Path.cwd().iterdir()}
    if kind != "npz":
        sizes = [word for key, value in SIZES.items() for word in ("--set", f"{key}={str(value).lower()}")]
        words = (
            "--data",
            "notes.txt",
            "--tokenizer",
            "bytes",
            "--steps",
            1,
            "--seq-len",
            8,
            "--batch-size",
            2,
            "--device",
            "cpu",
        )
        done = arco("train", "llama3", *sizes, *words, "--init", named, "--run", "run")
        said["arco train --init"] = "" if done.code == 0 else " ".join(done.err.split())
        assert done.code == 0 or not [*Path("run").glob("**/*.safetensors")]
    return said


SAMPLED = {
    *((damage, "safetensors") for damage in ("none", *OF_TENSORS, *OF_FILES)),
    *(("missing", "bin"), ("truncated", "safetensors in shards"), ("corrupt", "bin in shards"), ("corrupt", "npz")),
    *(("none", "gguf"), ("misshaped", "gguf")),
}
"""Each damage and each format at least once; the others are exhaustive."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        pair if pair in SAMPLED else pytest.param(*pair, marks=pytest.mark.exhaustive)
        for pair in product(("none", *OF_TENSORS, *OF_FILES), FORMATS)
    ],
)
def test_a_damaged_checkpoint_is_refused_by_name(
    damage: str, kind: str, sound: tuple[str, Tensors], arco: Arco, tmp_path: Path
) -> None:
    """And a sound one is taken by all of these ways."""
    config, tensors = sound
    Path("notes.txt").write_text("some notes to be learned\n" * 20, encoding="utf-8")
    change, says = OF_TENSORS.get(damage, (lambda each: each, ""))
    named = written(kind, config, change(tensors), tmp_path / "theirs")
    if damage in OF_FILES:
        OF_FILES[damage][0](tmp_path / "theirs")
        says = file_of(tmp_path / "theirs").name
    said = outcomes(kind, named, arco)
    assert len(said) == (2 if kind == "npz" else 4)
    for way, message in said.items():
        assert (says in message and "Traceback" not in message) if damage != "none" else not message, (way, message)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("bin", marks=pytest.mark.exhaustive), "bin in shards"])
def test_code_in_a_pickle_is_refused_by_every_way(kind: str, sound: tuple[str, Tensors], arco: Arco, tmp_path: Path) -> None:
    """And not run, in any of several files."""
    Path("notes.txt").write_text("some notes to be learned\n" * 20, encoding="utf-8")
    named = written(kind, *sound, tmp_path / "theirs")
    file, mark = file_of(named), tmp_path / "mark"
    torch.save({**torch.load(file, weights_only=True), "code": Runs(mark)}, file)
    for way, message in outcomes(kind, named, arco).items():
        assert file.name in message and "without running code" in message, way
    assert not mark.exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["safetensors", "gguf"])
def test_an_unknown_key_is_refused_by_every_way(kind: str, sound: tuple[str, Tensors], arco: Arco, tmp_path: Path) -> None:
    """That reads the settings, which those who have a model already do not."""
    config, tensors = sound
    Path("notes.txt").write_text("some notes to be learned\n" * 20, encoding="utf-8")
    named = written(kind, json.dumps({**json.loads(config), "attention_sinks": 4}, indent=1), tensors, tmp_path / "theirs")
    if kind == "gguf":
        named.write_bytes(gguf({**SETTINGS, "llama.expert_count": 4}, as_llama_cpp(tensors)))
    said = outcomes(kind, named, arco)
    assert not said.pop("load_published") and len(said) == 3
    for way, message in said.items():
        key = "llama.expert_count" if kind == "gguf" else "attention_sinks"
        assert f"the recipe does not map 1 key of this file: {key}" in message, way


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["safetensors in shards", pytest.param("bin in shards", marks=pytest.mark.exhaustive)])
def test_a_shard_that_is_gone_is_refused_by_every_way(kind: str, sound: tuple[str, Tensors], arco: Arco, tmp_path: Path) -> None:
    """By its name."""
    Path("notes.txt").write_text("some notes to be learned\n" * 20, encoding="utf-8")
    named = written(kind, *sound, tmp_path / "theirs")
    file = file_of(named)
    file.unlink()
    for way, message in outcomes(kind, named, arco).items():
        assert file.name in message, way
