"""Wires as steps of a pen: lines with round corners, curves, and arrowheads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise, starmap
from math import hypot

from composer.draw.export.marks import CubicBy, LineBy, MoveTo, Path, Polygon, QuadraticBy, Step, tenth
from composer.draw.geometry import Point

CORNER = 8.0
"""Radius of a wire's corner."""
HEAD, HALF = 7.0, 3.4
"""Length and half the width of an arrowhead."""


def polyline(points: Sequence[Point]) -> Path:
    """Return a line through points."""
    return Path((move_to(points[0]), *starmap(line, pairwise(points))))


def rounded(points: Sequence[Point], sharp: Collection[Point] = ()) -> Path:
    """Return a line through points whose corners are round, but for those that are to be `sharp`."""
    return Path(tuple(_rounded(points, sharp)))


def _rounded(points: Sequence[Point], sharp: Collection[Point]) -> Iterator[Step]:
    yield move_to(points[0])
    at = points[0]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        if corner in sharp:
            yield line(at, corner)
            at = corner
            continue
        a, b = _toward(corner, before), _toward(corner, after)
        yield line(at, a)
        yield QuadraticBy(between(a, corner), between(a, b))
        at = b
    yield line(at, points[-1])


def parting(wires: Iterable[Sequence[Point]]) -> frozenset[Point]:
    """Return where level wires part, one up and one down: as round corners, these would leave the dot there beside them."""
    turns: dict[tuple[Point, bool], set[bool]] = {}
    for points in wires:
        for before, corner, after in zip(points, points[1:], points[2:], strict=False):
            if before[1] == corner[1] and corner[0] == after[0]:
                turns.setdefault((corner, before[0] < corner[0]), set()).add(after[1] < corner[1])
    return frozenset(corner for (corner, _), ways in turns.items() if len(ways) > 1)


def move_to(point: Point) -> MoveTo:
    """Return where a path starts."""
    return MoveTo(tenth(point[0]), tenth(point[1]))


def line(start: Point, end: Point) -> LineBy:
    """Return a straight piece."""
    return LineBy(between(start, end))


def between(start: Point, end: Point) -> Point:
    """Return the way from one point to another; both are where their tenths are, so that no error adds up."""
    dx, dy = (tenth(round(b, 1) - round(a, 1)) for a, b in zip(start, end, strict=True))
    return dx, dy


def _toward(corner: Point, other: Point) -> Point:
    dx, dy = other[0] - corner[0], other[1] - corner[1]
    length = hypot(dx, dy)
    step = min(CORNER, length / 2) / length if length else 0
    return corner[0] + dx * step, corner[1] + dy * step


def curve(points: Sequence[Point]) -> Path:
    """Return a line of curves: where it starts, and three control points for each."""
    steps: list[Step] = [move_to(points[0])]
    for at in range(0, len(points) - 1, 3):
        start, first, second, end = points[at : at + 4]
        steps.append(CubicBy(between(start, first), between(start, second), between(start, end)))
    return Path(tuple(steps))


def _direction(points: Sequence[Point]) -> Point:
    end = points[-1]
    before = next(p for p in reversed(points[:-1]) if p != end)
    length = hypot(end[0] - before[0], end[1] - before[1])
    return (end[0] - before[0]) / length, (end[1] - before[1]) / length


def shortened(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the points with room for the arrowhead at the end."""
    dx, dy = _direction(points)
    x, y = points[-1]
    return (*points[:-1], (x - dx * (HEAD - 1), y - dy * (HEAD - 1)))


def arrowhead(points: Sequence[Point]) -> Polygon:
    """Return the arrowhead at the end of a wire."""
    dx, dy = _direction(points)
    x, y = points[-1]
    back = x - dx * HEAD, y - dy * HEAD
    corners = (x, y), (back[0] - dy * HALF, back[1] + dx * HALF), (back[0] + dy * HALF, back[1] - dx * HALF)
    return Polygon(tuple((tenth(a), tenth(b)) for a, b in corners))
