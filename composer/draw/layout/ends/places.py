"""Which value is which of those that a block reads in an order: small numbers at arrowheads that do not come in that order; and
`2 ×` at one that brings a value twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from operator import itemgetter

from composer.draw.edges import TIMES
from composer.draw.geometry import Area, Point, Text
from composer.draw.layout.ends.port_names import BELOW, MIN_WIRES, name_beside
from composer.draw.layout.fragment import Pieces, in_the_way
from composer.draw.scene import Box, MergeCircle, Scene, WirePath
from composer.draw.style.typography import Typography

ON = 1.0
"""So near to a border, a wire ends there."""
HALF, LONG = 3.5, 7.0
"""Of an arrowhead: half of its width, and its length."""
NEAR, ABOVE = 5.0, 4.5
"""From an upright wire to its number: nearer than to the next wire; and from a border below it to where its letters stand."""
HEIGHT = itemgetter(1)
"""Of a point."""
LEVEL = 40.0
"""More than a text is high, with a number beside it."""
FREE, EDGE = 0.5, 2.0
"""Around a number; and along the sides of the page."""


def with_places(scene: Scene, typography: Typography) -> Scene:
    """Return a drawing with numbers at what blocks read in an order, where they need them; details have their own."""
    pieces = Pieces(
        list(scene.frames),
        list(scene.wires),
        boxes=list(scene.boxes),
        merges=list(scene.merges),
        references=list(scene.references),
        texts=list(scene.texts),
    )
    tell_places(pieces, typography, (EDGE, scene.width - EDGE))
    return replace(scene, texts=tuple(pieces.texts))


def tell_places(pieces: Pieces, typography: Typography, page: tuple[float, float] = (-inf, inf)) -> None:
    """Write at arrowheads which value is which of those that a block reads in an order, where they do not come in it: at all of
    them or, where there is no room between the sides of the `page`, at none; else at one that brings a value several times how
    often.
    """
    ordered = {wire.target for wire in pieces.wires if wire.place}
    things: list[Box | MergeCircle] = [*pieces.boxes, *pieces.merges]
    several: list[WirePath] = []
    for thing in (one for one in things if one.about.path in ordered):
        ends = [wire for wire in pieces.wires if wire.arrow and wire.target == thing.about.path and _meets(wire, thing.area)]
        placed = all(_numbers_of(wire) and not wire.partial for wire in ends)
        if placed and not is_told(ends, around=isinstance(thing, MergeCircle)):
            pieces.texts += _numbers(ends, pieces, typography, page)
        else:
            several += [wire for wire in ends if wire.place.endswith(TIMES)]
    for wire in several:
        pieces.texts += _numbers([wire], _level_with(wire, pieces), typography, page)


def _level_with(end: WirePath, pieces: Pieces) -> Pieces:
    """Return the pieces that stand at the height of the end of a wire: to measure all of a large page takes time."""
    low, high = end.points[-1][1] + LEVEL, end.points[-1][1] - LEVEL
    wires = [one for one in pieces.wires if min(one.points, key=HEIGHT)[1] < low and max(one.points, key=HEIGHT)[1] > high]
    return Pieces(
        pieces.frames,
        wires,
        boxes=[one for one in pieces.boxes if one.y < low and one.y + one.height > high],
        merges=[one for one in pieces.merges if high < one.y < low],
        references=[one for one in pieces.references if high < one.text.y < low],
        texts=[one for one in pieces.texts if high < one.y < low],
    )


def _numbers_of(wire: WirePath) -> str:
    """Return which value a wire brings of those that its target reads in an order; nothing where that has none."""
    return "" if wire.place.endswith(TIMES) else wire.place


def in_order(places: Sequence[str]) -> bool:
    """Return whether values come in the order in which a block reads them, one by one; so do those of a block without an order,
    and so few that it need not be told.
    """
    numbers = [int(number) for place in places if place and not place.endswith(TIMES) for number in place.split(", ")]
    return len({*numbers}) < MIN_WIRES or (len(numbers) == len(places) and numbers == sorted({*numbers}))


def is_told(ends: Sequence[WirePath], *, around: bool) -> bool:
    """Return whether arrowheads come in the order of what they bring: all at one side of a box, from the left or from above, or
    `around` a circle, from what comes in at its left to what does at its right.
    """
    level = {_comes_from(wire)[0] for wire in ends}
    upright = {_comes_from(wire)[1] for wire in ends}
    if not around and len({_comes_from(wire) for wire in ends}) > 1:
        return in_order([wire.place for wire in ends]) and in_order([wire.place for wire in reversed(ends)])
    axis = 1 if -1 in upright or (level != {0} and not around) else 0
    places = [wire.place for wire in sorted(ends, key=lambda wire: wire.points[-1][axis])]
    return in_order(places) and not _reversed(places)


def _reversed(places: Sequence[str]) -> bool:
    """Return whether values do not come in the order in which a block reads them, where each may come several times."""
    numbers = [int(place) for place in places if place.isdecimal()]
    return numbers != sorted(numbers)


def _comes_from(wire: WirePath) -> tuple[int, int]:
    """Return at which side a wire comes in: left or right of its end, or above or below."""
    (before, height), (x, y) = wire.points[-2:]
    if abs(before - x) < ON:
        return 0, -1 if height < y else 1
    return -1 if before < x else 1, 0


def _meets(wire: WirePath, area: Area) -> bool:
    """Return whether a wire ends at a border."""
    x, y = wire.points[-1]
    return area.left - ON <= x <= area.right + ON and area.top - ON <= y <= area.bottom + ON


def _numbers(ends: Sequence[WirePath], pieces: Pieces, typography: Typography, page: tuple[float, float]) -> list[Text]:
    """Return a number for each of some wires, at its end; none where one has no room."""
    taken, found = [*_taken(pieces)], list[Text]()
    for wire in ends:
        places = ((text, text.area.grown(FREE)) for text in _candidates(wire, typography))
        on_page = ((text, own) for text, own in places if page[0] <= own.left and own.right <= page[1])
        text = next((text for text, own in on_page if not any(own.meets(area) for area in taken)), None)
        if text is None:
            return []
        found.append(text)
        taken.append(text.area)
    return found


def _candidates(wire: WirePath, typography: Typography) -> Iterator[Text]:
    """Yield where the number of a wire may stand, the best place first: right or left of its end, or above it."""
    (x, y), (level, upright) = wire.points[-1], _comes_from(wire)
    if level:
        yield name_beside(wire.place, level, level * x, y, typography)
        return
    foot = y + (BELOW if upright > 0 else -ABOVE)
    yield Text(x + NEAR, foot, wire.place, "port", "start", typography.scale)
    yield Text(x - NEAR, foot, wire.place, "port", "end", typography.scale)


def _taken(pieces: Pieces) -> Iterator[Area]:
    """Yield what is drawn and must not lie under a number: arrowheads and maps of layers, too."""
    yield from in_the_way(pieces)
    yield from (_head(wire.points[-1], _comes_from(wire)) for wire in pieces.wires if wire.arrow)
    yield from (frame.strip.area for frame in pieces.frames if frame.strip is not None)


def _head(tip: Point, side: tuple[int, int]) -> Area:
    """Return what an arrowhead covers that comes in at a side."""
    wide, high = (HALF if one == 0 else LONG / 2 for one in side)
    x, y = (at + one * LONG / 2 for at, one in zip(tip, side, strict=True))
    return Area(x - wide, y - high, x + wide, y + high)
