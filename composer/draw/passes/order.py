"""The order of a flow: one line upwards, or a U."""

from __future__ import annotations

from itertools import pairwise

from composer.draw.diagram import Branches, Flow, Item, Leaf
from composer.draw.edges import DiagramEdge
from composer.draw.paths import above


def sort_topologically(flow: Flow) -> Flow:
    """Return the flow in an order in which a block follows what it reads as directly as can be.

    Before: a(x) c(b) b(a)
    After:  a(x) b(a) c(b)
    """
    items = flow.by_path
    rank = {path: index for index, path in enumerate(items)}
    reads: dict[str, set[str]] = {path: set() for path in items}
    readers: dict[str, list[str]] = {path: [] for path in items}
    streams: dict[str, set[str]] = {path: set() for path in items}
    holders = begun_in_branches(flow)
    for edge in (*flow.edges, *(edge for item in flow.items for edge in inner_edges(item))):
        source = holders.get(edge.source.path, edge.source.path)
        for path in above(edge.target) if edge.upward else ():
            if path in items and source in items and source not in (path, *reads[path]):
                reads[path].add(source)
                readers[source].append(path)
    for edge in flow.edges:
        if edge.upward and edge.main and edge.target in items:
            streams[edge.target].add(edge.source.path)
    placed: list[str] = []
    ready = {path for path in items if not reads[path]}
    while ready:
        last = placed[-1] if placed else flow.owner
        going_on = [path for path in ready if last in streams[path]]
        placed.append(min(going_on or ready, key=rank.__getitem__))
        ready.remove(placed[-1])
        for path in readers[placed[-1]]:
            reads[path].remove(placed[-1])
            if not reads[path]:
                ready.add(path)
    return flow.with_items(items[path] for path in placed)


def split_u(flow: Flow) -> tuple[Flow, Flow] | None:
    """Return the way down and the way up of a flow in the form of a U: a line of blocks in which some on the way down are read
    once more on the way up, the last one first. What lies between is halved, so that the turn is at the bottom of both; a frame
    may only stand on the way up. None for any other form.

    Before: a(x) b(a) c(b) d(c b) e(d a)
    After:  a(x) b(a) / c(b) d(c b) e(d a)
    """
    paths = [item.about.path for item in flow.items]
    place = {path: index for index, path in enumerate(paths)}
    wires = {(place[e.source.path], place[e.target]): e for e in flow.edges if e.upward and e.source.path in place}
    skips = sorted((a, b) for a, b in wires if b > a + 1)
    nested = all(a <= c and d <= b for (a, b), (c, d) in pairwise(sorted(skips, key=lambda skip: (skip[0], -skip[1]))))
    plain = all((index, index + 1) in wires and wires[index, index + 1].main for index in range(len(paths) - 1))
    if len({a for a, _ in skips}) < 2 or not nested or not plain or any(e.back for e in flow.edges):
        return None
    last, reader = max(skips, key=lambda skip: (skip[0], -skip[1]))
    turn = last + 1 + (reader - last - 1) // 2
    inside = {edge.source.path for item in flow.items for edge in inner_edges(item) if not edge.source.from_inside}
    across = all(a < turn <= b and isinstance(flow.items[b], Leaf) for a, b in skips)
    if not across or inside & place.keys() or not all(isinstance(item, Leaf) for item in flow.items[:turn]):
        return None
    return flow.only(paths[:turn]), flow.only(paths[turn:])


def begun_in_branches(flow: Flow) -> dict[str, str]:
    """Return the inputs of the model that branches at either side of others begin with, each with the path of all of these."""
    branches = [item for item in flow.items if isinstance(item, Branches) and item.fork is None]
    outer = [(item, one.items[0]) for item in branches for one in (item.flows[0], item.flows[-1])]
    return {first.about.path: item.about.path for item, first in outer if isinstance(first, Leaf) and first.model_input}


def inner_edges(item: Item) -> list[DiagramEdge]:
    """Return the edges of all that an item holds."""
    return [edge for flow in getattr(item, "flows", ()) for edge in flow.all_edges()]
