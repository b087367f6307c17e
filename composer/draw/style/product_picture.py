"""The picture of an outer product: a matrix or a cube with the length of each vector at its edge, and slices where these end in
an appended 1.

What is in no slice is a product of all vectors; in a slice a 1 stands in place of one of them, where two slices meet in place of
two: there are the products of fewer vectors, down to each vector alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal, TypeAlias

from blocks.core.look import ProductIcon, ProductSide
from composer.draw.style.text_metrics import text_width
from composer.draw.style.typography import font

Corner: TypeAlias = tuple[float, float]
"""To the right and downwards, in pixels from the upper left corner of the picture."""

LONGEST, LEAST_SHARE = 84.0, 0.55
"""The longest edge of a picture, and how much of that every other one has at least: their lengths differ by any factor."""
LEANING = 0.55
"""How far an edge that leads into the page goes to the right and up, as a share of its length."""
SLICE = 9.0
"""How thick the slice of a 1 is drawn."""
CELLS = 4
"""Into how many parts an edge without such a slice is divided, whatever its length is."""
MAX_AXIS = 3
"""Letters of the name of an axis that stands before its length."""
BESIDE, BELOW, LINE = 6.0, 4.0, 15.0
"""Between an edge and its length beside it, or below it; from the lower edge to the end of what is written there."""


@dataclass(frozen=True, slots=True)
class EdgeLabel:
    """What is written at an edge: its baseline begins, has its middle or ends there."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class ProductPicture:
    """A picture of an outer product whose lengths are known, with letters so many times larger than usual."""

    icon: ProductIcon
    scale: float

    @property
    def edges(self) -> tuple[float, float, float]:
        """How long the edges to the right, upwards and into the page are; none leads there where two vectors are multiplied."""
        lengths = [int(side.length) if side.length.isdigit() else None for side in self.icon.sides]
        known = [one for one in lengths if one is not None]
        if len(known) < len(lengths):
            shares = [1.0] * len(lengths)
        else:
            shares = [max(sqrt(one / max(known)), LEAST_SHARE) for one in known]
        wide, high, deep = (LONGEST * share for share in (*shares, 0.0)[:3])
        return wide, high, deep * LEANING

    @property
    def left(self) -> float:
        """Where the front begins, right of what is written beside it."""
        return self.width_of(said(self.icon.sides[1])) + BESIDE

    @property
    def width(self) -> float:
        """Of all of it."""
        wide, _, deep = self.edges
        beyond = deep / 2 + BESIDE + self.width_of(said(self.icon.sides[2])) if deep else 0.0
        below = (self.width_of(said(self.icon.sides[0])) - wide) / 2
        return self.left + wide + max(deep, beyond, below)

    @property
    def height(self) -> float:
        """Of all of it."""
        _, high, deep = self.edges
        return deep + high + LINE * self.scale

    def width_of(self, text: str) -> float:
        """Return the width of what is written at an edge."""
        return text_width(text, font("detail", self.scale).size)

    def labels(self) -> Iterator[EdgeLabel]:
        """Yield the length of each edge."""
        (wide, high, deep), letters = self.edges, font("detail", self.scale).size
        first, second, *third = map(said, self.icon.sides)
        bottom, right = deep + high, self.left + wide
        yield EdgeLabel(self.left + wide / 2, bottom + BELOW + 0.74 * letters, first, "middle")
        yield EdgeLabel(self.left - BESIDE, deep + high / 2 + 0.35 * letters, second, "end")
        yield from (EdgeLabel(right + deep / 2 + BESIDE, bottom - deep / 2 + 0.6 * letters, one, "start") for one in third)

    def point(self, along: float, up: float, back: float) -> Corner:
        """Return where a point is, given how much of each edge leads there."""
        wide, high, deep = self.edges
        return self.left + wide * along + deep * back, deep + high * (1 - up) - deep * back

    def faces(self) -> Iterator[Face]:
        """Yield what one sees: the front, and of a cube its top and its right side."""
        yield Face(self, 0, 1, 2)
        if len(self.icon.sides) > 2:
            yield Face(self, 0, 2, 1)
            yield Face(self, 2, 1, 0)

    def begin_of_slice(self, side: int) -> float:
        """Return at which share of an edge the slice of a 1 begins; at its end where there is none."""
        edge = self.edges[side] / (LEANING if side == 2 else 1)
        return 1 - SLICE / edge if self.icon.sides[side].appended else 1.0


@dataclass(frozen=True, slots=True)
class Face:
    """A side of a picture, which two edges span: it lies at the begin of the third one where that is the one into the page, else
    at the end of it.
    """

    of: ProductPicture
    along: int
    up: int
    through: int

    def area(self, low: float = 0.0, left: float = 0.0) -> Sequence[Corner]:
        """Return the corners of what lies beyond some shares of its two edges."""
        return [self.point(left, low), self.point(1, low), self.point(1, 1), self.point(left, 1)]

    def point(self, along: float, up: float) -> Corner:
        """Return where a point of it is."""
        shares = {self.along: along, self.up: up, self.through: 0.0 if self.through == 2 else 1.0}
        return self.of.point(*(shares[side] for side in range(3)))

    def slices(self) -> Iterator[Sequence[Corner]]:
        """Yield what of it lies in the slice of each 1: all of it, where that slice is at its own end."""
        along, up = self.of.begin_of_slice(self.along), self.of.begin_of_slice(self.up)
        if along < 1:
            yield self.area(left=along)
        if up < 1:
            yield self.area(low=up)
        if self.through != 2 and self.of.begin_of_slice(self.through) < 1:
            yield self.area()

    def lines(self) -> Iterator[Sequence[Corner]]:
        """Yield the lines that part it: where slices begin, and between cells along an edge that has none."""
        for share in parts(self.of.begin_of_slice(self.along)):
            yield [self.point(share, 0), self.point(share, 1)]
        for share in parts(self.of.begin_of_slice(self.up)):
            yield [self.point(0, share), self.point(1, share)]


def parts(begin: float) -> list[float]:
    """Return where an edge is parted, given where the slice of a 1 begins."""
    return [begin] if begin < 1 else [number / CELLS for number in range(1, CELLS)]


def said(side: ProductSide) -> str:
    """Return what is written at an edge: the length, and which of it is an appended 1, behind a short name of the axis.

    >>> said(ProductSide("z_l", "l", 1, "129", appended=True)), said(ProductSide("image", "places", 1, "49"))
    ('l = 128 + 1', '49')
    """
    length = f"{int(side.length) - 1} + 1" if side.appended else side.length
    return f"{side.axis} = {length}" if len(side.axis) <= MAX_AXIS else length
