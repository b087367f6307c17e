"""Checkpoints: folders of tensors, written aside, checked by checksum, never half there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from composer.train.errors import TrainingError

Tensors = Mapping[str, Tensor]

MANIFEST = "manifest.json"
LATEST = "latest"
ASIDE = ".aside-"
"""Begins the names of folders and files that are not finished; nothing ever reads them."""


@dataclass(frozen=True)
class Checkpoint:
    """All that the next step depends on, beside the recipe, the settings and the data."""

    step: int
    model: Tensors
    optimizer: Tensors
    random: Tensors
    """States of the random generators, by name."""
    counters: Mapping[str, Any]
    """Numbers that go on counting: tokens, seconds."""


def save(checkpoint: Checkpoint, checkpoints: Path, *, keep: int = 2) -> Path:
    """Write a folder `step-000500` under `checkpoints`, point `latest` at it, and drop all but the last `keep`.

    Whoever looks, whenever the power fails, finds whole checkpoints only: the manifest of checksums is written last,
    and the folder takes its name when it is complete.
    """
    checkpoints.mkdir(parents=True, exist_ok=True)
    remove_unfinished(checkpoints)
    folder = checkpoints / f"step-{checkpoint.step:06d}"
    aside = checkpoints / f"{ASIDE}{folder.name}"
    aside.mkdir()
    for name in ("model", "optimizer", "random"):
        tensors = getattr(checkpoint, name)
        save_file({key: value.detach().cpu().contiguous() for key, value in tensors.items()}, aside / f"{name}.safetensors")
    write_json({"step": checkpoint.step, **checkpoint.counters}, aside / "state.json")
    write_json({"sha256": {path.name: checksum(path) for path in sorted(aside.iterdir())}}, aside / MANIFEST)
    for path in aside.iterdir():
        flush_to_disk(path)
    if folder.exists():  # of a run that went back to an earlier checkpoint
        folder.rename(checkpoints / f"{ASIDE}old-{folder.name}")
    aside.rename(folder)
    replace_text(checkpoints / LATEST, folder.name + "\n")
    prune(checkpoints, checkpoint.step, keep)
    return folder


def load(folder: Path) -> Checkpoint:
    """Load a checkpoint. Raise `TrainingError`, naming the file, where one is missing or differs by a single bit
    from what was written.
    """
    verify(folder)
    state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    model, optimizer, random = (read_tensors(folder / f"{name}.safetensors") for name in ("model", "optimizer", "random"))
    return Checkpoint(state.pop("step"), model, optimizer, random, state)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors themselves: `load_file` maps the file, which must be free to go while the run trains on."""
    return {name: tensor.clone() for name, tensor in load_file(path).items()}


def verify(folder: Path) -> None:
    """Compare every file with its checksum."""
    try:
        expected = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["sha256"]
    except FileNotFoundError:
        raise TrainingError(f"there is no checkpoint {folder}", hint=earlier(folder)) from None
    except (ValueError, KeyError, TypeError):
        raise TrainingError(f"{folder / MANIFEST} is damaged", hint=earlier(folder)) from None
    for name, digest in expected.items():
        path = folder / name
        if not path.is_file():
            raise TrainingError(f"{path} is missing", hint=earlier(folder))
        if checksum(path) != digest:
            raise TrainingError(f"{path} is damaged: its checksum is not the manifest's", hint=earlier(folder))


def latest(checkpoints: Path) -> Path:
    """Return the folder that the last finished save wrote."""
    try:
        return checkpoints / (checkpoints / LATEST).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise TrainingError(f"{checkpoints.parent} has no checkpoint yet") from None


def finished(checkpoints: Path) -> list[Path]:
    """Return the complete checkpoints, oldest first."""
    return sorted(checkpoints.glob("step-*"), key=step_of)


def step_of(folder: Path) -> int:
    """Return the step in a checkpoint folder's name."""
    return int(folder.name.removeprefix("step-"))


def earlier(folder: Path) -> str:
    """Return a hint at the checkpoint before this one, empty where there is none."""
    before = [other.name for other in finished(folder.parent) if step_of(other) < step_of(folder)]
    return f"the one before it is {before[-1]}" if before else ""


def prune(checkpoints: Path, step: int, keep: int) -> None:
    """Drop all but the last `keep` up to `step`, and those after it: they belong to a future that was given up."""
    folders = finished(checkpoints)
    kept = [folder for folder in folders if step_of(folder) <= step][-keep:]
    for folder in folders:
        if folder not in kept:
            folder.rename(checkpoints / f"{ASIDE}old-{folder.name}")  # so that a folder under its own name is complete
    remove_unfinished(checkpoints)


def remove_unfinished(checkpoints: Path) -> None:
    """Clear what an interrupted save left behind."""
    for folder in checkpoints.glob(f"{ASIDE}*"):
        shutil.rmtree(folder) if folder.is_dir() else folder.unlink()


def checksum(path: Path) -> str:
    """Return the SHA-256 of the file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(content: Mapping[str, Any], path: Path) -> None:
    """Write a small JSON file."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def replace_text(path: Path, text: str) -> None:
    """Put a new text in a file's place at once: readers see the old one or the new one."""
    aside = path.with_name(f"{ASIDE}{path.name}")
    aside.write_text(text, encoding="utf-8")
    flush_to_disk(aside)
    aside.replace(path)


def flush_to_disk(path: Path) -> None:
    """Wait until the disk has the file."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
