"""A ladder as papers draw it: the trunk at the left, a row for each value that is read of it, and what all rows meet in at the
right: a box as high as all of them, or above columns of heads one box for each column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from composer.draw.diagram import Flow, Leaf, Sink, output_of
from composer.draw.edges import DiagramEdge
from composer.draw.geometry import Point
from composer.draw.layout.beside.levels import APART, ROW_GAP, Levels
from composer.draw.layout.boxes import MIN_COLUMN_WIDTH, box, needed
from composer.draw.layout.column import column
from composer.draw.layout.fragment import Fragment, areas
from composer.draw.layout.outgoing_edges import mark_at, room, sink_at
from composer.draw.layout.spine import LayoutOptions
from composer.draw.passes.ladder import Drop, Ladder, Rung
from composer.draw.paths import is_output
from composer.draw.scene import RADIUS, Box, Dot

HANG = 20.0
"""From the wire of a row up to what stands above it: a shape is written at the wire."""
UNDER = 6.0
"""What is kept free below the wire of a row."""
DOWN = 26.0
"""From the first box of a level down to that of the next, where a wire leads from one to the other."""
LANE = 15.0
"""From wire to wire that go up side by side: a digit beside each tells which it is of what a box reads."""
TURN = 16.0
"""From a box, or what is written behind it, to the first of them."""
CLEAR = 24.0
"""Between columns above rows, and from rows up to these."""


def ladder_fragment(ladder: Ladder, width: float, options: LayoutOptions) -> Fragment | None:
    """Return all of a ladder, counted from its left border; boxes of the trunk have the width. None where levels do not leave
    the trunk above each other in their order, or a box above a column of heads would be narrower than the wires into it.
    """
    rows = _Rows(ladder, width, options)
    if any(output_of(rows.trunk[path]) not in rows.found.taps for path in rows.taps):
        return None
    heights = [rows.height_of(path) for path in rows.taps]
    if heights != sorted(heights, reverse=True):
        return None
    return rows.found if rows.place() else None


def in_a_box(leaf: Leaf) -> Leaf:
    """Return what levels meet in as a box, never a circle."""
    return replace(leaf, look=replace(leaf.look.spelled, sign=None))


class _Rows(Levels):
    """The rows of a ladder while they are placed, each at the height where its value leaves the trunk."""

    def __init__(self, ladder: Ladder, width: float, options: LayoutOptions) -> None:
        self.flow, self.items, self.rungs = ladder.flow, ladder.flow.by_path, ladder.rungs
        edges = {(e.source.path, e.target): e for e in ladder.flow.edges if not e.source.reference}
        super().__init__(ladder.trunk, [rung.tap for rung in ladder.rungs], edges, width, options, narrow=False)
        self.above = [self.column_above(part) for part in ladder.meetings]
        self.meetings = [next(iter(part.by_path)) for part in ladder.meetings]
        self.join = next((rung.columns[rung.line.index(rung.drop.join)] for rung in self.rungs if rung.drop), 0)
        self.ends: dict[str, tuple[str, Point]] = {rung.last: (rung.tap, (0.0, 0.0)) for rung in self.rungs}
        self.sinks = [sink for sink in self.flow.sinks if sink.edges[0].source.path in self.ends]

    def leaf(self, path: str) -> Leaf:
        """Return a block of the rows."""
        item = self.items[path]
        assert isinstance(item, Leaf)
        return item

    def column_above(self, part: Flow) -> Fragment:
        """Return what levels meet in and what goes on from there, as a column without the wires from the levels."""
        boxed = in_a_box(self.leaf(next(iter(part.by_path))))
        part = part.with_items(boxed if item.about == boxed.about else item for item in part.items)
        wide = max(needed(leaf, self.options.typography) for leaf in part.leaves() if isinstance(leaf, Leaf))
        return column(
            part.with_edges(e for e in part.edges if e.target != boxed.about.path), max(wide, MIN_COLUMN_WIDTH), self.options
        )

    def box_of(self, number: int) -> Box:
        """Return the box of a meeting in its column."""
        return next(one for one in self.above[number].pieces.boxes if one.about.path == self.meetings[number])

    # -- what ends a row without heads

    def outputs(self, rung: Rung) -> list[Leaf]:
        """Return the outputs of the model that a level gives."""
        return [self.leaf(target) for source, target in self.edges if source == rung.last and is_output(target)]

    def alike(self, sink: Sink) -> list[DiagramEdge]:
        """Return what else a loss reads of levels in the way of the first: a level each, where its name stands."""
        first, *others = sink.edges
        return [edge for edge in others if edge.port == first.port and edge.source.path in self.ends and not edge.source.port]

    def boxed(self, sink: Sink) -> Sink:
        """Return a loss as it stands at the first level that it reads."""
        alike = self.alike(sink)
        return replace(sink, edges=tuple(edge for edge in sink.edges if edge not in alike))

    def reads(self, sink: Sink, rung: Rung) -> bool:
        """Return whether a loss stands at a level, by itself or by its name."""
        return rung.last in {edge.source.path for edge in (sink.edges[0], *self.alike(sink))}

    def lift(self, sink: Sink) -> float:
        """Return how far above the wire of a row a loss, or its name, stands."""
        return room(self.boxed(sink), self.options.typography) / 2 + UNDER

    # -- how high rows are

    def spread(self) -> None:
        """Move the levels so far apart that their rows have room."""
        for lower, upper in pairwise(self.rungs):
            above, below = dict(self.heights(lower)), dict(self.depths(upper))
            least = max(high + below.get(place, UNDER) for place, high in above.items()) + ROW_GAP
            if lower.drop:
                leaves, ends = self.leaves(lower.drop), above["line", self.join] + below.get(("line", self.join), 0.0)
                least = max(least, ends + (self.way_down(leaves) if leaves else DOWN))
            self.part(upper.tap, lower.tap, least)

    def leaves(self, drop: Drop) -> list[Leaf]:
        """Return the blocks on the way down to a level."""
        return [*map(self.leaf, drop.blocks)]

    def half(self, path: str) -> float:
        """Return how far above and below the wire of a row one of its blocks reaches."""
        leaf = self.leaf(path)
        return RADIUS if leaf.look.sign else self.high(leaf) / 2

    def heights(self, rung: Rung) -> Iterator[tuple[tuple[str, int], float]]:
        """Yield how far above its wire each part of a row reaches, by the column that it stands in."""
        yield from self.depths(rung)
        yield from ((("head", at), HANG + self.high(self.leaf(path))) for at, path in enumerate(rung.heads[:-1]))
        yield from ((("output", at), HANG + self.high(leaf)) for at, leaf in enumerate(self.outputs(rung)))
        yield from ((("loss", at), 2 * self.lift(sink)) for at, sink in enumerate(self.sinks) if self.reads(sink, rung))

    def depths(self, rung: Rung) -> Iterator[tuple[tuple[str, int], float]]:
        """Yield how far below its wire each part of a row reaches that stands level with it."""
        yield from ((("line", at), self.high(self.leaf(path)) / 2) for at, path in enumerate(rung.line))
        yield from (
            (("head", at), self.high(self.leaf(path)) / 2) for at, path in enumerate(rung.heads) if path == rung.heads[-1]
        )

    # -- rows

    def place(self) -> bool:
        """Place all beside the trunk; return whether each meeting is wide enough for its wires."""
        self.spread()
        x = self.place_lines()
        fits = self.place_heads(x) if self.rungs[0].heads else self.place_ends(x)
        self.close()
        return fits

    def place_lines(self) -> float:
        """Place the lines of all levels; return where they end, with what is written behind them."""
        left, gap = self.found.left + self.found.right, APART
        before = {rung.tap: (rung.tap, (self.found.left, self.height_of(rung.tap))) for rung in self.rungs}
        for at in range(max([0, *(place + 1 for rung in self.rungs for place in rung.columns)])):
            there = {rung.tap: self.leaf(rung.line[rung.columns.index(at)]) for rung in self.rungs if at in rung.columns}
            drops = [leaf for rung in self.rungs if rung.drop and at == self.join for leaf in self.leaves(rung.drop)]
            boxes, signs = ([leaf for leaf in there.values() if bool(leaf.look.sign) is signed] for signed in (False, True))
            left, wide = left + gap, max(self.wide([*boxes, *drops]), 2 * RADIUS)
            for tap, leaf in there.items():
                place = self.sign if leaf.look.sign else self.box
                before[tap] = place(leaf, left, wide, self.height_of(tap), before[tap])
            for lower, upper in pairwise(self.rungs):
                if lower.drop and at == self.join:
                    self.drop(lower.drop, upper, self.height_of(lower.tap), left + wide / 2, self.wide(drops))
            left, gap = left + wide, max(self.gap(boxes), self.gap(signs, wide / 2 - RADIUS))
        self.ends = {rung.last: before[rung.tap] for rung in self.rungs}
        return left + gap

    def drop(self, drop: Drop, upper: Rung, low: float, x: float, wide: float) -> None:
        """Place what leads down to a level at a height: from a block above, or from the wire that passes there."""
        y = self.height_of(upper.tap)
        if self.join in upper.columns:
            start = y + self.half(drop.source)
        else:
            start = y
            self.found.pieces.dots.append(Dot(x, y))
        self.lead_down((drop.source, ((x, start),)), self.leaves(drop), drop.join, low - self.half(drop.join), wide)

    def hang(self, leaf: Leaf, source: str, x: float, wide: float, y: float) -> tuple[str, Point]:
        """Place a box above the wire of a row; return it as what the next one reads."""
        self.found.pieces.dots.append(Dot(x, y))
        self.wire(source, leaf.about.path, ((x, y), (x, y - HANG)), whole=False)
        return self.stand(leaf, x - wide / 2, wide, y - HANG - self.high(leaf) / 2)

    # -- heads

    def place_heads(self, x: float) -> bool:
        """Place the heads of all levels in columns, from the left border of the first, and above these what they meet in."""
        lanes: list[list[tuple[str, Point, float]]] = []
        middles: list[float] = []
        taken = 0.0
        for number, column_above in enumerate(self.above):
            heads = [self.leaf(rung.heads[number]) for rung in self.rungs]
            wide = self.wide(heads)
            ends = [self.head(leaf, rung, x, wide) for leaf, rung in zip(heads, self.rungs, strict=True)]
            half = LANE * (len(ends) - 1) / 2
            said = max(self.options.typography.width(self.label(leaf), "shape") for leaf in heads)
            middles.append(max(x + wide + said + TURN + half, taken + CLEAR + column_above.left))
            turns = (middles[-1] + half - LANE * at for at in range(len(ends)))
            lanes.append([(*end, turn) for end, turn in zip(ends, turns, strict=True)])
            taken = middles[-1] + column_above.right
            x = middles[-1] + half + APART
        top = min(area.top for area in areas(self.found)) - CLEAR
        for number, column_above in enumerate(self.above):
            self.put(column_above, middles[number], top)
            for path, (start, y), turn in lanes[number]:
                self.wire(path, self.meetings[number], ((start, y), (turn, y), (turn, top)))
        return all(self.box_of(number).width > LANE * len(self.rungs) for number in range(len(self.above)))

    def head(self, leaf: Leaf, rung: Rung, left: float, wide: float) -> tuple[str, Point]:
        """Place a head, the last one of its level at the end of the wire and others above that; return where it is read."""
        before, y = self.ends[rung.last], self.height_of(rung.tap)
        if leaf.about.path == rung.heads[-1]:
            return self.box(leaf, left, wide, y, before)
        return self.hang(leaf, before[0], left + wide / 2, wide, y)

    # -- levels without heads

    def place_ends(self, x: float) -> bool:
        """Place the outputs and the losses of all levels above their wires, from a place behind the boxes on, and at the end of
        these, as high as all of them, what they meet in.
        """
        for at in range(max(len(self.outputs(rung)) for rung in self.rungs)):
            there = {rung: self.outputs(rung)[at] for rung in self.rungs if at < len(self.outputs(rung))}
            wide = self.wide([*there.values()])
            for rung, leaf in there.items():
                self.hang(leaf, rung.last, x + wide / 2 - TURN, wide, self.height_of(rung.tap))
            x += wide
        for sink in self.sinks:
            x = max(self.loss(sink, rung, x) for rung in self.rungs if self.reads(sink, rung)) + TURN
        drawn, (first, *_, last) = self.box_of(0), [self.height_of(rung.tap) for rung in self.rungs]
        middle, foot = x + APART - TURN + self.above[0].left, last + drawn.height / 2
        self.put(self.above[0], middle, foot)
        low, high = first + drawn.height / 2, first - last + drawn.height
        tall = box(in_a_box(self.leaf(self.meetings[0])), middle, low, drawn.width, high, self.options.typography)
        self.found.pieces.boxes = [tall if one.about.path == self.meetings[0] else one for one in self.found.pieces.boxes]
        for rung in self.rungs:
            path, start = self.ends[rung.last]
            self.wire(path, self.meetings[0], (start, (tall.x, start[1])))
        return True

    def loss(self, sink: Sink, rung: Rung, x: float) -> float:
        """Place a loss above the wire of a level, or its name; return how far it reaches."""
        drawn, y = Fragment(), self.height_of(rung.tap)
        start = ((x, y), (x, y - self.lift(sink)))
        self.found.pieces.dots.append(Dot(x, y))
        if sink.edges[0].source.path == rung.last:
            sink_at(drawn, self.boxed(sink), start, self.options.typography)
        for edge in self.alike(sink):
            if edge.source.path == rung.last and sink.leaf:
                mark_at(drawn, edge, sink.leaf, start, self.options.typography)
        self.found.pieces.take(drawn.pieces)
        return drawn.right
