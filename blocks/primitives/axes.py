"""Axes of inputs, found by name."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from blocks.core import BlockError

HINT = "an axis is called by its name or its length, or `last`"


def axis_index(axes: Sequence[Any], axis: str) -> int:
    """Return the index of an axis by its name, counted from the last.

    Raises:
        BlockError: No axis has this name, or several have it.
    """
    count = len(axes)
    named = [i - count for i, one in enumerate(axes) if axis in (one.name, str(one.size))] if axis != "last" else [-1]
    if not axes or len(named) != 1:
        shown = [str(one.size) for one in axes]
        near = get_close_matches(axis, shown, n=1)
        raise BlockError(
            f"[{', '.join(shown)}] has {'several axes' if named and axes else 'no axis'} `{axis}`",
            field="axis",
            hint="" if named or not axes else f"did you mean {near[0]}?" if near else HINT,
        )
    return named[0]
