"""Wires between two ranks: where they come in above, and how high each turns off."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from composer.draw.edges import DiagramEdge
from composer.draw.geometry import Point
from composer.draw.layout.ends.places import in_order
from composer.draw.layout.fragment import Fragment, shift
from composer.draw.passes.layers import ItemLink
from composer.draw.scene import RADIUS, Dot

APART = 7.0
"""Between wires that stand side by side: one arrowhead, so that theirs do not touch."""
NUMBERED = 20.0
"""The same with a number between them."""
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
    shapes: Mapping[str, str] = field(default_factory=dict)
    """Of a box that several streams go through, the shape of each."""
    kept: str = ""
    """The shape of what the block gives where this is that of what it reads, and is not said above it."""
    first: str = ""
    """What its first output is called, which stands beside that where others leave above too."""
    circle: bool = False
    """Whether it is a merge, which wires reach from below and at both sides."""
    framed: bool = False
    """Whether a wire from below goes on inside of it."""
    losses: float = 0.0
    """How much higher it is by the losses above it."""
    enter: Mapping[DiagramEdge, float] = field(default_factory=dict)
    """How far from its middle wires go up that come in at a side."""
    leave: Mapping[str, float] = field(default_factory=dict)
    """How far from its middle values go up that leave at a side."""
    below: Mapping[str, float] = field(default_factory=dict)
    """How far from its middle values come in from below, where there are several passages."""
    above: Mapping[str, float] = field(default_factory=dict)
    """How far from its middle they go out above."""
    ways: Mapping[DiagramEdge, float] = field(default_factory=dict)
    """Of a box that several streams go through, how far from its middle they come in from below."""
    tops: Mapping[str, float] = field(default_factory=dict)
    """How far from its middle they go out above."""
    line: str = ""
    """What all have in common that the same streams go through, which stand above each other."""
    names: Mapping[DiagramEdge, float] = field(default_factory=dict)
    """How much room the names of values take that stand right of the wires which come in from below."""

    @property
    def box_width(self) -> float:
        """The width of its box; 0 where it has none of its own."""
        return self.fragment.pieces.boxes[0].width if self.fragment and self.fragment.pieces.boxes else 0.0

    def move_aside(self, by: float) -> None:
        """Move what stands here beside its middle, and where all comes in and goes out, and keep room at both sides."""
        assert self.fragment is not None
        fragment = self.fragment
        shift(fragment, by, 0)
        fragment.left, fragment.right = fragment.left - by, fragment.right + by
        self.below = {port: x + by for port, x in self.below.items()}
        self.above = {net: x + by for net, x in self.above.items()}
        self.ways = {edge: x + by for edge, x in self.ways.items()}
        self.tops = {net: x + by for net, x in self.tops.items()}
        self.enter = {edge: x + by for edge, x in self.enter.items()}
        self.leave = {net: x + by for net, x in self.leave.items()}
        self.width += 2 * abs(by)

    def comes_in(self, edge: DiagramEdge) -> float | None:
        """Return how far from its middle a value comes in from below; none where it is not one of several streams."""
        return self.below.get(edge.passage, 0.0) if len(self.below) > 1 else self.ways.get(edge)

    def goes_out(self, net: str) -> float | None:
        """Return how far from its middle a value goes out above; none where it is not one of several streams."""
        return self.above.get(net) if max(len(self.above), len(self.below)) > 1 else self.tops.get(net)

    @property
    def body(self) -> float:
        """How high the block is by itself."""
        return self.fragment.height - self.losses if self.fragment is not None else 0.0


@dataclass(frozen=True, slots=True)
class Pin:
    """Where a wire comes in from below."""

    net: str
    x: float
    edge: DiagramEdge | None
    """None for a wire that only passes."""
    end: tuple[Point, ...] = ()
    """How it goes on from the height of the block's foot, seen from there."""
    named: bool = False
    """Whether what the block calls it stands beside its end."""


def into(
    rank_node: RankNode, links: Sequence[ItemLink], start: Mapping[str, float], level: Collection[int] = ()
) -> Iterator[Pin]:
    """Yield the wires into one block: below a box, wherever it can be reached straight; at three points of a circle, but not at
    the sides that `level` wires have.
    """
    assert rank_node.fragment is not None
    for link in links:
        if link.edge in rank_node.enter:
            yield Pin(link.net, rank_node.x + rank_node.enter[link.edge], link.edge)
        elif link.edge in rank_node.ways:
            yield Pin(link.net, rank_node.x + rank_node.ways[link.edge], link.edge, named=link.edge in rank_node.names)
        elif rank_node.framed:
            yield Pin(link.net, rank_node.x + rank_node.below.get(link.edge.passage, 0.0), link.edge)
    apart = {*rank_node.enter, *rank_node.ways}
    links = [link for link in links if link.edge not in apart and not rank_node.framed]
    if rank_node.circle:
        straight = next((link for link in links if len(links) == 1 or abs(start[link.net] - rank_node.x) < 1), None)
        if straight is None and len(links) == 3:
            straight = links[1]
        if straight is None and links and (level or rank_node.fragment.pieces.wires or rank_node.fragment.ends):
            straight = links[0]
        rest = [link for link in links if link is not straight]
        if straight is not None:
            yield Pin(straight.net, rank_node.x, straight.edge)
        if rank_node.fragment.pieces.wires or rank_node.fragment.ends:
            sides: tuple[int, ...] = (1,)  # something stands at the left
        elif level:
            sides = tuple(side for side in (-1, 1) if side not in level)
        else:
            sides = (-1, 1) if len(rest) == 2 or not rest or start[rest[0].net] < rank_node.x else (1,)
        for side, link in zip(sides, rest, strict=False):
            below = start[link.net]
            straight_up = SIDE - APART <= side * (below - rank_node.x) <= SIDE + APART
            x = below if straight_up else next(x for x in outwards(rank_node.x, side) if clear(x, link.net, start))
            yield Pin(link.net, x, link.edge, ((x, -RADIUS), (rank_node.x + side * RADIUS, -RADIUS)))
        return
    if not links:
        return
    half = rank_node.fragment.pieces.boxes[0].width / 2 - 2 * APART
    plain = below_box(rank_node.x, half, links, start, [2 * APART] * len(links))
    least = 2 * APART if in_order([link.edge.place for link in links]) and not rank_node.enter else NUMBERED
    rooms = [max(least, rank_node.names.get(link.edge, 0.0)) for link in links]
    named = below_box(rank_node.x, half, links, start, rooms)
    kept = [x for x, link in zip(plain, links, strict=True) if x == start[link.net] and not rank_node.names.get(link.edge)]
    has_room = sum(rooms) <= 2 * half + 2 * APART and {*kept} <= {*named}
    for x, link in zip(named if has_room else plain, links, strict=True):
        yield Pin(link.net, x, link.edge, named=has_room and link.edge in rank_node.names)


def below_box(
    middle: float, half: float, links: Sequence[ItemLink], start: Mapping[str, float], rooms: Sequence[float]
) -> list[float]:
    """Return where wires come in below a box that reaches so far from its middle, each with some room right of it."""
    taken: list[float] = []
    for number, link in enumerate(links):
        least = taken[-1] + rooms[number - 1] if taken else middle - half
        most = middle + half + 2 * APART - sum(rooms[number:])
        below = start[link.net]
        alone = len(links) == 1 and abs(below - middle) > half / 2
        wanted = middle if alone else min(max(below, least), most)
        taken.append(next((x for x in around(wanted) if least <= x <= most and clear(x, link.net, start)), wanted))
    return taken


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
    """Return the height, counted from below, of each value that turns between two ranks: where one rises above another's end,
    lower; then so that few cross, and short ones low.
    """
    ends: dict[str, list[float]] = {}
    for pin in pins:
        ends.setdefault(pin.net, []).append(pin.x)
    spans = {net: (min(start[net], *xs), max(start[net], *xs)) for net, xs in ends.items()}
    spans = {net: (low, high) for net, (low, high) in spans.items() if high > low}
    lower = {
        net: {pin.net for pin in pins if pin.net != net and abs(pin.x - start[net]) < APART - 1 and pin.net in spans}
        for net in spans
    }

    def crossings(net: str, above: str) -> int:
        """Return how often a value crosses one that turns above it."""
        (low, high), (left, right) = spans[net], spans[above]
        return sum(left < x < right for x in ends[net]) + (low < start[above] < high)

    def worse(net: str, left: Sequence[str]) -> int:
        """Return how many more crossings there are with a value below others than above them."""
        return sum(crossings(net, other) - crossings(other, net) for other in left if other != net)

    found: dict[str, int] = {}
    left = sorted(spans, key=lambda net: (spans[net][1] - spans[net][0], net))
    while left:
        free = [net for net in left if not any(net in lower[other] for other in left if other != net)]
        net = min(free or left, key=lambda net: worse(net, left)) if len(left) > 1 else left[0]
        left.remove(net)
        number = 1 + max((found[other] for other in found if net in lower[other]), default=-1)
        (low, high) = spans[net]
        while any(found[other] >= number and spans[other][0] < high + APART and low < spans[other][1] + APART for other in found):
            number += 1
        found[net] = number
    return found
