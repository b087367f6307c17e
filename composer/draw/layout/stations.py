"""Blocks as boxes and circles with what stands beside them: each with the points where wires begin and end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from composer.draw.diagram import Leaf
from composer.draw.edges import DiagramEdge
from composer.draw.geometry import Point
from composer.draw.layout.boxes import MIN_SIDE_WIDTH, box, box_height, needed
from composer.draw.layout.fragment import Fragment, upright, widen
from composer.draw.layout.outgoing_edges import SLOT, OutgoingEdge, leave_at, room
from composer.draw.layout.references import SIDE_GAP, incoming_reference
from composer.draw.scene import RADIUS, MergeCircle, Style, WirePath
from composer.draw.style.typography import Typography

APART = 8.0
"""Between things above each other at a side."""


@dataclass(frozen=True, slots=True)
class Wired:
    """What acts on a block by a wire, which somebody else draws up to here."""

    edge: DiagramEdge


@dataclass(frozen=True, slots=True)
class Named:
    """What acts on it from far away, and is called by its name."""

    edge: DiagramEdge


@dataclass(frozen=True, slots=True)
class Small:
    """A small box that acts on it."""

    leaf: Leaf
    port: str = ""
    """Of the block."""
    style: Style = "side"
    reads: tuple[DiagramEdge, ...] = ()
    """What it reads itself, by name."""


Beside: TypeAlias = Wired | Named | Small


def circle(leaf: Leaf, letters: Typography, lefts: Sequence[Beside] = (), rights: Sequence[Beside] = ()) -> Fragment:
    """Return a merge, with at most one thing at each side."""
    assert leaf.look.sign is not None
    found = Fragment(left=RADIUS, right=RADIUS, height=2 * RADIUS, top=-2 * RADIUS)
    found.pieces.merges.append(MergeCircle(leaf.about, 0, -RADIUS, leaf.look.sign))
    for side, besides in ((-1, lefts), (1, rights)):
        for beside in besides:
            _put(found, leaf, beside, side, straight(side, -RADIUS, RADIUS), letters)
    upright(found)
    return found


def block(
    leaf: Leaf,
    width: float,
    letters: Typography,
    lefts: Sequence[Beside] = (),
    rights: Sequence[Beside] = (),
    outgoing: Sequence[OutgoingEdge] = (),
    *,
    narrow: bool = False,
) -> Fragment:
    """Return a box with what stands at both sides."""
    rooms = [*(height_of(beside, letters) + APART for beside in rights), *(room(leave, letters) for leave in outgoing)]
    height = max(box_height(leaf, letters, narrow=narrow), SLOT * len(lefts) + 6, sum(rooms) - SLOT + 20 if rooms else 0)
    if len(lefts) > 2 and isinstance(lefts[0], Small):
        height = max(height, 2 * (17 + SLOT * (len(lefts) - 2)))  # names come in below the box that stands level
    found = Fragment(left=width / 2, right=width / 2, height=height, top=-height)
    found.pieces.boxes.append(box(leaf, 0, 0, width, height, letters, narrow=narrow))
    _stack(found, leaf, lefts, -1, width / 2, height, letters)
    places = stacked(rooms, -height / 2)
    for beside, y in zip(rights, places, strict=False):
        _put(found, leaf, beside, 1, straight(1, y, width / 2), letters)
    for leave, y in zip(outgoing, places[len(rights) :], strict=True):
        leave_at(found, leave, ((width / 2, y),), letters)
    upright(found)
    return found


def stacked(rooms: Sequence[float], middle: float) -> list[float]:
    """Return the middles of things of some heights, one below the other around a middle."""
    y, places = middle - sum(rooms) / 2, []
    for high in rooms:
        places.append(y + high / 2)
        y += high
    return places


def height_of(beside: Beside, letters: Typography) -> float:
    """Return its height; names stand as far apart as the wires into a box."""
    return box_height(beside.leaf, letters, narrow=True) if isinstance(beside, Small) else SLOT - APART


def _stack(
    found: Fragment, leaf: Leaf, besides: Sequence[Beside], side: int, border: float, height: float, letters: Typography
) -> None:
    """Place things above each other at a side, each with its own wire into the box."""
    sizes = [height_of(beside, letters) for beside in besides]
    total = sum(sizes) + APART * (len(sizes) - 1)
    step = min(SLOT, (height - 14) / max(len(sizes) - 1, 1))
    y = -height / 2 - total / 2
    boxes = [index for index, beside in enumerate(besides) if isinstance(beside, Small)]
    if boxes == [0] and sizes[0] <= height + 1:
        y = -height / 2 - sizes[0] / 2  # one box stands level with the block, names below it
    half = (len(sizes) - 1) / 2
    for index, (beside, size) in enumerate(zip(besides, sizes, strict=True)):
        middle = y + size / 2
        target = -height / 2 + step * (index - half)
        if boxes == [0] and index:
            target = -7 - SLOT * (len(sizes) - 1 - index)
        if isinstance(beside, Small) and abs(middle + height / 2) < height / 2 - 7:
            target = middle  # straight in, wherever it can
        rank = len(sizes) - 1 - index if boxes == [0] else min(index, len(sizes) - 1 - index)
        _put(found, leaf, beside, side, turning(side, middle, target, border, border + 12 + 6 * rank), letters)
        y += size + APART


def straight(side: int, y: float, border: float) -> tuple[Point, ...]:
    """Return the way in from a side."""
    return (side * (border + SIDE_GAP), y), (side * border, y)


def turning(side: int, y: float, target: float, border: float, turn: float) -> tuple[Point, ...]:
    """Return the way in from a side at one height to the border at another; it turns beside the block."""
    start = side * border + side * (SIDE_GAP + (turn - border if y != target else 0))
    bend: tuple[Point, ...] = () if abs(y - target) < 0.5 else ((side * turn, y), (side * turn, target))
    return (start, y), *bend, (side * border, target)


def _put(found: Fragment, leaf: Leaf, beside: Beside, side: int, way: tuple[Point, ...], letters: Typography) -> None:
    """Place one thing at a side, at the start of its way to the block."""
    match beside:
        case Wired(edge):
            found.ends[edge] = way if len(way) > 2 else way[-1:]
        case Named(edge):
            widen(
                found, side, incoming_reference(found, edge, edge.source.reference, side, way[0][1], way[1:], letters).reach(side)
            )
        case Small():
            _put_small(found, leaf, beside, side, way, letters)


def _put_small(found: Fragment, leaf: Leaf, small: Small, side: int, way: tuple[Point, ...], letters: Typography) -> None:
    """Place a small box with its wire, and the names of what it reads at its other side."""
    start, y = way[0]
    width, height = max(MIN_SIDE_WIDTH, needed(small.leaf, letters, narrow=True)), height_of(small, letters)
    found.pieces.boxes.append(box(small.leaf, start + side * width / 2, y + height / 2, width, height, letters, narrow=True))
    reach = abs(start) + width
    for number, edge in enumerate(small.reads):
        at = y + SLOT * (number - (len(small.reads) - 1) / 2)
        reach = max(
            reach, incoming_reference(found, edge, edge.named, side, at, ((start + side * width, at),), letters).reach(side)
        )
    found.pieces.wires.append(WirePath(small.leaf.about.path, leaf.about.path, way, small.port, small.style))
    widen(found, side, reach)
