"""Marks as what any page can show: outlines of straight lines and curves with their inks, and lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import atan2, cos, pi, sin, sqrt, tan
from typing import TypeAlias

from composer.draw.export.drawn_signs import with_drawn_signs
from composer.draw.export.marks import (
    ArcBy,
    Circle,
    Close,
    CubicBy,
    Geometry,
    Ink,
    LineBy,
    Mark,
    MarkGroup,
    MarkShape,
    MoveTo,
    Path,
    Polygon,
    QuadraticBy,
    Rectangle,
    Stroke,
    TextLine,
)
from composer.draw.geometry import Point

KAPPA = 4 / 3 * (sqrt(2) - 1)
"""How far the control points of a quarter of a circle are from its ends, in radii."""


@dataclass(frozen=True, slots=True)
class Outline:
    """One stroke of the pen: a start, and three control points for each piece after it."""

    points: tuple[Point, ...]
    closed: bool


@dataclass(frozen=True, slots=True)
class OutlinedShape:
    """Outlines with their inks."""

    outlines: tuple[Outline, ...]
    fill: Ink | None
    stroke: Stroke | None


FlatMark: TypeAlias = OutlinedShape | TextLine


def flatten_marks(marks: Sequence[Mark], cover: float = 1.0) -> Iterator[FlatMark]:
    """Yield marks without groups, whose opacity goes over to their inks."""
    for mark in marks:
        match mark:
            case MarkGroup():
                yield from flatten_marks(mark.marks, cover * mark.opacity)
            case TextLine():
                line = replace(mark, ink=with_opacity(mark.ink, cover))
                pieces = [*with_drawn_signs(line)]
                if pieces == [line]:
                    yield line
                else:
                    yield from flatten_marks(pieces)
            case MarkShape(fill=fill, stroke=pen, opacity=opacity):
                own = cover * opacity
                found = tuple(outlines(mark.geometry))
                ink = with_opacity(fill, own) if fill else None
                yield OutlinedShape(found, ink, replace(pen, ink=with_opacity(pen.ink, own)) if pen else None)


def with_opacity(ink: Ink, share: float) -> Ink:
    """Return an ink that covers so much less."""
    return replace(ink, cover=share * ink.cover)


def outlines(geometry: Geometry) -> Iterator[Outline]:
    """Yield the strokes of a shape."""
    match geometry:
        case Rectangle(x=x, y=y, width=width, height=height, radius=radius):
            yield rectangle(x, y, width, height, radius)
        case Circle(x=x, y=y, radius=radius):
            yield rectangle(x - radius, y - radius, 2 * radius, 2 * radius, radius)
        case Polygon(corners=corners):
            yield Outline(tuple(_through([*corners, corners[0]])), True)
        case Path():
            yield from path(geometry)


def _through(corners: list[Point]) -> Iterator[Point]:
    yield corners[0]
    for before, after in pairwise(corners):
        yield from (before, after, after)


def rectangle(x: float, y: float, width: float, height: float, radius: float) -> Outline:
    """Return a rectangle with round corners."""
    r = min(radius, width / 2, height / 2)
    k = r * (1 - KAPPA)
    right, low = x + width, y + height
    sides = [
        ((x + r, y), (right - r, y), (right - k, y), (right, y + k), (right, y + r)),
        ((right, y + r), (right, low - r), (right, low - k), (right - k, low), (right - r, low)),
        ((right - r, low), (x + r, low), (x + k, low), (x, low - k), (x, low - r)),
        ((x, low - r), (x, y + r), (x, y + k), (x + k, y), (x + r, y)),
    ]
    points: list[Point] = [sides[0][0]]
    for start, end, one, two, last in sides:
        points += [start, end, end] if r == 0 else [start, end, end, one, two, last]
    return Outline(tuple(points), True)


def path(drawn: Path) -> Iterator[Outline]:
    """Yield the strokes of a path, each from where the pen is put down to where it is lifted."""
    points: list[Point] = []
    for step in drawn.steps:
        match step:
            case MoveTo(x=x, y=y):
                if points:
                    yield Outline(tuple(points), False)
                points = [(x, y)]
            case Close():
                yield Outline(tuple(_closed(points)), True)
                points = []
            case LineBy(end=end):
                points += [points[-1], _by(points, end), _by(points, end)]
            case QuadraticBy(control=control, end=end):
                (x, y), corner, last = points[-1], _by(points, control), _by(points, end)
                one, two = ((a + 2 / 3 * (corner[0] - a), b + 2 / 3 * (corner[1] - b)) for a, b in ((x, y), last))
                points += [one, two, last]
            case CubicBy(first=first, second=second, end=end):
                points += [_by(points, first), _by(points, second), _by(points, end)]
            case ArcBy(radius=radius, large=large, clockwise=clockwise, end=end):
                points += _arc(points[-1], _by(points, end), radius, large != clockwise, clockwise)
    if points:
        yield Outline(tuple(points), False)


def _by(points: Sequence[Point], way: Point) -> Point:
    """Return where a way leads to from where the pen is."""
    return points[-1][0] + way[0], points[-1][1] + way[1]


def _closed(points: list[Point]) -> list[Point]:
    return points if points[0] == points[-1] else [*points, points[-1], points[0], points[0]]


def _arc(start: Point, end: Point, radius: float, left: bool, clockwise: bool) -> list[Point]:
    """Return an arc of a circle as curves of at most a quarter; its middle lies left or right of the way from start to end."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = sqrt(dx * dx + dy * dy)
    radius = max(radius, length / 2)
    away = sqrt(max(radius * radius - length * length / 4, 0)) / length * (1 if left else -1)
    middle = (start[0] + dx / 2 - dy * away, start[1] + dy / 2 + dx * away)
    first, last = (atan2(p[1] - middle[1], p[0] - middle[0]) for p in (start, end))
    turn = (last - first) % (2 * pi) if clockwise else -((first - last) % (2 * pi))
    pieces = int(abs(turn) / (pi / 2)) + 1
    step = turn / pieces
    reach = 4 / 3 * tan(step / 4) * radius
    found: list[Point] = []
    for index in range(pieces):
        a, b = first + step * index, first + step * (index + 1)
        one = middle[0] + radius * cos(a) - reach * sin(a), middle[1] + radius * sin(a) + reach * cos(a)
        two = middle[0] + radius * cos(b) + reach * sin(b), middle[1] + radius * sin(b) - reach * cos(b)
        found += [one, two, (middle[0] + radius * cos(b), middle[1] + radius * sin(b))]
    return found
