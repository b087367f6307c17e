"""Wires as steps of a pen: lines with round corners, curves, and arrowheads."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise, starmap
from math import hypot, inf
from typing import Literal, TypeAlias

from composer.draw.export.marks import Close, CubicBy, LineBy, MoveTo, Path, Polygon, QuadraticBy, Step, tenth
from composer.draw.geometry import Point

CORNER = 8.0
"""Radius of a wire's corner."""
HEAD, HALF = 7.0, 3.4
"""Length and half the width of an arrowhead."""
GAP = 3.5
"""Half of what a wire leaves free where another one crosses it, so that crossing and meeting are told apart."""
CLEAR = 6.0
"""How far two wires go on behind the place where they cross, at least; where one ends or turns sooner, they meet."""
NEIGHBORS = 24.0
"""How far apart two wires are that another one crosses, at most, to be neighbors."""
Gaps: TypeAlias = tuple[dict[float, list[float]], dict[float, list[float]]]
"""Where level wires have gaps, from left to right for each height, and where upright ones have, downward for each place."""
NO_GAPS: Gaps = {}, {}


def polyline(points: Sequence[Point]) -> Path:
    """Return a line through points."""
    return Path((move_to(points[0]), *starmap(line, pairwise(points))))


def rounded(points: Sequence[Point], sharp: Collection[Point] = (), gaps: Gaps = NO_GAPS) -> Path:
    """Return a line through points whose corners are round, but for those that are to be `sharp`, and that has `gaps` where
    others cross it; corners near to these are less round.
    """
    return Path(tuple(_rounded(points, sharp, gaps)))


def _rounded(points: Sequence[Point], sharp: Collection[Point], gaps: Gaps) -> Iterator[Step]:
    yield move_to(points[0])
    at = points[0]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        if corner in sharp:
            yield from _with_gaps(at, corner, gaps)
            at = corner
            continue
        a, b = (_toward(corner, other, gaps) for other in (before, after))
        yield from _with_gaps(at, a, gaps)
        yield QuadraticBy(between(a, corner), between(a, b))
        at = b
    yield from _with_gaps(at, points[-1], gaps)


def _with_gaps(start: Point, end: Point, gaps: Gaps) -> Iterator[MoveTo | LineBy]:
    """Yield a straight piece, which stops before what crosses it and goes on behind."""
    side, places = _gaps_between(start, end, gaps)
    way = 1 if end[side] >= start[side] else -1
    at = start
    for place in places[::way]:
        before, behind = (_put(start, side, place + by * way) for by in (-GAP, GAP))
        if way * (before[side] - at[side]) > 0:
            yield line(at, before)
        yield move_to(behind)
        at = behind
    yield line(at, end)


def _gaps_between(start: Point, end: Point, gaps: Gaps) -> tuple[int, list[float]]:
    """Return whether a piece is level, 0, or upright, 1, and where it has gaps, from the left or from above."""
    side = 0 if start[1] == end[1] else 1
    if start[1 - side] != end[1 - side]:
        return side, []
    low, high = sorted((start[side], end[side]))
    return side, [place for place in gaps[side].get(start[1 - side], ()) if low + GAP <= place <= high - GAP]


def _put(point: Point, side: int, place: float) -> Point:
    return (place, point[1]) if side == 0 else (point[0], place)


def crossings(wires: Iterable[Sequence[Point]], joints: Sequence[Point], broken: Literal[0, 1] = 0) -> Gaps:
    """Return where wires have gaps since others cross them, but for `joints`, where wires fork and meet.

    These are level ones for `broken` 0, and upright ones for 1; but where one of them crosses several neighbors, between which
    short pieces would look like dashes, the neighbors have the gaps.
    """
    pieces = {(one, other) for points in wires for one, other in pairwise(points)}
    upright = sorted({(one[0], *sorted((one[1], other[1]))) for one, other in pieces if one[0] == other[0]})
    level = {(one[1], *sorted((one[0], other[0]))) for one, other in pieces if one[1] == other[1]}
    found: set[Point] = set()
    for y, left, right in level:
        among = upright[bisect_left(upright, (left + CLEAR,)) : bisect_right(upright, (right - CLEAR, inf))]
        found |= {(x, y) for x, top, bottom in among if top + CLEAR <= y <= bottom - CLEAR}
    found = {one for one in found if all(hypot(one[0] - x, one[1] - y) >= CLEAR for x, y in joints)}
    near = [_with_neighbors(found, side) for side in (0, 1)]
    gaps: Gaps = {}, {}
    for point in sorted(found):
        side = 1 - broken if point in near[broken] and point not in near[1 - broken] else broken
        gaps[side].setdefault(point[1 - side], []).append(point[side])
    return gaps


def _with_neighbors(points: Iterable[Point], side: int) -> frozenset[Point]:
    """Return those of points that have others near them on the same level line, for `side` 0, or upright one, for 1."""
    ordered = sorted(points, key=lambda one: (one[1 - side], one[side]))
    pairs = [(a, b) for a, b in pairwise(ordered) if a[1 - side] == b[1 - side] and b[side] - a[side] < NEIGHBORS]
    return frozenset(one for pair in pairs for one in pair)


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


def _toward(corner: Point, other: Point, gaps: Gaps) -> Point:
    """Return where a round corner begins on the way to another one: before the first gap there."""
    dx, dy = other[0] - corner[0], other[1] - corner[1]
    length = hypot(dx, dy)
    side, places = _gaps_between(corner, other, gaps)
    free = min((abs(place - corner[side]) - GAP for place in places), default=inf)
    step = min(CORNER, length / 2, free) / length if length else 0
    return corner[0] + dx * step, corner[1] + dy * step


def round_corners(corners: Sequence[Point], radius: float) -> Path:
    """Return a closed line through corners that are round."""
    at = _on_the_way(corners[0], corners[1], radius)
    steps: list[Step] = [move_to(at)]
    turned = (*corners[1:], *corners[:2])
    for before, corner, after in zip(corners, turned, turned[1:], strict=False):
        start, end = (_on_the_way(corner, other, radius) for other in (before, after))
        steps += [line(at, start), QuadraticBy(between(start, corner), between(start, end))]
        at = end
    return Path((*steps, Close()))


def _on_the_way(start: Point, end: Point, far: float) -> Point:
    """Return a place so far from a point on the way to another one."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    share = min(far / hypot(dx, dy), 0.5)
    return start[0] + dx * share, start[1] + dy * share


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
