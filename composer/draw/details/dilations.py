"""Through which positions of a sequence the layers of a repeat read: a row for each convolution along it, one after the other.

Only where nothing else in the passes lets positions depend on each other is it certain what one of them reads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from composer.draw.build.parallel_passes import hands_on
from composer.draw.build.walks import each_graph_once
from composer.graph.anatomy import wires_of
from composer.graph.dims import Dim
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat
from composer.graph.types import TensorType
from composer.graph.visit import walk

Offsets: TypeAlias = tuple[int, ...]
"""Which positions one reads, counted from itself."""


def rows_of(node: TypedRepeat) -> tuple[Offsets, ...]:
    """Return what one position reads in each convolution of the passes of a repeat, from the first one on, where they differ from
    pass to pass; nothing for a repeat that is no chain of convolutions along one axis.
    """
    blocks = (visit.node for visit in walk(node.passes[0], each_graph_once) if isinstance(visit.node, TypedBlock))
    axis = next((taps[0] for block in blocks if (taps := _taps(block)) is not None), None)
    if axis is None or not hands_on(node):
        return ()
    known: dict[int, tuple[Offsets, ...]] = {}  # equal passes are one object
    for graph in node.passes:
        if id(graph) not in known:
            known[id(graph)] = _rows_of_pass(graph, axis)
    each = [known[id(graph)] for graph in node.passes]
    return tuple(row for rows in each for row in rows) if all(each) and len({*each}) > 1 else ()


def read_through(rows: Sequence[Offsets]) -> frozenset[int]:
    """Return all positions that one reads through several rows, counted from itself."""
    found = frozenset({0})
    for offsets in rows:
        found = frozenset(place + offset for place in found for offset in offsets)
    return found


def period(rows: Sequence[Offsets]) -> int:
    """Return after how many rows they come again, as often as there are; of others, how many there are.

    >>> period([(-1, 0), (-2, 0), (-1, 0), (-2, 0)]), period([(-1, 0), (-2, 0), (-4, 0)])
    (2, 3)
    """
    whole = len(rows)
    return next(one for one in range(1, whole + 1) if whole % one == 0 and [*rows] == [*rows[:one]] * (whole // one))


def _rows_of_pass(graph: TypedGraph, axis: Dim) -> tuple[Offsets, ...]:
    found = _PassRows(axis)
    depths = found.depths(graph, {})
    whole = [found.rows[depth] for depth in sorted(found.rows)]
    return tuple(whole) if depths is not None and next(iter(depths.values()), 0) == len(whole) else ()


@dataclass(slots=True)
class _PassRows:
    """The convolutions of a pass by how many of them come before: those side by side must read alike."""

    axis: Dim
    rows: dict[int, Offsets] = field(default_factory=dict)

    def depths(self, graph: TypedGraph, given: Mapping[str, int]) -> dict[str, int] | None:
        """Return through how many convolutions the outputs of a graph have gone at most, given that of its inputs; none where
        something else lets positions depend on each other.
        """
        depths = dict(given)
        for node in graph.nodes:
            depth = self.depth(node, {one.port: max(depths.get(ref.node, 0) for ref in one.refs) for one in wires_of(node.node)})
            if depth is None:
                return None
            depths[node.name] = depth
        return {port: depths.get(ref.node, 0) for port, ref in graph.graph.outputs}

    def depth(self, node: TypedNode, read: Mapping[str, int]) -> int | None:
        """Return the same of what a node gives, given that of what it reads at its ports."""
        before = max(read.values(), default=0)
        if isinstance(node, TypedGroup):
            inner = self.depths(node.graph, {one.name: read.get(one.name, before) for one in node.graph.graph.inputs})
            return None if inner is None else max(inner.values(), default=before)
        if not isinstance(node, TypedBlock):
            return None
        if (taps := _taps(node)) is None:
            return before if keeps_apart(node, self.axis) else None
        axis, offsets = taps
        alike = axis == self.axis and 0 in offsets and self.rows.setdefault(before, offsets) == offsets
        return before + 1 if alike else None


def _taps(block: TypedBlock) -> tuple[Dim, Offsets] | None:
    """Return along which axis a block is a convolution, and which positions it reads there; none where that is one alone."""
    taps = block.part.taps(block.sizes)
    return taps if taps is not None and taps[1] != (0,) else None


def keeps_apart(block: TypedBlock, axis: Dim) -> bool:
    """Return whether each position along an axis depends on what a block reads there alone: what has the axis gives it too."""
    part, wired = block.part, frozenset(wire.port for wire in wires_of(block.node))
    kept = part.cache_slots or part.carry or part.renewed_by or part.position_inputs or part.per_call(wired) or block.slots
    mixed = () if part.batch_dependent else (*part.mixed_axes(block.sizes), *part.past_axes(block.sizes))
    if kept or axis in mixed:
        return False
    given = [one for types in block.inputs.values() for one in (types if isinstance(types, tuple) else (types,))]
    return not _have(given, axis) or all(_count(one, axis) == 1 for one in block.outputs.values())


def _have(types: Collection[object], axis: Dim) -> bool:
    return any(_count(one, axis) for one in types)


def _count(type_: object, axis: Dim) -> int:
    return [*type_.sizes].count(axis) if isinstance(type_, TensorType) else 0
