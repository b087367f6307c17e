"""The one rule by which the axes of several inputs match: never by their lengths alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any, TypeAlias

Letters: TypeAlias = tuple[str, ...]
"""A name for each axis of an input: equal ones are one axis."""
ARROW = "->"
"""Before the names of the axes of the result, in order."""


@dataclass(frozen=True, slots=True)
class MatchedAxes:
    """The axes of the result, and for each input which of its axes stands at each of them (None: none)."""

    axes: tuple[Any, ...]
    places: tuple[tuple[int | None, ...], ...]


class AxesMismatch(Exception):
    """The axes do not match: a message, the index of the input that does not fit, and names for the axes of each input that
    may be meant.
    """

    def __init__(self, message: str, index: int, meant: tuple[Letters, ...] = ()) -> None:
        super().__init__(message)
        self.message, self.index, self.meant = message, index, meant


def match_axes(inputs: Sequence[Any], written: Sequence[str] = ()) -> MatchedAxes:
    """Return how the axes of several inputs match.

    A scalar fits everywhere. Inputs of equally many axes match in order. Of another input, each axis stands at the one of its
    own name; of two axes of which one has no name, since the recipe has a number in its place, at the only one of its length.
    Anything else must be written. An axis of length 1 stretches, wherever it stands.

    Args:
        inputs: The types of the inputs.
        written: The names of the axes of each input, an empty string for a scalar; the last may begin with `->` and give the axes
            of the result in order, by default those of the inputs as they first occur.

    Raises:
        AxesMismatch: The axes do not match.
    """
    if written:
        return _as_written(inputs, written)
    widest = max(range(len(inputs)), key=lambda index: len(inputs[index].axes))
    wide = inputs[widest].axes
    places = []
    for index, one in enumerate(inputs):
        found = _in_order(one.axes, wide)
        if found is None:
            message = f"cannot broadcast {inputs[widest]} and {one}: which of the axes are the same is not known"
            raise AxesMismatch(message, index, _meant(inputs))
        places.append(found)
    names = [called_place(place, len(wide)) for place in range(len(wide))]
    return _together(inputs, places, names, inputs[widest])


def _as_written(inputs: Sequence[Any], written: Sequence[str]) -> MatchedAxes:
    letters = [tuple(text.split()) for text in written if not text.startswith(ARROW)]
    result = next((tuple(text.removeprefix(ARROW).split()) for text in written if text.startswith(ARROW)), ())
    if len(letters) != len(inputs):
        raise AxesMismatch(f"has {len(inputs)} inputs, and `axes` names those of {len(letters)}", len(inputs) - 1, _meant(inputs))
    for index, (one, names) in enumerate(zip(inputs, letters, strict=True)):
        if len(names) != len(one.axes):
            message = f"takes {' '.join(names) or 'a scalar'} as `axes` says, not {one}"
            raise AxesMismatch(message, index, _meant(inputs))
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise AxesMismatch(f"has the axis `{twice}` twice in `{' '.join(names)}`", index)
    known = tuple(dict.fromkeys(name for names in letters for name in names))
    if result and sorted(result) != sorted(known):
        odd = sorted({*result} ^ {*known}) or [name for name in result if result.count(name) > 1]
        raise AxesMismatch(f"has the axis `{odd[0]}` {'twice' if {*result} == {*known} else 'on one side of `->` only'}", 0)
    order = result or known
    places = [[order.index(name) for name in names] for names in letters]
    return _together(inputs, places, [f"`{name}`" for name in order], None, order)


def _together(
    inputs: Sequence[Any], places: Sequence[Sequence[int]], called: Sequence[str], widest: Any, names: Letters = ()
) -> MatchedAxes:
    """Return the axes of the result, given where each axis of each input stands in it."""
    axes: dict[int, Any] = {}
    first: dict[int, Any] = {}
    for one, place in zip(inputs, places, strict=True):
        for position, axis in zip(place, one.axes, strict=True):
            if position not in axes or axes[position].size == 1:
                axes[position], first[position] = axis, one
    for index, (one, place) in enumerate(zip(inputs, places, strict=True)):
        for position, axis in zip(place, one.axes, strict=True):
            if axis.size not in (1, axes[position].size):
                other = widest if widest is not None and widest is not one else first[position]
                length = widest.axes[position].size if widest is not None and widest is not one else axes[position].size
                sizes = f"{length} in one and {axis.size} in the other"
                raise AxesMismatch(f"cannot broadcast {other} and {one}: {called[position]} is {sizes}", index)
    whole = tuple(_renamed(axes[position], names[position] if names else "") for position in sorted(axes))
    rank = range(len(whole))
    return MatchedAxes(whole, tuple(tuple(list(p).index(i) if i in p else None for i in rank) for p in places))


def _renamed(axis: Any, name: str) -> Any:
    return type(axis)(name, axis.size) if name and _name(axis) is None else axis


def _in_order(axes: Sequence[Any], wide: Sequence[Any]) -> list[int] | None:
    """Return where axes stand among others, in their order; None where that is not known."""
    if len(axes) == len(wide):
        return list(range(len(axes)))
    places: list[int] = []
    end = len(wide)
    for axis in reversed(axes):
        place = _place(axis, axes, wide)
        if place is None and axis.size == 1:  # wherever it stands, the result is the same
            place = end - 1
        if place is None or not 0 <= place < end:
            return None
        places.insert(0, place)
        end = place
    return places


def _place(axis: Any, axes: Sequence[Any], wide: Sequence[Any]) -> int | None:
    """Return where an axis stands among others: at the one of its name, or without a name at the only one of its length."""
    own = _name(axis)
    same = [index for index, other in enumerate(wide) if own is not None and _name(other) == own and _fits(axis, other)]
    alike = [index for index, other in enumerate(wide) if axis.size == other.size and (own is None or _name(other) is None)]
    if sum(other.size == axis.size for other in axes) > 1 or sum(other.size == axis.size for other in wide) > 1:
        alike = []
    found = same or alike
    return found[0] if len(found) == 1 else None


def _fits(axis: Any, other: Any) -> bool:
    return axis.size in (1, other.size) or other.size == 1


def _name(axis: Any) -> str | None:
    """Return the name of an axis: a length that is not a number is one; None where a number stands in the recipe in its place."""
    if not isinstance(axis.size, int):
        return str(axis.size)
    name: str = axis.name
    return None if name == NUMBER or not re.fullmatch(r"[A-Za-z_]\w*", name) else name


NUMBER = ""
"""The name of an axis for whose length a recipe writes a number."""


def _meant(inputs: Iterable[Any]) -> tuple[Letters, ...]:
    """Return names for the axes of inputs, equal where the axes may be the same."""
    taken: list[tuple[str, Any]] = []
    found: list[tuple[int, Letters]] = []
    for one in sorted(enumerate(inputs), key=lambda pair: -len(pair[1].axes)):
        index, type_ = one
        free = list(taken)
        names: list[str] = []
        for axis in reversed(type_.axes):
            known = next((pair for pair in reversed(free) if pair[1] == axis.size), None)
            if known is None:
                known = (_fresh(axis, [name for name, _ in taken]), axis.size)
                taken.append(known)
            else:
                free = free[: free.index(known)]
            names.insert(0, known[0])
        if not found:
            taken.reverse()
        found.append((index, tuple(names)))
    return tuple(names for _, names in sorted(found))


def _fresh(axis: Any, taken: Sequence[str]) -> str:
    wanted = _name(axis)
    if wanted is not None and wanted.isidentifier() and wanted not in taken:
        return wanted
    letters: list[str] = [*ascii_lowercase, *(f"a{number}" for number in range(99))]
    return next(letter for letter in letters if letter not in taken)


def called_place(index: int, count: int) -> str:
    """Return an axis by its place, counted from 0, since its name may come from the block that made it.

    Args:
        index: The index of the axis.
        count: The number of axes.

    Examples:
        >>> from blocks.core.matched_axes import called_place
        >>> called_place(2, 3), called_place(0, 3)
        ('the last axis', 'axis 0')
    """
    return "the last axis" if index == count - 1 else f"axis {index}"
