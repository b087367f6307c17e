"""What stands beside the way to a block: it is read from inside of that block, and reads nothing that flows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from composer.draw.diagram import Leaf, is_state
from composer.draw.edges import DiagramEdge
from composer.draw.geometry import Area, Point, Text
from composer.draw.layout.boxes import MIN_SIDE_WIDTH, box, box_height, needed
from composer.draw.layout.ends.port_names import far_starts
from composer.draw.layout.fragment import Fragment, moved, widen
from composer.draw.layout.outgoing_edges import SLOT
from composer.draw.layout.references import SIDE_GAP, incoming_reference
from composer.draw.layout.stations import NamedInput, WiredInput, block, in_pairs
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
    side: int = -1
    """Of the spine at which a state stands."""
    area: Area | None = None
    """Of the box with the names of what it reads, once it is placed."""
    ends: dict[DiagramEdge, tuple[Point, ...]] = field(default_factory=dict)
    """How what comes in by wires goes on to it, once it is placed."""

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

    @property
    def wired(self) -> list[DiagramEdge]:
        """What comes in by wires from its outer side: the values of a state."""
        return [edge for edge in self.reads if is_state(self.leaf) and not edge.source.reference]

    def place(self, found: Fragment, near: float, lane: float) -> tuple[Point, ...]:
        """Draw the box, no nearer to the spine than that, with what it reads; return how its value goes on to a lane: out of its
        side where there is room, else straight up.
        """
        side, far = (1 if lane > 0 else -1), abs(lane)
        if is_state(self.leaf):
            return self.place_state(found, near, lane)
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

    def place_state(self, found: Fragment, near: float, lane: float) -> tuple[Point, ...]:
        """Draw a state, into which the values of the step before and of the first one come from its outer side; return how its
        value goes up to a lane.
        """
        side = 1 if lane > 0 else -1
        inner = max(near, abs(lane) + CORNER - self.width)
        middle, foot = side * (inner + self.width / 2), self.y + self.height / 2
        named = [NamedInput(edge) for edge in self.reads if edge.source.reference]
        inputs = in_pairs(named, [WiredInput(edge) for edge in self.wired], lambda one: 0.0)
        lefts, rights = ([], inputs) if side > 0 else (inputs, [])
        own = block(self.leaf, self.width, self.typography, lefts, rights, names=far_starts(self.wired), narrow=True)
        found.pieces.take(own.pieces, middle, foot)
        self.ends = {edge: moved(points, middle, foot) for edge, points in own.ends.items()}
        left, right = middle - own.left, middle + own.right
        widen(found, side, right if side > 0 else -left)
        self.area = Area(left, self.top, right, foot)
        return ((lane, self.top),)
