"""Wires into the sides of circles, level wherever nothing is in the way."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from composer.draw.geometry import Area, Point
from composer.draw.layout.fragment import Fragment
from composer.draw.scene import RADIUS, Box, Frame, MergeCircle, WirePath

CLEAR = 5.0
"""Between a wire and what it goes past."""


def straighten_into_circles(found: Fragment, alone: Collection[tuple[str, str]]) -> None:
    """Lead wires into the sides of circles at their own height, where nothing is in the way; those `alone`, by the value and what
    reads it, go nowhere else on their way there.

    Before: up, over, up, and into the circle
    After:  up, and over into the circle
    """
    wires = found.pieces.wires
    for number, wire in enumerate(wires):
        merge = next((one for one in found.pieces.merges if one.about.path == wire.target), None)
        end = wire.points[-5:]
        if merge is None or len(end) < 4 or (wire.source, wire.target) not in alone:
            continue
        (x, foot), (_, track), (turn, _), (_, height), (border, last) = end if len(end) == 5 else (end[0], *end)
        way = ((x, foot), (x, last), (border, last))
        sides = len({merge.x > border, merge.x > x, merge.x > turn}) == 1 and abs(abs(border - merge.x) - RADIUS) < 0.1
        if not sides or height != last or abs(x - border) < abs(turn - border) or (foot == track and len(end) == 5):
            continue
        before = wire.points[: -len(end)] if len(end) == 5 else ()
        moved = wire.through((*before, *way))
        if _free(found, wire, end[-4:], way[1:]):
            wires[number] = moved


def _free(found: Fragment, wire: WirePath, old: Sequence[Point], new: Sequence[Point]) -> bool:
    """Return whether nothing stands in a new way of a wire, no other runs along it, and no more cross it than its old one."""
    x, track = old[0]
    pieces = [((x, track), new[0]), (new[0], new[1])]
    strips = [Area(min(a, c), min(b, d), max(a, c), max(b, d)).grown(CLEAR) for (a, b), (c, d) in pieces]
    own = wire.source
    things: list[Box | MergeCircle | Frame] = [*found.pieces.boxes, *found.pieces.merges, *found.pieces.frames]
    solid = [one.area for one in things if one.about.path not in (own, wire.target)]
    solid += [one.area for one in found.pieces.texts] + [one.text.area for one in found.pieces.references]
    if any(strip.meets(area) for strip in strips for area in solid):
        return False
    others = [piece for one in found.pieces.wires if one.source != own for piece in pairwise(one.points)]
    if any(_along(piece, other) for piece in pieces for other in others):
        return False
    return _crossed(pieces, others) <= _crossed([*pairwise(old)], others)


def _along(one: tuple[Point, Point], other: tuple[Point, Point]) -> bool:
    """Return whether two pieces of wires lie side by side, too near to each other."""
    for axis in (0, 1):
        across = 1 - axis
        level = abs(one[0][across] - one[1][across]) < 0.1 and abs(other[0][across] - other[1][across]) < 0.1
        if level and abs(one[0][across] - other[0][across]) < CLEAR:
            low, high = (
                max(min(p[axis] for p in one), min(p[axis] for p in other)),
                min(max(p[axis] for p in one), max(p[axis] for p in other)),
            )
            if high > low - CLEAR:
                return True
    return False


def _crossed(pieces: Sequence[tuple[Point, Point]], others: Sequence[tuple[Point, Point]]) -> int:
    """Return how many pieces of other wires cross some."""
    return sum(_cross(one, other) for one in pieces for other in others)


def _cross(one: tuple[Point, Point], other: tuple[Point, Point]) -> bool:
    """Return whether a level piece and an upright one meet."""
    upright = abs(one[0][0] - one[1][0]) < 0.1
    if upright == (abs(other[0][0] - other[1][0]) < 0.1):
        return False
    up, level = (one, other) if upright else (other, one)
    x, y = up[0][0], level[0][1]
    inside = min(level[0][0], level[1][0]) < x < max(level[0][0], level[1][0])
    return inside and min(up[0][1], up[1][1]) < y < max(up[0][1], up[1][1])
