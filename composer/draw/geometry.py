"""Areas of a page, and what is written or drawn in one: lines of text and icons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from blocks.core.look import BlockIcon, ProductIcon
from composer.draw.style.product_picture import ProductPicture
from composer.draw.style.text_metrics import text_width
from composer.draw.style.typography import Font, Role, font

Point: TypeAlias = tuple[float, float]
"""To the right and downwards, in pixels of a page of natural size."""
Anchor: TypeAlias = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    def grown(self, by: float) -> Area:
        """Return the rectangle with a margin, which may be negative."""
        return Area(self.left - by, self.top - by, self.right + by, self.bottom + by)

    def reach(self, side: int) -> float:
        """Return how far from x = 0 it goes to a side: -1 or 1."""
        return self.right if side > 0 else -self.left

    def meets(self, other: Area) -> bool:
        """Return whether the two share a point inside."""
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text at its baseline."""

    x: float
    y: float
    text: str
    role: Role
    anchor: Anchor = "middle"
    scale: float = 1.0
    """How many times larger than usual its letters are."""

    @property
    def font(self) -> Font:
        """That of its role, as large as it is here."""
        return font(self.role, self.scale)

    @property
    def area(self) -> Area:
        """What the letters cover."""
        own = self.font
        width = text_width(self.text, own.size, bold=own.bold)
        left = self.x - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        return Area(left, self.y - 0.74 * own.size, left + width, self.y + 0.22 * own.size)

    def moved(self, dx: float, dy: float) -> Text:
        """Return the same elsewhere."""
        return Text(self.x + dx, self.y + dy, self.text, self.role, self.anchor, self.scale)


@dataclass(frozen=True, slots=True)
class Swatch:
    """Cells of a map of layers beside what these layers have."""

    kinds: tuple[int, ...]


Icon: TypeAlias = BlockIcon | Swatch
ICON = 28.0
"""An icon's width and height."""
SWATCH = 9.0
"""Of a cell; the next one stands right of it."""


@dataclass(frozen=True, slots=True)
class PlacedIcon:
    """An icon with its upper left corner."""

    icon: Icon
    x: float
    y: float
    scale: float = 0.0
    """Of what is drawn large, with words in it, how many times larger than usual these are; 0 for the others."""

    @property
    def picture(self) -> ProductPicture | None:
        """It as a large picture; none where it is small."""
        return ProductPicture(self.icon, self.scale) if self.scale and isinstance(self.icon, ProductIcon) else None

    @property
    def area(self) -> Area:
        """What it covers."""
        wide, high = (SWATCH * len(self.icon.kinds), SWATCH) if isinstance(self.icon, Swatch) else (ICON, ICON)
        if (large := self.picture) is not None:
            wide, high = large.width, large.height
        return Area(self.x, self.y, self.x + wide, self.y + high)

    def moved(self, dx: float, dy: float) -> PlacedIcon:
        """Return the same elsewhere."""
        return replace(self, x=self.x + dx, y=self.y + dy)
