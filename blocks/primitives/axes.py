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
NUMERALS = ("no", "one", "two", "three", "four")
PLACES = {FIRST: FIRST, LAST: LAST, **COUNTED_FROM_THE_END}
"""What a drawing calls axes that a recipe names by their places."""
HINT = "an axis is called by its name or its length, by its place counted from the end, such as -2, or `first` or `last`"
IMAGE = {"channel": -3, "channels": -3, "c": -3, "height": -2, "h": -2, "width": -1, "w": -1}
"""What the axes of an image are often called, and where they are."""


def axis_index(axes: Sequence[Any], axis: str, field: str = "axis") -> int:
    """Return the index of an axis, counted from the last: by its name, or else by its length or its place.

    Args:
        axes: The axes of a type.
        axis: The name.
        field: The field that names it.

    Raises:
        BlockError: No axis is meant, or several are, or a number would mean one by its length and another by its place from the
            left.
    """
    named = axis_places(axes, axis)
    shown = f"[{', '.join(map(_shown, axes))}]"
    from_left = _from_left(axes, axis)
    if from_left is not None and named != [from_left]:
        said = f"is the length of an axis of {shown}, and a place from the left" if named else f"is no axis of {shown}"
        hint = f"axes are given by name or counted from the end: place {axis} from the left is {_told(axes, from_left)}"
        if len(named) == 1:
            hint += f", and the axis of length {axis} is {_told(axes, named[0])}"
        raise BlockError(f"`{axis}` {said}", field=field, hint=hint)
    if len(named) > 1:
        hint = f"counted from the end, they are {' and '.join(_told(axes, place) for place in named)}"
        raise BlockError(f"{shown} has several axes `{axis}`", field=field, hint=hint)
    if not named:
        raise BlockError(f"{shown} has no axis `{axis}`", field=field, hint=_meant(axes, axis) if axes else "")
    return named[0]


def _from_left(axes: Sequence[Any], axis: str) -> int | None:
    """Return the index, counted from the last, of the axis that a number means if it is counted from the first; None for what is
    no such number, or the name of an axis.
    """
    if not axis.isdecimal() or int(axis) >= len(axes) or any(one.name == axis for one in axes):
        return None
    return int(axis) - len(axes)


def _told(axes: Sequence[Any], place: int) -> str:
    """Return what is written for an axis by its place, with its name if it has one: `-3` (`n_layers`)."""
    name, length = axes[place].name, axes[place].size
    named = name and (name != str(length) or not isinstance(length, int))
    return f"`{place}` (`{name}`)" if named else f"`{place}`"


def _meant(axes: Sequence[Any], axis: str) -> str:
    """Return the hint at the axis that an unknown one may mean: a name spelled alike, or what it is called of an image."""
    near = get_close_matches(axis, [text for one in axes for text in (one.name, str(one.size)) if text], n=1)
    if near and not axis.lstrip("-").isdecimal():
        return f"did you mean {near[0]}?"
    image = len(axes) > 3 and all(not one.name or one.name in IMAGE for one in axes[-3:])
    if image and axis.lower() in IMAGE:
        place = IMAGE[axis.lower()]
        return f"did you mean {axes[place].name or place}? {HINT}"
    return HINT


def axis_indices(axes: Sequence[Any], names: Sequence[str], field: str = "axis") -> tuple[int, ...]:
    """Return the index of each of several axes, counted from the last.

    Args:
        axes: The axes of a type.
        names: The names, each as for `axis_index`.
        field: The field that lists them.

    Raises:
        BlockError: At one of them no axis is meant, or several are, or one that is named before it.
    """
    found: list[int] = []
    for index, name in enumerate(names):
        try:
            place = axis_index(axes, name, field)
        except BlockError as error:
            raise BlockError(error.message, field=field, hint=error.hint, index=index) from None
        if place in found:
            before = names[found.index(place)]
            said = f"the axis `{name}` is named twice" if before == name else f"`{before}` and `{name}` are the same axis"
            raise BlockError(said, field=field, index=index)
        found.append(place)
    return tuple(found)


def axis_in_words(axis: str, words: Sequence[str] = ()) -> str:
    """Return what a drawing calls an axis.

    Args:
        axis: The axis as a recipe names it.
        words: What each axis of the value is called, where that is known.
    """
    if known := _word(axis, words):
        return known
    if axis in PLACES:
        return f"the {PLACES[axis]} axis"
    return f"axis {axis}" if axis.lstrip("-").isdigit() else axis


def _word(axis: str, words: Sequence[str]) -> str:
    """Return what an axis that is named by its place is called, where that is known."""
    place = {FIRST: -len(words), LAST: -1}.get(axis, int(axis) if axis in COUNTED_FROM_THE_END else 0)
    return words[place] if -len(words) <= place < 0 else ""


def axes_in_words(axes: Sequence[str], words: Sequence[str] = ()) -> str:
    """Return what a drawing calls several axes: `height and width`, `the first axis and the last two axes`.

    Args:
        axes: The axes as a recipe names them.
        words: What each axis of the value is called, where that is known.
    """
    places = {axis: -1 if axis == LAST else int(axis) for axis in axes if axis == LAST or axis in COUNTED_FROM_THE_END}
    outer = len(places) > 1 and sorted(places.values()) == list(range(-len(places), 0))
    outer = outer and not any(_word(axis, words) for axis in places)
    said = [axis_in_words(axis, words) for axis in axes if not (outer and axis in places)]
    said += [f"the last {NUMERALS[len(places)]} axes"] * outer
    *others, last = said
    return f"{', '.join(others)} and {last}" if others else last


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
