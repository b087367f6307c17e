"""Which of the values that a graph is given its nodes read."""

from __future__ import annotations

from collections.abc import Iterator

from composer.graph.anatomy import wires_of
from composer.graph.ir import Wire
from composer.graph.typed import TypedGraph, TypedGroup, TypedNode, TypedRepeat


def read_in(graph: TypedGraph) -> frozenset[str]:
    """Return the names of what the nodes of a graph read and of what it returns; what is only handed into passes or a group, in
    which nothing reads it, is not read.
    """
    read = {ref.node for node in graph.nodes for wire in _wires_read(node) for ref in wire.refs}
    return frozenset([*read, *(ref.node for _, ref in graph.graph.outputs)])


def _wires_read(node: TypedNode) -> Iterator[Wire]:
    if isinstance(node, TypedRepeat):
        for one, graph in zip(node.node.passes, node.passes, strict=True):
            inside = read_in(graph)
            yield from (wire for wire in one.wires if wire.port in inside)
    elif isinstance(node, TypedGroup):
        inside = read_in(node.graph)
        yield from (wire for wire in wires_of(node.node) if wire.port in inside)
    else:
        yield from wires_of(node.node)
