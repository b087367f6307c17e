"""Wires between two ranks: where they come in above, and how high each turns off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from composer.draw.edges import DiagramEdge
from composer.draw.geometry import Point
from composer.draw.layout.fragment import Fragment
from composer.draw.scene import RADIUS, Dot

APART = 7.0
"""Between wires that stand side by side: one arrowhead, so that theirs do not touch."""
SIDE = 20.0
"""From the middle of a circle to a wire that comes in at its side: its radius of 9 pixels, and room for the arrowhead."""


@dataclass(slots=True)
class RankNode:
    """A place in a rank: a block, or a wire on its way."""

    net: str
    """The block whose value starts or passes here."""
    width: float
    fragment: Fragment | None = None
    x: float = 0.0
    label: str = ""
    """The shape of what the block gives."""


@dataclass(frozen=True, slots=True)
class Pin:
    """Where a wire comes in from below."""

    net: str
    x: float
    edge: DiagramEdge | None
    """None for a wire that only passes."""
    end: tuple[Point, ...] = ()
    """How it goes on from the height of the block's foot, seen from there."""


def into(rank_node: RankNode, edges: Sequence[DiagramEdge], start: Mapping[str, float]) -> Iterator[Pin]:
    """Yield the wires into one block: below a box, wherever it can be reached straight; at three points of a circle."""
    assert rank_node.fragment is not None
    if rank_node.fragment.pieces.merges:
        straight = next((e for e in edges if len(edges) == 1 or abs(start[e.source.own_name] - rank_node.x) < 1), None)
        if straight is None and len(edges) == 3:
            straight = edges[1]
        if straight is None and (rank_node.fragment.pieces.wires or rank_node.fragment.ends):
            straight = edges[0]
        rest = [e for e in edges if e is not straight]
        if straight is not None:
            yield Pin(straight.source.own_name, rank_node.x, straight)
        if rank_node.fragment.pieces.wires or rank_node.fragment.ends:
            sides: tuple[int, ...] = (1,)  # something stands at the left
        else:
            sides = (-1, 1) if len(rest) == 2 or not rest or start[rest[0].source.own_name] < rank_node.x else (1,)
        for side, edge in zip(sides, rest, strict=False):
            below = start[edge.source.own_name]
            straight_up = SIDE - APART <= side * (below - rank_node.x) <= SIDE + APART
            x = below if straight_up else next(x for x in outwards(rank_node.x, side) if clear(x, edge.source.own_name, start))
            yield Pin(edge.source.own_name, x, edge, ((x, -RADIUS), (rank_node.x + side * RADIUS, -RADIUS)))
        return
    half = rank_node.fragment.pieces.boxes[0].width / 2 - 2 * APART
    left, taken = rank_node.x - half, list[float]()
    for number, edge in enumerate(edges):
        least = taken[-1] + 2 * APART if taken else left
        most = rank_node.x + half - 2 * APART * (len(edges) - 1 - number)
        below = start[edge.source.own_name]
        alone = len(edges) == 1 and abs(below - rank_node.x) > half / 2
        wanted = rank_node.x if alone else min(max(below, least), most)
        x = next((x for x in around(wanted) if least <= x <= most and clear(x, edge.source.own_name, start)), wanted)
        taken.append(x)
        yield Pin(edge.source.own_name, x, edge)


def forks(start: Mapping[str, float], pins: Sequence[Pin], tracks: Mapping[str, float]) -> Iterator[Dot]:
    """Yield dots where a value goes three ways."""
    for net, low in start.items():
        ups = {pin.x for pin in pins if pin.net == net}
        xs = ups | {low}
        if net in tracks:
            for x in sorted(xs):
                if (x == low) + (x in ups) + (x > min(xs)) + (x < max(xs)) > 2:
                    yield Dot(x, tracks[net])


def around(x: float) -> Iterator[float]:
    """Yield the places beside a place, the nearest first."""
    yield from (x + sign * step * APART / 2 for step in range(200) for sign in (1, -1))


def outwards(x: float, side: int) -> Iterator[float]:
    """Yield the places at one side of a circle."""
    yield from (x + side * (SIDE + step * APART / 2) for step in range(200))


def clear(x: float, net: str, start: Mapping[str, float]) -> bool:
    """Return whether no other value rises from just below."""
    return all(abs(x - other) >= APART - 1 for name, other in start.items() if name != net)


def assigned(start: Mapping[str, float], pins: Sequence[Pin]) -> dict[str, int]:
    """Return the height, counted from below, of each value that turns between two ranks: where one rises
    above another's end, lower.
    """
    ends: dict[str, list[float]] = {}
    for pin in pins:
        ends.setdefault(pin.net, [start[pin.net]]).append(pin.x)
    spans = {net: (min(xs), max(xs)) for net, xs in ends.items() if max(xs) > min(xs)}
    lower = {
        net: {pin.net for pin in pins if pin.net != net and abs(pin.x - start[net]) < APART - 1 and pin.net in spans}
        for net in spans
    }
    found: dict[str, int] = {}
    left = sorted(spans, key=lambda net: (spans[net][1] - spans[net][0], net))
    while left:
        free = [net for net in left if not any(net in lower[other] for other in left if other != net)]
        net = (free or left)[0]
        left.remove(net)
        number = 1 + max((found[other] for other in found if net in lower[other]), default=-1)
        (low, high) = spans[net]
        while any(found[other] == number and spans[other][0] < high + APART and low < spans[other][1] + APART for other in found):
            number += 1
        found[net] = number
    return found
