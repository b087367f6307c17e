"""Numbers, shapes and names as a drawing writes them."""

from __future__ import annotations

import re

from composer.cost.units import short
from composer.graph.describe import number
from composer.graph.dims import Dim
from composer.graph.types import TensorType, Type

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
THIN_SPACE = "\u00a0"
"""What stands between groups of three digits."""


def grouped(value: float) -> str:
    """A number with its thousands apart, from five digits on: `4096`, `14 336`."""
    text = number(value)
    return f"{int(text):,}".replace(",", THIN_SPACE) if text.isdigit() and len(text) > 4 else text


def counted(parameters: int) -> str:
    """A number of parameters in three digits: `41.9 M`."""
    return short(parameters).replace(" k", " K")


def size(dim: Dim) -> str:
    """The size of an axis: `4096`, `T + 1`."""
    if isinstance(dim, int):
        return grouped(dim)
    return re.sub(r"[A-Za-z_]\w*", lambda found: LETTERS.get(found[0], found[0]), str(dim))


def shape(type_: Type | tuple[Type, ...]) -> str:
    """The sizes of a tensor: `B × T × 4096`; nothing where there is not one."""
    if not isinstance(type_, TensorType) or not type_.axes:
        return ""
    return " × ".join(f"({text})" if " " in text and text[0] != "(" else text for text in map(size, type_.sizes))


def spoken(name: str) -> str:
    """A name of a recipe as a title: `cross_attention` is `Cross attention`."""
    words = re.sub(r"(?<=[a-z])(?=\d)", " ", name.replace("_", " ").strip())
    return words[:1].upper() + words[1:]


UNPRINTABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
"""Control characters, halves of characters, and what is none: XML has no word for them."""


def printable(text: str) -> str:
    """One line of a text, without what no page can hold."""
    return " ".join(UNPRINTABLE.sub("\ufffd", text).split())
