"""The areas of elements on a page, and the candidate positions of badges beside them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from composer.diff.figure.places import PassCount, Spot
from composer.draw.geometry import Area, Point
from composer.draw.scene import Box, Frame, MergeCircle, Reference, Scene, WirePath


def content(scene: Scene) -> Area:
    """Return the area of a drawing without its header."""
    blocks: tuple[Frame | Box | MergeCircle, ...] = (*scene.frames, *scene.boxes, *scene.merges)
    areas = [one.area.grown(8) for one in blocks]
    areas += [reference.text.area.grown(8) for reference in scene.references]
    areas += [tick.area for frame in scene.frames if frame.strip for tick in frame.strip.ticks]
    areas += [Area(one.x, one.y, one.x + one.width, one.y) for one in (frame.strip for frame in scene.frames) if one]
    areas += [Area(x, y, x, y).grown(4) for wire in scene.wires for x, y in wire.points]
    areas += [text.area for text in scene.texts if text.role not in ("heading", "facts")]
    return Area(
        min(one.left for one in areas),
        min(one.top for one in areas),
        max(one.right for one in areas),
        max(one.bottom for one in areas),
    )


def area_of(spot: Spot) -> Area:
    """Return the area of an element."""
    if isinstance(spot, PassCount):
        assert spot.frame.pill is not None
        area = spot.frame.pill.area.grown(9)
        return Area(area.left, spot.frame.pill.y - 14.5, area.right, spot.frame.pill.y + 5.5)
    if isinstance(spot, Reference):
        return spot.text.area
    if isinstance(spot, WirePath):
        xs, ys = zip(*spot.points, strict=True)
        return Area(min(xs), min(ys), max(xs), max(ys))
    return spot.area


def shifted(area: Area, move: Point) -> Area:
    """Return a moved area."""
    return Area(area.left + move[0], area.top + move[1], area.right + move[0], area.bottom + move[1])


def along(spot: Spot, move: Point) -> list[Point]:
    """Return the positions of a badge at an element, the best ones first."""
    if isinstance(spot, WirePath):
        points = [(x + move[0], y + move[1]) for x, y in spot.points]
        longest = sorted(pairwise(points), key=lambda ends: -abs(ends[0][0] - ends[1][0]) - abs(ends[0][1] - ends[1][1]))
        shares = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9)
        return [(a + (c - a) * share, b + (d - b) * share) for (a, b), (c, d) in longest for share in shares]
    area = shifted(area_of(spot), move)
    if isinstance(spot, MergeCircle):
        return [(x, y) for x in (area.left - 18, area.right + 18) for y in (area.bottom + 4, area.top - 4, area.top + 9)]
    if isinstance(spot, Reference):
        middle = (area.left + area.right) / 2
        return [(middle, area.top - 10), (middle, area.bottom + 12), (area.left - 20, area.top + 5)]
    if isinstance(spot, PassCount):
        return [(area.left - 22 - 34 * step, (area.top + area.bottom) / 2) for step in range(4)]
    steps = [area.left + 12 + 34 * step for step in range(int((area.right - area.left) / 34) + 1)]
    above, below = area.top - 3, area.bottom + 3
    corners = [(x, y) for y in (above, below) for x in steps[:2]]
    return [*corners, *((x, y) for y in (above, below) for x in steps[2:])]


def around(place: Point) -> Iterator[Point]:
    """Yield the positions of a badge around a point, the nearest ones first, for elements without room beside them."""
    for far in range(1, 25):
        steps = range(-far, far + 1)
        yield from sorted(
            ((place[0] + 12 * x, place[1] + 9 * y) for x in steps for y in steps if max(abs(x), abs(y)) == far),
            key=lambda other: (abs(other[0] - place[0]) + abs(other[1] - place[1]), other),
        )
