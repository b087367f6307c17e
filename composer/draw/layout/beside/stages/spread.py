"""More room between two streams of a frame: what is between them goes with one or the other, and nothing changes its order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from composer.draw.geometry import Area, Point, Text
from composer.draw.layout.fragment import Fragment, Pieces

NEAR = 4.0
"""How far above each other two things are beside each other all the same."""
BESIDE = 12.0
"""How far beside a wire something is written about it."""
TOUCHES = 0.6
"""How far from a border a wire ends there."""


def spread(found: Fragment, left: float, right: float, by: float) -> Fragment | None:
    """Return the inside of a frame, and that, with two streams farther apart; none where something belongs to both."""
    whole = found
    for outermost in (True, False):  # half of it at either side of what is between them
        parts = _Parts(whole)
        moves = parts.right_of(left, right, outermost=outermost)
        if moves is None:
            return None
        whole = _moved(whole, right, by / 2, parts, moves)
    return whole


@dataclass(slots=True)
class _Parts:
    """What stands in a frame, as areas of which some go together."""

    found: Fragment
    areas: list[Area] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    """Of each area, the first that goes with it."""

    def __post_init__(self) -> None:
        pieces = self.found.pieces
        solid = [one.area for one in pieces.boxes] + [one.area for one in pieces.merges]
        solid += [one.area for one in pieces.frames[1:]]
        upright = dict.fromkeys(piece for wire in pieces.wires for piece in _upright(wire.points))
        texts = [one.area for one in (*pieces.texts, *(one.text for one in pieces.references))]
        self.areas = [*solid, *upright, *texts]
        self.group = [*range(len(self.areas))]
        for number, area in enumerate(self.areas):
            for other in range(number):
                if self.together(area, self.areas[other], text=number >= len(solid) + len(upright)):
                    self.join(number, other)

    def together(self, one: Area, other: Area, *, text: bool) -> bool:
        """Return whether two things touch; what is written goes with the wire at its left."""
        level = one.top < other.bottom + TOUCHES and other.top < one.bottom + TOUCHES
        if text:
            return level and 0 <= one.left - other.right <= BESIDE
        return level and one.left < other.right + TOUCHES and other.left < one.right + TOUCHES

    def join(self, one: int, other: int) -> None:
        """Let all that goes with two things go together."""
        a, b = self.group[one], self.group[other]
        if a != b:
            self.group = [a if number == b else number for number in self.group]

    def right_of(self, left: float, right: float, *, outermost: bool) -> set[int] | None:
        """Return the groups that go with the right one of two streams: as many of those between them as can, or as few; none
        where something would have to stand still and move.
        """
        still = {self.group[number] for number, area in enumerate(self.areas) if area.left < left + TOUCHES}
        moving = {self.group[number] for number, area in enumerate(self.areas) if area.right > right - TOUCHES}
        order = {pair for pair in self.neighbors() if pair[0] != pair[1]}
        low, high = _closed(moving, order), _closed(still, {(b, a) for a, b in order})
        if low & still:
            return None
        return {*self.group} - high if outermost else low

    def neighbors(self) -> Iterator[tuple[int, int]]:
        """Yield groups of which something of one is left of something of another, at one height."""
        for number, one in enumerate(self.areas):
            for other, area in enumerate(self.areas):
                if one.right <= area.left + TOUCHES and one.top < area.bottom + NEAR and area.top < one.bottom + NEAR:
                    yield self.group[number], self.group[other]

    def at(self, x: float, y: float) -> int | None:
        """Return the group of what is at a place; none where nothing is."""
        return next((self.group[number] for number, area in enumerate(self.areas) if _holds(area, x, y)), None)


def _holds(area: Area, x: float, y: float) -> bool:
    return area.left - TOUCHES <= x <= area.right + TOUCHES and area.top - TOUCHES <= y <= area.bottom + TOUCHES


def _upright(points: Sequence[Point]) -> Iterator[Area]:
    """Yield the upright pieces of a wire."""
    for (a, b), (c, d) in pairwise(points):
        if abs(a - c) < TOUCHES:
            yield Area(a, min(b, d), c, max(b, d))


def _closed(start: set[int], pairs: set[tuple[int, int]]) -> set[int]:
    """Return all to which ways lead from some."""
    found, rest = {*start}, [*start]
    after: dict[int, list[int]] = {}
    for a, b in pairs:
        after.setdefault(a, []).append(b)
    while rest:
        more = [one for one in after.get(rest.pop(), ()) if one not in found]
        found.update(more)
        rest += more
    return found


def _moved(found: Fragment, right: float, by: float, parts: _Parts, moves: set[int]) -> Fragment:
    """Return a frame with some groups of what is in it, and all from a stream on, farther to the right."""

    def step(x: float, y: float) -> float:
        group = parts.at(x, y)
        return by if (x > right - TOUCHES if group is None else group in moves) else 0.0

    def of_area(area: Area) -> float:
        return step((area.left + area.right) / 2, (area.top + area.bottom) / 2)

    def points(old: Sequence[Point]) -> tuple[Point, ...]:
        return tuple((x + step(x, y), y) for x, y in old)

    def at_border(text: Text) -> Text:
        return text.moved(by if text.x > right else 0.0, 0)

    pieces, rest = found.pieces, Pieces()
    border, *inner = pieces.frames
    strip = border.strip and border.strip.moved(by if border.strip.x > right else 0.0, 0)
    texts = tuple(map(at_border, border.texts))
    pill = border.pill and at_border(border.pill)
    rest.frames = [replace(border, width=border.width + by, texts=texts, pill=pill, strip=strip)]
    rest.frames += [one.moved(of_area(one.area), 0) for one in inner]
    rest.boxes = [one.moved(of_area(one.area), 0) for one in pieces.boxes]
    rest.merges = [one.moved(step(one.x, one.y), 0) for one in pieces.merges]
    rest.dots = [one.moved(step(one.x, one.y), 0) for one in pieces.dots]
    rest.wires = [one.through(points(one.points)) for one in pieces.wires]
    rest.texts = [one.moved(of_area(one.area), 0) for one in pieces.texts]
    rest.references = [one.moved(of_area(one.text.area), 0) for one in pieces.references]
    return replace(
        found,
        pieces=rest,
        right=found.right + by,
        ends={edge: points(old) for edge, old in found.ends.items()},
        taps={key: points(old) for key, old in found.taps.items()},
        below={passage: x + (by if x > right - TOUCHES else 0.0) for passage, x in found.below.items()},
        above={passage: points(old) for passage, old in found.above.items()},
    )
