"""Inputs of one sum or product, their axes matched by name."""

from __future__ import annotations

from collections.abc import Sequence

from composer.graph.type_patterns import Mismatch
from composer.graph.types import Axis, TensorType


def expand_axes(inputs: Sequence[TensorType]) -> tuple[TensorType, tuple[tuple[int | None, ...], ...]]:
    """Return the type of the sum or product, and for each input which of its axes stands at each axis of the result
    (None: a new one).

    Raises:
        Mismatch: where the axes do not match.
    """
    widest = max(inputs, key=lambda one: len(one.axes))
    axes = list(widest.axes)
    places = [_places(one, widest, index) for index, one in enumerate(inputs)]
    for one, place in zip(inputs, places, strict=True):
        for position, axis in zip(place, one.axes, strict=True):
            if axes[position].size == 1:
                axes[position] = axis
    for index, (one, place) in enumerate(zip(inputs, places, strict=True)):
        for position, axis in zip(place, one.axes, strict=True):
            if axis.size not in (1, axes[position].size):
                sizes = f"{axes[position].size} in one and {axis.size} in the other"
                raise Mismatch(f"cannot broadcast {widest} and {one}: {_called(position, len(axes))} is {sizes}", index)
    rank = range(len(axes))
    return TensorType(widest.dtype, tuple(axes)), tuple(tuple(p.index(i) if i in p else None for i in rank) for p in places)


def _places(one: TensorType, widest: TensorType, index: int) -> list[int]:
    """Return where each axis of one type stands in the widest: by name, else by size in order, from the last."""
    if len(one.axes) == len(widest.axes):
        return list(range(len(one.axes)))
    by_name = [_index(axis, widest) for axis in one.axes]
    if None not in by_name and by_name == sorted(set(by_name)):  # type: ignore[type-var]  # no None among them
        return [place for place in by_name if place is not None]
    places: list[int] = []
    end = len(widest.axes)
    for axis in reversed(one.axes):
        fits = [i for i in range(end) if axis.size in (1, widest.axes[i].size)]
        if not fits:
            raise Mismatch(f"cannot broadcast {widest} and {one}: the first has no axis of length {axis.size}", index)
        end = fits[-1]
        places.insert(0, end)
    return places


def _index(axis: Axis, widest: TensorType) -> int | None:
    found = [i for i, other in enumerate(widest.axes) if other.name == axis.name and axis.size in (1, other.size)]
    return found[0] if len(found) == 1 else None


def _called(index: int, count: int) -> str:
    """Return an axis by its place, since its name may come from the block that made it."""
    return "the last axis" if index == count - 1 else f"axis {index + 1}"
