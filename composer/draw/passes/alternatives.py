"""What goes by its name: values from elsewhere in flows of which each pass of a repeat takes one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from composer.draw.diagram import Flow, Group, Item, Leaf
from composer.draw.edges import DiagramEdge, DiagramSource

FrameEntries: TypeAlias = Mapping[str, DiagramSource]
"""What comes into frames from below, by the paths of these."""


def name_in_alternatives(flow: Flow, outside: FrameEntries = MappingProxyType({})) -> Flow:
    """Return a flow, in whose frames alternatives stand by themselves: a wire into one of them would cross the others. The one
    that alone reads values of other blocks of the model comes first, where wires lead into it. What comes into frames `outside`
    of it goes by the name that it has there.
    """
    made = frozenset(flow.by_path) if not flow.owner else frozenset[str]()
    rising = (edge for edge in flow.edges if edge.main and edge.upward)
    entries = {**outside, **{edge.target: called_outside(edge.source, outside) for edge in rising}}

    def named(item: Item) -> Item:
        if not isinstance(item, Group):
            return item
        inner = item.map_flows(lambda one: name_in_alternatives(one, entries))
        if len(item.flows) == 1:
            return inner
        around = made - {item.about.path}
        readers = [number for number, one in enumerate(inner.flows) if _reads_by_wire(one, around)]
        if len(readers) != 1:
            return inner.map_flows(lambda one: by_name_from_outside(one, entries=entries))
        inner = _with_first(inner, readers[0])
        first, *others = inner.flows
        named_there = (by_name_from_outside(one, entries=entries) for one in others)
        return replace(inner, flows=(by_name_from_outside(first, around, entries), *named_there))

    return flow.map_items(named)


def _reads_by_wire(flow: Flow, made: frozenset[str]) -> bool:
    """Return whether blocks of a flow read some of the values that are `made` around it, and only where a wire may come in from
    the side: not at a sum, which has other values there.
    """
    read = [edge for edge in flow.all_edges() if edge.source.path in made and not (edge.source.reference or edge.back)]
    sums = {leaf.about.path for leaf in flow.leaves() if isinstance(leaf, Leaf) and leaf.look.sign}
    return bool(read) and not any(edge.source.port or edge.target in sums for edge in read)


def _with_first(group: Group, number: int) -> Group:
    """Return a frame with one of its flows before the others."""
    order = sorted(range(len(group.flows)), key=lambda other: other != number)
    cells = tuple(group.cells[other] for other in order) if group.cells else ()
    return replace(group, flows=tuple(group.flows[n] for n in order), headers=tuple(group.headers[n] for n in order), cells=cells)


def name_once(flow: Flow) -> Flow:
    """Return a flow in which each port of a block reads a name once, in its frames too, also where kinds of passes give values of
    several shapes; but several values that are one number are as many.
    """
    read: dict[object, DiagramEdge] = {}
    for edge in flow.edges:
        source = edge.source
        said = (source.number and source.path, source.reference, source.suffix, source.at_first, edge.partial, edge.shape_only)
        read.setdefault((edge.target, edge.port, said) if source.reference else edge, edge)
    return flow.with_edges(read.values()).map_groups(name_once)


def called_outside(source: DiagramSource, entries: FrameEntries) -> DiagramSource:
    """Return what makes a value that comes into a frame, where something tells that."""
    return entries.get(source.path, source) if source.from_inside else source


def by_name_from_outside(flow: Flow, around: frozenset[str] = frozenset(), entries: FrameEntries = MappingProxyType({})) -> Flow:
    """Return a flow where values from outside of it go by their names, in its frames too; `around` are the paths of what stands
    around a frame inside of it, and `entries` tell what comes into frames.

    Before: b() c(b ~a)
    After:  b() c(b @a)
    """
    inside = around | {*flow.by_path, flow.owner}

    def by_name(edge: DiagramEdge) -> DiagramEdge:
        if edge.source.path in inside or edge.source.reference:
            return edge
        return replace(edge.reading(called_outside(edge.source, entries)).by_name(), back=False)

    return flow.map_edges(by_name).map_groups(lambda inner: by_name_from_outside(inner, inside, entries))
