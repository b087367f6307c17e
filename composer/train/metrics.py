"""The metrics of a run, one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from composer.train.run.checkpoint import replace_text

Metrics = Mapping[str, float | int]


def append(path: Path, metrics: Metrics) -> None:
    """Append a line."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(metrics) + "\n")


def read(path: Path) -> list[Metrics]:
    """Return all complete lines; the last one is left out if a crash cut it short."""
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else [""]
    return [json.loads(line) for line in lines[:-1]]


def rewind(path: Path, step: int) -> None:
    """Remove the lines after a step, which a resumed run writes again."""
    kept = [json.dumps(metrics) for metrics in read(path) if metrics["step"] <= step]
    replace_text(path, "".join(line + "\n" for line in kept))
