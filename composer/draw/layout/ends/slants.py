"""Boxes that give fewer or more places than they read: narrower, or wider, toward where the stream leaves, as in papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from composer.draw.geometry import Area, Point
from composer.draw.scene import LEVEL, UPRIGHT, Box, Direction, Scene, Side, Slant, WirePath

MOST, LEAST = 12.0, 3.0
"""How far the corners of the narrower side stand back: as far as what is written in the box has room for; and at least."""
SHARE, TALL = 0.2, 0.25
"""Of a level side, what may stand back at either end at most; and of an upright one, since boxes are low."""
FREE, ABOVE = 5.0, 1.0
"""Between a slanted side and what is written beside it; and what is written above or below it, where few letters reach as far as
their line.
"""
CORNER = 9.0
"""From the end of the narrower side to a wire there, which is to meet it where it is straight."""
ON = 1.0
"""So near to a border, a wire ends there."""
OPPOSITE: Mapping[Side, Side] = {"top": "bottom", "bottom": "top", "left": "right", "right": "left"}


def with_slants(scene: Scene) -> Scene:
    """Return a drawing in which boxes that change the number of places have slanted sides, and wires end at these."""
    boxes, wires = slanted(scene.boxes, scene.wires, scene.direction)
    return replace(scene, boxes=tuple(boxes), wires=tuple(wires))


def slanted(
    boxes: Sequence[Box], wires: Sequence[WirePath], direction: Direction = "up"
) -> tuple[Sequence[Box], Sequence[WirePath]]:
    """Return boxes with slanted sides where they have such, and wires that end at these, of a drawing whose stream runs to a
    direction.
    """
    if not any(box.places for box in boxes):
        return boxes, wires
    found = [_with_slant(box, wires, direction) if box.places else box for box in boxes]
    leaning = [box for box in found if box.slant]
    return found, [_led(wire, leaning) for wire in wires]


def _with_slant(box: Box, wires: Sequence[WirePath], direction: Direction) -> Box:
    """Return a box with its slanted sides."""
    area = box.area
    into = sorted((wire for wire in wires if wire.target == box.about.path), key=_first_port)
    comes = [side_of(wire.points[-1], area) for wire in into]
    goes = [(wire.points[0], side_of(wire.points[0], area)) for wire in wires if wire.source == box.about.path]
    leaves = _leaves_at([side for side in comes if side], [side for _, side in goes if side], direction)
    toward = leaves if box.places == "fewer" else OPPOSITE[leaves]
    ends = [wire.points[end] for wire in wires for end in (0, -1)]
    met = [Area(*point, *point) for point in ends if side_of(point, area) == toward]
    written = [*(text.area for text in box.texts), *(icon.area for icon in box.icons)]
    most, free = (SHARE * box.width, FREE) if toward in UPRIGHT else (TALL * box.height, ABOVE)
    rooms = [*(_room(one, area, toward, free) for one in written), *(_room(one, area, toward, CORNER) for one in met)]
    return replace(box, slant=Slant(toward, max(min([MOST, most, *rooms]), min(LEAST, most))))


def _first_port(wire: WirePath) -> tuple[bool, bool]:
    """Return a key that sorts what comes into a box, its stream first."""
    return bool(wire.port), wire.style != "main"


def _leaves_at(comes: Sequence[Side], goes: Sequence[Side], direction: Direction) -> Side:
    """Return the side of a box at which its stream leaves, given where wires come in and go out: opposite of where it comes in,
    rather along the stream of the drawing than across it.
    """
    for sides in (UPRIGHT, LEVEL) if direction == "up" else (LEVEL, UPRIGHT):
        found = [*(OPPOSITE[side] for side in comes if side in sides), *(side for side in goes if side in sides)]
        if found:
            return found[0]
    return UPRIGHT[0] if direction == "up" else LEVEL[0]


def side_of(point: Point, area: Area) -> Side | None:
    """Return the side of a rectangle that a point is on; none for one that is not on its border."""
    (x, y), around = point, area.grown(ON)
    if not (around.left <= x <= around.right and around.top <= y <= around.bottom):
        return None
    far: dict[Side, float] = {"bottom": area.bottom - y, "top": y - area.top, "left": x - area.left, "right": area.right - x}
    nearest = min(far, key=far.__getitem__)
    return nearest if far[nearest] <= ON else None


def _room(inner: Area, area: Area, toward: Side, free: float) -> float:
    """Return how far the corners of a side of a rectangle may stand back so that something inside is free of the border."""
    if toward in UPRIGHT:
        beside, whole = min(inner.left - area.left, area.right - inner.right), area.bottom - area.top
        reach = area.bottom - inner.top if toward == "top" else inner.bottom - area.top
    else:
        beside, whole = min(inner.top - area.top, area.bottom - inner.bottom), area.right - area.left
        reach = area.right - inner.left if toward == "left" else inner.right - area.left
    return (beside - free) * whole / reach if reach > 0 else MOST


def _led(wire: WirePath, boxes: Sequence[Box]) -> WirePath:
    """Return a wire that goes on to the slanted sides of the boxes that it meets."""
    points = list(wire.points)
    for end in (0, -1):
        for box in boxes:
            side = side_of(wire.points[end], box.area)
            if side is not None:
                points[end] = border(box, side, wire.points[end])
    return wire if points == list(wire.points) else wire.through(points)


def border(box: Box, side: Side, point: Point) -> Point:
    """Return where the border of a box is, at a side, level with a point or straight above or below it."""
    along = 0 if side in UPRIGHT else 1
    at, across = point[along], 1 - along
    corners = box.corners
    met: list[float] = []
    for one, other in pairwise((*corners, corners[0])):
        low, high = sorted((one[along], other[along]))
        if low <= at <= high:
            share = (at - one[along]) / (other[along] - one[along]) if high > low else 0.0
            met.append(one[across] + share * (other[across] - one[across]))
    if not met:
        return point
    found = min(met) if side in ("top", "left") else max(met)
    return (at, found) if along == 0 else (found, at)
