"""Whether a node gives fewer or more places along time, height and width than it reads, judged by the shapes alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from blocks.core import size
from composer.draw.scene import Places
from composer.graph.dims import Dim, leaves, substitute
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat
from composer.graph.types import InputTypes, PortTypes, TensorType, Type, each_of

LENGTHS = (5_040, 65_520)
"""Of axes without a number, where two sizes are compared: so long that no rounding counts."""
LEAST = 1.5
"""How many times fewer places are another resolution: what a convolution without padding cuts off at the border is none."""
ROWS, IMAGES = 3, 4
"""Axes of rows of vectors, `B × T × 512`, and of images."""


class Resolution(NamedTuple):
    """What becomes of the places of a value."""

    places: Places = ""
    """Whether they become fewer or more."""
    said: str = ""
    """How many there were and are: `fewer places: 64 × 64 → 32 × 32`."""


SAME = Resolution()


def resolution_of(node: TypedNode, *, low: bool = False) -> Resolution:
    """Return what a node makes of the places of what it reads first. A block that reads several values has no such stream, and a
    `low` one, which puts numbers elsewhere, may only do so with all of them.
    """
    match node:
        case TypedBlock():
            read = {port: one for port, one in node.inputs.items() if port not in node.part.shape_only_inputs}
            found = _resolution(read, node.outputs) if len(read) == 1 else SAME
            return SAME if found.places and low and not _keeps_all(read, node.outputs) else found
        case TypedGroup():
            return resolution_of_passes(node.graph, node.graph)
        case TypedRepeat():
            return resolution_of_passes(node.passes[0], node.passes[-1])
        case _:
            return SAME


def resolution_of_passes(first: TypedGraph, last: TypedGraph) -> Resolution:
    """Return what some graphs in a row make of the places of what comes into the first one first."""
    return _resolution(first.inputs, last.outputs)


def _resolution(read: InputTypes, given: PortTypes) -> Resolution:
    """Return what becomes of the places of the first of some values, which must be one tensor, in the first one given."""
    came, gives = next(iter(read.values()), None), next(iter(given.values()), None)
    return resolution(came.sizes, gives.sizes) if isinstance(came, TensorType) and isinstance(gives, TensorType) else SAME


def resolution(before: Sequence[Dim], after: Sequence[Dim]) -> Resolution:
    """Return what becomes of the places of a tensor whose axes have some sizes before and after. All axes are places but the
    first and that of channels: of rows the last one, of images the last one or that before height and width, or before time.
    Of images, two must change: one axis alone may be channels.

    >>> resolution((1, 3, 64, 64), (1, 8, 32, 32)), resolution((1, 32, 32, 8), (1, 32, 32, 16))
    (Resolution(places='fewer', said='fewer places: 64 × 64 → 32 × 32'), Resolution(places='', said=''))
    """
    rank = len(before)
    alike = rank == len(after) and rank >= ROWS and before[0] == after[0]
    if not alike or sorted(map(str, before)) == sorted(map(str, after)):  # the same axes in another order
        return SAME
    for channels in (1, rank - IMAGES + 1, rank - 1) if rank >= IMAGES else (rank - 1,):
        axes = [axis for axis in range(1, rank) if axis != channels]
        if places := _change([(before[axis], after[axis]) for axis in axes]):
            changed = [axis for axis in axes if before[axis] != after[axis]]
            counts = (" × ".join(size(sizes[axis]) for axis in changed) for sizes in (before, after))
            return Resolution(places, f"{places} places: {' → '.join(counts)}")
    return SAME


def _change(pairs: Sequence[tuple[Dim, Dim]]) -> Places:
    """Return whether axes become shorter or longer, all that change in one way, and at least two of several."""
    changes = [_longer(*pair) for pair in pairs if pair[0] != pair[1]]
    if len(changes) < min(len(pairs), 2) or len({*changes}) > 1:
        return ""
    return changes[0]


def _longer(before: Dim, after: Dim) -> Places:
    """Return whether an axis becomes shorter or longer by far, whatever the lengths of the axes without a number."""
    if leaves(before) != leaves(after):
        return ""
    pairs = [*zip(_lengths(before), _lengths(after), strict=True)]
    if all(LEAST * short <= long for long, short in pairs):
        return "fewer"
    return "more" if all(LEAST * short <= long for short, long in pairs) else ""


def _lengths(dim: Dim) -> list[int]:
    """Return the length of an axis where axes without a number have each of some lengths."""
    names = [one for one in leaves(dim) if isinstance(one, str)]
    return [substitute(dim, dict.fromkeys(names, length)) for length in LENGTHS]


def _keeps_all(read: InputTypes, given: PortTypes) -> bool:
    """Return whether what is given first has as many numbers as what is read first."""
    came, gives = (each_of(next(iter(types.values())))[0] for types in (read, given))
    return _numbers(came) == _numbers(gives)


def _numbers(type_: Type) -> list[int]:
    """Return how many numbers a tensor has, where axes without a number have each of some lengths."""
    sizes = type_.sizes if isinstance(type_, TensorType) else ()
    return [*map(prod, zip(*map(_lengths, sizes), strict=True))]
