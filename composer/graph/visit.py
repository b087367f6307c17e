"""Traversals of graphs, each of which looks at equal graphs once where that is the same.

- `walk` gives every node with its path, from the outside in;
- `Fold` works out a value for each node from the values of what is inside of it;
- `Map` rewrites every graph, from the inside out;
- `PlacedMap` rewrites nodes by their names.

Nothing else recurses into nodes, except for what interprets a graph along its wires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from composer.diagnostics import Declaration, Span
from composer.graph.anatomy import Anatomy, Region, rebuilt, regions, slots, with_nodes
from composer.graph.typed import TypedBlock, TypedGraph, TypedNode
from composer.memo import Interned, Memo

G = TypeVar("G")
N = TypeVar("N")
T = TypeVar("T")
U = TypeVar("U")

# -- walk


class Visit(NamedTuple):
    """A node at its place in a model."""

    path: str
    node: TypedNode
    graph: TypedGraph | None
    """The graph that it stands in; None for what fills a slot."""
    prefix: str
    """What the path has before the node's name."""
    holder: Visit | None
    """The node around it."""
    region: Region[TypedGraph] | None
    """The graph of the holder that it stands in; None in the outermost graph and in a slot."""

    @property
    def around(self) -> Iterator[Visit]:
        """The node itself and those around it, the nearest first."""
        place: Visit | None = self
        while place is not None:
            yield place
            place = place.holder

    @property
    def written(self) -> Span:
        """Where the author wrote the node, or the block that it is a part of."""
        spans = [place.node.node.name_span for place in self.around]
        return next((span for span in spans if not isinstance(span.source, Declaration)), spans[-1])

    @property
    def in_slot(self) -> bool:
        """Whether it fills a slot, or stands in what fills one."""
        return any(place.graph is None for place in self.around)


Entrances: TypeAlias = Callable[[Visit], Iterable[tuple[str, Region[TypedGraph]]]]
"""Into which graphs of a node a walk goes, each with the prefix of the paths in there."""


def owned(visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
    """Yield the graphs that have parameters of their own: the paths are names of the `state_dict`."""
    for region in regions(visit.node):
        if region.owner:
            yield f"{visit.path}.{region.name}", region


def every_pass(visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
    """Yield all graphs: each pass has a path."""
    for region in regions(visit.node):
        yield f"{visit.path}.{region.key}", region


def every_node(graph: TypedGraph) -> Sequence[TypedNode]:
    """Return the nodes of a graph, in order."""
    return graph.nodes


def walk(
    root: TypedGraph,
    entrances: Entrances = owned,
    nodes: Callable[[TypedGraph], Sequence[TypedNode]] = every_node,
    *,
    prefix: str = "",
    once: bool = False,
) -> Iterator[Visit]:
    """Yield every node with its path, from the outside in and in order.

    Args:
        root: the outermost graph.
        entrances: which graphs are entered, and what the paths in there start with.
        nodes: the nodes of a graph that are visited, in order.
        prefix: what the paths start with.
        once: whether a graph that stands at several places is visited at the first only.
    """
    seen: set[TypedGraph] = {root}
    listed: Memo[TypedGraph, Sequence[TypedNode]] = Memo()
    waiting = [Visit(prefix + node.name, node, root, prefix, None, None) for node in reversed(nodes(root))]
    while waiting:
        visit = waiting.pop()
        yield visit
        if isinstance(visit.node, TypedBlock):  # most nodes are blocks without slots, and need no more
            if visit.node.slots:
                found = [
                    Visit(f"{visit.path}.{name}", slot, None, f"{visit.path}.", visit, None) for name, slot in slots(visit.node)
                ]
                waiting += reversed(found)
            continue
        below: list[Visit] = []
        for start, region in entrances(visit):
            graph = region.graph
            if once and graph in seen:
                continue
            seen.add(graph)
            inner = listed.get(graph, partial(nodes, graph))
            below += [Visit(start + one.name, one, graph, start, visit, region) for one in inner]
        waiting += reversed(below)


# -- fold


@dataclass(frozen=True, slots=True)
class Inside(Generic[G, T, U]):
    """What a fold has computed for the parts of a node."""

    name: str
    """Its name there: its own, or that of the slot that it fills."""
    places: tuple[str, ...]
    """Its names in the `state_dict`, of all passes that it stands for; none where the fold was not given any."""
    regions: tuple[tuple[tuple[Region[G], ...], U], ...]
    """Each graph inside with the passes that it is, and its value."""
    slots: tuple[tuple[str, T], ...]
    """The value of what fills each slot, by the slot's name."""

    def passes(self) -> Iterator[U]:
        """Yield the value of each region, every pass by itself."""
        for several, value in self.regions:
            yield from (value for _ in several)

    def owners(self) -> Iterator[U]:
        """Yield the value of each region that has parameters of its own."""
        for several, value in self.regions:
            yield from (value for region in several if region.owner)


class Fold(Generic[G, N, T, U]):
    """A value for each node, from the values of what is inside of it; for equal graphs at the same places once."""

    def __init__(
        self,
        anatomy: Anatomy[G, N],
        of_node: Callable[[N, Inside[G, T, U]], T],
        of_graph: Callable[[G, list[T]], U],
        nodes: Callable[[G], Iterable[N]] | None = None,
    ) -> None:
        """Fold with a function for nodes, given what is inside, and one for graphs, given the values of their nodes.

        Args:
            anatomy: `TYPED` or `IR`.
            of_node: the value of a node.
            of_graph: the value of a graph, given those of its nodes.
            nodes: the nodes of a graph that count, in order; all, where nothing is said.
        """
        self.anatomy, self.of_node, self.of_graph = anatomy, of_node, of_graph
        self.nodes = anatomy.nodes if nodes is None else nodes
        self.known: Memo[tuple[G, tuple[str, ...]], U] = Memo()

    def graph(self, graph: G, places: tuple[str, ...] = ()) -> U:
        """Return the value of a graph, which stands at some places: prefixes of names, such as `layers.3.`."""
        return self.known.get((graph, places), lambda: self._graph(graph, places))

    def _graph(self, graph: G, places: tuple[str, ...]) -> U:
        return self.of_graph(graph, [self.node(node, self.anatomy.name(node), places) for node in self.nodes(graph)])

    def node(self, node: N, name: str, places: tuple[str, ...] = ()) -> T:
        """Return the value of a node, which stands in a graph or a slot at some places."""
        here = tuple(place + name for place in places)
        alike: dict[G, list[Region[G]]] = {}
        for region in self.anatomy.regions(node):
            alike.setdefault(region.graph, []).append(region)
        inner = []
        for graph, several in alike.items():
            below = dict.fromkeys(f"{place}.{region.name}" for place in here for region in several)
            inner.append((tuple(several), self.graph(graph, tuple(below))))
        below_slots = tuple(f"{place}." for place in here)
        filled = tuple((slot, self.node(held, slot, below_slots)) for slot, held in self.anatomy.slots(node))
        return self.of_node(node, Inside(name, here, tuple(inner), filled))


# -- map


class Map:
    """Rewrites graphs, from the inside out; equal graphs stay one."""

    def __init__(self, change: Callable[[TypedGraph], TypedGraph]) -> None:
        """Rewrite with a function that is given each graph once all that is inside of it is rewritten."""
        self.change = change
        self.known: Interned[TypedGraph, TypedGraph] = Interned()

    def graph(self, graph: TypedGraph) -> TypedGraph:
        """Return the graph rewritten."""
        return self.known.get(graph, lambda: self.change(with_nodes(graph, list(map(self.node, graph.nodes)))))

    def node(self, node: TypedNode) -> TypedNode:
        """Return the node with what is inside of it rewritten."""
        filled = {name: self.node(slot) for name, slot in slots(node)}
        return rebuilt(node, [self.graph(region.graph) for region in regions(node)], filled)


class PlacedMap:
    """Rewrites nodes by their names in the `state_dict`; graphs and nodes that become the same stay one."""

    def __init__(self, change: Callable[[str, TypedNode], TypedNode]) -> None:
        """Rewrite with a function that is given the name of each node and the node, once all inside of it is rewritten; for equal
        nodes that become the same it returns one object.
        """
        self.change = change
        self.graphs: Interned[tuple[TypedGraph, tuple[TypedNode, ...]], TypedGraph] = Interned()
        self.nodes: Interned[tuple[TypedNode, tuple[TypedGraph, ...], tuple[TypedNode, ...]], TypedNode] = Interned()

    def graph(self, graph: TypedGraph, prefix: str = "") -> TypedGraph:
        """Return a graph rewritten, whose names begin with the prefix."""
        nodes = tuple(self.node(node, prefix + node.name) for node in graph.nodes)
        return self.graphs.get((graph, nodes), partial(with_nodes, graph, nodes))

    def node(self, node: TypedNode, path: str) -> TypedNode:
        """Return the node of a name with what is inside of it rewritten."""
        filled = {name: self.node(slot, f"{path}.{name}") for name, slot in slots(node)}
        graphs = tuple(self.graph(region.graph, f"{path}.{region.name}") for region in regions(node))
        return self.change(path, self.nodes.get((node, graphs, tuple(filled.values())), partial(rebuilt, node, graphs, filled)))
