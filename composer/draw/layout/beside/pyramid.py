"""A pyramid of features as papers draw it: the trunk at the left, its way back at the right, and a row from one to the other
for each level.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from composer.draw.diagram import Flow, Leaf, output_of
from composer.draw.edges import DiagramEdge
from composer.draw.geometry import Point, Text
from composer.draw.layout.boxes import MIN_COLUMN_WIDTH, box_height, needed
from composer.draw.layout.column import column
from composer.draw.layout.fragment import Fragment, areas, shift, stretch
from composer.draw.layout.lanes import style_of
from composer.draw.layout.spine import LayoutOptions
from composer.draw.layout.stations import block, circle
from composer.draw.passes.pyramid import Pyramid
from composer.draw.paths import is_output, lies_in
from composer.draw.scene import RADIUS, Box, Dot, Frame, MergeCircle, WirePath
from composer.draw.series import is_series

APART, ROW_GAP = 28.0, 16.0
"""From column to column, with a wire and its arrowhead; and between boxes of two levels."""
FIRST_DROP, DROP, LABELED_DROP = 15.0, 20.0, 28.0
"""Down from a circle to a box, from a box to what is below it, and where the shape is written between, as in a column."""
BESIDE_LABEL = 24.0
"""What a wire is longer than the text above it: an arrowhead, and free space at both ends."""
MIN_END_WIDTH = 64.0
"""Of the box of an output."""


def pyramid_fragment(pyramid: Pyramid, width: float, options: LayoutOptions) -> Fragment | None:
    """Return all of a pyramid, counted from its left border; boxes of the trunk have the width. None where a sum is no circle."""
    if any(not _leaves(drop)[-1].look.sign for drop in pyramid.drops):
        return None
    rows = _Rows(pyramid, width, options)
    rows.place()
    return rows.found


class _Rows:
    """The rows of a pyramid while they are placed, each at the height where its value leaves the trunk."""

    def __init__(self, pyramid: Pyramid, width: float, options: LayoutOptions) -> None:
        self.pyramid, self.options = pyramid, options
        self.rungs, self.drops, self.ends = (tuple(map(_leaves, flows)) for flows in (pyramid.rungs, pyramid.drops, pyramid.ends))
        flows = (*pyramid.rungs, *pyramid.drops, *pyramid.ends)
        self.edges = {(e.source.path, e.target): e for flow in flows for e in flow.edges}
        firsts = [rung[0] if rung else drop[-1] for rung, drop in zip(self.rungs, ([], *self.drops), strict=True)]
        trunk = pyramid.trunk.by_path
        self.taps = [next(path for path in trunk if (path, leaf.about.path) in self.edges) for leaf in firsts]
        self.found = column(pyramid.trunk, width, options, frozenset(output_of(trunk[path]) for path in self.taps))
        shift(self.found, self.found.left, 0)
        for (drop, upper), lower in zip(zip(self.drops, self.taps, strict=False), self.taps[1:], strict=True):
            missing = self.least(drop) - (self.height_of(lower) - self.height_of(upper))
            if missing > 0:
                stretch(self.found, self.foot_of(upper) + 0.1, missing)

    def height_of(self, path: str) -> float:
        """Return where a value of the trunk leaves it."""
        return self.found.taps[output_of(self.pyramid.trunk.by_path[path])][-1][1]

    def foot_of(self, path: str) -> float:
        """Return the lower end of something in the trunk."""
        pieces = self.found.pieces
        drawn: list[Box | MergeCircle | Frame] = [*pieces.boxes, *pieces.merges, *pieces.frames]
        return max(one.area.bottom for one in drawn if lies_in(one.about.path, path))

    def least(self, drop: Sequence[Leaf]) -> float:
        """Return the least distance from a level to the next."""
        rows = [leaf for line in (*self.rungs, *self.ends) for leaf in line]
        high = max(box_height(leaf, self.options.typography, narrow=True) for leaf in rows) + ROW_GAP
        return max(high, 2 * RADIUS + FIRST_DROP + sum(self.high(leaf) + self.below(leaf) for leaf in drop[:-1]))

    def high(self, leaf: Leaf) -> float:
        return box_height(leaf, self.options.typography, narrow=True)

    def below(self, leaf: Leaf) -> float:
        """Return how far below a block the next thing is."""
        return LABELED_DROP if self.label(leaf) else DROP

    def label(self, leaf: Leaf) -> str:
        """Return what is written at the wire from a block."""
        return " · ".join(filter(None, (leaf.shape if self.options.shapes and not is_series(leaf.shape) else "", leaf.after)))

    def wide(self, leaves: Sequence[Leaf]) -> float:
        """Return the width of boxes above each other."""
        least = MIN_END_WIDTH if all(is_output(leaf.about.path) for leaf in leaves) else MIN_COLUMN_WIDTH
        return max([least, *(needed(leaf, self.options.typography, narrow=True) for leaf in leaves)]) if leaves else 0.0

    def gap(self, leaves: Sequence[Leaf], free: float = 0.0) -> float:
        """Return how far behind boxes the next column is, so that there is room for what is written between them."""
        wide = max((self.options.typography.width(self.label(leaf), "shape") for leaf in leaves if self.label(leaf)), default=0.0)
        return max(APART, wide + BESIDE_LABEL - free if wide else 0.0)

    def place(self) -> None:
        """Place all rows, and what leads down from each to the next."""
        rungs = [leaf for rung in self.rungs for leaf in rung]
        drops = [leaf for drop in self.drops for leaf in drop[:-1]]
        wide, drop_wide = self.wide(rungs), self.wide(drops) or 2 * RADIUS
        left = self.found.left + self.found.right + APART
        middle = left + wide + self.gap(rungs, drop_wide / 2 - RADIUS) + drop_wide / 2
        sums: list[Leaf | None] = [None, *(drop[-1] for drop in self.drops)]
        levels: list[tuple[Leaf, Point]] = []
        for path, rung, end in zip(self.taps, self.rungs, sums, strict=True):
            y = self.height_of(path)
            before: tuple[str, Point] = path, (self.found.left, y)
            for leaf in rung:
                before = self.box(leaf, left, wide, y, before)
            if end is not None:
                self.put(circle(end, self.options.typography), middle, y + RADIUS)
                self.wire(before[0], end.about.path, (before[1], (middle - RADIUS, y)))
                levels.append((end, (middle + RADIUS, y)))
                if label := self.label(end):
                    self.found.pieces.texts.append(
                        Text(middle + RADIUS + 6, y - 6, label, "shape", "start", self.options.typography.scale)
                    )
            else:
                levels.append((rung[0], before[1]))
        beside = RADIUS + self.gap([end for end in sums if end is not None])
        self.place_ends(levels, middle + max(drop_wide / 2 + APART, beside))
        for (upper, start), (lower, to), drop in zip(levels, levels[1:], self.drops, strict=False):
            self.drop(upper, start, lower, to[1] - RADIUS, drop[:-1], middle)

    def place_ends(self, levels: Sequence[tuple[Leaf, Point]], left: float) -> None:
        """Place what else reads the levels, in columns from the left border of the first."""
        before = [(leaf.about.path, start) for leaf, start in levels]
        for leaves in zip_longest(*self.ends):
            there = [leaf for leaf in leaves if leaf is not None]
            wide = self.wide(there)
            for at, leaf in enumerate(leaves):
                if leaf is not None:
                    before[at] = self.box(leaf, left, wide, levels[at][1][1], before[at])
            left += wide + self.gap(there)
        self.found.right = max(area.right for area in areas(self.found))
        self.found.height = max(self.found.height, -min(area.top for area in areas(self.found)))
        self.found.left = 0.0

    def drop(self, upper: Leaf, start: Point, lower: Leaf, end: float, leaves: Sequence[Leaf], x: float) -> None:
        """Place what leads down from a level to the sum of the next, in the middle between them."""
        source = upper.about.path
        if upper.look.sign:
            way: tuple[Point, ...] = ((x, start[1] + RADIUS),)
        elif any(path == source and target not in {one.about.path for one in (*leaves, lower)} for path, target in self.edges):
            self.found.pieces.dots.append(Dot(x, start[1]))
            way = ((x, start[1]),)
        else:
            way = (start, (x, start[1]))
        foot = way[-1][1]
        spare = end - foot - sum(self.high(leaf) + self.below(leaf) for leaf in leaves)
        y = foot + (max(FIRST_DROP, spare / 2 + FIRST_DROP / 2) if leaves else 0)
        for leaf in leaves:
            self.put(block(leaf, self.drop_width, self.options.typography, narrow=True), x, y + self.high(leaf))
            self.wire(source, leaf.about.path, (*way, (x, y)))
            y += self.high(leaf)
            source, way = leaf.about.path, ((x, y),)
            if label := self.label(leaf):
                self.found.pieces.texts.append(Text(x + 8, y + 17, label, "shape", "start", self.options.typography.scale))
            y += self.below(leaf)
        self.wire(source, lower.about.path, (*way, (x, end)))

    @property
    def drop_width(self) -> float:
        return self.wide([leaf for drop in self.drops for leaf in drop[:-1]])

    def box(self, leaf: Leaf, left: float, wide: float, y: float, before: tuple[str, Point]) -> tuple[str, Point]:
        """Place a block with the wire into it; return it as what the next one reads."""
        drawn = block(leaf, wide, self.options.typography, narrow=True)
        self.put(drawn, left + wide / 2, y + drawn.height / 2)
        self.wire(before[0], leaf.about.path, (before[1], (left, y)))
        if label := self.label(leaf):
            self.found.pieces.texts.append(Text(left + wide + 8, y - 6, label, "shape", "start", self.options.typography.scale))
        return leaf.about.path, (left + wide, y)

    def put(self, drawn: Fragment, x: float, foot: float) -> None:
        """Add something whose lower end is at a height."""
        self.found.pieces.take(drawn.pieces, x, foot)

    def wire(self, source: str, target: str, points: Sequence[Point]) -> None:
        """Draw a wire; one from the last block of the trunk starts there."""
        edge: DiagramEdge = self.edges[source, target]
        start = self.found.taps.get(edge.source.origin, ())
        self.found.pieces.wires.append(
            WirePath(source, target, (*start[:-1], *points), edge.port, style_of(edge), place=edge.place)
        )


def _leaves(flow: Flow) -> list[Leaf]:
    return [item for item in flow.items if isinstance(item, Leaf)]
