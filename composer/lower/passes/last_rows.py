"""Last rows: the nodes at the end of a model that compute its logits position by position, so that a call of which only the last
logits are read need not run them on the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from composer.graph.anatomy import wires_of
from composer.graph.dims import Dim
from composer.graph.ir import Ref
from composer.graph.typed import TypedBlock, TypedGraph, TypedProgram, is_renewal
from composer.graph.types import UNKNOWN, Depends, TensorType, each_of

LOGITS = "logits"
"""The output that a model writes by."""


@dataclass(frozen=True, slots=True)
class LastRows:
    """A node from which on only the last position matters."""

    node: str
    axis: int
    """The axis of the positions in what it reads, counted from the last."""


def last_rows(typed: TypedProgram, axis: Dim) -> tuple[LastRows, ...]:
    """Return the chain of nodes that ends in the logits, each of which works on each position alone and is read by the next one
    alone; without those that read other values too, which are brought to the shape of all positions before.

    Args:
        typed: A program that is flat.
        axis: The size of the axis that grows.
    """
    root = typed.root
    readers = Counter(ref.node for ref in _read(root, typed))
    ends = dict(root.graph.outputs)
    found: list[LastRows] = []
    ref = ends.get(LOGITS)
    while ref is not None and readers[ref.node] == 1:
        node = root.by_name.get(ref.node)
        if not isinstance(node, TypedBlock) or (read := _read_along(node, axis)) is None:
            break
        ref, place, alone = read
        if alone:
            found.insert(0, LastRows(node.name, place))
    return tuple(found)


def _read(root: TypedGraph, typed: TypedProgram) -> Iterator[Ref]:
    """Yield every reference to a value of the root graph, but for those of losses, which a session leaves out."""
    losses = set(typed.untyped.losses.values())
    for node in root.nodes:
        if node.name not in losses:
            for wire in wires_of(node):
                yield from wire.refs
    for _, ref in root.graph.outputs:
        yield ref


def _read_along(block: TypedBlock, axis: Dim) -> tuple[Ref, int, bool] | None:
    """Return what a block reads that works on each position of one input alone, where the axis of the positions stands in it,
    counted from the last, and whether it reads nothing else; None for another block.
    """
    if len(block.outputs) != 1 or block.leading or is_renewal(block):
        return None
    inside = [each for each in block.slots.values() if each is not None]
    if not all(isinstance(each, TypedBlock) and not any(each.slots.values()) for each in inside):
        return None
    if not all(_is_pointwise(each, axis) for each in (block, *inside) if isinstance(each, TypedBlock)):
        return None
    made = next(iter(block.outputs.values()))
    refs = [ref for wire in block.node.wires for ref in wire.refs]
    types = [type_ for wire in block.node.wires for type_ in each_of(block.inputs.get(wire.port, UNKNOWN))]
    along = [
        (ref, type_)
        for ref, type_ in zip(refs, types, strict=False)
        if not isinstance(type_, TensorType) or axis in type_.sizes or type_.depends is not Depends.NONE
    ]
    if len(refs) != len(types) or len(along) != 1 or not isinstance(made, TensorType):
        return None
    ref, type_ = along[0]
    if not isinstance(type_, TensorType) or type_.optional:
        return None
    places = [[place - len(each.sizes) for place, size in enumerate(each.sizes) if size == axis] for each in (type_, made)]
    return (ref, places[0][0], len(refs) == 1) if places[0] == places[1] and len(places[0]) == 1 else None


def _is_pointwise(block: TypedBlock, axis: Dim) -> bool:
    """Return whether a block, without what fills its slots, neither mixes positions nor counts them nor keeps any of them."""
    part = block.part
    if axis in (*part.mixed_axes(block.sizes), *part.past_axes(block.sizes)):
        return False
    return not (part.cache_slots or part.carry or part.renewed_by or part.position_inputs or part.per_call(frozenset()))
