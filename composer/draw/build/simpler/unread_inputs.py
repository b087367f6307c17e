"""What repeats are given and no pass of them reads, such as the implied input where each pass reads what another repeat gives."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from composer.draw.build.levels import Depth
from composer.draw.build.parallel_passes import read_inside
from composer.draw.build.simpler.everywhere import EveryGraph
from composer.graph.anatomy import rebuilt, with_nodes
from composer.graph.typed import TypedGraph, TypedNode, TypedRepeat


def without_unread_inputs(graph: TypedGraph, depth: Depth) -> TypedGraph:
    """Return a graph in which repeats are given only what some pass of them reads: a wire that nothing reads would tell of passes
    that follow one another where they stand side by side.
    """
    return _Finder(depth).changed(graph, "")


@dataclass(slots=True)
class _Finder(EveryGraph):
    """Looks for repeats in a graph and in all that it holds."""

    def own(self, graph: TypedGraph, prefix: str) -> TypedGraph:
        """Return a graph whose own repeats are given only what they read."""
        return with_nodes(graph, [_reading(node) if isinstance(node, TypedRepeat) else node for node in graph.nodes])


def _reading(node: TypedRepeat) -> TypedNode:
    """Return a repeat without what no pass of it reads."""
    read = set().union(*map(read_inside, node.passes))
    unread = {name for graph in node.passes for name in graph.inputs} - read
    if not unread:
        return node
    passes = tuple(replace(one, wires=tuple(wire for wire in one.wires if wire.port not in unread)) for one in node.node.passes)
    smaller = {graph: _without(graph, unread) for graph in node.passes}
    return rebuilt(replace(node, node=replace(node.node, passes=passes)), [smaller[graph] for graph in node.passes])


def _without(graph: TypedGraph, unread: Collection[str]) -> TypedGraph:
    """Return a graph without some of its inputs."""
    inputs = tuple(one for one in graph.graph.inputs if one.name not in unread)
    types = {name: type_ for name, type_ in graph.inputs.items() if name not in unread}
    return replace(graph, graph=replace(graph.graph, inputs=inputs), inputs=types)
