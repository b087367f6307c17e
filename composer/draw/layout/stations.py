"""Blocks as boxes and circles with what stands beside them: each with the points where wires begin and end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from blocks.core import Look, SideLook
from composer.draw.diagram import Leaf
from composer.draw.edges import DiagramEdge
from composer.draw.geometry import Point, Text
from composer.draw.layout.boxes import MIN_SIDE_WIDTH, box, box_height, needed
from composer.draw.layout.ends.port_names import NO_NAMES, name_beside, name_of_state, room_beside
from composer.draw.layout.fragment import Fragment, upright, widen
from composer.draw.layout.outgoing_edges import SLOT, OutgoingEdge, called_at, draw_outgoing, past_cards, room, side_height
from composer.draw.layout.references import SIDE_GAP, incoming_reference
from composer.draw.scene import CARD_ROOM, RADIUS, MergeCircle, Style, WirePath
from composer.draw.style.typography import Typography

APART = 8.0
"""Between things above each other at a side: so little that they belong to one block."""
JOIN, JOINS = 16.0, 8.0
"""From a border, or the name at the end of a loop, to where what it starts with joins it: an arrowhead of 7 and some line; and
from there to where more does.
"""
SAID_GAP, HEAD_ROOM = 3.0, 8.0
"""Between a small box and what is written above its wire; of the usual length of such a wire, what the text may take."""


@dataclass(frozen=True, slots=True)
class WiredInput:
    """What acts on a block by a wire, which somebody else draws up to here."""

    edge: DiagramEdge


@dataclass(frozen=True, slots=True)
class NamedInput:
    """What acts on it from far away, and is called by its name."""

    edge: DiagramEdge


@dataclass(frozen=True, slots=True)
class SideBox:
    """A small box that acts on it."""

    leaf: Leaf
    port: str = ""
    """Of the block."""
    style: Style = "side"
    reads: tuple[DiagramEdge, ...] = ()
    """What it reads itself, by name."""
    said: str = ""
    """What is written above its wire."""
    place: str = ""
    """Which it is of the values that the block reads in an order."""


SideInput: TypeAlias = WiredInput | NamedInput | SideBox


@dataclass(frozen=True, slots=True)
class Incoming:
    """What comes in at the sides of an item, by how it comes."""

    side_inputs: list[SideInput]
    """Small boxes."""
    references: list[NamedInput]
    far: list[WiredInput]
    """Wires from other columns, from around this one, and from above."""
    lanes: list[WiredInput]
    """Wires from this column, and those that leave a block around it at its side."""


def own_side(item: Leaf, side: SideLook, references: Sequence[NamedInput]) -> SideBox:
    """Return what a block has beside it by itself, such as rotary positions."""
    path = f"{item.about.path}.{side.name}"
    about = replace(item.about, path=path, tip=side.words, parameters=item.about.parameters if side.learned else 0)
    leaf = Leaf(about, Look(side.title, side.facts, side.hue), item.params if side.learned else "")
    return SideBox(leaf, reads=tuple(reference.edge for reference in references))


def circle(
    leaf: Leaf,
    typography: Typography,
    lefts: Sequence[SideInput] = (),
    rights: Sequence[SideInput] = (),
    names: Mapping[DiagramEdge, str] = NO_NAMES,
) -> Fragment:
    """Return a merge, with at most one thing at each side, what that starts with if it is a loop, and `names` of what comes in
    there at the ends of the wires.
    """
    assert leaf.look.sign is not None
    found = Fragment(left=RADIUS, right=RADIUS, height=2 * RADIUS, top=-2 * RADIUS)
    found.pieces.merges.append(MergeCircle(leaf.about, 0, -RADIUS, leaf.look.sign))
    for side, inputs in ((-1, lefts), (1, rights)):
        joins = [one for one in reversed(inputs) if one in joined_loops(inputs)]
        heights = [-RADIUS - SLOT * (joins.index(one) + 1 if one in joins else 0) for one in inputs]
        _put_level(found, leaf, inputs, names, heights, side, RADIUS, typography)
    upright(found)
    return found


def block(
    leaf: Leaf,
    width: float,
    typography: Typography,
    lefts: Sequence[SideInput] = (),
    rights: Sequence[SideInput] = (),
    outgoing: Sequence[OutgoingEdge] = (),
    *,
    names: Mapping[DiagramEdge, str] = NO_NAMES,
    narrow: bool = False,
) -> Fragment:
    """Return a box with what stands at both sides, and `names` of what comes in there at the ends of the wires."""
    rooms = [
        *(height_of(side_input, typography) + APART for side_input in rights),
        *(room(out_edge, typography) for out_edge in outgoing),
    ]
    height = max(box_height(leaf, typography, narrow=narrow), SLOT * len(lefts) + 6, sum(rooms) - SLOT + 20 if rooms else 0)
    if len(lefts) > 2 and isinstance(lefts[0], SideBox):
        height = max(height, 2 * (17 + SLOT * (len(lefts) - 2)))  # names come in below the box that stands level
    found = Fragment(left=width / 2, right=width / 2, height=height, top=-height)
    found.pieces.boxes.append(box(leaf, 0, 0, width, height, typography, narrow=narrow))
    _stack(found, leaf, lefts, names, width / 2, height, typography)
    places = stacked(rooms, -height / 2)
    _put_level(found, leaf, rights, names, places[: len(rights)], 1, width / 2, typography)
    for out_edge, y in zip(outgoing, places[len(rights) :], strict=True):
        start = past_cards(((width / 2, y),), leaf.parallel)
        draw_outgoing(found, out_edge, start, typography, called_at(out_edge, leaf.about.path))
    upright(found)
    if leaf.parallel:
        widen(found, 1, width / 2 + CARD_ROOM)
        found.height = max(found.height, height + CARD_ROOM)
    return found


def stacked(rooms: Sequence[float], middle: float) -> list[float]:
    """Return the middles of things of some heights, one below the other around a middle."""
    y, places = middle - sum(rooms) / 2, []
    for high in rooms:
        places.append(y + high / 2)
        y += high
    return places


def height_of(side_input: SideInput, typography: Typography) -> float:
    """Return its height; names stand as far apart as the wires into a box, also those of what a small box reads."""
    if not isinstance(side_input, SideBox):
        return SLOT - APART
    return side_height(side_input.leaf, len(side_input.reads), typography)


def named_inputs(inputs: Sequence[SideInput], names: Mapping[DiagramEdge, str]) -> dict[SideInput, str]:
    """Return the names of what comes in at a side by wires, and by names of its own; a loop that something joins has that of a
    state where it joins, and what does has none.
    """
    joined = joined_loops(inputs)
    states: dict[SideInput, str] = {loop: name_of_state(loop.edge) for loop in joined.values() if name_of_state(loop.edge)}
    wired = (one for one in inputs if not isinstance(one, SideBox) and one not in joined)
    return {**states, **{one: names[one.edge] for one in wired if one.edge in names}}


def lengthened(side: int, way: tuple[Point, ...], by: float) -> tuple[Point, ...]:
    """Return the way in from a side that has a longer level piece before the border."""
    *before, (border, y) = way
    if not by:
        return way
    return (*((x + side * by, at) for x, at in before), *([(border + side * by, y)] if len(way) == 2 else []), (border, y))


def _put_level(
    found: Fragment,
    leaf: Leaf,
    inputs: Sequence[SideInput],
    names: Mapping[DiagramEdge, str],
    heights: Sequence[float],
    side: int,
    border: float,
    typography: Typography,
) -> None:
    """Place things at a side, each at the height where its wire ends, with `names` above the ends of the wires."""
    if not inputs:
        return
    named = named_inputs(inputs, names)
    longer = room_beside(named.values(), typography)
    widen(found, side, border + longer)
    joins = _put_joins(found, inputs, heights, side, border + longer, typography)
    for side_input, y in zip(inputs, heights, strict=True):
        if side_input in joins:
            continue
        _put(found, leaf, side_input, side, lengthened(side, straight(side, y, border), longer), typography)
        if side_input in named:
            found.pieces.texts.append(name_beside(named[side_input], side, border, y, typography))


def _stack(
    found: Fragment,
    leaf: Leaf,
    inputs: Sequence[SideInput],
    names: Mapping[DiagramEdge, str],
    border: float,
    height: float,
    typography: Typography,
) -> None:
    """Place things above each other at the left, each with its own wire into the box, or one that joins the loop below it."""
    if not inputs:
        return
    side, named = -1, named_inputs(inputs, names)
    sizes = [height_of(side_input, typography) for side_input in inputs]
    total = sum(sizes) + APART * (len(sizes) - 1)
    step = min(SLOT, (height - 14) / max(len(sizes) - 1, 1))
    y = -height / 2 - total / 2
    boxes = [index for index, side_input in enumerate(inputs) if isinstance(side_input, SideBox)]
    if boxes == [0] and sizes[0] <= height + 1:
        y = -height / 2 - sizes[0] / 2  # one box stands level with the block, names below it
    middles = [y + sum(sizes[:index]) + APART * index + size / 2 for index, size in enumerate(sizes)]
    half = (len(sizes) - 1) / 2
    targets = [-height / 2 + step * (index - half) for index in range(len(sizes))]
    if boxes == [0]:
        targets[1:] = [-7 - SLOT * (len(sizes) - 1 - index) for index in range(1, len(sizes))]
    level = [index for index in boxes if abs(middles[index] + height / 2) < height / 2 - 7]
    targets = going_straight(targets, {index: middles[index] for index in level}, step, height)
    turns = turning_off(middles, targets)
    found.named = longer = room_beside(named.values(), typography)
    widen(found, side, border + longer)
    joins = _put_joins(found, inputs, targets, side, border + longer, typography)
    for side_input, middle, target, turn in zip(inputs, middles, targets, turns, strict=True):
        if side_input in joins:
            continue
        way = lengthened(side, turning(side, middle, target, border, border + turn), longer)
        if isinstance(side_input, SideBox):  # no wire of another goes over it
            way = ((side * max(abs(way[0][0]), border + longer + max(turns) + 2), middle), *way[1:])
        if side_input in named:
            found.pieces.texts.append(name_beside(named[side_input], side, border, target, typography))
        _put(found, leaf, side_input, side, way, typography)


def _put_joins(
    found: Fragment, inputs: Sequence[SideInput], heights: Sequence[float], side: int, border: float, typography: Typography
) -> Collection[SideInput]:
    """Write what loops at a side start with, each at its height, with a wire to the loop that ends beside a border or what stands
    there; return these.
    """
    joined = joined_loops(inputs)
    if not joined:
        return ()
    begun = Counter[WiredInput]()
    at = {one: y for one, y in zip(inputs, heights, strict=True) if not isinstance(one, SideBox)}
    for start, loop in joined.items():
        x = side * (border + JOIN + JOINS * begun[loop])
        begun[loop] += 1
        way = ((x, at[start]), (x, at[loop]))
        area = incoming_reference(found, start.edge, start.edge.source.reference, side, at[start], way, typography, joins=True)
        widen(found, side, area.reach(side))
    return joined


def joined_loops(inputs: Sequence[SideInput]) -> dict[NamedInput, WiredInput]:
    """Return which loop each name joins that says what the loop starts with, of things above each other at a side: the nearest
    below it. Beside small boxes, wires turn, and none joins another.
    """
    loops = [one for one in inputs if isinstance(one, WiredInput) and one.edge.back]
    if not loops or any(isinstance(one, SideBox) for one in inputs):
        return {}
    found = ((one, loop) for one in inputs if isinstance(one, NamedInput) for loop in loops if one.edge.begins(loop.edge))
    return dict(found)


def starts_of(references: Sequence[NamedInput], wires: Sequence[WiredInput]) -> tuple[Sequence[NamedInput], Sequence[NamedInput]]:
    """Return those of some names that say what loops among wires start with, and the others."""
    loops = [one.edge for one in wires if one.edge.back]
    if not loops:
        return [], references
    starts = [one for one in references if any(one.edge.begins(loop) for loop in loops)]
    return starts, [one for one in references if one not in starts]


def in_pairs(
    references: Sequence[NamedInput], wires: Sequence[WiredInput], order: Callable[[WiredInput], float]
) -> list[SideInput]:
    """Return names and wires from above, each loop just below what it starts with: first what starts none, then wires from
    elsewhere, and loops in an order.
    """
    loops = [one for one in wires if one.edge.back]
    if not loops:
        return [*references, *wires]
    loops.sort(key=order)
    begun: dict[WiredInput, list[NamedInput]] = {
        loop: [one for one in references if one.edge.begins(loop.edge)] for loop in loops
    }
    found: list[SideInput] = [one for one in references if not any(one in starts for starts in begun.values())]
    others = [one for one in wires if not one.edge.back]
    last = {loop: one for one in others for loop in loops if one.edge.begins(loop.edge)}
    for wire in others:
        found.append(wire)
        for loop in (one for one in loops if last.get(one) is wire):
            found += [*begun.pop(loop), loop]
    for loop, starts in begun.items():
        found += [*starts, loop]
    return found


def turning_off(middles: Sequence[float], targets: Sequence[float]) -> list[float]:
    """Return how far from a border wires turn up or down, from one height to another: each nearer to it than those that it goes
    toward.
    """
    ways = [
        0 if abs(target - middle) < 0.5 else 1 if target > middle else -1 for middle, target in zip(middles, targets, strict=True)
    ]
    ranks = [ways[:index].count(1) if way > 0 else ways[index + 1 :].count(-1) for index, way in enumerate(ways)]
    return [12.0 + 6 * rank if way else 0.0 for way, rank in zip(ways, ranks, strict=True)]


def going_straight(targets: Sequence[float], level: Mapping[int, float], step: float, height: float) -> list[float]:
    """Return where wires end at a border: some go straight in, wherever they can, and the others above or below them."""
    found = [level.get(index, target) for index, target in enumerate(targets)]
    for index in range(1, len(found)):
        found[index] = found[index] if index in level else max(found[index], found[index - 1] + step)
    for index in reversed(range(len(found) - 1)):
        found[index] = found[index] if index in level else min(found[index], found[index + 1] - step)
    fits = all(-height + 6 <= y <= -6 for y in found) and all(a < b for a, b in pairwise(found))
    return found if fits else [*targets]


def straight(side: int, y: float, border: float) -> tuple[Point, ...]:
    """Return the way in from a side."""
    return (side * (border + SIDE_GAP), y), (side * border, y)


def turning(side: int, y: float, target: float, border: float, turn: float) -> tuple[Point, ...]:
    """Return the way in from a side at one height to the border at another; it turns beside the block."""
    start = side * border + side * (SIDE_GAP + (turn - border if y != target else 0))
    bend: tuple[Point, ...] = () if abs(y - target) < 0.5 else ((side * turn, y), (side * turn, target))
    return (start, y), *bend, (side * border, target)


def _put(found: Fragment, leaf: Leaf, side_input: SideInput, side: int, way: tuple[Point, ...], typography: Typography) -> None:
    """Place one thing at a side, at the start of its way to the block."""
    match side_input:
        case WiredInput(edge):
            found.ends[edge] = way if len(way) > 2 else way[-1:]
        case NamedInput(edge):
            widen(
                found,
                side,
                incoming_reference(found, edge, edge.source.reference, side, way[0][1], way[1:], typography).reach(side),
            )
        case SideBox():
            _put_small(found, leaf, side_input, side, way, typography)


def _put_small(found: Fragment, leaf: Leaf, small: SideBox, side: int, way: tuple[Point, ...], typography: Typography) -> None:
    """Place a small box with its wire, and the names of what it reads at its other side."""
    start, y = way[0]
    if small.said:
        said = Text(0, y - 3, small.said, "port", "start" if side < 0 else "end", typography.scale)
        start += side * (said.area.right - said.area.left - HEAD_ROOM)
        found.pieces.texts.append(said.moved(start - side * SAID_GAP, 0))
        way = ((start, y), *way[1:])
    width, height = max(MIN_SIDE_WIDTH, needed(small.leaf, typography, narrow=True)), height_of(small, typography)
    found.pieces.boxes.append(box(small.leaf, start + side * width / 2, y + height / 2, width, height, typography, narrow=True))
    reach = abs(start) + width
    for number, edge in enumerate(small.reads):
        at = y + SLOT * (number - (len(small.reads) - 1) / 2)
        reach = max(
            reach, incoming_reference(found, edge, edge.named, side, at, ((start + side * width, at),), typography).reach(side)
        )
    found.pieces.wires.append(WirePath(small.leaf.about.path, leaf.about.path, way, small.port, small.style, place=small.place))
    widen(found, side, reach)
