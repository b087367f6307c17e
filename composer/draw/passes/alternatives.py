"""Flows of which each pass of a repeat takes one: what they read from elsewhere goes by its name."""

from __future__ import annotations

from dataclasses import replace

from composer.draw.diagram import Flow, Group, Item
from composer.draw.edges import DiagramEdge


def name_in_alternatives(flow: Flow) -> Flow:
    """Return a flow, in whose frames alternatives stand by themselves: a wire into one of them would cross the others."""

    def named(item: Item) -> Item:
        if not isinstance(item, Group):
            return item
        inner = item.map_flows(name_in_alternatives)
        return inner if len(item.flows) == 1 else inner.map_flows(by_name_from_outside)

    return flow.map_items(named)


def by_name_from_outside(flow: Flow, around: frozenset[str] = frozenset()) -> Flow:
    """Return a flow where values from outside of it go by their names, in its frames too; `around` are the paths of what stands
    around a frame inside of it.

    Before: b() c(b ~a)
    After:  b() c(b @a)
    """
    inside = around | {*flow.by_path, flow.owner}

    def by_name(edge: DiagramEdge) -> DiagramEdge:
        return edge if edge.source.path in inside or edge.source.reference else replace(edge.by_name(), back=False)

    return flow.map_edges(by_name).map_groups(lambda inner: by_name_from_outside(inner, inside))
