"""What stands beside the way to a block: it is read from inside of that block, and reads nothing that flows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from composer.draw.diagram import Leaf
from composer.draw.edges import DiagramEdge
from composer.draw.geometry import Area, Point, Text
from composer.draw.layout.boxes import MIN_SIDE_WIDTH, box, box_height, needed
from composer.draw.layout.fragment import Fragment, widen
from composer.draw.layout.outgoing_edges import SLOT
from composer.draw.layout.references import SIDE_GAP, incoming_reference
from composer.draw.scene import Dot, WirePath
from composer.draw.style.typography import Typography

CLEAR, CORNER = 12.0, 10.0
"""Between its box and what is around it, half of an arrow's way; from a wire to the corner of the box, more than the radius of
either's corner.
"""


@dataclass(slots=True)
class OuterInput:
    """A box at one side of the spine, below the first block that reads it."""

    leaf: Leaf
    reads: Sequence[DiagramEdge]
    typography: Typography
    shape_only: DiagramEdge | None = None
    """What it only measures of the value that goes up beside it."""
    stem: float | None = None
    """Where the wire from that begins on the spine, if the value goes up no further: no other wire leads up to the box."""
    y: float = 0.0
    """Of its middle."""
    area: Area | None = None
    """Of the box with the names of what it reads, once it is placed."""

    @property
    def width(self) -> float:
        """Of the box."""
        return max(MIN_SIDE_WIDTH, needed(self.leaf, self.typography, narrow=True))

    @property
    def height(self) -> float:
        """Of the box."""
        return box_height(self.leaf, self.typography, narrow=True)

    @property
    def top(self) -> float:
        """Of the box."""
        return self.y - self.height / 2

    def place(self, found: Fragment, near: float, lane: float) -> tuple[Point, ...]:
        """Draw the box, no nearer to the spine than that, with what it reads; return how its value goes on to a lane: out of its
        side where there is room, else straight up.
        """
        side, far = (1 if lane > 0 else -1), abs(lane)
        references = [edge for edge in self.reads if edge is not self.shape_only]
        inner = max(near, min(near + SIDE_GAP - CLEAR, far - CLEAR))
        beside = far > inner + self.width + CORNER and not references
        if not beside:
            inner = max(inner, far + CORNER - self.width)
        outer = inner + self.width
        middle = side * (inner + outer) / 2
        found.pieces.boxes.append(
            box(self.leaf, middle, self.y + self.height / 2, self.width, self.height, self.typography, narrow=True)
        )
        path = self.leaf.about.path
        if self.shape_only is not None:
            read = self.shape_only
            if self.stem is None:
                found.pieces.dots.append(Dot(0, self.y))
            start = () if self.stem is None else ((0.0, self.stem),)
            found.pieces.wires.append(
                WirePath(
                    read.source.path,
                    path,
                    (*start, (0, self.y), (side * inner, self.y)),
                    read.port,
                    "measured",
                    from_inside=read.source.from_inside,
                )
            )
            said = Text(
                side * (inner - CLEAR - 4),
                self.y - 4,
                "only its size",
                "note",
                "end" if side > 0 else "start",
                self.typography.scale,
            )
            if abs(said.area.left if side > 0 else said.area.right) > 4:
                found.pieces.texts.append(said)
        reach = outer
        for number, edge in enumerate(references):
            y = self.y + SLOT * (number - (len(references) - 1) / 2)
            reach = max(
                reach, incoming_reference(found, edge, edge.named, side, y, ((side * outer, y),), self.typography).reach(side)
            )
        widen(found, side, reach)
        near_end, far_end = sorted((side * inner, side * reach))
        self.area = Area(near_end, self.top, far_end, self.y + self.height / 2)
        return ((side * outer, self.y),) if beside else ((lane, self.top),)
