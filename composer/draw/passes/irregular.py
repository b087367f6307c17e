"""What is irreducible in a flow: blocks that stand neither in line nor side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from composer.draw.diagram import Flow, IrregularSubgraph, Item, Leaf, output_of
from composer.draw.edges import DiagramEdge, DiagramSource
from composer.draw.passes.branches import MAX_BRANCHES
from composer.draw.passes.order import inner_edges
from composer.draw.passes.series_parallel import cuts, irreducible, ranks, segments

MIN_NODES, MAX_NODES = 6, 100
"""Blocks of a part that is laid out by itself."""


def group_irregular_subgraphs(flow: Flow, fits: Callable[[IrregularSubgraph], bool]) -> Flow:
    """Return the flow, in order, with what is irreducible, or has many branches, and is rather wide than long, as one item for
    each such part that fits.

    Before: f(x) a(f) b(f) c(a b) d(a) e(b) j(c d e)
    After:  f(x) {a(f) b(f) c(a b) d(a) e(b)} j(f)
    """
    paths = [flow.owner, *(item.about.path for item in flow.items)]
    place = {path: number for number, path in enumerate(paths) if path or not number}
    wires: list[tuple[int, int]] = []
    for item in flow.items:
        own = flow.edges_into(item.about.path)
        sources = {e.source.path for e in (*own, *inner_edges(item)) if e.upward}
        wires += [(place[one], place[item.about.path]) for one in sources if one in place and place[one] < place[item.about.path]]
    known = set(cuts(len(paths), wires))
    for low, high in reversed(list(segments(len(paths), wires))):
        inside = [(a, b) for a, b in wires if low <= a and b <= high]
        wide = MIN_NODES <= high - low <= MAX_NODES and 5 * ranks(low, high, inside)[-1] <= 4 * (high - low)
        many = sum(a == low and b < high for a, b in inside) > MAX_BRANCHES
        if wide and (many or irreducible(low, high, inside) != {(low, high)}):
            subgraph = _subgraph(flow, paths[low], flow.items[low:high])
            if subgraph is None and low - 1 in known:  # its fork may give several values
                subgraph = _subgraph(flow, paths[low - 1], flow.items[low - 1 : high])
            flow = _with_subgraph(flow, subgraph) if subgraph is not None and fits(subgraph) else flow
    return flow


def _subgraph(flow: Flow, fork: str, items: Sequence[Item]) -> IrregularSubgraph | None:
    """Return some items as one, where they read nothing of the flow but each other and the fork. What they read of other columns
    comes in from the side, and blocks that read no more than inputs begin a way of their own.
    """
    own = {item.about.path for item in items}
    join = items[-1]
    inner = tuple(e for e in flow.edges if e.target in own)
    sources = {e.source for e in inner if e.source.path == fork and e.upward}
    near = {item.about.path for item in flow.items} - own - {fork}
    others = any(e.upward and e.source.path in near for e in inner)
    odd = any(e.of_state for e in flow.all_edges() if e.source.path in own or e.target in own)
    outside = [source for _, source in flow.exits] + [sink.edges[0].source for sink in flow.sinks]
    outside += [flow.outlet] if flow.outlet else []
    read = {source.path for source in outside}
    odd = odd or any(source.port for source in outside if source.path in own)
    odd = odd or any(e.source.port for e in flow.edges if e.source.path == join.about.path or e.source in sources)
    wired = [e for e in inner if e.upward]
    between = own - {join.about.path} <= {e.source.path for e in wired}
    simple = between and all(isinstance(item, Leaf) and not item.look.sides and not item.model_input for item in items)
    simple = simple and 2 * len(_reached(fork, items, wired)) >= len(own)
    said = any(isinstance(item, Leaf) and item.after for item in items[:-1])
    if not isinstance(join, Leaf) or len(sources) != 1 or others or odd or not simple or said or read & (own - {join.about.path}):
        return None
    (source,) = sources
    return IrregularSubgraph(Flow(source.origin, tuple(items), inner, DiagramSource(output_of(join))), join, source)


def _reached(fork: str, items: Sequence[Item], edges: Sequence[DiagramEdge]) -> set[str]:
    """Return the blocks, of some in order, that a value of a fork goes through."""
    found: set[str] = set()
    for item in items:
        path = item.about.path
        if any(e.target == path and (e.source.path == fork or e.source.path in found) for e in edges):
            found.add(path)
    return found


def _with_subgraph(flow: Flow, subgraph: IrregularSubgraph) -> Flow:
    """Return the flow with a part as one item."""
    join = subgraph.join.about.path
    rest = flow.without({item.about.path for item in subgraph.flow.items} - {join})
    rest = rest.with_edges(e for e in rest.edges if e.target != join)
    return rest.with_item(subgraph, DiagramEdge(subgraph.fork, join, "", True, forks=True))
