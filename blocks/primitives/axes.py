"""Axes of inputs, found by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from blocks.core import BlockError, axis_places
from blocks.core.axis_places import FIRST, LAST

COUNTED_FROM_THE_END = {"-1": "last", "-2": "second-to-last", "-3": "third-to-last", "-4": "fourth-to-last"}
"""What a drawing calls axes that a recipe counts from the end."""
HINT = "an axis is called by its name or its length, by its place counted from the end, such as -2, or `first` or `last`"


def axis_index(axes: Sequence[Any], axis: str, field: str = "axis") -> int:
    """Return the index of an axis, counted from the last: by its name, or else by its length or its place.

    Args:
        axes: The axes of a type.
        axis: The name.
        field: The field that names it.

    Raises:
        BlockError: No axis is meant, or several are.
    """
    named = axis_places(axes, axis)
    if len(named) != 1:
        near = get_close_matches(axis, [text for one in axes for text in (one.name, str(one.size)) if text], n=1)
        raise BlockError(
            f"[{', '.join(map(_shown, axes))}] has {'several axes' if named else 'no axis'} `{axis}`",
            field=field,
            hint="" if named or not axes else f"did you mean {near[0]}?" if near else HINT,
        )
    return named[0]


def axis_in_words(axis: str, words: Sequence[str] = ()) -> str:
    """Return what a drawing calls an axis.

    Args:
        axis: The axis as a recipe names it.
        words: What each axis of the value is called, where that is known.
    """
    place = {FIRST: -len(words), LAST: -1}.get(axis, int(axis) if axis in COUNTED_FROM_THE_END else 0)
    if -len(words) <= place < 0 and words[place]:
        return words[place]
    if axis in (FIRST, LAST):
        return f"the {axis} axis"
    if axis in COUNTED_FROM_THE_END:
        return f"the {COUNTED_FROM_THE_END[axis]} axis"
    return f"axis {axis}" if axis.lstrip("-").isdigit() else axis


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


def _shown(axis: Any) -> str:
    """Return an axis by its length, with its name where that says more."""
    return f"{axis.name}: {axis.size}" if axis.name and axis.name != str(axis.size) else str(axis.size)
