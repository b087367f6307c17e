"""Axes of inputs, found by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blocks.core import BlockError


def axis_index(axes: Sequence[Any], axis: str) -> int:
    """Return the index of an axis by its name, counted from the last.

    Raises:
        BlockError: No axis has this name, or several have it.
    """
    count = len(axes)
    named = [i - count for i, one in enumerate(axes) if axis in (one.name, str(one.size))] if axis != "last" else [-1]
    if not axes or len(named) != 1:
        shown = ", ".join(str(one.size) for one in axes)
        raise BlockError(f"[{shown}] has {'several axes' if named and axes else 'no axis'} `{axis}`", field="axis")
    return named[0]
