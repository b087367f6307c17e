"""Axes of inputs, found by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from blocks.core import BlockError

HINT = "an axis is called by its name or its length, or `first` or `last`"
FIRST, LAST = "first", "last"


def axis_index(axes: Sequence[Any], axis: str, field: str = "axis") -> int:
    """Return the index of an axis by its name, counted from the last.

    Args:
        axes: The axes of a type.
        axis: The name.
        field: The field that names it.

    Raises:
        BlockError: No axis has this name, or several have it.
    """
    count = len(axes)
    named = [i - count for i, one in enumerate(axes) if axis in (one.name, str(one.size))]
    if axes and axis in (FIRST, LAST):
        named = [-count if axis == FIRST else -1]
    if not axes or len(named) != 1:
        shown = [str(one.size) for one in axes]
        near = get_close_matches(axis, shown, n=1)
        raise BlockError(
            f"[{', '.join(shown)}] has {'several axes' if named and axes else 'no axis'} `{axis}`",
            field=field,
            hint="" if named or not axes else f"did you mean {near[0]}?" if near else HINT,
        )
    return named[0]


def changed(type_: Any) -> Any:
    """Return the type of other values of a dtype and axes: nothing is known of them before the model runs.

    Args:
        type_: The type.
    """
    return replace(type_, within=None)


def resized(type_: Any, dim: int, size: Any) -> Any:
    """Return a type in which the axis at an index has another length, and its name.

    Args:
        type_: The type.
        dim: The index, counted from the last axis.
        size: The length.
    """
    place = len(type_.axes) + dim
    return replace(type_, axes=(*type_.axes[:place], replace(type_.axes[place], size=size), *type_.axes[place + 1 :]))
