"""Keeps the drawings of the zoo as they are now: `python -m tests.draw.golden`, after a look at them."""

from __future__ import annotations

from pathlib import Path

import composer
from composer.recipe import zoo_names

FOLDER = Path(__file__).parent / "golden"


def keep() -> None:
    """Writes all of them."""
    FOLDER.mkdir(exist_ok=True)
    for name in zoo_names():
        composer.load(name).draw().save(FOLDER / f"{name}.svg")


if __name__ == "__main__":
    keep()
