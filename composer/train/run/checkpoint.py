"""Checkpoints: folders of tensors and a file of counters."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from pydantic import ConfigDict

from composer.printable import printable
from composer.train.errors import TrainingError
from composer.train.input_files import read_bytes, typed_json
from composer.train.run.manifest import FORMAT, name_of
from composer.train.run.tensors import Tensors, pieces, read_tensors
from composer.version import __version__

PARTS = ("model", "optimizer", "random")
"""The parts of a checkpoint that are files of tensors."""
STATE_LIMIT = 1 << 20
"""The largest size of the file of counters that is read, in bytes."""


def environment_here() -> dict[str, str]:
    """Return what the last bits of a step depend on, besides the run and the processor."""
    return {"Composer": __version__, "torch": torch.__version__, "threads": str(torch.get_num_threads())}


def changed_environment(checkpoint: Checkpoint) -> str:
    """Return in which of these the process differs from the one that wrote a checkpoint, and in what way; empty if in none."""
    here = environment_here()
    changed = [name for name, there in checkpoint.environment.items() if name in here and here[name] != there]
    return printable(", ".join(f"{name} {checkpoint.environment[name]}, now {here[name]}" for name in changed))


@dataclass(frozen=True)
class Report:
    """The metrics of the step of a checkpoint, which the validation after it completes."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    line: dict[str, int | float]
    """The entries for the file of metrics but those of the validation."""
    batches: int
    """Number of batches of the validation; 0 for the whole held-out text."""


@dataclass(frozen=True)
class Checkpoint:
    """The state that the next step depends on, besides the recipe, the settings and the data."""

    step: int
    model: Tensors
    optimizer: Tensors
    random: Tensors
    """States of the random generators, by name."""
    tokens: int
    """Targets so far."""
    seconds: float
    """Time spent in training steps so far."""
    report: Report | None = None
    """What is reported after the checkpoint is saved, if its step is one with a validation."""
    environment: Mapping[str, str] = field(default_factory=environment_here)
    """What else the numbers of the next step depend on; empty in a run of a version that did not keep it."""


@dataclass(frozen=True)
class Counters:
    """The file of a checkpoint that holds all but the tensors."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    format: int
    step: int
    tokens: int
    seconds: float
    report: Report | None
    environment: dict[str, str] = field(default_factory=dict)


def files_of(checkpoint: Checkpoint) -> Mapping[str, Iterable[bytes | memoryview]]:
    """Return the content of each file of a checkpoint, in pieces."""
    counters = Counters(
        FORMAT, checkpoint.step, checkpoint.tokens, checkpoint.seconds, checkpoint.report, dict(checkpoint.environment)
    )
    state = f"{json.dumps(asdict(counters), indent=2)}\n".encode()
    return {**{f"{name}.safetensors": pieces(getattr(checkpoint, name)) for name in PARTS}, "state.json": [state]}


def read_checkpoint(folder: Path) -> Checkpoint:
    """Return the checkpoint in a folder whose files are verified.

    Raises:
        TrainingError: A file has another form.
    """
    path = folder / "state.json"
    counters = typed_json(read_bytes(path, limit=STATE_LIMIT, follow=False), Counters, path)
    if counters.format != FORMAT:
        raise TrainingError(f"{path} has the format {counters.format}; this version of Composer reads the format {FORMAT}")
    if name_of(counters.step) != folder.name:
        raise TrainingError(f"{path} is of the step {counters.step}, its folder is {folder.name}")
    if counters.report is not None and (counters.report.line.get("step") != counters.step or "loss" not in counters.report.line):
        raise TrainingError(f"{path} has a report of another step, or without a loss")
    model, optimizer, random = (read_tensors(folder / f"{name}.safetensors") for name in PARTS)
    return Checkpoint(
        counters.step, model, optimizer, random, counters.tokens, counters.seconds, counters.report, counters.environment
    )
