"""Axes in front of a block: one that folds them takes `[batch, rows, time, dim]` as `[batch · rows, time, dim]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from blocks.core import Part
from blocks.masks.mask import Mask
from composer.graph.type_patterns import Mismatch, pattern
from composer.graph.types import Axis, TensorType

LeadingPart: TypeAlias = Literal["all", "first", "last", "none"]
"""Which of the axes in front a value has."""


def leading_part(declared: str, given: TensorType, leading: tuple[Axis, ...], *, partly: bool = True) -> LeadingPart:
    """Return which of the axes in front a value has: all of them, or, if it may have a part, the first or the last of them.

    Args:
        declared: The type that the block declares, which begins with `batch` or `...`.
        given: The type of the value.
        leading: The axes in front of the block's first input.
        partly: Whether the value may have a part of them.

    Raises:
        Mismatch: where it has other axes.
    """
    wanted = pattern(declared)
    count = len(given.axes) - len(wanted.axes) + (not wanted.leading)
    every, own = tuple(axis.size for axis in leading), given.sizes[: max(count, 0)]
    if count >= 0 and own == every:
        return "all"
    if count == 0 and wanted.leading:
        return "none"
    fits: list[LeadingPart] = []
    if partly and 0 < count < len(every):
        fits += ["first"] * (own == every[:count])
        fits += ["last"] * (own == every[-count:])
    if len(fits) == 1:
        return fits[0]
    shown = ", ".join(map(str, every))
    if fits:
        raise Mismatch(f"takes {declared} with the axes [{shown}] in front, and {given} can have the first or the last of them")
    which = "all, the first or the last of them" if partly else "all of them"
    raise Mismatch(f"takes {declared} with the axes [{shown}] in front, {which}, not {given}")


def declared_inputs(part: Part) -> Mapping[str, str]:
    """Return what a block reads and in which type: its ports, and the edges of its masks.

    Args:
        part: The block.
    """
    found = {port.rstrip("?*"): text for port, text in type(part).inputs.items()}
    return {**found, **declared_edges(part)}


def declared_edges(part: Part) -> Mapping[str, str]:
    """Return what the masks of a block read, and in which type.

    Args:
        part: The block.
    """
    held = [getattr(part, name) for name in type(part).model_fields]
    return {edge: text for mask in held if isinstance(mask, Mask) for edge, text in mask.edge_types().items()}
