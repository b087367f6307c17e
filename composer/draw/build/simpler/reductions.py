"""Reductions that stand one above another: drawn as one box, or in the box of the loss that they end in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from blocks.core import BlockError
from blocks.losses.loss import Loss
from blocks.primitives.axes import axes_in_words, axis_index
from composer.draw.about import TIP_SEPARATOR
from composer.draw.build.levels import Depth
from composer.draw.build.simpler.everywhere import EveryGraph, graph_of
from composer.draw.build.texts.descriptions import whole
from composer.draw.diagram import Item, Leaf, Sink
from composer.draw.paths import plain
from composer.draw.wording import axis_words
from composer.graph.anatomy import wires_of, with_wires
from composer.graph.ir import Ref, Wire
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode

REDUCTIONS = frozenset({"sum", "mean", "max", "min", "logsumexp"})
"""Kinds of blocks that take away axes, of which two in a row are one."""
AXIS = "axis"
"""Their field with these axes."""
PLAIN: Mapping[str, str] = {"sum": "summed", "mean": "mean"}
"""Reductions that only say how the numbers of a loss become one, with the words of a loss for them."""
Chain: TypeAlias = tuple[TypedNode, ...]
"""Nodes of which each is all that reads the one before."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What the box of a reduction stands for beside its own node."""

    names: tuple[str, ...] = ()
    """Of other nodes of the same graph."""
    description: str = ""
    """What these are, with all that is set in them."""


@dataclass(frozen=True, slots=True)
class WithinLoss:
    """What is drawn in the box of a loss of that which leads to it."""

    words: str
    """`summed over the last axis, mean over time and batch`."""
    covers: tuple[str, ...]
    """The paths of the nodes."""
    description: str
    """All that is set in these."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """A graph with fewer reductions, and what is drawn in the boxes of losses in place of others."""

    graph: TypedGraph
    within: Mapping[str, WithinLoss]
    """By the paths of the losses."""
    merged: Mapping[str, Merged]
    """By the paths of reductions, without passes."""


def reduced(graph: TypedGraph, depth: Depth) -> Reduced:
    """Return a graph of a model in which reductions of one kind, each of which is all that reads the one before, are one, and in
    which a loss reads what its sums and means read. Those that an option names stay.
    """
    merger, written = _Merger(depth), graph.by_name
    graph = merger.changed(graph, "")
    within: dict[str, WithinLoss] = {}
    losses = [node for node in graph.nodes if isinstance(node, TypedBlock) and _reads_means(node)]
    readers = readers_in(graph) if losses else {}
    for loss in losses:
        chain = _chain_below(loss, graph, readers)
        if chain and not any(depth.points_at(plain(one.name)) for one in chain):
            words = _in_words(chain)
            covers = tuple(name for one in chain for name in (*merger.found.get(one.name, Merged()).names, one.name))
            said = (f"{name} is {whole(written[name])}" for name in covers)
            within[loss.name] = WithinLoss(words, covers, "; ".join(said) if depth.level != "overview" else "")
            graph = _without(chain, loss, graph)
    return Reduced(graph, within, merger.found)


def tell_merged(item: Item, merged: Merged) -> Item:
    """Return a box that stands for several reductions with what these are."""
    if not isinstance(item, Leaf):
        return item
    around = item.about.path.rpartition(".")[0]
    covers = tuple(f"{around}.{name}".removeprefix(".") for name in merged.names)
    said = merged.description if item.about.description else ""  # at a glance, nothing is described
    return replace(item, about=replace(item.about, covers=(*covers, *item.about.covers), description=said))


def tell_reductions(sink: Sink, within: Mapping[str, WithinLoss]) -> Sink:
    """Return a loss with the reductions that are drawn in its box."""
    told = within.get(sink.path)
    if told is None or sink.leaf is None:
        return sink
    about, look = sink.leaf.about, replace(sink.leaf.look, facts=(told.words, *sink.leaf.look.facts))
    tip = TIP_SEPARATOR.join([look.title, look.detail])
    said = "; ".join(filter(None, [told.description, about.description]))
    about = replace(about, tip=tip, covers=(*told.covers, *about.covers), description=said)
    return replace(sink, leaf=replace(sink.leaf, about=about, look=look))


def readers_in(graph: TypedGraph) -> Counter[str]:
    """Return how often each node of a graph is read, by its nodes and its outputs."""
    read = Counter(ref.node for node in graph.nodes for wire in wires_of(node.node) for ref in wire.refs)
    return read + Counter(ref.node for _, ref in graph.graph.outputs)


def _is_reduction(node: TypedNode | None) -> bool:
    """Return whether a node takes away axes, whatever the order of these."""
    return isinstance(node, TypedBlock) and node.part.kind in REDUCTIONS


def _only_ref(node: TypedNode) -> Ref | None:
    """Return what a node reads, if that is one value."""
    refs = [ref for wire in wires_of(node.node) for ref in wire.refs]
    return refs[0] if len(refs) == 1 else None


# -- reductions as one


@dataclass(slots=True)
class _Merger(EveryGraph):
    """Merges reductions of one kind in a graph and in all that it holds."""

    found: dict[str, Merged] = field(default_factory=dict)

    def own(self, graph: TypedGraph, prefix: str) -> TypedGraph:
        """Return a graph with those among its own nodes as one."""
        if not any(map(_is_reduction, graph.nodes)):
            return graph
        readers = readers_in(graph)
        for name in [node.name for node in graph.nodes]:
            last = graph.by_name[name]  # which may stand for others by now
            ref = _only_ref(last) if _is_reduction(last) else None
            first = graph.by_name.get(ref.node) if ref is not None else None
            if not (isinstance(first, TypedBlock) and isinstance(last, TypedBlock) and _is_reduction(first)):
                continue
            paths = [plain(f"{prefix}{one.name}") for one in (first, last)]
            if first.part.kind == last.part.kind and readers[first.name] == 1 and not any(map(self.depth.points_at, paths)):
                before, own = (self.found.get(path, Merged()) for path in paths)
                said = [before.description or f"{first.name} is {whole(first)}", f"{last.name} is {whole(last)}"]
                self.found[paths[1]] = Merged((*before.names, first.name, *own.names), "; ".join(said))
                nodes = [_as_one(first, last) if node is last else node for node in graph.nodes if node is not first]
                graph = graph_of(graph, nodes)
        return graph


def _as_one(first: TypedBlock, last: TypedBlock) -> TypedBlock:
    """Return the second of two reductions with the axes of both, and with what the first one reads."""
    axes = first.sizes["..."]
    taken = _several(first.sizes["dim"])
    left = [place for place in range(-len(axes), 0) if place not in taken]
    others = [_told(axes, name, left[place]) for name, place in _named_places(last, last.sizes["..."])]
    part = last.part.model_copy(update={AXIS: (*axes_of(first), *others)})
    places = tuple(sorted((*taken, *(left[place] for _, place in _named_places(last, last.sizes["..."])))))
    node = replace(last.node, wires=first.node.wires)
    return replace(last, node=node, part=part, sizes={**last.sizes, "...": axes, "dim": places}, inputs=first.inputs)


def _named_places(node: TypedBlock, axes: Sequence[Any]) -> Iterator[tuple[str, int]]:
    """Yield the axes that a reduction takes away, as a recipe names them, each with its place counted from the end."""
    yield from ((name, axis_index(axes, name)) for name in axes_of(node))


def _told(axes: Sequence[Any], name: str, place: int) -> str:
    """Return the name of the axis at a place if it means the same among other axes; else the place."""
    try:
        return name if axis_index(axes, name) == place else str(place)
    except BlockError:
        return str(place)


def axes_of(node: TypedBlock) -> tuple[str, ...]:
    """Return the axes that a reduction takes away, as a recipe names them."""
    return tuple(map(str, _several(getattr(node.part, AXIS))))


def _several(one_or_more: Any) -> tuple[Any, ...]:
    return one_or_more if isinstance(one_or_more, tuple) else (one_or_more,)


# -- reductions that end in a loss


def _chain_below(loss: TypedNode, graph: TypedGraph, readers: Mapping[str, int]) -> Chain:
    """Return the sums and means that lead to a loss which another node computes, the first one first; none where it is said
    elsewhere how they become one number.
    """
    found: Chain = ()
    ref = _only_ref(loss)
    while ref is not None and (node := graph.by_name.get(ref.node)) is not None:
        if readers[node.name] != 1 or _plain_reduction(node) is None:
            break
        found = (node, *found)
        ref = _only_ref(node)
    return found


def _reads_means(node: TypedBlock) -> bool:
    """Return whether a node is a loss that another one computes, so that it reads one number."""
    return isinstance(node.part, Loss) and node.part.of_means


def _plain_reduction(node: TypedNode) -> TypedBlock | None:
    """Return the sum or the mean that a node is, or that is all there is in a block of the recipe; none for others."""
    held: TypedNode | None = node
    if isinstance(node, TypedGroup):
        first, *others = node.graph.nodes
        reads, given = _only_ref(first), {one.name for one in node.graph.graph.inputs}
        alone = node.node.part is not None and not others and reads is not None and {reads.node} == given
        held = first if alone else None
    return held if isinstance(held, TypedBlock) and held.part.kind in PLAIN else None


def _in_words(chain: Chain) -> str:
    """Return how the numbers that sums and means read become one."""
    runs: list[tuple[str, str]] = []
    count = 0
    for node in chain:
        one = _plain_reduction(node)
        assert one is not None
        names = axes_of(one)
        count += len(names)
        runs.append((one.part.kind, axes_in_words(names, axis_words(one.first_input))))
    if len({kind for kind, _ in runs}) == 1:
        return f"{runs[0][0]} of all numbers" if count > 1 else f"{PLAIN[runs[0][0]]} over {runs[0][1]}"
    return ", ".join(f"{PLAIN[kind]} over {axes}" for kind, axes in runs)


def _without(chain: Chain, loss: TypedNode, graph: TypedGraph) -> TypedGraph:
    """Return a graph without a chain of nodes, in which a loss reads what the first of these reads."""
    ref = _only_ref(chain[0])
    assert ref is not None

    def led(wire: Wire, _: int) -> Wire:
        return replace(wire, refs=(ref,))

    gone = {node.name for node in chain}
    return graph_of(graph, [with_wires(node, led) if node is loss else node for node in graph.nodes if node.name not in gone])
