"""A change of a graph and of all graphs that it holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from composer.draw.build.levels import Depth
from composer.graph.anatomy import rebuilt, regions, with_nodes
from composer.graph.ir import Ref
from composer.graph.typed import TypedGraph, TypedNode


@dataclass(slots=True)
class EveryGraph(ABC):
    """Changes a graph and all that it holds, what is inside first."""

    depth: Depth
    known: dict[tuple[TypedGraph, str], TypedGraph] = field(default_factory=dict, kw_only=True)
    """Equal passes are one graph, also where it is changed."""

    def changed(self, graph: TypedGraph, prefix: str) -> TypedGraph:
        """Return a graph whose nodes have paths with a prefix, with all changes in it."""
        key = graph, prefix
        if key not in self.known:
            inner = [self.inside(node, f"{prefix}{node.name}.") if regions(node) else node for node in graph.nodes]
            same = inner == [*graph.nodes]  # each of which is equal to itself alone
            self.known[key] = self.own(graph if same else with_nodes(graph, inner), prefix)
        return self.known[key]

    def inside(self, node: TypedNode, prefix: str) -> TypedNode:
        """Return a node with the graphs in it changed."""
        return rebuilt(node, [self.changed(region.graph, prefix) for region in regions(node)])

    @abstractmethod
    def own(self, graph: TypedGraph, prefix: str) -> TypedGraph:
        """Return a graph with the changes among its own nodes."""


def graph_of(graph: TypedGraph, nodes: Sequence[TypedNode], outputs: Sequence[tuple[str, Ref]] | None = None) -> TypedGraph:
    """Return a graph with some of its nodes, or others of the same names, and maybe with other outputs."""
    given = graph.graph.outputs if outputs is None else tuple(outputs)
    inner = replace(graph.graph, nodes=tuple(node.node for node in nodes), outputs=given)
    return replace(graph, graph=inner, nodes=tuple(nodes), by_name={node.name: node for node in nodes})
