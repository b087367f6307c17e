"""What flows between the items of a flow, which of them are one stream, and which are alike side by side."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from composer.draw.diagram import Flow, Group, Item, Leaf
from composer.draw.edges import DiagramEdge, FrameInput
from composer.draw.passes.order import inner_edges
from composer.draw.paths import is_output

MIN_ALIKE = 3
"""Blocks that make a row: of two, one may stand where there is room."""
MIN_READERS = 4
"""Blocks that make one above what they read: queries, keys and values stand as high as what they lead to."""


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


@dataclass(frozen=True, slots=True)
class Fan:
    """A block that feeds several alike side by side, or that reads several."""

    hub: str
    row: tuple[str, ...]

    def joins(self, source: str, target: str) -> bool:
        """Return whether a wire between two is one of its own."""
        return (source == self.hub and target in self.row) or (target == self.hub and source in self.row)


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


def streams(
    flow: Flow,
    links: Sequence[ItemLink],
    ends: Collection[str] = (),
    rather: Collection[tuple[str, str]] = (),
    aside: Collection[str] = (),
) -> list[list[str]]:
    """Return the items in lines, the longest first: each goes on with one of those that read it before anything else, where there
    is a choice in one of the pairs in which it `rather` goes on, and that not for one item alone, or toward one of the `ends`. Of
    what a merge reads, that is the first that no other merge goes on from, those `aside` last; or what is made of that alone,
    which a residual connection goes around. Alike frames that read both a value and what else is made of it are beside it.
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
        several = sorted(reads.get(path, []), key=aside.__contains__)
        for one in [*(one for one in several if one not in taken), *several]:
            if path not in first or (first[path] in through[one] and one not in aside):
                first[path] = one
        if len(several) > 1:
            taken.add(first[path])
    high = {path: len(flow.items) if path in ends else 1 for path in flow.by_path}
    going_on: dict[str, str] = {}
    best = dict.fromkeys(flow.by_path, (False, 0))
    beside = _beside_trunk(flow, first, sources)
    for path in reversed([*flow.by_path]):
        one = "" if path in beside else first.get(path, "")
        value = (one, path) in rather and path in going_on, high[path] + 1
        if one and value > max(best[one], (False, high[one])):
            best[one], high[one], going_on[one] = value, high[path] + 1, path
    lines = []
    for path in flow.by_path:
        if going_on.get(first.get(path, "")) != path:
            lines.append([path])
            while lines[-1][-1] in going_on:
                lines[-1].append(going_on[lines[-1][-1]])
    return sorted(lines, key=len, reverse=True)


def _beside_trunk(flow: Flow, first: Mapping[str, str], sources: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the frames that would go on from a value as others do that are alike, where all of these also read what another
    reader makes of it.
    """
    rows: dict[tuple[str, str], list[str]] = {}
    for path, one in first.items():
        if isinstance(flow.by_path[path], Group):
            rows.setdefault((one, _kind(flow.by_path[path])), []).append(path)
    found: set[str] = set()
    for (one, _), row in rows.items():
        others = {path for path, source in first.items() if source == one} - {*row}
        if len(row) > 1 and others and all(_made_of(path, sources) & others for path in row):
            found |= {*row}
    return found


def _made_of(path: str, sources: Mapping[str, Sequence[str]]) -> set[str]:
    """Return all that something is made of."""
    found, rest = set[str](), [path]
    while rest:
        more = {*sources.get(rest.pop(), ())} - found
        found |= more
        rest += more
    return found


@dataclass(frozen=True, slots=True)
class KeptShapes:
    """Which values have the shape of what they are made of."""

    pairs: frozenset[tuple[str, str]]
    """What reads a value and gives one of the same shape, with what gives it."""
    changed: frozenset[str]
    """The last items of ways from a value that others read too, to one of another shape."""


def kept_shapes(flow: Flow, links: Sequence[ItemLink]) -> KeptShapes:
    """Return which values have the shape of what they are made of."""
    shapes = {link.source: link.edge.source.shape for link in links if not link.edge.source.port}
    reads: dict[str, dict[str, None]] = {}
    readers: dict[str, dict[str, None]] = {}
    for link in links:
        reads.setdefault(link.target, {})[link.source] = None
        readers.setdefault(link.source, {})[link.target] = None
    pairs = frozenset((link.source, link.target) for link in links if shapes.get(link.target) == link.edge.source.shape)
    start: dict[str, str] = {}
    for path in flow.by_path:
        one = next(iter(reads.get(path, ())), "")
        if len(reads.get(path, ())) == 1 and (one, path) not in pairs and (len(readers[one]) > 1 or one in start):
            start[path] = one if len(readers[one]) > 1 else start[one]
    return KeptShapes(pairs, frozenset(path for path, one in start.items() if shapes.get(path, "") != shapes.get(one)))


def forks_alike(flow: Flow, links: Sequence[ItemLink], column: Mapping[str, int]) -> bool:
    """Return whether something feeds two items of several columns that say the same: branches around its middle."""
    found: dict[tuple[str, str, tuple[str, ...]], set[int]] = {}
    for link in links:
        if link.target in column:
            item = flow.by_path[link.target]
            found.setdefault((link.source, _kind(item), _facts(item)), set()).add(column[link.target])
    return any(len(several) > 1 for several in found.values())


def fans(flow: Flow, links: Sequence[ItemLink], rank: Mapping[str, int]) -> Iterator[Fan]:
    """Yield each item that feeds several of a kind in one rank, none of which reads others of its own rank; and each that reads
    several such, which it alone reads. What goes on from each of them is about equally long, and where they are two, both say the
    same.
    """
    reads: dict[str, list[str]] = {path: [] for path in flow.by_path}
    gives: dict[str, list[str]] = {path: [] for path in flow.by_path}
    for a, b in dict.fromkeys((link.source, link.target) for link in links):
        reads[b].append(a)
        gives[a].append(b)
    ordered = sorted(flow.by_path, key=lambda path: rank[path])
    for ways, back in ((gives, reads), (reads, gives)):
        far = _distances(ways, ordered[::-1] if ways is gives else ordered)
        for hub, several in ways.items():
            rows: dict[tuple[str, int], list[str]] = {}
            for one in several:
                rows.setdefault((_kind(flow.by_path[one]), rank[one]), []).append(one)
            for row in rows.values():
                others = {other for one in row for other in back[one]} - {hub}
                exactly = len(row) > 2 or len({_facts(flow.by_path[one]) for one in row}) == 1
                alone = all(rank[other] != rank[hub] for other in others) if ways is gives else not others
                if exactly and alone and len(row) > 1 and max(far[one] for one in row) <= 2 * min(far[one] for one in row):
                    yield Fan(hub, tuple(row))


def alike_sources(flow: Flow, links: Sequence[ItemLink]) -> Iterator[tuple[str, ...]]:
    """Yield at least three blocks that are called the same and that one item reads, for each item that reads such."""
    read: dict[tuple[str, str], dict[str, None]] = {}
    for link in links:
        read.setdefault((link.target, _kind(flow.by_path[link.source])), {})[link.source] = None
    yield from (tuple(row) for row in read.values() if len(row) >= MIN_ALIKE)


def alike_readers(flow: Flow, links: Sequence[ItemLink]) -> Iterator[tuple[str, ...]]:
    """Yield at least four blocks that are called the same and that read one value and nothing else, for each such value."""
    reads: dict[str, dict[str, None]] = {}
    for link in links:
        reads.setdefault(link.target, {})[link.net] = None
    read: dict[tuple[str, str], list[str]] = {}
    for path, nets in reads.items():
        if len(nets) == 1:
            read.setdefault((next(iter(nets)), _kind(flow.by_path[path])), []).append(path)
    yield from (tuple(row) for row in read.values() if len(row) >= MIN_READERS)


def kin_of(flow: Flow, ordered: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Return of each item of a flow what it is called, which is one word for all outputs, and its place among all `ordered`."""
    number = {path: place for place, path in enumerate(ordered)}
    return {path: ("output" if is_output(path) else _kind(item), number[path]) for path, item in flow.by_path.items()}


def _distances(ways: Mapping[str, Sequence[str]], ordered: Sequence[str]) -> dict[str, int]:
    """Return of how many items the longest way from each is, with itself."""
    far: dict[str, int] = {}
    for path in ordered:
        far[path] = 1 + max((far[one] for one in ways[path]), default=0)
    return far


def _kind(item: Item) -> str:
    """Return what an item is called; a group by what is in it, since each use of a block has a name of its own."""
    match item:
        case Leaf():
            return item.look.title
        case Group():
            return " ".join([item.count, *(leaf.look.title for leaf in item.flows[0].leaves() if isinstance(leaf, Leaf))])
        case _:
            return item.about.path


def _facts(item: Item) -> tuple[str, ...]:
    """Return what an item says below what it is called."""
    return item.look.facts if isinstance(item, Leaf) else ()
