"""Shapes and names as a drawing writes them."""

from __future__ import annotations

import re

from blocks.core import size
from composer.graph.types import TensorType, Type


def shape(type_: Type | tuple[Type, ...]) -> str:
    """Return the sizes of a tensor: `B × T × 4096`; nothing where there is not one."""
    if not isinstance(type_, TensorType) or not type_.axes:
        return ""
    return " × ".join(f"({text})" if " " in ONE.sub("", text) else text for text in map(size, type_.sizes))


ONE = re.compile(r"^(ceil)?\([^()]*\)$|^\(.*\)$")
"""A size that is read as one without brackets around it."""
UNPRINTABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
"""Control characters, halves of characters, and what is none: XML has no word for them."""


def printable(text: str) -> str:
    """Return one line of a text, without what no page can hold."""
    return " ".join(UNPRINTABLE.sub("\ufffd", text).split())
