"""The nodes at the end of a model that compute its logits position by position: a call of which only some logits are read need
not run them on the other positions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

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
    losses = frozenset(typed.untyped.losses.values())  # a session leaves them out
    links = _chain(typed, axis, losses)
    return tuple(reversed([LastRows(link.block.name, link.place) for link in links if not link.others]))


def tail_nodes(typed: TypedProgram) -> tuple[TypedBlock, ...]:
    """Return the nodes that compute the logits [batch, time, vocab] from the last hidden states [batch, time, dim], each row and
    each position by itself, from nothing else but nodes that read nothing, such as a bias, which stand in front of their readers;
    none where there are no such nodes.

    Args:
        typed: A program that is flat.
    """
    logits = typed.root.outputs.get(LOGITS)
    if not isinstance(logits, TensorType) or len(logits.sizes) != 3:
        return ()
    rows, axis, _ = logits.sizes
    if isinstance(rows, int) or isinstance(axis, int) or rows == axis:
        return ()  # an axis of another meaning may have the same number
    found: list[TypedBlock] = []
    for link in _chain(typed, axis):
        sources = [typed.root.by_name.get(ref.node) for ref in link.others]
        constants = [one for one in sources if isinstance(one, TypedBlock) and not one.node.wires and not one.part.is_random]
        if len(constants) < len(sources) or not _keeps_apart(link.block, rows, axis):
            break
        found[:0] = [*(one for one in constants if one not in found), link.block]
    return tuple(found)


def _keeps_apart(block: TypedBlock, rows: Dim, axis: Dim) -> bool:
    """Return whether a block that works on each position alone also works on each row alone, and has hidden states to read."""
    read = block.first_input
    has_rows = isinstance(read, TensorType) and len(read.sizes) == 3 and read.sizes[:2] == (rows, axis)
    return has_rows and not block.part.batch_dependent and rows not in block.part.mixed_axes(block.sizes)


class _Link(NamedTuple):
    """A block that works on each position alone."""

    block: TypedBlock
    ref: Ref
    """The value that it reads."""
    place: int
    """The axis of the positions in that value, counted from the last."""
    others: tuple[Ref, ...]
    """The other values that it reads, which are the same at all positions."""


def _chain(typed: TypedProgram, axis: Dim, unread: Collection[str] = ()) -> Iterator[_Link]:
    """Yield the blocks that work on each position alone, from the logits backward; what `unread` nodes read does not count."""
    root = typed.root
    readers = Counter(ref.node for ref in _read(root, unread))
    ref = dict(root.graph.outputs).get(LOGITS)
    while ref is not None and readers[ref.node] == 1:
        node = root.by_name.get(ref.node)
        if not isinstance(node, TypedBlock) or (link := _link(node, axis)) is None:
            break
        yield link
        ref = link.ref


def _read(root: TypedGraph, unread: Collection[str]) -> Iterator[Ref]:
    """Yield every reference to a value of the root graph, but for those of the nodes `unread`."""
    for node in root.nodes:
        if node.name not in unread:
            for wire in wires_of(node):
                yield from wire.refs
    for _, ref in root.graph.outputs:
        yield ref


def _link(block: TypedBlock, axis: Dim) -> _Link | None:
    """Return a block that works on each position of one input alone; None for another."""
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
    if places[0] != places[1] or len(places[0]) != 1:
        return None
    return _Link(block, ref, places[0][0], tuple(other for other in refs if other != ref))


def _is_pointwise(block: TypedBlock, axis: Dim) -> bool:
    """Return whether a block, without what fills its slots, neither mixes positions nor counts them nor keeps any of them."""
    part = block.part
    if axis in (*part.mixed_axes(block.sizes), *part.past_axes(block.sizes)):
        return False
    return not (part.cache_slots or part.carry or part.renewed_by or part.position_inputs or part.per_call(frozenset()))
