"""Blocks of an irreducible part: Graphviz says which stand beside each other and where, the wires between them are ours."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from composer.draw.diagram import IrregularSubgraph, Leaf
from composer.draw.edges import DiagramEdge
from composer.draw.geometry import Point
from composer.draw.graphviz_programs import Missing, graphviz, pure
from composer.draw.layout.boxes import MIN_COLUMN_WIDTH, needed
from composer.draw.layout.fragment import Fragment, shift, straightened
from composer.draw.layout.stations import NamedInput, block, circle
from composer.draw.passes.series_parallel import ranks
from composer.draw.scene import RADIUS, Dot, WirePath
from composer.draw.style.typography import Typography

TRACK, ARROW, RISE = 9.0, 15.0, 12.0
"""From one horizontal wire to the next, as near as round corners allow; from the highest to the blocks above, a corner of 8
pixels and an arrowhead of 7; from the blocks below to the lowest, a corner and a dot.
"""
APART = 7.0
"""Between wires that stand side by side: one arrowhead, so that theirs do not touch."""
SIDE = 20.0
"""From the middle of a circle to a wire that comes in at its side: its radius of 9 pixels, and room for the arrowhead."""
PASSING = 18.0
"""Width that Graphviz keeps free for a wire that goes past a block: a wire's distance at either side, and what it may be moved.
"""
BENT = 10.0
"""How far a wire on its way may be moved to stay straight: about half of the width that is kept free for it."""
MAX_IRREGULAR_WIDTH = 2400.0
"""Twice the width of a page: shrunk to it, a wider part could not be read, and a column can."""
POINTS = 72.0
"""Of Graphviz to an inch."""

Name = tuple[str, int]
"""A block and its rank; or the value of a block on its way through a rank above it."""


@dataclass(slots=True)
class RankNode:
    """A place in a rank: a block, or a wire on its way."""

    net: str
    """The block whose value starts or passes here."""
    width: float
    fragment: Fragment | None = None
    x: float = 0.0


@dataclass(frozen=True, slots=True)
class Pin:
    """Where a wire comes in from below."""

    net: str
    x: float
    edge: DiagramEdge | None
    """None for a wire that only passes."""
    end: tuple[Point, ...] = ()
    """How it goes on from the height of the block's foot, seen from there."""


def irregular_fragment(item: IrregularSubgraph, typography: Typography) -> Fragment | None:
    """Return the part with its fork below and its join above, both on the spine; none where it is too wide, or our own Graphviz
    is not there, since any other would draw other bytes.
    """
    try:
        found = _Layout(item, typography).fragment() if pure() else None
    except Missing:
        return None
    return found if found is not None and found.left + found.right <= MAX_IRREGULAR_WIDTH else None


class _Layout:
    def __init__(self, item: IrregularSubgraph, typography: Typography) -> None:
        self.item, self.typography = item, typography
        paths = [item.fork.path, *(one.about.path for one in item.flow.items)]
        place = {path: number for number, path in enumerate(paths)}
        self.edges = [e for e in dict.fromkeys(item.flow.edges) if e.upward]
        wires = sorted({(place[e.source.path], place[e.target]) for e in self.edges})
        self.rank = dict(zip(paths, ranks(0, len(paths) - 1, wires), strict=True))
        self.top = self.rank[paths[-1]]
        self.rank_nodes: dict[Name, RankNode] = {(item.fork.path, 0): RankNode(item.fork.path, PASSING)}
        for leaf in item.flow.items:
            assert isinstance(leaf, Leaf)
            fragment = self.block(leaf)
            room = 2 * max(fragment.left, fragment.right)
            wide = room if fragment.pieces.boxes else max(room, 2 * (SIDE + APART))
            self.rank_nodes[leaf.about.path, self.rank[leaf.about.path]] = RankNode(leaf.about.path, wide, fragment)
        for path in paths:
            highest = max((self.rank[e.target] for e in self.edges if e.source.path == path), default=0)
            for rank in range(self.rank[path] + 1, highest):
                self.rank_nodes[path, rank] = RankNode(path, PASSING)

    def reading(self, path: str) -> list[DiagramEdge]:
        """Return the wires into a block."""
        return [e for e in self.edges if e.target == path]

    def block(self, leaf: Leaf) -> Fragment:
        """Return a block: a circle where a merge has room for all that it reads, else a box."""
        references = [
            NamedInput(e) for e in dict.fromkeys(self.item.flow.edges) if e.target == leaf.about.path and e.source.reference
        ]
        count = len(self.reading(leaf.about.path))
        if leaf.look.sign and count <= 3 and not references:
            return circle(leaf, self.typography)
        leaf = replace(leaf, look=leaf.look.spelled)
        width = max(MIN_COLUMN_WIDTH, needed(leaf, self.typography, narrow=True), (count + 1) * 2 * APART)
        return block(leaf, width, self.typography, references, narrow=True)

    # -- where everything stands

    def fragment(self) -> Fragment:
        """Place everything."""
        self.place()
        found = Fragment()
        y = 0.0
        pins: dict[int, list[Pin]] = {}
        tracks: dict[int, dict[str, float]] = {}
        tops: dict[str, float] = {self.item.fork.path: 0.0}
        for rank in range(1, self.top + 1):
            below, above = self.at(rank - 1), self.at(rank)
            pins[rank] = list(self.pins(rank, below))
            numbers = assigned({rank_node.net: rank_node.x for rank_node in below}, pins[rank])
            tracks[rank] = {net: y - RISE - TRACK * number for net, number in numbers.items()}
            found.pieces.dots += self.forks(below, pins[rank], tracks[rank])
            y -= RISE + TRACK * max(numbers.values(), default=0) + ARROW
            high = max(rank_node.fragment.height for rank_node in above if rank_node.fragment)
            for rank_node in above:
                if rank_node.fragment:
                    foot = y - (high - rank_node.fragment.height) / 2
                    shift(rank_node.fragment, rank_node.x, foot)
                    found.pieces.take(rank_node.fragment.pieces)
                    found.left = max(found.left, rank_node.fragment.left - rank_node.x)
                    found.right = max(found.right, rank_node.fragment.right + rank_node.x)
                    tops[rank_node.net] = rank_node.fragment.top
            y -= high
        for edge in self.edges:
            found.pieces.wires.append(self.wire(edge, tops, pins, tracks))
        xs = [x for wire in found.pieces.wires for x, _ in wire.points]
        found.left, found.right = max(found.left, -min(xs)), max(found.right, max(xs))
        found.top, found.height = tops[self.item.join.about.path], -y
        return found

    def at(self, rank: int) -> list[RankNode]:
        """Return what stands in a rank, from the left."""
        return sorted(
            (rank_node for (_, at), rank_node in self.rank_nodes.items() if at == rank), key=lambda rank_node: rank_node.x
        )

    def place(self) -> None:
        """Ask Graphviz how far to the right everything stands; the fork and the join on the spine."""
        names = {name: f"n{number}" for number, name in enumerate(self.rank_nodes)}
        lines = [f'{names[name]} [width="{rank_node.width / POINTS:.3f}"]' for name, rank_node in self.rank_nodes.items()]
        links: dict[tuple[Name, Name], int] = {}
        for edge in self.edges:
            path, target = edge.source.path, (edge.target, self.rank[edge.target])
            for rank in range(self.rank[path], target[1] - 1):
                links[(path, rank), (path, rank + 1)] = 4
            links[(path, target[1] - 1), target] = 1
        lines += [f"{names[a]} -> {names[b]} [weight={weight}]" for (a, b), weight in links.items()]
        head = 'node [shape=box fixedsize=true label="" height=0.5] nodesep=0.3 splines=false'
        answer = json.loads(graphviz("digraph { " + head + " " + "; ".join(lines) + " }", "json", program=pure()))
        places = {one["name"]: float(one["pos"].split(",")[0]) for one in answer["objects"]}
        middle = places[names[self.item.join.about.path, self.top]]
        for name, rank_node in self.rank_nodes.items():
            rank_node.x = round(places[names[name]] - middle, 1)
        self.rank_nodes[self.item.fork.path, 0].x = 0.0

    # -- wires

    def pins(self, rank: int, below: Sequence[RankNode]) -> Iterator[Pin]:
        """Yield where wires come in at a rank, no two of them above each other by chance."""
        start = {rank_node.net: rank_node.x for rank_node in below}
        for (path, at), rank_node in self.rank_nodes.items():
            if at != rank:
                continue
            if rank_node.fragment is None:
                wanted = start[path] if abs(start[path] - rank_node.x) <= BENT else rank_node.x
                rank_node.x = next(x for x in around(wanted) if clear(x, path, start))
                yield Pin(path, rank_node.x, None)
            else:
                edges = sorted(self.reading(path), key=lambda e: (start[e.source.path], e.port))
                yield from self.into(rank_node, edges, start)

    def into(self, rank_node: RankNode, edges: Sequence[DiagramEdge], start: Mapping[str, float]) -> Iterator[Pin]:
        """Yield the wires into one block: below a box, wherever it can be reached straight; at three points of a circle."""
        assert rank_node.fragment is not None
        if rank_node.fragment.pieces.merges:
            straight = next((e for e in edges if len(edges) == 1 or abs(start[e.source.path] - rank_node.x) < 1), None)
            if straight is None and len(edges) == 3:
                straight = edges[1]
            rest = [e for e in edges if e is not straight]
            if straight is not None:
                yield Pin(straight.source.path, rank_node.x, straight)
            sides = (-1, 1) if len(rest) == 2 or not rest or start[rest[0].source.path] < rank_node.x else (1,)
            for side, edge in zip(sides, rest, strict=False):
                below = start[edge.source.path]
                straight_up = SIDE - APART <= side * (below - rank_node.x) <= SIDE + APART
                x = below if straight_up else next(x for x in outwards(rank_node.x, side) if clear(x, edge.source.path, start))
                yield Pin(edge.source.path, x, edge, ((x, -RADIUS), (rank_node.x + side * RADIUS, -RADIUS)))
            return
        half = rank_node.fragment.pieces.boxes[0].width / 2 - 2 * APART
        left, taken = rank_node.x - half, list[float]()
        for number, edge in enumerate(edges):
            least = taken[-1] + 2 * APART if taken else left
            most = rank_node.x + half - 2 * APART * (len(edges) - 1 - number)
            wanted = min(max(start[edge.source.path], least), most)
            x = next((x for x in around(wanted) if least <= x <= most and clear(x, edge.source.path, start)), wanted)
            taken.append(x)
            yield Pin(edge.source.path, x, edge)

    def forks(self, below: Sequence[RankNode], pins: Sequence[Pin], tracks: Mapping[str, float]) -> Iterator[Dot]:
        """Yield dots where a value goes three ways."""
        for rank_node in below:
            ups = {pin.x for pin in pins if pin.net == rank_node.net}
            xs = ups | {rank_node.x}
            if rank_node.net in tracks:
                for x in sorted(xs):
                    if (x == rank_node.x) + (x in ups) + (x > min(xs)) + (x < max(xs)) > 2:
                        yield Dot(x, tracks[rank_node.net])

    def wire(
        self,
        edge: DiagramEdge,
        tops: Mapping[str, float],
        pins: Mapping[int, Sequence[Pin]],
        tracks: Mapping[int, Mapping[str, float]],
    ) -> WirePath:
        """Return a wire through all ranks between."""
        path, last = edge.source.path, self.rank[edge.target]
        x = self.rank_nodes[path, self.rank[path]].x
        points: list[Point] = [(x, tops[path])]
        for rank in range(self.rank[path] + 1, last + 1):
            pin = next(p for p in pins[rank] if (p.edge == edge if rank == last else p.edge is None and p.net == path))
            if pin.x != x:
                points += [(x, tracks[rank][path]), (pin.x, tracks[rank][path])]
            x = pin.x
        rank_node = self.rank_nodes[edge.target, last]
        assert rank_node.fragment is not None
        foot = rank_node.fragment.top + rank_node.fragment.height
        points += [(a, foot + b) for a, b in pin.end] or [(x, foot)]
        return WirePath(path, edge.target, straightened(points), edge.port, from_inside=edge.source.from_inside)


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
