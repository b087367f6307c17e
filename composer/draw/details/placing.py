"""Where a detail stands: in the free room of a page, else right of the drawing or below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from math import ceil

from composer.draw.geometry import Area, Point
from composer.draw.layout.fragment import Fragment, Pieces, areas

GAP = 28.0
"""Between a detail and everything else."""
ABOUT = 1.03
"""How many times larger a page may be for a detail nearer to its box."""
WAYS, MAX_WAYS = 32, 64
"""In how many ways each of several details is placed to find how all of them fill a page best, and how many of these go on."""


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
    return min(spots(taken, page, width, height), key=lambda spot: cost(page, spot, (width, height), box, size))


def cost(
    page: Area, spot: Point, extent: tuple[float, float], box: Area, size: Callable[[float, float], float]
) -> tuple[float, float, float, float]:
    """Return what speaks against a spot for a rectangle: the size that the page has with it, and how far from the box it is."""
    (x, y), (width, height) = spot, extent
    placed = Area(x, y, x + width, y + height)
    return *page_cost(grown(page, placed), size), away_from(box, placed), x


def away_from(box: Area, placed: Area) -> float:
    """Return how far from the right of a box something is."""
    return abs(placed.left - box.right) + abs((placed.top + placed.bottom - box.top - box.bottom) / 2)


def nearest_spot(
    taken: Sequence[Area], page: Area, placed: Area, box: Area, size: Callable[[float, float], float], whole: Area
) -> Area:
    """Return where a rectangle is nearest to its box, where the page is about as large as the whole one with it as it is now."""
    large, room = page_cost(whole, size)
    ways = [placed]
    width, height = placed.right - placed.left, placed.bottom - placed.top
    for x, y in spots(taken, page, width, height):
        way = Area(x, y, x + width, y + height)
        found, area = page_cost(grown(page, way), size)
        if found <= large and area <= ABOUT * room:
            ways.append(way)
    return min(ways, key=lambda way: away_from(box, way))


def page_cost(page: Area, size: Callable[[float, float], float]) -> tuple[float, float]:
    """Return by how much a page is large, and its area."""
    return round(size(page.right, page.bottom), 3), round(page.right * page.bottom, -3)


def grown(page: Area, area: Area) -> Area:
    """Return a page that goes as far to the right and down as what lies on it."""
    return replace(page, right=max(page.right, area.right), bottom=max(page.bottom, area.bottom))


def best_spots(
    taken: Sequence[Area],
    page: Area,
    extents: Sequence[tuple[float, float]],
    boxes: Sequence[Area],
    size: Callable[[float, float], float],
) -> tuple[Area, ...]:
    """Return where several rectangles are to be so that a page with all of them is smallest: one of them may stand below the
    drawing although the page would be smaller with this one alone at the right.
    """

    def with_all(placed: tuple[Area, ...]) -> tuple[float, float]:
        return page_cost(reduce(grown, placed, page), size)

    found: list[tuple[Area, ...]] = [()]
    for (width, height), box in zip(extents, boxes, strict=True):
        ways = [
            (*placed, Area(x, y, x + width, y + height))
            for placed in found
            for x, y in _different_ways([*taken, *placed], reduce(grown, placed, page), (width, height), box, size)
        ]
        found = sorted(ways, key=with_all)[:MAX_WAYS]
    return found[0]


def _different_ways(
    taken: Sequence[Area], page: Area, extent: tuple[float, float], box: Area, size: Callable[[float, float], float]
) -> list[Point]:
    """Return the best spots for a rectangle, of those with which a page has the same size the nearest one, and the nearest of
    the highest ones, which leave room for others below.
    """
    best: dict[tuple[float, float, bool], tuple[tuple[float, ...], Point]] = {}
    for x, y in spots(taken, page, *extent):
        around = grown(page, Area(x, y, x + extent[0], y + extent[1]))
        found = cost(page, (x, y), extent, box, size), (x, y)
        key = around.right, around.bottom, y == page.top
        best[key] = min(best.get(key, found), found)
    return [spot for _, spot in sorted(best.values())[:WAYS]]
