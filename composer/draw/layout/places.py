"""Which value is which of those that a block reads in an order: small numbers at arrowheads that do not come in that order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from composer.draw.geometry import Area, Text
from composer.draw.layout.fragment import Pieces, lines
from composer.draw.layout.port_names import BELOW, BESIDE, MIN_WIRES, name_beside
from composer.draw.scene import Box, Direction, MergeCircle, WirePath
from composer.draw.style.typography import Typography

ON = 1.0
"""So near to a border, a wire ends there."""
HALF, LONG = 3.5, 7.0
"""Of an arrowhead: half of its width, and its length."""
FREE = 0.5
"""Around a number."""
UNDER = 13.5
"""From above a level wire to a number below it."""


def tell_places(pieces: Pieces, typography: Typography, direction: Direction = "up") -> None:
    """Number what blocks read in an order, wherever the arrowheads do not come in it on a page whose stream has a direction: all
    or, where there is no room, none.
    """
    things: list[Box | MergeCircle] = [*pieces.boxes, *pieces.merges]
    ordered = {wire.target for wire in pieces.wires if wire.place}
    for thing in (one for one in things if one.about.path in ordered):
        ends = [wire for wire in pieces.wires if wire.arrow and wire.target == thing.about.path and _meets(wire, thing.area)]
        if all(wire.place and not wire.partial for wire in ends) and not _is_told(ends, thing, direction):
            pieces.texts += _numbers(ends, pieces, typography)


def in_order(places: Sequence[str]) -> bool:
    """Return whether values come in the order in which a block reads them, one by one; so do those of a block without an order,
    and two of which each has its side.
    """
    numbers = _numbers_in(places)
    return few(places) or (len(numbers) == len(places) and numbers == sorted({*numbers}))


def few(places: Sequence[str]) -> bool:
    """Return whether so few values have an order that it need not be told."""
    return len({*_numbers_in(places)}) < MIN_WIRES


def _numbers_in(places: Sequence[str]) -> list[int]:
    return [int(number) for place in places if place for number in place.split(", ")]


def _is_told(ends: Sequence[WirePath], thing: Box | MergeCircle, direction: Direction) -> bool:
    """Return whether arrowheads come in the order of what they bring: from the left, or at one side from above; around a circle
    from the left.
    """
    sides = {_side(wire) for wire in ends}
    if isinstance(thing, MergeCircle) or sides == {0}:
        return in_order([wire.place for wire in sorted(ends, key=lambda wire: wire.points[-1][0])])
    if len(sides) > 1:
        return few([wire.place for wire in ends])
    return in_order([wire.place for wire in sorted(ends, key=lambda wire: wire.points[-1][1], reverse=direction == "right")])


def _side(wire: WirePath) -> int:
    """Return from where a wire comes in: from the left, -1, from below or from the right, 1."""
    (before, _), (x, _) = wire.points[-2:]
    return 0 if abs(before - x) < ON else 1 if before > x else -1


def _meets(wire: WirePath, area: Area) -> bool:
    """Return whether a wire ends at a border."""
    x, y = wire.points[-1]
    return area.left - ON <= x <= area.right + ON and area.top - ON <= y <= area.bottom + ON


def _numbers(ends: Sequence[WirePath], pieces: Pieces, typography: Typography) -> list[Text]:
    """Return a number for each of some wires, at its end; none where one has no room."""
    taken, found = [*_taken(pieces)], list[Text]()
    for wire in ends:
        at = (text for text in _candidates(wire, typography) if not any(text.area.grown(FREE).meets(area) for area in taken))
        text = next(at, None)
        if text is None:
            return []
        found.append(text)
        taken.append(text.area)
    return found


def _candidates(wire: WirePath, typography: Typography) -> Iterator[Text]:
    """Yield where the number of a wire may stand, the best place first: right or left of its end, or above or below."""
    (x, y), side = wire.points[-1], _side(wire)
    if side:
        above = name_beside(wire.place, side, side * x, y, typography)
        yield from (above, above.moved(0, UNDER * typography.scale))
    else:
        yield Text(x + BESIDE, y + BELOW, wire.place, "port", "start", typography.scale)
        yield Text(x - BESIDE, y + BELOW, wire.place, "port", "end", typography.scale)


def _head(wire: WirePath) -> Area:
    """Return what the arrowhead of a wire covers."""
    (x, y), side = wire.points[-1], _side(wire)
    if not side:
        return Area(x - HALF, y, x + HALF, y + LONG)
    return Area(min(x, x + side * LONG), y - HALF, max(x, x + side * LONG), y + HALF)


def _taken(pieces: Pieces) -> Iterator[Area]:
    """Yield what is drawn and must not lie under a number."""
    yield from (one.area for one in chain(pieces.texts, pieces.boxes, pieces.merges))
    yield from (one.text.area for one in pieces.references)
    for wire in pieces.wires:
        yield from lines(wire)
        if wire.arrow:
            yield _head(wire)
    for frame in pieces.frames:
        area = frame.area
        yield from (Area(x - 1, area.top, x + 1, area.bottom) for x in (area.left, area.right))
        yield from (Area(area.left, y - 1, area.right, y + 1) for y in (area.top, area.bottom))
        yield from (text.area for text in frame.texts)
        yield from (one.area for one in (frame.pill, frame.strip) if one is not None)
