"""The run's measurements, one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from composer.train.run.checkpoint import replace_text

Metrics = Mapping[str, float | int]


def append(path: Path, metrics: Metrics) -> None:
    """Add a line."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(metrics) + "\n")


def read(path: Path) -> list[Metrics]:
    """Return every complete line; a line cut short by a crash can only be the last, and is left out."""
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else [""]
    return [json.loads(line) for line in lines[:-1]]


def rewind(path: Path, step: int) -> None:
    """Forget what lies after a step: a resumed run measures it again."""
    kept = [json.dumps(metrics) for metrics in read(path) if metrics["step"] <= step]
    replace_text(path, "".join(line + "\n" for line in kept))
