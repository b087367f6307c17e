"""How high things stand in layers: Graphviz says it, and which wires between streams go level."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from composer.draw.diagram import Flow, Leaf
from composer.draw.graphviz_programs import node_places
from composer.draw.layout.beside.parallel_streams import ParallelStreams, blocked
from composer.draw.passes.layers import Fan, ItemLink, alike_readers, alike_sources
from composer.draw.paths import INPUTS, is_output

Pair = tuple[str, str]
"""What gives a value, and what reads it."""
STREAM, END, LEVEL = 2, 3, 4
"""How much it counts that a wire is short: of a long stream; from an input or to an output, where streams are parallel, so that
what all of them begin and end with is in a row; and a level one. All others count 1.
"""
MIN_BESIDE = 2
"""Inputs of a block beside the one of its trunk from which on all of them are a row: one alone stands where it is read."""
MIN_FOLDED = 2
"""Blocks between columns that go to one side, and to the other, from which on they stand in two rows where one is too wide."""


def ranks(
    flow: Flow, links: Sequence[ItemLink], weights: Mapping[Pair, int], level: Collection[Pair] = frozenset()
) -> dict[str, int]:
    """Return how high each item stands: all wires together are as short as can be, inputs lowest, outputs highest; alike items
    that one block reads are equally high, and what is `level` may be so.
    """
    found = _answer(flow, links, weights, level, ())
    rows = _rows(flow, links, found)
    return _answer(flow, links, weights, level, rows) if rows else found


def _rows(flow: Flow, links: Sequence[ItemLink], rank: Mapping[str, int]) -> list[Sequence[str]]:
    """Return alike items that one block reads, where they can be equally high and some are not."""
    ends = {*inputs_of(flow)}
    pairs = dict.fromkeys((link.source, link.target) for link in links)
    row_of: dict[str, str] = {}
    for row in (*alike_sources(flow, links), *alike_readers(flow, links)):
        joined = row_of | dict.fromkeys(row, row[0])
        free = ends.isdisjoint(row) and row_of.keys().isdisjoint(row)
        if free and _is_ordered([(joined.get(a, a), joined.get(b, b)) for a, b in pairs]):
            row_of = joined
    rows = [[path for path in row_of if row_of[path] == first] for first in dict.fromkeys(row_of.values())]
    return [row for row in rows if len({rank[path] for path in row}) > 1]


def _is_ordered(pairs: Iterable[Pair]) -> bool:
    """Return whether no way leads from anything back to it."""
    order = TopologicalSorter[str]()
    for a, b in pairs:
        order.add(b, a)
    try:
        order.prepare()
    except CycleError:
        return False
    return True


def _answer(
    flow: Flow, links: Sequence[ItemLink], weights: Mapping[Pair, int], level: Collection[Pair], rows: Sequence[Sequence[str]]
) -> dict[str, int]:
    """Return how high Graphviz puts each item, those of a row equally high."""
    names = {path: f"n{number}" for number, path in enumerate(flow.by_path)}
    lines = [
        f"{names[a]} -> {names[b]} [" + (f"weight={LEVEL} minlen=0]" if (a, b) in level else f"weight={weights.get((a, b), 1)}]")
        for a, b in dict.fromkeys((link.source, link.target) for link in links)
    ]
    ends = {
        "source": [names[path] for path in inputs_of(flow)],
        "sink": [names[path] for path in names if is_output(path)],
    }
    lines += ["{rank=" + f"{key} {' '.join(several)}" + "}" for key, several in ends.items() if several]
    lines += ["{rank=same " + " ".join(names[path] for path in row) + "}" for row in rows]
    head = 'node [shape=point width=0.1 height=0.1 fixedsize=true label=""] rankdir=BT splines=false'
    places = node_places("digraph { " + head + "; " + "; ".join([*names.values(), *lines]) + " }")
    heights = {name: y for name, (_, y) in places.items()}
    levels = {y: number for number, y in enumerate(sorted(set(heights.values())))}
    return {path: levels[heights[name]] for path, name in names.items()}


def inputs_of(flow: Flow) -> list[str]:
    """Return the items that stand for inputs of the model, or for those beside the trunk of a block that is drawn by itself; for
    the one in the trunk too, where several are beside it.
    """
    found = [item.about.path for item in flow.items if isinstance(item, Leaf) and item.model_input]
    trunk = [path for path in flow.by_path if path.startswith(INPUTS) and path not in found]
    return [*found, *trunk] if len(found) >= MIN_BESIDE else found


def in_two_rows(rank: Mapping[str, int], links: Sequence[ItemLink], columns: ParallelStreams) -> dict[str, int]:
    """Return how high things stand where of many blocks between columns in a rank those stand lower whose values go to the right,
    and the others above them.
    """
    places, found = columns.places, {**rank}
    source = {link.target: link.source for link in links if link.target not in columns.columns}
    to_left = {path for path, one in source.items() if places[one] > places[path]}
    for level in sorted({*rank.values()}, reverse=True):
        row = [path for path in source if rank[path] == level]
        above = [path for path in row if path in to_left]
        if min(len(above), len(row) - len(above)) >= MIN_FOLDED:
            higher = {*above, *(path for path in rank if rank[path] > level)}
            found = {path: at + (path in higher) for path, at in found.items()}
    return found


@dataclass(frozen=True, slots=True)
class LevelWires:
    """Parallel streams, while it is decided which wires between them go level."""

    flow: Flow
    links: Sequence[ItemLink]
    columns: ParallelStreams
    straight: Collection[Pair]
    """Neighbors in a column."""
    circles: Collection[str]
    """Merges, which have room for one wire at each side."""
    sided: Collection[str]
    """What has something at its left."""
    wide: Collection[str]
    """What several streams go through from below."""
    fans: Sequence[Fan]
    """Hubs and rows, to which no level wires lead: those in the row are equally high."""

    def ranks(self, weights: Mapping[Pair, int]) -> dict[str, int]:
        """Return how high each item stands: as many wires go level as have nothing in their way; none where
        exchanges between columns would be equally high without.
        """
        outer = {*inputs_of(self.flow)}
        weights = {
            **weights,
            **{(link.source, link.target): END for link in self.links if link.source in outer or is_output(link.target)},
        }
        level = {(link.source, link.target) for link in self.links if self.may_be_level(link)}
        while level:
            found = ranks(self.flow, self.links, weights, level)
            wrong = {*blocked(self.columns.rows(self.links, found), self.links, found)}
            if not wrong:
                break
            level -= wrong
        apart = ranks(self.flow, self.links, weights)
        return found if level and not self.scattered(apart, found) else apart

    def scattered(self, before: Mapping[str, int], after: Mapping[str, int]) -> bool:
        """Return whether blocks through which two columns exchange values are equally high in one order of ranks, as are all that
        others in this rank read and all that reads them, and not in another.
        """
        columns, rows = self.columns.columns, dict[int, list[tuple[str, str, str]]]()
        for into in (link for link in self.links if link.source in columns and link.target not in columns):
            for out in (link for link in self.links if link.source == into.target and link.target in columns):
                rows.setdefault(before[into.target], []).append((into.source, into.target, out.target))
        whole = (row for row in rows.values() if len({(before[a], before[c]) for a, _, c in row}) == 1)
        ways = ((row, {(columns[a], columns[c]) for a, _, c in row}) for row in whole)
        both = (row for row, pairs in ways if any((c, a) in pairs for a, c in pairs))
        return any(len({after[b] for _, b, _ in row}) > 1 for row in both)

    def may_be_level(self, link: ItemLink) -> bool:
        """Return whether a wire may go level, as far as what it connects says."""
        a, b, place = link.source, link.target, self.columns.places
        if link.edge.source.port or link.edge.target != b or any(fan.joins(a, b) for fan in self.fans):
            return False
        if not self.columns.may_be_level(link, self.straight):
            return False
        sides = (a, b, place[b] - place[a]), (b, a, place[a] - place[b])
        return all(self.is_free(one, side) and self.is_clear(one, other) for one, other, side in sides)

    def is_free(self, path: str, side: float) -> bool:
        """Return whether a wire has room at a side of an item, at the right where that is above 0."""
        item = self.flow.by_path[path]
        if not isinstance(item, Leaf) or item.model_input or is_output(path) or path in self.wide:
            return False
        if side > 0:
            return all(sink.edges[0].source.path != path for sink in self.flow.sinks)
        return path not in self.sided

    def is_clear(self, path: str, other: str) -> bool:
        """Return whether nothing else comes in at the side of a circle that another item stands at; what goes around some of its
        column comes in at the right.
        """
        place = self.columns.places
        if path not in self.circles:
            return True
        read = (link.source for link in self.links if link.target == path)
        beside = {one for one in read if self.columns.going_on.get(one) != path} - {other}
        return all((place[one] >= place[path]) != (place[other] > place[path]) for one in beside)
