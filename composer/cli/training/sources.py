"""`--data FILE=WEIGHT`: sources of data, each with its share of what is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from composer.cli.arguments import Problem


def with_weights(given: Sequence[Path]) -> tuple[list[Path], tuple[float, ...]]:
    """Return the paths and patterns, and the weight of each; no weights if none is given.

    What follows the last `=` is a weight if it is a number, unless there is a file of the whole name: `a=1.txt` is a path, and so
    is `a=1` if that is a file, which `a=1=0.5` gives a weight.

    Raises:
        Problem: A weight is not above 0, or some sources have one and others have none.
    """
    pairs = [_split(path) for path in given]
    weighted = [(path, weight) for path, weight in pairs if weight is not None]
    if not weighted:
        return [*given], ()
    if without := next((path for path, weight in pairs if weight is None), None):
        raise Problem(f"arco train: {without} has no weight, and {weighted[0][0]} has one", "write --data FILE=WEIGHT for each")
    for path, weight in weighted:
        if not 0 < weight < float("inf"):
            raise Problem(f"arco train: the weight of {path} is {weight:g}", "a weight is a number above 0")
    return [path for path, _ in weighted], tuple(weight for _, weight in weighted)


def _split(path: Path) -> tuple[Path, float | None]:
    name, _, weight = str(path).rpartition("=")
    try:
        number = float(weight)
    except ValueError:
        return path, None
    return (path, None) if not name or path.exists() else (Path(name), number)
