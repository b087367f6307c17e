"""What flows between the items of a flow, and which of them are one stream."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from composer.draw.diagram import Flow
from composer.draw.edges import DiagramEdge, FrameInput
from composer.draw.passes.order import inner_edges


@dataclass(frozen=True, slots=True)
class ItemLink:
    """An edge between two blocks in ranks."""

    edge: DiagramEdge
    source: str
    """The block that gives its value."""
    target: str
    """The block that reads it, itself or inside of it."""

    @property
    def net(self) -> str:
        """The value."""
        return self.edge.source.own_name


def links_of(flow: Flow) -> list[ItemLink]:
    """Return the wires between items, and those from items into others."""
    items = flow.by_path
    found: dict[ItemLink, None] = {}
    for item in flow.items:
        path = item.about.path
        for edge in (*flow.edges_into(path), *inner_edges(item)):
            own = isinstance(edge.source.origin, FrameInput) or edge.source.path == path
            if edge.upward and edge.source.path in items and not own:
                found[ItemLink(edge, edge.source.path, path)] = None
    return list(found)


def streams(flow: Flow, links: Sequence[ItemLink], ends: Collection[str] = ()) -> list[list[str]]:
    """Return the items in lines, the longest first: each goes on with one of those that read it before anything else, where there
    is a choice toward one of the `ends`. Of what a merge reads, that is the first that no other merge goes on from; or what is
    made of that alone, which a residual connection goes around.
    """
    reads: dict[str, list[str]] = {}
    sources: dict[str, list[str]] = {}
    for link in links:
        sources.setdefault(link.target, []).append(link.source)
        if link.edge.main and link.edge.target == link.target:
            reads.setdefault(link.target, []).append(link.source)
    first: dict[str, str] = {}
    taken: set[str] = set()
    through: dict[str, frozenset[str]] = {}  # what every way of the stream to an item goes through
    for path in flow.by_path:
        below = [through[one] for one in reads.get(path, sources.get(path, []))]
        through[path] = frozenset({path}).union(frozenset.intersection(*below) if below else ())
        several = reads.get(path, [])
        for one in [*(one for one in several if one not in taken), *several]:
            if path not in first or first[path] in through[one]:
                first[path] = one
        if len(several) > 1:
            taken.add(first[path])
    high = {path: len(flow.items) if path in ends else 1 for path in flow.by_path}
    going_on: dict[str, str] = {}
    for path in reversed([*flow.by_path]):
        if path in first and high[path] + 1 > high[first[path]]:
            high[first[path]], going_on[first[path]] = high[path] + 1, path
    lines = []
    for path in flow.by_path:
        if going_on.get(first.get(path, "")) != path:
            lines.append([path])
            while lines[-1][-1] in going_on:
                lines[-1].append(going_on[lines[-1][-1]])
    return sorted(lines, key=len, reverse=True)
