"""How well a drawing can be followed, as a number: crossings, bends, length of wires, blocks that they go past, and its shape."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from composer.draw.geometry import Area
from composer.draw.layout.fragment import Fragment
from composer.draw.layout.parallel_flows import solid
from composer.draw.paths import is_output
from composer.draw.scene import WirePath

CROSSING, BEND, PAST, HUNDRED, NAMED, BROKEN, TURNED = 4.0, 1.0, 1.0, 0.5, 3.0, 12.0, 4.0
"""What it costs that two wires cross, that one turns, that one goes past a block, and that one is 100 pixels long; that a name
stands in place of a wire, and that what begins with a box stands above another, as if it came from that, or an output below one;
and that two values come in below a block in another order than it reads them.
"""
CLEARLY = 0.85
"""What another drawing costs at most of what the usual one does."""
CORNER = 0.25
"""Of the narrower of two boxes, how much above or below the other looks like a corner."""
NEAR = 60.0
"""How far beside a block a wire goes past it."""
PAGE_WIDTH, PAGE_HEIGHT = 1152.0, 1400.0
"""Of a page without margins and title."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What a reader has to follow in a drawing."""

    crossings: int
    bends: int
    past: int
    """How many blocks wires go past, each wire for itself."""
    named: int
    """How many names stand in place of wires."""
    broken: int
    """How many boxes that no wire leads to stand above others, and how many of outputs below others."""
    turned: int
    """How many pairs of values come in below a block in another order than it reads them."""
    length: float
    """Of all wires, in pixels."""
    width: float
    height: float

    @property
    def cost(self) -> float:
        """One number for all; less is better. What is larger than a page is shrunk to it, and costs as many times more."""
        over = max(
            1.0,
            min(max(self.width / PAGE_WIDTH, self.height / PAGE_HEIGHT), max(self.width / PAGE_HEIGHT, self.height / PAGE_WIDTH)),
        )
        followed = CROSSING * self.crossings + BEND * self.bends + PAST * self.past + HUNDRED * self.length / 100
        return over * (followed + NAMED * self.named + BROKEN * self.broken + TURNED * self.turned)


def measured(found: Fragment) -> Measure:
    """Return what there is to follow in a drawing."""
    wires = found.pieces.wires
    segments = [(wire.source, a, b) for wire in wires for a, b in dict.fromkeys(pairwise(wire.points))]
    return Measure(
        _crossings(wires),
        sum(max(0, len(wire.points) - 2) for wire in wires),
        sum(_past(found)),
        len(found.pieces.references),
        _broken(found),
        _turned(wires),
        sum(abs(a[0] - b[0]) + abs(a[1] - b[1]) for _, a, b in dict.fromkeys(segments)),
        found.left + found.right,
        found.height,
    )


def _crossings(wires: list[WirePath]) -> int:
    """Return how often wires of different values cross."""
    level, upright = set(), set()
    for wire in wires:
        for (a, b), (c, d) in pairwise(wire.points):
            if abs(b - d) < 0.05:
                level.add((wire.source, round(b, 1), round(min(a, c), 1), round(max(a, c), 1)))
            else:
                upright.add((round(a, 1), round(min(b, d), 1), round(max(b, d), 1), wire.source))
    columns = sorted(upright)
    xs = [x for x, *_ in columns]
    places = set()
    for source, y, low, high in level:
        for x, top, bottom, other in columns[bisect_right(xs, low) : bisect_left(xs, high)]:
            if other != source and top < y < bottom:
                places.add((x, y))
    return len(places)


def _past(found: Fragment) -> Iterator[int]:
    """Yield how many blocks each upright piece of a wire goes past."""
    areas = sorted(solid(found), key=lambda area: area.top + area.bottom)
    middles = [(area.top + area.bottom) / 2 for area in areas]
    for wire in found.pieces.wires:
        for (x, y), (_, end) in pairwise(wire.points):
            between = areas[bisect_right(middles, min(y, end)) : bisect_left(middles, max(y, end))]
            yield sum(1 for area in between if area.left - NEAR < x < area.right + NEAR)


def _broken(found: Fragment) -> int:
    """Return how many boxes that no wire leads to stand above others, and how many of outputs below others."""
    led = {wire.target for wire in found.pieces.wires}
    begun = {wire.source for wire in found.pieces.wires} - led
    areas = solid(found)
    first = [one.area for one in found.pieces.boxes if one.about.path in begun]
    last = [one.area for one in found.pieces.boxes if is_output(one.about.path)]
    above = sum(any(_in_line(a, b) and b.top > a.bottom for b in areas) for a in first)
    return above + sum(any(_in_line(a, b) and b.bottom < a.top for b in areas) for a in last)


def _in_line(a: Area, b: Area) -> bool:
    """Return whether one of two things is above or below the other, with more than a corner."""
    both = min(a.right, b.right) - max(a.left, b.left)
    return both > CORNER * min(a.right - a.left, b.right - b.left)


def _turned(wires: Sequence[WirePath]) -> int:
    """Return how many pairs of values come in below a block in another order than it reads them."""
    ends: dict[str, list[tuple[float, int]]] = {}
    for wire in wires:
        if wire.place.isdecimal() and wire.points[-1][0] == wire.points[-2][0]:
            ends.setdefault(wire.target, []).append((wire.points[-1][0], int(wire.place)))
    return sum(a > b for several in ends.values() for (_, a), (_, b) in combinations(sorted(several), 2))


def clearer(usual: Fragment, other: Fragment, most: float = CLEARLY) -> bool:
    """Return whether another drawing of the same costs less than `most` of what the usual one does: is so much easier to follow
    that it is worth not to look as usual.
    """
    return measured(other).cost < most * measured(usual).cost
