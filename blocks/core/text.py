"""Numbers, sizes and names as texts."""

from __future__ import annotations

import re
from typing import Any

LETTERS = {
    "batch": "B",
    "time": "T",
    "source": "S",
    "source_time": "S",
    "height": "H",
    "width": "W",
    "channels": "C",
}
"""Axes by the letters of the field."""
NARROW = "\u00a0"
"""What stands between groups of three digits."""


def number(value: float) -> str:
    """Return a number as one would write it, every digit of it: `10000`, `1e-05`, `0.1`."""
    return str(int(value)) if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15) else repr(value)


def grouped(value: float) -> str:
    """Return a number with its thousands apart, from five digits on: `4096`, `14 336`."""
    text = number(value)
    return f"{int(text):,}".replace(",", NARROW) if text.isdigit() and len(text) > 4 else text


def size(dim: Any) -> str:
    """Return the size of an axis, a number or an expression of axes: `4096`, `T + 1`."""
    if isinstance(dim, int):
        return grouped(dim)
    return re.sub(r"[A-Za-z_]\w*", lambda found: LETTERS.get(found[0], found[0]), str(dim))


def spoken(name: str) -> str:
    """Return a name of a recipe as a title: `cross_attention` is `Cross attention`."""
    words = re.sub(r"(?<=[a-z])(?=\d)", " ", name.replace("_", " ").strip())
    return words[:1].upper() + words[1:]
