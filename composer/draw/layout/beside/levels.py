"""Levels beside a trunk: a row of boxes at each height where a value leaves it, with wires straight across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from composer.draw.diagram import Flow, Leaf, output_of
from composer.draw.edges import DiagramEdge
from composer.draw.geometry import Point, Text
from composer.draw.layout.boxes import MIN_COLUMN_WIDTH, box_height, needed
from composer.draw.layout.column import column
from composer.draw.layout.fragment import Fragment, areas, shift, stretch
from composer.draw.layout.lanes import style_of
from composer.draw.layout.spine import LayoutOptions
from composer.draw.layout.stations import block, circle
from composer.draw.paths import is_output, lies_in
from composer.draw.scene import RADIUS, Box, Frame, MergeCircle, WirePath
from composer.draw.series import is_series

APART, ROW_GAP = 28.0, 16.0
"""From column to column, with a wire and its arrowhead; and between boxes of two levels."""
BESIDE_LABEL = 24.0
"""What a wire is longer than the text above it: an arrowhead, and free space at both ends."""
FIRST_DROP, DROP, LABELED_DROP = 15.0, 20.0, 28.0
"""Down from a circle to a box, from a box to what is below it, and where the shape is written between, as in a column."""
MIN_END_WIDTH = 64.0
"""Of the box of an output."""


class Levels:
    """A trunk with all that is placed beside it, counted from the left border."""

    def __init__(
        self,
        trunk: Flow,
        taps: Sequence[str],
        edges: Mapping[tuple[str, str], DiagramEdge],
        width: float,
        options: LayoutOptions,
        *,
        narrow: bool,
    ) -> None:
        self.trunk, self.taps, self.edges, self.options, self.narrow = trunk.by_path, taps, edges, options, narrow
        self.found = column(trunk, width, options, frozenset(output_of(self.trunk[path]) for path in taps))
        shift(self.found, self.found.left, 0)

    def height_of(self, path: str) -> float:
        """Return where a value of the trunk leaves it."""
        return self.found.taps[output_of(self.trunk[path])][-1][1]

    def foot_of(self, path: str) -> float:
        """Return the lower end of something in the trunk."""
        pieces = self.found.pieces
        drawn: list[Box | MergeCircle | Frame] = [*pieces.boxes, *pieces.merges, *pieces.frames]
        return max(one.area.bottom for one in drawn if lies_in(one.about.path, path))

    def part(self, upper: str, lower: str, least: float) -> None:
        """Make the distance from a level to the next at least so large."""
        missing = least - (self.height_of(lower) - self.height_of(upper))
        if missing > 0:
            stretch(self.found, self.foot_of(upper) + 0.1, missing)

    def high(self, leaf: Leaf) -> float:
        """Return the height of a box."""
        return box_height(leaf, self.options.typography, narrow=self.narrow)

    def label(self, leaf: Leaf) -> str:
        """Return what is written at the wire from a block."""
        return " · ".join(filter(None, (leaf.shape if self.options.shapes and not is_series(leaf.shape) else "", leaf.after)))

    def below(self, leaf: Leaf) -> float:
        """Return how far below a block the next thing is."""
        return LABELED_DROP if self.label(leaf) else DROP

    def way_down(self, leaves: Sequence[Leaf]) -> float:
        """Return the least length of a way down from a level to the next, through blocks."""
        return FIRST_DROP + sum(self.high(leaf) + self.below(leaf) for leaf in leaves)

    def wide(self, leaves: Sequence[Leaf]) -> float:
        """Return the width of boxes above each other."""
        least = MIN_END_WIDTH if all(is_output(leaf.about.path) for leaf in leaves) else MIN_COLUMN_WIDTH
        return max([least, *(needed(leaf, self.options.typography, narrow=self.narrow) for leaf in leaves)]) if leaves else 0.0

    def gap(self, leaves: Sequence[Leaf], free: float = 0.0) -> float:
        """Return how far behind boxes the next column is, so that there is room for what is written between them."""
        wide = max((self.options.typography.width(self.label(leaf), "shape") for leaf in leaves if self.label(leaf)), default=0.0)
        return max(APART, wide + BESIDE_LABEL - free if wide else 0.0)

    def box(self, leaf: Leaf, left: float, wide: float, y: float, before: tuple[str, Point]) -> tuple[str, Point]:
        """Place a block with the wire into it; return it as what the next one reads."""
        self.wire(before[0], leaf.about.path, (before[1], (left, y)))
        return self.stand(leaf, left, wide, y)

    def stand(self, leaf: Leaf, left: float, wide: float, y: float) -> tuple[str, Point]:
        """Place a block around a height, with what is written at the wire from it; return it as what the next one reads."""
        drawn = block(leaf, wide, self.options.typography, narrow=self.narrow)
        self.put(drawn, left + wide / 2, y + drawn.height / 2)
        if label := self.label(leaf):
            self.found.pieces.texts.append(Text(left + wide + 8, y - 6, label, "shape", "start", self.options.typography.scale))
        return leaf.about.path, (left + wide, y)

    def sign(self, leaf: Leaf, left: float, wide: float, y: float, before: tuple[str, Point]) -> tuple[str, Point]:
        """Place a circle in the middle of a column with the wire into it; return it as what the next one reads."""
        x = left + wide / 2
        self.put(circle(leaf, self.options.typography), x, y + RADIUS)
        self.wire(before[0], leaf.about.path, (before[1], (x - RADIUS, y)))
        if label := self.label(leaf):
            self.found.pieces.texts.append(Text(x + RADIUS + 6, y - 6, label, "shape", "start", self.options.typography.scale))
        return leaf.about.path, (x + RADIUS, y)

    def put(self, drawn: Fragment, x: float, foot: float) -> None:
        """Add something whose lower end is at a height."""
        self.found.pieces.take(drawn.pieces, x, foot)

    def wire(self, source: str, target: str, points: Sequence[Point], *, whole: bool = True) -> None:
        """Draw a wire; one from the last block of the trunk starts there, if it is `whole` and no fork of another."""
        edge = self.edges[source, target]
        start = self.found.taps.get(edge.source.origin, ()) if whole else ()
        self.found.pieces.wires.append(
            WirePath(source, target, (*start[:-1], *points), edge.port, style_of(edge), place=edge.place)
        )

    def lead_down(
        self, before: tuple[str, tuple[Point, ...]], leaves: Sequence[Leaf], target: str, end: float, wide: float
    ) -> None:
        """Place what leads down from a level to the next, in the middle between them, with the wires to it and to its end."""
        source, way = before
        x, foot = way[-1]
        spare = end - foot - sum(self.high(leaf) + self.below(leaf) for leaf in leaves)
        y = foot + (max(FIRST_DROP, spare / 2 + FIRST_DROP / 2) if leaves else 0)
        for leaf in leaves:
            self.put(block(leaf, wide, self.options.typography, narrow=self.narrow), x, y + self.high(leaf))
            self.wire(source, leaf.about.path, (*way, (x, y)), whole=False)
            y += self.high(leaf)
            source, way = leaf.about.path, ((x, y),)
            if label := self.label(leaf):
                self.found.pieces.texts.append(Text(x + 8, y + 17, label, "shape", "start", self.options.typography.scale))
            y += self.below(leaf)
        self.wire(source, target, (*way, (x, end)), whole=False)

    def close(self) -> None:
        """Count all that is placed from the left border."""
        covered = areas(self.found)
        self.found.right = max(area.right for area in covered)
        self.found.height = max(self.found.height, -min(area.top for area in covered))
        self.found.left = 0.0
