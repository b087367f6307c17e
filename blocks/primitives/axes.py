"""Axes of what flows in, found by their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blocks.core import BlockError


def axis_index(axes: Sequence[Any], axis: str) -> int:
    """Return which axis is meant, counted from the last.

    Raises:
        BlockError: where there is none of the name, or several.
    """
    count = len(axes)
    named = [i - count for i, one in enumerate(axes) if axis in (one.name, str(one.size))] if axis != "last" else [-1]
    if not axes or len(named) != 1:
        shown = ", ".join(str(one.size) for one in axes)
        raise BlockError(f"[{shown}] has {'several axes' if named and axes else 'no axis'} `{axis}`", field="axis")
    return named[0]
