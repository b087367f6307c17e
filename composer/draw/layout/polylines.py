"""Lines and arrowheads as text of SVG: from their start on relative, so that equal ones read the same wherever they are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, starmap
from math import hypot

from composer.draw.scene import Point

CORNER = 8.0
"""Radius of a wire's corner."""
HEAD, HALF = 7.0, 3.4
"""Length and half the width of an arrowhead."""


def n(value: float) -> str:
    """A coordinate, to a tenth."""
    text = f"{value:.1f}"
    return "0" if text in ("-0.0", "0.0") else text.removesuffix(".0")


def polyline(points: Sequence[Point]) -> str:
    """A line through points."""
    return moved_to(points[0]) + "".join(starmap(straight, pairwise(points)))


def rounded(points: Sequence[Point]) -> str:
    """A line through points whose corners are round."""
    pieces, at = [moved_to(points[0])], points[0]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        a, b = _toward(corner, before), _toward(corner, after)
        pieces.append(f"{straight(at, a)}q{between(a, corner)} {between(a, b)}")
        at = b
    return "".join([*pieces, straight(at, points[-1])])


def moved_to(point: Point) -> str:
    """Where a path starts."""
    return f"M{n(point[0])} {n(point[1])}"


def straight(start: Point, end: Point) -> str:
    """A straight piece."""
    dx, dy = between(start, end).split()
    return f"v{dy}" if dx == "0" else f"h{dx}" if dy == "0" else f"l{dx} {dy}"


def between(start: Point, end: Point) -> str:
    """What is to go from one point to another; both are where their tenths are, so that no error adds up."""
    return " ".join(n(round(b, 1) - round(a, 1)) for a, b in zip(start, end, strict=True))


def _toward(corner: Point, other: Point) -> Point:
    dx, dy = other[0] - corner[0], other[1] - corner[1]
    length = hypot(dx, dy)
    step = min(CORNER, length / 2) / length if length else 0
    return corner[0] + dx * step, corner[1] + dy * step


def curve(points: Sequence[Point]) -> str:
    """A curve by its four control points."""
    start, *rest = points
    return f"{moved_to(start)}c{' '.join(between(start, point) for point in rest)}"


def _direction(points: Sequence[Point]) -> Point:
    end = points[-1]
    before = next(p for p in reversed(points[:-1]) if p != end)
    length = hypot(end[0] - before[0], end[1] - before[1])
    return (end[0] - before[0]) / length, (end[1] - before[1]) / length


def shortened(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points with room for the arrowhead at the end."""
    dx, dy = _direction(points)
    x, y = points[-1]
    return (*points[:-1], (x - dx * (HEAD - 1), y - dy * (HEAD - 1)))


def arrowhead(points: Sequence[Point]) -> str:
    """The corners of the arrowhead."""
    dx, dy = _direction(points)
    x, y = points[-1]
    back = x - dx * HEAD, y - dy * HEAD
    corners = (x, y), (back[0] - dy * HALF, back[1] + dx * HALF), (back[0] + dy * HALF, back[1] - dx * HALF)
    return " ".join(f"{n(a)},{n(b)}" for a, b in corners)
