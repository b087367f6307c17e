"""Blocks on the skip connections of a U, such as the gates of an attention U-Net."""

from __future__ import annotations

from dataclasses import dataclass

from composer.draw.diagram import Flow, Leaf
from composer.draw.edges import DiagramEdge


@dataclass(frozen=True, slots=True)
class SkipBlock:
    """A block that a skip connection goes through."""

    leaf: Leaf
    skip: DiagramEdge
    """What it reads of the way down."""
    others: tuple[DiagramEdge, ...]
    """What else it reads."""
    out: DiagramEdge
    """From it to its one reader."""

    @property
    def past(self) -> DiagramEdge:
        """The skip connection without it."""
        return self.out.reading(self.skip.source)


def lift_skip_blocks(flow: Flow) -> tuple[Flow, list[SkipBlock]]:
    """Return a flow, in order, without the blocks on its skip connections, and these: each reads a value from before, and others
    of which alone the rest is made that its one reader, a merge, reads.

    Before: a(x) b(a) c(b) g(a c) d(g c) e(d)
    After:  a(x) b(a) c(b) d(c a) e(d) / g
    """
    place = {path: index for index, path in enumerate(flow.by_path)}
    readers_of: dict[str, list[DiagramEdge]] = {}
    for edge in flow.all_edges():
        readers_of.setdefault(edge.source.path, []).append(edge)
    found: list[SkipBlock] = []
    for item in flow.items:
        path = item.about.path
        if not isinstance(item, Leaf) or item.model_input or item.look.sides or item.rows or item.after:
            continue
        reads = flow.edges_into(path)
        readers = readers_of.get(path, [])
        outside = any(source.path == path for _, source in flow.exits) or any(
            edge.source.path == path for sink in flow.sinks for edge in sink.edges
        )
        if len(readers) != 1 or outside or len(reads) < 2 or not all(e.upward and e.source.path in place for e in reads):
            continue
        out = readers[0]
        beside = [e for e in flow.edges_into(out.target) if e != out and e.upward]
        first = min(reads, key=lambda e: place[e.source.path])
        others = tuple(e for e in reads if e is not first)
        merged = isinstance(flow.by_path.get(out.target), Leaf) and out.main and len(beside) == 1
        if merged and all(_leads(flow, e.source.path, beside[0].source.path) for e in others):
            found.append(SkipBlock(item, first, others, out))
    bare = flow.without({one.leaf.about.path for one in found})
    return bare.with_edges((*bare.edges, *(one.past for one in found))), found


def _leads(flow: Flow, path: str, end: str) -> bool:
    """Return whether a block is another, or that is computed from it alone, block by block."""
    while path != end:
        reads = flow.edges_into(end)
        if len(reads) != 1:
            return False
        end = reads[0].source.path
    return True
