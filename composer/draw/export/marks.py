"""A drawing as marks on paper: shapes, lines of text, and groups of them, from which SVG, PNG and PDF are written.

Coordinates and lengths are in pixels, to a tenth, which is all that an SVG says of them, so that every format shows the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from composer.draw.geometry import Anchor, Point
from composer.draw.style.typography import Font


@dataclass(frozen=True, slots=True)
class Ink:
    """A color, `#RRGGBB`, and how much of it covers what lies below."""

    color: str
    cover: float = 1.0


@dataclass(frozen=True, slots=True)
class Stroke:
    """A pen."""

    ink: Ink
    width: float
    dash: tuple[float, ...] = ()
    round: bool = False
    """Whether corners are."""


# -- what a path consists of; everything after its start is told from where the pen is


@dataclass(frozen=True, slots=True)
class MoveTo:
    """Where the pen begins, on the page."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class LineBy:
    """A straight line."""

    end: Point


@dataclass(frozen=True, slots=True)
class QuadraticBy:
    """A curve with one control point."""

    control: Point
    end: Point


@dataclass(frozen=True, slots=True)
class CubicBy:
    """A curve with two control points."""

    first: Point
    second: Point
    end: Point


@dataclass(frozen=True, slots=True)
class ArcBy:
    """A part of a circle."""

    radius: float
    large: bool
    """Whether it is the larger one of the two that are possible."""
    clockwise: bool
    end: Point


@dataclass(frozen=True, slots=True)
class Close:
    """A straight line to where the pen began."""


Step: TypeAlias = MoveTo | LineBy | QuadraticBy | CubicBy | ArcBy | Close


# -- shapes


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle with round corners."""

    x: float
    y: float
    width: float
    height: float
    radius: float = 0.0


@dataclass(frozen=True, slots=True)
class Circle:
    """A circle around a point."""

    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True)
class Polygon:
    """A closed line through corners."""

    corners: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """Lines and curves."""

    steps: tuple[Step, ...]


Geometry: TypeAlias = Rectangle | Circle | Polygon | Path
BLACK = Ink("#000000")
"""What a shape is filled with of which nothing is said: SVG has it so."""


# -- marks


@dataclass(frozen=True, slots=True)
class MarkShape:
    """A shape with its inks."""

    geometry: Geometry
    fill: Ink | None = None
    stroke: Stroke | None = None
    kind: str = ""
    """Its class, by which a page gives it other colors."""
    of: str | None = None
    """The path of what it marks."""
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of text at its baseline."""

    x: float
    y: float
    text: str
    font: Font
    anchor: Anchor
    ink: Ink
    kind: str = ""
    """Its class."""


@dataclass(frozen=True, slots=True)
class MarkGroup:
    """Marks that belong together: a block, a wire."""

    kind: str
    """Its classes."""
    marks: tuple[Mark, ...]
    data: tuple[tuple[str, str], ...] = ()
    """What scripts may read: which node it is, where in the recipe that is written."""
    opacity: float = 1.0
    title: str = ""
    description: str = ""


Mark: TypeAlias = MarkShape | TextLine | MarkGroup


def tenth(value: float) -> float:
    """Return a coordinate as it is written, to a tenth, and without the sign of a zero."""
    return round(value, 1) + 0.0
