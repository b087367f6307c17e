"""Things on the page while it is laid out, and how they are moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from composer.draw.scene import Box, Dot, Frame, MergeCircle, Point, Reference, Text, WirePath


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
        """Adds all of another, moved."""
        self.frames += [one.moved(dx, dy) for one in other.frames]
        self.wires += [one.moved(dx, dy) for one in other.wires]
        self.dots += [one.moved(dx, dy) for one in other.dots]
        self.boxes += [one.moved(dx, dy) for one in other.boxes]
        self.merges += [one.moved(dx, dy) for one in other.merges]
        self.references += [one.moved(dx, dy) for one in other.references]
        self.texts += [one.moved(dx, dy) for one in other.texts]


def moved(points: Sequence[Point], dx: float, dy: float) -> tuple[Point, ...]:
    """Points, all moved by the same."""
    return tuple((x + dx, y + dy) for x, y in points)


def straightened(points: Sequence[Point]) -> tuple[Point, ...]:
    """Points without those that lie on the way between their neighbours."""
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
