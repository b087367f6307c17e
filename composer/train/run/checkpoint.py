"""Checkpoints: folders of tensors, written atomically and verified by checksum."""

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
"""Prefix of the names of unfinished folders and files, which are never read."""


@dataclass(frozen=True)
class Checkpoint:
    """The state that the next step depends on, besides the recipe, the settings and the data."""

    step: int
    model: Tensors
    optimizer: Tensors
    random: Tensors
    """States of the random generators, by name."""
    counters: Mapping[str, Any]
    """Running totals: tokens, seconds."""


def save(checkpoint: Checkpoint, checkpoints: Path, *, keep: int = 2) -> Path:
    """Write a folder `step-000500` under `checkpoints`, point `latest` at it, and delete all but the last `keep`.

    Even after a power failure, every checkpoint is complete: the manifest of checksums is written last, and the folder is renamed
    when everything is on the disk.
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
    if folder.exists():  # the run was resumed from an earlier checkpoint
        folder.rename(checkpoints / f"{ASIDE}old-{folder.name}")
    aside.rename(folder)
    replace_text(checkpoints / LATEST, folder.name + "\n")
    prune(checkpoints, checkpoint.step, keep)
    return folder


def load(folder: Path) -> Checkpoint:
    """Load a checkpoint; raise `TrainingError` if one of its files is missing or its checksum differs."""
    verify(folder)
    state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    model, optimizer, random = (read_tensors(folder / f"{name}.safetensors") for name in ("model", "optimizer", "random"))
    return Checkpoint(state.pop("step"), model, optimizer, random, state)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return copies of the tensors: `load_file` maps the file into memory, but the run may delete it later."""
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
            raise TrainingError(f"{path} is damaged: its checksum differs from the manifest", hint=earlier(folder))


def latest(checkpoints: Path) -> Path:
    """Return the folder of the latest complete checkpoint."""
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
    """Return a hint that names the previous checkpoint, or an empty string without one."""
    before = [other.name for other in finished(folder.parent) if step_of(other) < step_of(folder)]
    return f"the previous checkpoint is {before[-1]}" if before else ""


def prune(checkpoints: Path, step: int, keep: int) -> None:
    """Remove all but the last `keep` checkpoints up to `step`, and those of later steps, which a resumed run has abandoned."""
    folders = finished(checkpoints)
    kept = [folder for folder in folders if step_of(folder) <= step][-keep:]
    for folder in folders:
        if folder not in kept:
            folder.rename(checkpoints / f"{ASIDE}old-{folder.name}")  # so that a folder under its own name is complete
    remove_unfinished(checkpoints)


def remove_unfinished(checkpoints: Path) -> None:
    """Remove what interrupted saves left behind."""
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
    """Replace the text of a file atomically: readers see either the old text or the new one."""
    aside = path.with_name(f"{ASIDE}{path.name}")
    aside.write_text(text, encoding="utf-8")
    flush_to_disk(aside)
    aside.replace(path)


def flush_to_disk(path: Path) -> None:
    """Wait until the file is on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
