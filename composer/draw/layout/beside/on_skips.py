"""Blocks on the skip connections of a U: between its two ways, at the heights where these go over."""

from __future__ import annotations

from collections.abc import Sequence

from composer.draw.edges import DiagramEdge
from composer.draw.geometry import Area, Point
from composer.draw.layout.boxes import MIN_COLUMN_WIDTH, box, box_height, needed
from composer.draw.layout.fragment import Fragment, stretch
from composer.draw.layout.lanes import style_of
from composer.draw.layout.outgoing_edges import SLOT
from composer.draw.layout.parallel_columns import TRACK
from composer.draw.passes.skips import SkipBlock
from composer.draw.scene import Box, Dot, MergeCircle, WirePath
from composer.draw.style.typography import Typography

APART = 26.0
"""Beside such a block: an arrowhead, and as much of a wire."""
UNDER, OVER = 17.0, 8.0
"""Below it, for a wire that turns up into it: a corner, an arrowhead and two pixels; and below that, a corner."""


def skip_room(skips: Sequence[SkipBlock], typography: Typography) -> float:
    """Return how far apart the two ways of a U stand."""
    return max(_width(one, typography) for one in skips) + 2 * APART


def make_room(down: Fragment, up: Fragment, skips: Sequence[SkipBlock], typography: Typography) -> None:
    """Stretch the two ways of a U, which go over at the same heights, so that wires to a block from below turn off in time."""
    for one in skips:
        y = next(points[0][1] for edge, points in up.ends.items() if edge == one.past)
        foot = _area(up, one.out.target).bottom
        for edge in one.others:
            _, low = _top(up, edge.source.path)
            missing = y + box_height(one.leaf, typography, narrow=True) / 2 + UNDER + OVER - low
            if missing > 0:
                stretch(up, foot + 0.1, missing)
                stretch(down, down.taps[one.skip.source.origin][-1][1] + 0.1, missing)
                y -= missing
                foot -= missing


def put_on_skips(whole: Fragment, skips: Sequence[SkipBlock], middle: float, typography: Typography) -> bool:
    """Put each block on its skip connection, between the two ways, where that goes straight over; return whether all do."""
    pieces = whole.pieces
    for one in skips:
        past = one.past
        found = [wire for wire in pieces.wires if (wire.source, wire.target) == (past.source.path, past.target)]
        if not found or len(found[0].points) != 2:
            return False
        (start, y), (end, _) = found[0].points
        width, height = _width(one, typography), box_height(one.leaf, typography, narrow=True)
        pieces.boxes.append(box(one.leaf, middle, y + height / 2, width, height, typography, narrow=True))
        pieces.wires.remove(found[0])
        ways: list[tuple[DiagramEdge, tuple[Point, ...]]] = [
            (one.skip, ((start, y), (middle - width / 2, y))),
            (one.out, ((middle + width / 2, y), (end, y))),
        ]
        for number, edge in enumerate(one.others):
            turn = middle + SLOT * (number - (len(one.others) - 1) / 2)
            (x, low), (_, high) = _rise(whole, edge.source.path)
            fork = max((low + high) / 2, y + height / 2 + UNDER + TRACK * (len(one.others) - 1 - number))
            ways.append((edge, ((x, fork), (turn, fork), (turn, y + height / 2))))
            pieces.dots.append(Dot(x, fork))
        pieces.wires += [
            WirePath(edge.source.path, edge.target, way, edge.port, style_of(edge), place=edge.place) for edge, way in ways
        ]
    return True


def _rise(whole: Fragment, path: str) -> tuple[Point, Point]:
    """Return the first piece of the wire that goes up from a block."""
    x, top = _top(whole, path)
    ends = (wire.points[:2] for wire in whole.pieces.wires if wire.source == path)
    return next((a, b) for a, b in ends if a[1] == top and b[0] == a[0] == x)


def _width(one: SkipBlock, typography: Typography) -> float:
    return max(MIN_COLUMN_WIDTH, needed(one.leaf, typography, narrow=True))


def _top(found: Fragment, path: str) -> Point:
    """Return the middle of the upper end of a block."""
    area = _area(found, path)
    return (area.left + area.right) / 2, area.top


def _area(found: Fragment, path: str) -> Area:
    """Return what a block or a merge covers."""
    things: list[Box | MergeCircle] = [*found.pieces.boxes, *found.pieces.merges]
    return next(thing.area for thing in things if thing.about.path == path)
