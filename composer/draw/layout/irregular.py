"""Blocks of an irreducible part: Graphviz says which stand beside each other and where, the wires between them are ours."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

from composer.draw.diagram import IrregularSubgraph, Leaf
from composer.draw.edges import DiagramEdge
from composer.draw.geometry import Area, Point, Text
from composer.draw.graphviz_programs import Missing, graphviz, pure
from composer.draw.layout.beside.tracks import APART, SIDE, Pin, RankNode, around, assigned, clear, forks, into
from composer.draw.layout.boxes import MIN_COLUMN_WIDTH, needed
from composer.draw.layout.fragment import Fragment, shift, straightened
from composer.draw.layout.references import reference_below
from composer.draw.layout.stations import NamedInput, SideBox, SideInput, WiredInput, block, circle
from composer.draw.passes.series_parallel import longest, ranks
from composer.draw.scene import Box, MergeCircle, WirePath
from composer.draw.style.typography import Role, Typography

TRACK, ARROW, RISE, LABELED = 9.0, 15.0, 12.0, 22.0
"""From one horizontal wire to the next, as near as round corners allow; from the highest to the blocks above, a corner of 8
pixels and an arrowhead of 7; from the blocks below to the lowest, a corner and a dot, or a line of text.
"""
MIN_TRUNK = 8
"""Blocks of a part whose longest way stands above its fork, if it has most of them."""
MAX_EQUAL, MAX_EQUAL_BOX = 3, 220.0
"""How many blocks stand side by side, and how wide they are, where all of them are equally wide."""
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


NO_SIDE_BOXES: Mapping[str, Sequence[SideBox]] = MappingProxyType({})


def irregular_fragment(
    item: IrregularSubgraph,
    typography: Typography,
    beside: Mapping[str, Sequence[SideBox]] = NO_SIDE_BOXES,
    *,
    shapes: bool = True,
) -> Fragment | None:
    """Return the part with its fork below and its join above, both on the spine; none where it is too wide, where a box stands in
    the way of what comes in from the side, or where our own Graphviz is not there, since any other would draw other bytes.
    """
    try:
        found = _Layout(item, typography, beside, shapes).fragment() if pure() else None
    except Missing:
        return None
    if found is None or found.left + found.right > MAX_IRREGULAR_WIDTH:
        return None
    ways = [Area(-found.left, points[0][1] - 1, points[0][0] - 1, points[0][1] + 1) for points in found.ends.values()]
    solid = [*(one.area for one in found.pieces.boxes), *(one.area for one in found.pieces.merges)]
    solid += [one.text.area for one in found.pieces.references]
    return None if any(way.meets(area) for way in ways for area in solid) else found


class _Layout:
    def __init__(
        self, item: IrregularSubgraph, typography: Typography, beside: Mapping[str, Sequence[SideBox]], shapes: bool
    ) -> None:
        self.item, self.typography, self.beside, self.shapes = item, typography, beside, shapes
        paths = [item.fork.path, *(one.about.path for one in item.flow.items)]
        place = {path: number for number, path in enumerate(paths)}
        upward = [e for e in dict.fromkeys(item.flow.edges) if e.upward]
        self.edges = [e for e in upward if e.source.path in place]
        self.far = [e for e in upward if e.source.path not in place]
        wires = sorted({(place[e.source.path], place[e.target]) for e in self.edges})
        self.rank = dict(zip(paths, ranks(0, len(paths) - 1, wires), strict=True))
        self.top = self.rank[paths[-1]]
        trunk = [paths[number] for number in longest(len(paths), wires)]
        self.trunk = set(pairwise(trunk)) if 2 * len(trunk) > len(paths) >= MIN_TRUNK else set()
        self.nets = dict.fromkeys((e.source.own_name, e.source.path) for e in self.edges)
        self.rank_nodes: dict[Name, RankNode] = {(item.fork.path, 0): RankNode(item.fork.path, PASSING)}
        leaves = [leaf for leaf in item.flow.items if isinstance(leaf, Leaf)]
        widths = {leaf.about.path: self.width(leaf) for leaf in leaves}
        inner = max([0.0, *(widths[path] for path in paths[1:-1])])
        few = max(Counter(self.rank.values()).values()) <= MAX_EQUAL
        for leaf in leaves:
            path = leaf.about.path
            wide = max(inner, widths[path]) if few and inner <= MAX_EQUAL_BOX else widths[path]
            fragment = self.block(leaf, wide)
            room = 2 * max(fragment.left, fragment.right)
            room = room if fragment.pieces.boxes else max(room, 2 * (SIDE + APART))
            self.rank_nodes[path, self.rank[path]] = RankNode(path, room, fragment, label=leaf.shape if self.shapes else "")
        for net, path in self.nets:
            highest = max(self.rank[e.target] for e in self.edges if e.source.own_name == net)
            for rank in range(self.rank[path] + 1, highest):
                self.rank_nodes[net, rank] = RankNode(net, PASSING)

    def reading(self, path: str) -> list[DiagramEdge]:
        """Return the wires into a block from below."""
        return [e for e in self.edges if e.target == path]

    def width(self, leaf: Leaf) -> float:
        """Return the width that a block needs as a box."""
        spelled = replace(leaf, look=leaf.look.spelled)
        count = len(self.reading(leaf.about.path))
        out = 2 * sum(map(self.slot, self.ports(leaf.about.path))) + 28
        return max(MIN_COLUMN_WIDTH, needed(spelled, self.typography, narrow=True), (count + 1) * 2 * APART, out)

    def block(self, leaf: Leaf, width: float) -> Fragment:
        """Return a block: a circle where a merge has room for all that it reads, else a box. A name of a value from elsewhere
        stands below a box that reads nothing else.
        """
        path = leaf.about.path
        named = [e for e in dict.fromkeys(self.item.flow.edges) if e.target == path and e.source.reference]
        wired: list[SideInput] = [WiredInput(e) for e in self.far if e.target == path]
        lefts: list[SideInput] = [*self.beside.get(path, ()), *(NamedInput(e) for e in named), *wired]
        count = len(self.reading(path))
        if leaf.look.sign and count + len(lefts) <= 3 and len(lefts) <= 1:
            return circle(leaf, self.typography, lefts)
        leaf = replace(leaf, look=leaf.look.spelled)
        if count or len(lefts) != 1 or not named:
            return block(leaf, width, self.typography, lefts, narrow=True)
        found = block(leaf, width, self.typography, narrow=True)
        below = reference_below(found, named[0], self.typography)
        shift(found, 0, -below)
        found.height += below
        return found

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
            start = self.starts(below)
            pins[rank] = list(self.pins(rank, start))
            numbers = assigned(start, pins[rank])
            rise = LABELED if self.label(found, below, start) else RISE
            tracks[rank] = {net: y - rise - TRACK * number for net, number in numbers.items()}
            found.pieces.dots += forks(start, pins[rank], tracks[rank])
            y -= rise + TRACK * max(numbers.values(), default=0) + ARROW
            high = max(rank_node.fragment.height for rank_node in above if rank_node.fragment)
            for rank_node in above:
                if rank_node.fragment:
                    foot = y - (high - rank_node.fragment.height) / 2
                    shift(rank_node.fragment, rank_node.x, foot)
                    found.pieces.take(rank_node.fragment.pieces)
                    found.ends |= rank_node.fragment.ends
                    found.left = max(found.left, rank_node.fragment.left - rank_node.x)
                    found.right = max(found.right, rank_node.fragment.right + rank_node.x)
                    tops[rank_node.net] = rank_node.fragment.top
            y -= high
        for edge in self.edges:
            found.pieces.wires.append(self.wire(edge, tops, pins, tracks))
        xs = [x for wire in found.pieces.wires for x, _ in wire.points] + [text.area.right for text in found.pieces.texts]
        found.left, found.right = max(found.left, -min(xs)), max(found.right, max(xs))
        found.top, found.height = tops[self.item.join.about.path], -y
        return found

    def ports(self, path: str) -> list[str]:
        """Return the second outputs of a block that are read by wires."""
        return [net for net, source in self.nets if source == path != net]

    def slot(self, net: str) -> float:
        """Return the width that a second output needs with its name."""
        return self.typography.width(net.rpartition(".")[2], "port") + 14

    def starts(self, below: Sequence[RankNode]) -> dict[str, float]:
        """Return where values rise from a rank: from the middle of a block; its second outputs beside that, in the order in which
        they go on.
        """
        found = {}
        for one in below:
            found[one.net] = one.x
            if one.fragment is None:
                continue
            rank = self.rank[one.net]
            ends = {net: [e.target for e in self.edges if e.source.own_name == net] for net in self.ports(one.net)}
            further = {
                net: self.rank_nodes[net, rank + 1].x
                if (net, rank + 1) in self.rank_nodes
                else self.rank_nodes[to[0], rank + 1].x
                for net, to in ends.items()
            }
            x = one.x + 14
            for net in sorted((net for net in ends if further[net] >= one.x), key=lambda net: further[net]):
                found[net] = x
                x += self.slot(net)
            x = one.x
            for net in sorted((net for net in ends if further[net] < one.x), key=lambda net: -further[net]):
                x -= self.slot(net)
                found[net] = x
        return found

    def label(self, found: Fragment, below: Sequence[RankNode], start: Mapping[str, float]) -> bool:
        """Write the shape of what blocks give, and what second outputs are called, where no other wire rises and no box stands;
        return whether there is something.
        """
        said: list[tuple[str, str, float, float, Role]] = []
        for one in below:
            if one.fragment:
                top = one.fragment.top
                said += [(net, net.rpartition(".")[2], start[net], top, "port") for net in self.ports(one.net)]
                said += [(one.net, one.label, one.x, top, "shape")] if one.label and one.net in start else []
        solid = [box.area for one in below if one.fragment for box in one.fragment.pieces.boxes]
        solid += [merge.area for one in below if one.fragment for merge in one.fragment.pieces.merges]
        before = len(found.pieces.texts)
        for net, words, x, top, role in said:
            text = Text(x + (5 if role == "port" else 8), top - 9, words, role, "start", self.typography.scale)
            passed = any(
                text.area.grown(4).left < other < text.area.grown(4).right for name, other in start.items() if name != net
            )
            if not passed and not any(
                area.meets(text.area.grown(2)) for area in (*solid, *(one.area for one in found.pieces.texts))
            ):
                found.pieces.texts.append(text)
        return len(found.pieces.texts) > before

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
            net, low, target = edge.source.own_name, self.rank[edge.source.path], (edge.target, self.rank[edge.target])
            ends = [(edge.source.path, low), *((net, rank) for rank in range(low + 1, target[1])), target]
            for a, b in pairwise(ends):
                weight = 64 if (edge.source.path, edge.target) in self.trunk else 1 if b == target else 4
                links[a, b] = max(weight, links.get((a, b), 0))
        lines += [f"{names[a]} -> {names[b]} [weight={weight}]" for (a, b), weight in links.items()]
        head = 'node [shape=box fixedsize=true label="" height=0.5] nodesep=0.3 splines=false'
        answer = json.loads(graphviz("digraph { " + head + " " + "; ".join(lines) + " }", "json", program=pure()))
        places = {one["name"]: float(one["pos"].split(",")[0]) for one in answer["objects"]}
        middle = places[names[self.item.join.about.path, self.top]]
        for name, rank_node in self.rank_nodes.items():
            rank_node.x = round(places[names[name]] - middle, 1)
        self.rank_nodes[self.item.fork.path, 0].x = 0.0

    # -- wires

    def pins(self, rank: int, start: Mapping[str, float]) -> Iterator[Pin]:
        """Yield where wires come in at a rank, no two of them above each other by chance."""
        for (name, at), rank_node in self.rank_nodes.items():
            if at != rank:
                continue
            if rank_node.fragment is None:
                wanted = start[name] if abs(start[name] - rank_node.x) <= BENT else rank_node.x
                rank_node.x = next(x for x in around(wanted) if clear(x, name, start))
                yield Pin(name, rank_node.x, None)
            else:
                edges = sorted(self.reading(name), key=lambda e: (start[e.source.own_name], e.port))
                yield from into(rank_node, edges, start)

    def wire(
        self,
        edge: DiagramEdge,
        tops: Mapping[str, float],
        pins: Mapping[int, Sequence[Pin]],
        tracks: Mapping[int, Mapping[str, float]],
    ) -> WirePath:
        """Return a wire through all ranks between."""
        path, net, last = edge.source.path, edge.source.own_name, self.rank[edge.target]
        x = self.starts([self.rank_nodes[path, self.rank[path]]])[net]
        points: list[Point] = [(x, tops[path])]
        for rank in range(self.rank[path] + 1, last + 1):
            pin = next(p for p in pins[rank] if (p.edge == edge if rank == last else p.edge is None and p.net == net))
            if pin.x != x:
                points += [(x, tracks[rank][net]), (pin.x, tracks[rank][net])]
            x = pin.x
        rank_node = self.rank_nodes[edge.target, last]
        assert rank_node.fragment is not None
        foot = self.foot(rank_node.fragment)
        points += [(a, foot + b) for a, b in pin.end] or [(x, foot)]
        return WirePath(path, edge.target, straightened(points), edge.port, from_inside=edge.source.from_inside)

    def foot(self, fragment: Fragment) -> float:
        """Return where wires come in from below."""
        first: Box | MergeCircle = fragment.pieces.merges[0] if fragment.pieces.merges else fragment.pieces.boxes[0]
        return first.area.bottom
