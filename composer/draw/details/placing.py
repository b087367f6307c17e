"""Where a detail stands: in the free room of a page, else right of the drawing or below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil

from composer.draw.geometry import Area, Point
from composer.draw.layout.fragment import Fragment, Pieces, areas

GAP = 28.0
"""Between a detail and everything else."""


def covered(pieces: Pieces, texts: Sequence[Area]) -> list[Area]:
    """Return what a drawing covers: a frame with all that is in it."""
    return [*areas(Fragment(pieces)), *texts]


def spots(taken: Sequence[Area], page: Area, width: float, height: float) -> Iterator[Point]:
    """Yield where the upper left corner of a rectangle may be so that it lies on nothing: at the right of something, as high and
    as low as there is room.

    Args:
        taken: What lies on the page.
        page: Where things may lie; beyond its right and its lower border there is room for more.
        width: Of the rectangle.
        height: Of the rectangle.
    """
    rights = {ceil(10 * (one.right + GAP)) / 10 for one in taken} | {page.left}
    for left in sorted(x for x in rights if x >= page.left):
        beside = sorted(
            (one.top - GAP, one.bottom + GAP) for one in taken if one.left - GAP < left + width and left < one.right + GAP
        )
        low = page.top
        for top, bottom in beside:
            if top - low >= height:
                yield left, low
                if top - height <= page.bottom - height:
                    yield left, top - height
            low = max(low, bottom)
        yield left, low
        if low + height < page.bottom:
            yield left, page.bottom - height


def best_spot(
    taken: Sequence[Area], page: Area, width: float, height: float, box: Area, size: Callable[[float, float], float]
) -> Point:
    """Return the spot with which a page is smallest by `size`, given its width and height; of several, the nearest to the box."""

    def cost(spot: Point) -> tuple[float, float, float, float]:
        x, y = spot
        right, bottom = max(page.right, x + width), max(page.bottom, y + height)
        away = abs(x - box.right) + abs(y + height / 2 - (box.top + box.bottom) / 2)
        return round(size(right, bottom), 3), round(right * bottom, -3), away, x

    return min(spots(taken, page, width, height), key=cost)
