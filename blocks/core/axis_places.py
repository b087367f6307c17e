"""The axis that a field of a block means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

FIRST, LAST = "first", "last"
LENGTH_OF = "length_of"
"""The field with the axis of `like` that tells a block a length."""


def axis_places(axes: Sequence[Any], axis: str) -> list[int]:
    """Return the places of the axes that are meant, counted from the end: by the name of an axis, or else by its length; a place
    itself is a negative number, and the outer two are also called `first` and `last`.

    Args:
        axes: The axes of an input, with their names and sizes.
        axis: What is written for the axis.
    """
    count = len(axes)
    places = {FIRST: -count, LAST: -1, **{str(place): place for place in range(-count, 0)}}
    if axis in places:
        return [places[axis]] if axes else []
    named = [place - count for place, one in enumerate(axes) if one.name == axis]
    return named or [place - count for place, one in enumerate(axes) if str(one.size) == axis]
