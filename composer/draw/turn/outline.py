"""The drawing that is to be turned: how far its things reach across the stream, and what stands beside what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from composer.draw.geometry import Area, Point, Text
from composer.draw.layout.ends.port_names import BELOW, BESIDE
from composer.draw.scene import RADIUS, Frame, Scene, WirePath
from composer.draw.style.typography import Typography
from composer.draw.turn.axes import ON, near, on
from composer.draw.turn.upright import BoxContent, box_content

PILL_ENDS = 28.0
"""Both ends of a pill beside its text, and what stays free beside it."""
FREE = 8.0
"""Between the corner of a box and a wire that meets it."""


@dataclass(frozen=True, slots=True)
class Slab:
    """How far a box reaches across the stream, and where wires meet its sides, along the stream."""

    low: float
    high: float
    content: BoxContent
    across: tuple[float, ...]
    """Where wires meet it that come along the stream."""
    along: tuple[float, ...]
    """Where wires meet it that come across."""


class SceneOutline:
    """A scene whose stream runs up, with boxes as narrow as they will be high."""

    def __init__(self, scene: Scene, typography: Typography) -> None:
        self.given, self.typography = scene, typography
        self.head = tuple(text for text in scene.texts if text.role in ("heading", "facts"))
        self.words = tuple(text for text in scene.texts if text.role not in ("heading", "facts"))
        self.slabs = self._slabs()
        self.wires = tuple(map(self.reattached, scene.wires))

    def _slabs(self) -> list[Slab]:
        """Return the reach of each box: as far as it needs for its texts, and to where wires meet it."""
        contents = [box_content(box, self.typography) for box in self.given.boxes]
        columns = [(near(box.x), near(box.width)) for box in self.given.boxes]  # boxes of a column are alike
        highest: dict[tuple[float, float], float] = {}
        for column, own in zip(columns, contents, strict=True):
            highest[column] = max(highest.get(column, 0.0), own.height)
        found = []
        ends = [wire.points[end] for wire in self.given.wires for end in (0, -1)]
        for box, own, column in zip(self.given.boxes, contents, columns, strict=True):
            area, middle = box.area, box.x + box.width / 2
            half = min(highest[column], box.width) / 2
            across = tuple(x for x, y in ends if area.left < x < area.right and on(y, area.top, area.bottom))
            along = tuple(-y for x, y in ends if area.top < y < area.bottom and on(x, area.left, area.right))
            low = max(min([middle - half, *(x - FREE for x in across)]), area.left)
            high = min(max([middle + half, *(x + FREE for x in across)]), area.right)
            found.append(Slab(low, high, replace(own, height=highest[column]), across, along))
        return found

    def reattached(self, wire: WirePath) -> WirePath:
        """Return a wire whose ends at the side of a box are where that is now."""
        points = list(wire.points)
        for end in (0, -1):
            x, y = points[end]
            for slab, box in zip(self.slabs, self.given.boxes, strict=True):
                if box.y - ON <= y <= box.y + box.height + ON:
                    if abs(x - box.x) < ON:
                        points[end] = (slab.low, y)
                    elif abs(x - box.x - box.width) < ON:
                        points[end] = (slab.high, y)
        return wire.through(points)

    def reach(self, text: Text) -> tuple[float, float]:
        """Return how far a text reaches across the stream: as far as its letters are high, from where it began."""
        area = text.area
        high = area.bottom - area.top
        match text.anchor:
            case "start":
                return area.left, area.left + high
            case "end":
                return area.right - high, area.right
            case "middle":
                return text.x - high / 2, text.x + high / 2

    def middle(self, text: Text) -> float:
        """Return where the middle of a text is along the stream: at the wire that begins or ends beside it, if one does."""
        level = (text.area.top + text.area.bottom) / 2
        return -min((y for _, y in self.met(text)), key=lambda y: abs(y - level), default=level)

    def met(self, text: Text) -> list[Point]:
        """Return the ends of wires beside the middle of a text."""
        area = text.area.grown(12)
        level = (area.top + area.bottom) / 2
        ends = [wire.points[end] for wire in self.wires for end in (0, -1)]
        return [(x, y) for x, y in ends if area.left <= x <= area.right and abs(y - level) < text.font.size / 2]

    def is_at_end(self, text: Text) -> bool:
        """Return whether a text is a name beside the arrowhead of a wire that ends above it."""
        ends = (wire.points[-1] for wire in self.wires if wire.arrow and text.role == "port")
        return any(abs(text.x - x - BESIDE) < ON and abs(text.y - y - BELOW) < ON for x, y in ends)

    def inside(self, area: Area) -> Iterable[float]:
        """Yield where things inside of a frame begin, across the stream."""

        def within(x: float, y: float) -> bool:
            return area.left + ON < x < area.right and area.top + ON < y < area.bottom - ON

        scene = self.given
        yield from (
            slab.low
            for slab, box in zip(self.slabs, scene.boxes, strict=True)
            if within(box.x + box.width / 2, box.y + box.height / 2)
        )
        yield from (merge.x - RADIUS for merge in scene.merges if within(merge.x, merge.y))
        yield from (inner.x for inner in scene.frames if inner.area != area and within(inner.x + 2 * ON, inner.y + 2 * ON))
        texts = (*self.words, *(reference.text for reference in scene.references))
        yield from (self.reach(text)[0] for text in texts if within(self.reach(text)[0], text.area.top))
        for inner in scene.frames:
            if inner.strip and within(inner.strip.x, inner.strip.y):
                yield inner.strip.x
        yield from (x for wire in self.wires for x, y in wire.points if within(x, y))

    def free(self, frame: Frame, band: tuple[float, float] | None = None) -> tuple[float, float]:
        """Return the longest piece of a frame's border without a wire through it, which a header or a map of layers may have; or
        of a band beside it.
        """
        crossing = self.crossing(frame, band or (frame.area.left, frame.area.left))
        return max(pairwise(crossing), key=lambda piece: piece[1] - piece[0])

    def crossing(self, frame: Frame, band: tuple[float, float]) -> list[float]:
        """Return where along a frame its border begins, wires go through it or through a band beside it, and it ends."""
        area, (low, high) = frame.area, band
        led = [point for _, point in exits_of(self.wires, frame)]  # these start at its map, wherever that is
        found = {
            near(-a[1])
            for wire in self.wires
            if not wire.curved and wire.points[0] not in led
            for a, b in pairwise(wire.points)
            if on(a[1], b[1]) and min(a[0], b[0]) - ON < high and low < max(a[0], b[0]) + ON and area.top < a[1] < area.bottom
        }
        return sorted([near(-area.bottom), *found, near(-area.top)])

    def band(self, frame: Frame) -> tuple[float, float]:
        """Return what lies between a frame and the map of its layers, with the map."""
        assert frame.strip
        strip, area = frame.strip.area, frame.area
        return (strip.left, area.left) if strip.left < area.left else (area.right, strip.right)

    def header_width(self, frame: Frame) -> float:
        wide = max(text.area.right - text.area.left for text in frame.texts)
        return wide + sum(icon.area.right - icon.area.left + 10 for icon in frame.icons)

    def pill_width(self, frame: Frame) -> float:
        return frame.pill.area.right - frame.pill.area.left + PILL_ENDS + 14 if frame.pill else 0.0


def exits_of(wires: Iterable[WirePath], frame: Frame) -> Iterator[tuple[int, Point]]:
    """Yield each place where wires start at a cell of a frame's map of layers: the number of the cell, and the point."""
    cells = [frame.strip.exit_of(index) for index in range(len(frame.strip.kinds))] if frame.strip else []
    for x, y in dict.fromkeys(wire.points[0] for wire in wires if wire.source == frame.about.path):
        yield from ((index, (x, y)) for index, (right, middle) in enumerate(cells) if on(x, right) and on(y, middle))
