"""An SVG of ours as what any page can show: paths of straight lines and curves, and lines of text."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import atan2, cos, pi, sin, sqrt, tan
from typing import TypeAlias

from composer.draw.scene import Point

SVG = "{http://www.w3.org/2000/svg}"
KAPPA = 4 / 3 * (sqrt(2) - 1)
"""How far the control points of a quarter of a circle are from its ends, in radii."""


@dataclass(frozen=True, slots=True)
class CurveSegment:
    """One stroke of the pen: a start, and three control points for each piece after it."""

    points: tuple[Point, ...]
    closed: bool


@dataclass(frozen=True, slots=True)
class Ink:
    """A color, `#RRGGBB`, and how much of it covers what lies below."""

    color: str
    cover: float


@dataclass(frozen=True, slots=True)
class FilledPath:
    """Curves with one look."""

    curves: tuple[CurveSegment, ...]
    fill: Ink | None
    stroke: Ink | None
    width: float
    dash: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of text at its baseline."""

    x: float
    y: float
    text: str
    size: float
    bold: bool
    anchor: str
    ink: Ink


Mark: TypeAlias = FilledPath | TextLine


def marks(svg: str) -> tuple[float, float, list[Mark]]:
    """Width and height of the picture, and its marks from below to above."""
    root = ET.fromstring(svg)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    return width, height, list(_marks(root, 1.0))


def _marks(element: ET.Element, cover: float) -> Iterator[Mark]:
    for child in element:
        own = cover * float(child.get("opacity", 1))
        kind = child.tag.removeprefix(SVG)
        if kind == "g":
            yield from _marks(child, own)
        elif kind == "text":
            ink = Ink(child.attrib["fill"], own)
            anchor = child.get("text-anchor", "start")
            place = float(child.attrib["x"]), float(child.attrib["y"])
            bold = child.get("font-weight") == "700"
            yield TextLine(*place, child.text or "", float(child.attrib["font-size"]), bold, anchor, ink)
        elif curves := tuple(_curves(kind, child)):
            dash = tuple(map(float, child.get("stroke-dasharray", "").split()))
            fill, stroke = _ink(child, "fill", own, "#000000"), _ink(child, "stroke", own, "none")
            yield FilledPath(curves, fill, stroke, float(child.get("stroke-width", 1)), dash)


def _ink(element: ET.Element, kind: str, cover: float, usual: str) -> Ink | None:
    color = element.get(kind, usual)
    return None if color == "none" else Ink(color, cover * float(element.get(f"{kind}-opacity", 1)))


def _curves(kind: str, element: ET.Element) -> Iterator[CurveSegment]:
    def number(name: str) -> float:
        return float(element.get(name, 0))

    match kind:
        case "rect":
            yield rectangle(number("x"), number("y"), number("width"), number("height"), number("rx"))
        case "circle":
            x, y, radius = number("cx"), number("cy"), number("r")
            yield rectangle(x - radius, y - radius, 2 * radius, 2 * radius, radius)
        case "polygon":
            corners = [(float(x), float(y)) for x, y in (pair.split(",") for pair in element.attrib["points"].split())]
            yield CurveSegment(tuple(_through([*corners, corners[0]])), True)
        case "path":
            yield from path(element.attrib["d"])


def _through(corners: list[Point]) -> Iterator[Point]:
    yield corners[0]
    for before, after in pairwise(corners):
        yield from (before, after, after)


def rectangle(x: float, y: float, width: float, height: float, radius: float) -> CurveSegment:
    """A rectangle with round corners."""
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
    return CurveSegment(tuple(points), True)


NUMBER = re.compile(r"[Mlhvqcaz]|-?\d*\.?\d+(?:e-?\d+)?")


def path(text: str) -> Iterator[CurveSegment]:
    """The strokes of a path, as `svg` writes it: from a start on, all is relative."""
    tokens = NUMBER.findall(text)
    points: list[Point] = []
    index = 0

    def take(count: int) -> list[Point]:
        """As many points, which are told from the last one."""
        nonlocal index
        x, y = points[-1] if points else (0.0, 0.0)
        values = [float(token) for token in tokens[index : index + 2 * count]]
        index += 2 * count
        return [(x + dx, y + dy) for dx, dy in zip(values[::2], values[1::2], strict=True)]

    while index < len(tokens):
        command = tokens[index]
        index += 1
        match command:
            case "M":
                if points:
                    yield CurveSegment(tuple(points), False)
                points = []
                points = take(1)
            case "z":
                yield CurveSegment(tuple(_closed(points)), True)
                points = []
            case "q":
                (x, y), (corner, end) = points[-1], take(2)
                one, two = ((a + 2 / 3 * (corner[0] - a), b + 2 / 3 * (corner[1] - b)) for a, b in ((x, y), end))
                points += [one, two, end]
            case "c":
                points += take(3)
            case "a":
                radius, _, _, large, sweep = map(float, tokens[index : index + 5])
                index += 5
                points += _arc(points[-1], take(1)[0], radius, large != sweep, sweep == 1)
            case "h" | "v":
                (x, y), far = points[-1], float(tokens[index])
                index += 1
                end = (x + far, y) if command == "h" else (x, y + far)
                points += [(x, y), end, end]
            case "l":
                start, end = points[-1], take(1)[0]
                points += [start, end, end]
    if points:
        yield CurveSegment(tuple(points), False)


def _closed(points: list[Point]) -> list[Point]:
    return points if points[0] == points[-1] else [*points, points[-1], points[0], points[0]]


def _arc(start: Point, end: Point, radius: float, left: bool, clockwise: bool) -> list[Point]:
    """An arc of a circle as curves of at most a quarter; its middle lies left or right of the way from start to end."""
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
