"""Pieces of a drawing while it is put together: what they cover, and where wires go in and out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from composer.draw.edges import DiagramEdge, Origin
from composer.draw.geometry import Area, Point, Text
from composer.draw.scene import Box, Dot, Frame, MergeCircle, Reference, WirePath, card_areas

CLEAR = 6.0
"""Between a wire beside a fragment and the end of what stands below or above it there: less than a corner's radius, so that the
wire turns off before.
"""


@dataclass(slots=True)
class Pieces:
    """Things on the page while it is laid out."""

    frames: list[Frame] = field(default_factory=list)
    wires: list[WirePath] = field(default_factory=list)
    dots: list[Dot] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    merges: list[MergeCircle] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)

    def take(self, other: Pieces, dx: float = 0, dy: float = 0) -> None:
        """Add all pieces of another, moved."""
        self.frames += [one.moved(dx, dy) for one in other.frames]
        self.wires += [one.moved(dx, dy) for one in other.wires]
        self.dots += [one.moved(dx, dy) for one in other.dots]
        self.boxes += [one.moved(dx, dy) for one in other.boxes]
        self.merges += [one.moved(dx, dy) for one in other.merges]
        self.references += [one.moved(dx, dy) for one in other.references]
        self.texts += [one.moved(dx, dy) for one in other.texts]

    def enclose(self, frame: Frame) -> None:
        """Put a frame around all that is here."""
        self.boxes = [one if one.frame else replace(one, frame=frame.key) for one in self.boxes]
        self.merges = [one if one.frame else replace(one, frame=frame.key) for one in self.merges]
        self.frames = [frame, *(one if one.frame else replace(one, frame=frame.key) for one in self.frames)]

    def number(self, number: int) -> None:
        """Tell everything from what has the same path in another kind of pass."""

        def numbered(key: str) -> str:
            return f"{key}#{number}" if key else ""

        self.boxes = [replace(one, frame=numbered(one.frame), kind=f"{one.kind}#{number}") for one in self.boxes]
        self.merges = [replace(one, frame=numbered(one.frame), kind=f"{one.kind}#{number}") for one in self.merges]
        self.frames = [replace(one, key=numbered(one.key), frame=numbered(one.frame)) for one in self.frames]
        self.wires = [replace(one, kind=f"{one.kind}#{number}") for one in self.wires]


def moved(points: Sequence[Point], dx: float, dy: float) -> tuple[Point, ...]:
    """Return points, all moved by the same."""
    return tuple((x + dx, y + dy) for x, y in points)


def straightened(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the points without those that lie on the way between their neighbors."""
    found: list[Point] = []
    for point in points:
        if found and abs(found[-1][0] - point[0]) < 0.01 and abs(found[-1][1] - point[1]) < 0.01:
            continue
        if len(found) > 1 and _in_line(found[-2], found[-1], point):
            found.pop()
        found.append(point)
    return tuple(found)


def _in_line(a: Point, b: Point, c: Point) -> bool:
    return (abs(a[0] - b[0]) < 0.01 and abs(b[0] - c[0]) < 0.01) or (abs(a[1] - b[1]) < 0.01 and abs(b[1] - c[1]) < 0.01)


@dataclass(slots=True)
class Fragment:
    """A piece of the drawing around a spine: x counts from it, y from the lower end upwards, which is negative."""

    pieces: Pieces = field(default_factory=Pieces)
    left: float = 0.0
    right: float = 0.0
    height: float = 0.0
    foot: float = 0.0
    """Where the stream comes in, from below."""
    top: float = 0.0
    """Where it goes out."""
    out: tuple[Point, ...] = ()
    """How the output of a flow goes to the upper end; nobody has drawn it."""
    ends: dict[DiagramEdge, tuple[Point, ...]] = field(default_factory=dict)
    """How wires that come from outside go on, from the border to what they end at."""
    taps: dict[Origin, tuple[Point, ...]] = field(default_factory=dict)
    """Where wires start that leave at a side, up to the border."""
    named: float = 0.0
    """How much longer wires at its left are than they were without names above them."""
    below: dict[str, float] = field(default_factory=dict)
    """Where values come in at the lower border of a frame that has several passages, by the passage."""
    above: dict[str, tuple[Point, ...]] = field(default_factory=dict)
    """How they go out at its upper border."""


def copied(found: Fragment) -> Fragment:
    """Return the same in another place of its own."""
    pieces = Pieces()
    pieces.take(found.pieces)
    return replace(found, pieces=pieces, ends={**found.ends}, taps={**found.taps}, below={**found.below}, above={**found.above})


def widen(found: Fragment, side: int, reach: float) -> None:
    """Make room at a side."""
    if side < 0:
        found.left = max(found.left, reach)
    else:
        found.right = max(found.right, reach)


def upright(found: Fragment) -> None:
    """Move a fragment so that nothing of it lies below its lower end, and its height covers all."""
    areas = [box.area for box in found.pieces.boxes] + [merge.area for merge in found.pieces.merges]
    areas += [reference.text.area for reference in found.pieces.references]
    ends = [y for points in found.ends.values() for _, y in points]
    low, high = max([*(area.bottom for area in areas), *ends]), min([*(area.top for area in areas), *ends])
    found.height = max(found.height, -high)
    if low > 0:
        found.height += low
        shift(found, 0, -low)


def shift(found: Fragment, dx: float, dy: float) -> None:
    """Move all of a fragment."""
    pieces = Pieces()
    pieces.take(found.pieces, dx, dy)
    found.pieces = pieces
    found.foot, found.top = found.foot + dy, found.top + dy
    found.out = moved(found.out, dx, dy)
    found.ends = {edge: moved(points, dx, dy) for edge, points in found.ends.items()}
    found.taps = {key: moved(points, dx, dy) for key, points in found.taps.items()}
    found.below = {passage: x + dx for passage, x in found.below.items()}
    found.above = {passage: moved(points, dx, dy) for passage, points in found.above.items()}


def areas(found: Fragment) -> list[Area]:
    """Return what a fragment covers, piece by piece."""
    pieces = found.pieces
    solid: list[Box | MergeCircle | Frame | Text] = [*pieces.boxes, *pieces.merges, *pieces.frames, *pieces.texts]
    solid += [reference.text for reference in pieces.references]
    strips = [frame.strip for frame in pieces.frames if frame.strip]
    solid += [tick for strip in strips for tick in strip.ticks]
    covered = [thing.area for thing in solid]
    covered += card_areas(pieces.boxes, pieces.frames)
    covered += [Area(one.x, one.y, one.x + one.width, one.y + one.height) for one in strips]
    for wire in pieces.wires:
        covered += lines(wire)
    return covered


def lines(wire: WirePath) -> list[Area]:
    """Return what a wire covers, one area for each straight piece."""
    return [Area(min(a, c), min(b, d), max(a, c), max(b, d)) for (a, b), (c, d) in pairwise(wire.points)]


def in_the_way(pieces: Pieces, free: float = 0.0) -> Iterator[Area]:
    """Yield what must not lie under a text: what is written, boxes and circles, each with some `free` room around it, wires, and
    the sides of frames.
    """
    heads = [text for frame in pieces.frames for text in (*frame.texts, *([frame.pill] if frame.pill else []))]
    things: list[Text | Box | MergeCircle] = [*pieces.texts, *heads, *pieces.boxes, *pieces.merges]
    yield from (one.area.grown(free) for one in (*things, *(each.text for each in pieces.references)))
    yield from (area for wire in pieces.wires for area in lines(wire))
    yield from card_areas(pieces.boxes, pieces.frames)
    for area in (frame.area for frame in pieces.frames):
        yield from (Area(x - 1, area.top, x + 1, area.bottom) for x in (area.left, area.right))
        yield from (Area(area.left, y - 1, area.right, y + 1) for y in (area.top, area.bottom))


def extent(found: Fragment, side: int, high: float, low: float) -> float:
    """Return how far a fragment reaches to a side between two heights."""
    near = [area for area in areas(found) if area.top < low + CLEAR and area.bottom > high - CLEAR]
    return max([0.0, *(area.reach(side) for area in near)])


def flip(found: Fragment) -> None:
    """Turn a column without frames, so that it flows downwards; what is written stays upright."""
    high = found.height
    pieces = found.pieces

    def over(y: float) -> float:
        return -high - y

    def text(one: Text) -> Text:
        middle = one.y - 0.35 * one.font.size  # of its letters
        return one.moved(0, over(middle) - middle)

    def points(old: Sequence[Point]) -> tuple[Point, ...]:
        return tuple((x, over(y)) for x, y in old)

    pieces.boxes = [one.moved(0, over(one.y + one.height) - one.y) for one in pieces.boxes]
    pieces.merges = [one.moved(0, over(one.y) - one.y) for one in pieces.merges]
    pieces.dots = [one.moved(0, over(one.y) - one.y) for one in pieces.dots]
    pieces.wires = [one.through(points(one.points)) for one in pieces.wires]
    pieces.texts = [text(one) for one in pieces.texts]
    pieces.references = [replace(one, text=text(one.text)) for one in pieces.references]
    found.ends = {edge: points(old) for edge, old in found.ends.items()}
    found.taps = {key: points(old) for key, old in found.taps.items()}


def stretch(found: Fragment, y: float, by: float) -> None:
    """Move everything above a height, which crosses no frame, further up; wires that cross it become longer."""

    def step(old: float) -> float:
        return -by if old <= y else 0.0

    def points(old: Sequence[Point]) -> tuple[Point, ...]:
        return tuple((a, b + step(b)) for a, b in old)

    above, rest = Pieces(), Pieces()
    pieces = found.pieces
    for box in pieces.boxes:
        (above if box.y + box.height <= y else rest).boxes.append(box)
    rest.take(above, 0, -by)
    rest.frames = [one.moved(0, step(one.area.bottom)) for one in pieces.frames]
    rest.merges = [one.moved(0, step(one.y)) for one in pieces.merges]
    rest.dots = [one.moved(0, step(one.y)) for one in pieces.dots]
    rest.wires = [one.through(points(one.points)) for one in pieces.wires]
    rest.texts = [one.moved(0, step(one.y)) for one in pieces.texts]
    rest.references = [one.moved(0, step(one.text.y)) for one in pieces.references]
    found.pieces = rest
    found.out = points(found.out)
    found.ends = {edge: points(old) for edge, old in found.ends.items()}
    found.taps = {key: points(old) for key, old in found.taps.items()}
    found.height += by
