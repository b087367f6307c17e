"""Blocks in ranks, with the wires between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from composer.draw.edges import maker
from composer.draw.geometry import Area, Point, Text
from composer.draw.layout.beside.order import Kin, Name, Ranks
from composer.draw.layout.beside.parallel_streams import ParallelStreams
from composer.draw.layout.beside.placing import Placing
from composer.draw.layout.beside.straight import straighten_into_circles
from composer.draw.layout.beside.tracks import Pin, RankNode, around, assigned, clear, forks, into
from composer.draw.layout.ends.port_names import name_below, said_at_end
from composer.draw.layout.fragment import Fragment, shift, straightened
from composer.draw.layout.lanes import style_of
from composer.draw.passes.layers import Fan, ItemLink
from composer.draw.scene import RADIUS, WirePath, card_areas
from composer.draw.style.typography import Role, Typography

TRACK, ARROW, RISE, LABELED = 9.0, 15.0, 12.0, 22.0
"""From one horizontal wire to the next, as near as round corners allow; from the highest to the blocks above, a corner of 8
pixels and an arrowhead of 7; from the blocks below to the lowest, a corner and a dot, or a line of text.
"""
PASSING = 18.0
"""Width that Graphviz keeps free for a wire that goes past a block: a wire's distance at either side, and what it may be moved.
"""
NAMED, SHAPED = 5.0, 8.0
"""From a wire to the name or the shape of its value."""
BENT = 10.0
"""How far a wire on its way may be moved to stay straight: about half of the width that is kept free for it."""
ROUNDED = 0.01
"""By how much places differ that are computed in several ways and mean the same."""
BEGINS = 14.0
"""From where the first output of a block rises to the next one."""
STRAIGHT = 64
"""How much the wires of a trunk count."""

Said: TypeAlias = tuple[str, str, float, float, Role]
"""A value, what is said of it, where that begins and above which height it stands, and how it is written."""


@dataclass(slots=True)
class Layers:
    """Blocks in ranks, while they are placed."""

    typography: Typography
    links: Sequence[ItemLink]
    rank: Mapping[str, int]
    """Of each block, counted from below."""
    rank_nodes: dict[Name, RankNode]
    """The blocks; then the wires that go past others."""
    anchor: Name
    """What stands on the spine."""
    fork: str = ""
    """What comes in from below on the spine; nothing where all values start in blocks."""
    straight: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Wires that are rather straight than others, and how much more they count where Graphviz makes wires straight."""
    kin: Kin = field(default_factory=dict)
    """What stands in the order of the recipe rather than all others."""
    row: Sequence[str] | None = None
    """What stands in this order in the lowest rank, from the left; with it, blocks are moved to the middle of their neighbors."""
    mirrored: bool = False
    """Whether Graphviz is asked for the mirror image, which it may find a better one for."""
    fans: Sequence[Fan] = ()
    parallel: ParallelStreams | None = None
    """Where streams stand that have columns of their own; none where Graphviz is asked for the order."""
    siblings: Sequence[Sequence[Name]] = ()
    """Rows of alike blocks that one block reads, which stand together, in its order."""
    found: Fragment = field(default_factory=Fragment)
    nets: Mapping[str, str] = field(init=False)
    """Of each value, the block that gives it."""
    begun: dict[str, dict[str, float]] = field(default_factory=dict, init=False)
    """Of each block, where its values rise."""

    def __post_init__(self) -> None:
        self.nets = {link.net: link.source for link in self.links}
        for net, path in self.nets.items():
            highest = max(self.rank[link.target] for link in self.links if link.net == net)
            for rank in range(self.rank[path] + 1, highest):
                self.rank_nodes[net, rank] = RankNode(net, PASSING)

    @property
    def top(self) -> int:
        """The highest rank."""
        return max(self.rank.values())

    def reading(self, path: str) -> list[ItemLink]:
        """Return the wires into a block from below."""
        return [link for link in self.links if link.target == path and self.rank[link.source] < self.rank[path]]

    def level_sides(self, path: str) -> list[int]:
        """Return the sides of a block at which level wires come in or go out."""
        ends = [(link.source, link.target) for link in self.links if self.rank[link.source] == self.rank[link.target]]
        others = [b if a == path else a for a, b in ends if path in (a, b)]
        here = self.rank_nodes[path, self.rank[path]].x
        return [1 if self.rank_nodes[other, self.rank[path]].x > here else -1 for other in others]

    # -- where everything stands

    def fragment(self) -> Fragment:
        """Return all blocks, which have their places, with the wires between them."""
        found = self.found
        y = 0.0
        lanes = self.shapes_of_lanes()
        pins: dict[int, list[Pin]] = {}
        tracks: dict[int, dict[str, float]] = {}
        tops: dict[str, float] = {self.fork: 0.0} if self.fork else {}
        if not self.fork:
            y = self.put(0, y, tops)
        for rank in range(1, self.top + 1):
            start = self.starts(self.at(rank - 1))
            pins[rank] = list(self.pins(rank, start))
            numbers = assigned(start, pins[rank])
            rise = LABELED if self.label(self.at(rank - 1), start, lanes.get(rank - 1, {}), y) else RISE
            if rise == LABELED:  # where there is room for them anyway
                self.say(self.kept_by_lanes(rank, start, y), start, [])
            tracks[rank] = {net: y - rise - TRACK * number for net, number in numbers.items()}
            found.pieces.dots += forks(start, pins[rank], tracks[rank])
            y -= rise + TRACK * max(numbers.values(), default=0) + ARROW
            y = self.put(rank, y, tops)
            found.pieces.texts += self.names(rank, pins[rank])
        found.pieces.wires += [self.wire(link, tops, pins, tracks) for link in self.links]
        if self.row is not None:
            counts = Counter((rank, pin.net) for rank, several in pins.items() for pin in several)  # none at the lowest rank
            alone = {(link.net, link.edge.target) for link in self.links if counts[self.rank[link.target], link.net] == 1}
            straighten_into_circles(found, alone)
        xs = [x for wire in found.pieces.wires for x, _ in wire.points] + [text.area.right for text in found.pieces.texts]
        found.left, found.right = max(found.left, -min(xs)), max(found.right, max(xs))
        found.top, found.height = tops[self.anchor[0]], -y
        return found

    def put(self, rank: int, y: float, tops: dict[str, float]) -> float:
        """Put the blocks of a rank above a height, and note where each ends; return where all of them do."""
        blocks = [(one, one.fragment) for one in self.at(rank) if one.fragment]
        high = max(one.body for one, _ in blocks)
        feet = [y - (high - one.body) / 2 for one, _ in blocks]
        for foot, (one, fragment) in zip(feet, blocks, strict=True):
            shift(fragment, one.x, foot)
            self.found.pieces.take(fragment.pieces)
            self.found.ends |= {edge: points for edge, points in fragment.ends.items() if edge not in one.enter}
            self.found.left = max(self.found.left, fragment.left - one.x)
            self.found.right = max(self.found.right, fragment.right + one.x)
            tops[one.net] = fragment.top
        return min(foot - fragment.height for foot, (_, fragment) in zip(feet, blocks, strict=True))

    def ports(self, path: str) -> list[str]:
        """Return the second outputs of a block that are read by wires."""
        return [net for net, source in self.nets.items() if source == path != net]

    def starts(self, below: Sequence[RankNode]) -> dict[str, float]:
        """Return where values rise from a rank: from the middle of a block; its second outputs beside that, in the order in which
        they go on, or all of its outputs side by side around the middle where the first one does not go straight up from there.
        """
        found = {}
        for one in below:
            if one.fragment is None:
                found[one.net] = one.x
                continue
            if one.net not in self.begun:
                self.begun[one.net] = self.begin(one)
            found |= self.begun[one.net]
        return found

    def begin(self, one: RankNode) -> dict[str, float]:
        """Return where the values of a block rise."""
        aside = {**one.leave, **one.above, **one.tops}
        found = {one.net: one.x, **{net: one.x + beside for net, beside in aside.items()}}
        others = [net for net in self.ports(one.net) if net not in aside]
        if not others:
            return found
        further = {net: self.further(net) for net in (one.net, *others) if net == one.net or net in self.nets}
        read = one.net in self.nets
        rooms = {net: slot(net if net in others else one.first, self.typography) for net in further}
        order = sorted(others, key=lambda net: further[net])
        middle = further[one.net] if read else one.x
        left, right = [net for net in order if further[net] < middle], [net for net in order if further[net] >= middle]
        half = one.fragment.pieces.boxes[0].width / 2 - BEGINS if one.fragment else 0.0
        straight = read and abs(middle - one.x) < 1
        fits = max(sum(rooms[net] for net in side) for side in (left, right)) <= half
        if (read and len(others) == 1) or (straight and fits):
            groups = [(left, one.x - half, one.x), (right, one.x + rooms[one.net], one.x + half + BEGINS)]
        else:
            groups = [([*left, *([one.net] if read else []), *right], one.x - half, one.x + half)]
        for nets, low, high in groups:
            wanted = [further[net] if abs(further[net] - middle) >= 1 else (low + high) / 2 for net in nets]
            found |= zip(nets, _packed(wanted, [rooms[net] for net in nets], low, high), strict=True)
        return found

    def further(self, net: str) -> float:
        """Return where a value is in the rank above the one that it starts in; of several readers there, the first."""
        rank = self.rank[self.nets.get(net, net)] + 1
        if (net, rank) in self.rank_nodes:
            return self.rank_nodes[net, rank].x
        return next((self.rank_nodes[link.target, rank].x for link in self.links if link.net == net), 0.0)

    def label(self, below: Sequence[RankNode], start: Mapping[str, float], lanes: Mapping[str, str], high: float) -> bool:
        """Write the shape of what blocks give, and what second outputs are called, where no other wire rises and no box stands;
        and of lanes, above where all blocks end. Return whether there is something.
        """
        said: list[Said] = []
        said += [(net, shape, start[net] + SHAPED, high, "shape") for net, shape in lanes.items()]
        rising = {link.net for link in self.links if self.rank[link.source] < self.rank[link.target]} & {*start}
        for one in below:
            if one.fragment:
                pieces = one.fragment.pieces
                top = min([one.fragment.top, *(area.top for area in card_areas(pieces.boxes, pieces.frames))])
                told = self.named_above(one.net)
                ports = [net for net in self.ports(one.net) if net not in {**one.leave, **one.above}]
                said += [(net, net.rpartition(".")[2], start[net] + NAMED, top, "port") for net in ports if net not in told]
                first = one.first if ports and one.net in rising and one.net not in told else ""
                said += [(one.net, first, start[one.net] + NAMED, top, "port")] if first else []
                x = start[one.net] + (slot(first, self.typography) if first else SHAPED)
                said += [(one.net, one.label, x, top, "shape")] if one.label and one.net in rising else []
                lone = [net for net in one.shapes if net in rising and (net in told or net == one.net)]  # not beside their names
                said += [
                    (net, one.shapes[net], start[net] + SHAPED, top, "shape")
                    for net in lone
                    if net not in one.above and (net != one.net or not one.label)
                ]
        solid = [box.area for one in below if one.fragment for box in one.fragment.pieces.boxes]
        solid += [merge.area for one in below if one.fragment for merge in one.fragment.pieces.merges]
        return self.say(said, start, solid)

    def say(self, said: Iterable[Said], start: Mapping[str, float], solid: Sequence[Area]) -> bool:
        """Write words beside values where no other wire rises and nothing else stands; return whether some are written."""
        found = self.found
        before = len(found.pieces.texts)
        for net, words, x, top, role in said:
            text = Text(x, top - 9, words, role, "start", self.typography.scale)
            passed = any(
                text.area.grown(4).left < other < text.area.grown(4).right for name, other in start.items() if name != net
            )
            if not passed and not any(
                area.meets(text.area.grown(2)) for area in (*solid, *(one.area for one in found.pieces.texts))
            ):
                found.pieces.texts.append(text)
        return len(found.pieces.texts) > before

    def shapes_of_lanes(self) -> dict[int, dict[str, str]]:
        """Return for each rank the streams out of frames of several that rise from it into another one, with their shapes."""
        shapes = {net: shape for one in self.rank_nodes.values() for net, shape in one.shapes.items() if net in one.above}
        found: dict[int, dict[str, str]] = {}
        for link in self.links:
            low, high = self.rank[link.source], self.rank[link.target]
            if link.net in shapes and low < high and len(self.rank_nodes[link.target, high].below) > 1:
                found.setdefault(high - 1, {})[link.net] = shapes[link.net]
        return found

    def kept_by_lanes(self, rank: int, start: Mapping[str, float], high: float) -> Iterator[Said]:
        """Yield the shapes of the streams that come into frames of several in a rank out of boxes that keep what they read, above
        which shapes are not said, where they reach no further to the right than the frames.
        """
        for link in self.links:
            low, into = self.rank[link.source], self.rank_nodes[link.target, self.rank[link.target]]
            giver = self.rank_nodes[link.source, low]
            if low < self.rank[link.target] == rank and len(into.below) > 1 and giver.kept and self.reading(link.source):
                x = start[link.net] + SHAPED
                if x + self.typography.width(giver.kept, "shape") <= into.x + into.width / 2:
                    yield link.net, giver.kept, x, high, "shape"

    def named_above(self, path: str) -> set[str]:
        """Return which values of a block have their names at their ends, at a box that several streams go through."""
        first = self.rank_nodes[path, self.rank[path]].first
        found = set()
        for link in (link for link in self.links if link.source == path):
            reader = self.rank_nodes[link.target, self.rank[link.target]]
            own = link.net.rpartition(".")[2] if link.net != path else first
            if link.edge in reader.ways and link.edge in reader.names and said_at_end(link.edge) == own:
                found.add(link.net)
        return found

    def at(self, rank: int) -> list[RankNode]:
        """Return what stands in a rank, from the left."""
        return sorted((one for (_, at), one in self.rank_nodes.items() if at == rank), key=lambda one: one.x)

    def place(self) -> None:
        """Put everything at its place to the right; the fork and the anchor on the spine."""
        Placing(
            self.links,
            self.rank,
            self.rank_nodes,
            self.anchor,
            self.straight,
            self.kin,
            self.row,
            self.mirrored,
            self.fans,
            self.parallel,
            self.siblings,
        ).place()
        if self.fork:
            self.rank_nodes[self.fork, 0].x = 0.0

    def rows(self) -> Ranks:
        """Return what stands in each rank, from the left."""
        return [[(one.net, rank) for one in self.at(rank)] for rank in range(self.top + 1)]

    def crowded(self) -> set[str]:
        """Return the circles that are read by one wire from below and two from the same side; with those beside them that read as
        many, since alike merges in a row look alike.
        """
        found, full = set[int](), set[tuple[str, int]]()
        for (path, rank), one in self.rank_nodes.items():
            if one.circle:
                below = [
                    self.rank_nodes.get((link.net, rank - 1)) or self.rank_nodes[link.source, rank - 1]
                    for link in self.reading(path)
                ]
                aside = [other.x - one.x for other in below if abs(other.x - one.x) >= 1]
                level = self.level_sides(path)
                if len(aside) + len(level) == 2 < len(below) + len(level):
                    full.add((path, rank))
                    if len({x > 0 for x in (*aside, *level)}) == 1:
                        found.add(rank)
        return {path for path, rank in full if rank in found}

    def read_from_right(self) -> set[str]:
        """Return the frames into whose left side alone wires lead, all of which come from beyond the right one."""
        found = set[str]()
        for (path, rank), one in self.rank_nodes.items():
            if one.fragment and one.enter and not one.leave and max(one.enter.values()) < 0:
                into = [link for link in self.reading(path) if link.edge in one.enter]
                below = [self.rank_nodes.get((link.net, rank - 1)) or self.rank_nodes[link.source, rank - 1] for link in into]
                if all(other.x > one.x + one.fragment.right for other in below):
                    found.add(path)
        return found

    # -- wires

    def pins(self, rank: int, start: Mapping[str, float]) -> Iterator[Pin]:
        """Yield where wires come in at a rank, no two of them above each other by chance."""
        for (name, at), rank_node in self.rank_nodes.items():
            if at != rank:
                continue
            if rank_node.fragment is None:
                near = abs(start[name] - rank_node.x) <= BENT or self.may_pass(name, rank, start[name])
                wanted = start[name] if near else rank_node.x
                rank_node.x = next(x for x in around(wanted) if clear(x, name, start))
                yield Pin(name, rank_node.x, None)
            else:
                links = sorted(self.reading(name), key=lambda link: (start[link.net], link.edge.port))
                yield from into(rank_node, links, start, self.level_sides(name))

    def may_pass(self, net: str, rank: int, x: float) -> bool:
        """Return whether a value of several of a block has room to go straight up past a rank, between the same neighbors."""
        if len(self.begun.get(self.nets[net], ())) < 2:
            return False
        own, row = self.rank_nodes[net, rank], self.at(rank)
        place = row.index(own)
        near = (
            [one.x + (one.width + PASSING) / 2 for one in row[:place]],
            [one.x - (one.width + PASSING) / 2 for one in row[place + 1 :]],
        )
        return max(near[0], default=x) <= x <= min(near[1], default=x)

    def names(self, rank: int, pins: Sequence[Pin]) -> Iterator[Text]:
        """Yield what blocks of a rank, which has its place, call what comes in from below."""
        for pin in pins:
            if pin.named and pin.edge is not None:
                block = self.rank_nodes[pin.edge.target, rank].fragment
                assert block is not None
                yield name_below(pin.edge, pin.x, block.foot, self.typography)

    def wire(
        self,
        link: ItemLink,
        tops: Mapping[str, float],
        pins: Mapping[int, Sequence[Pin]],
        tracks: Mapping[int, Mapping[str, float]],
    ) -> WirePath:
        """Return a wire through all ranks between, or a level one."""
        edge, path, net, last = link.edge, link.source, link.net, self.rank[link.target]
        if self.rank[path] == last:
            return self.level(link)
        x = self.starts([self.rank_nodes[path, self.rank[path]]])[net]
        giver = self.rank_nodes[path, self.rank[path]]
        points: list[Point] = [(x, tops[path])]
        if giver.fragment is not None and net in giver.leave:
            tap = giver.fragment.taps[edge.source.origin]
            points = [*tap, (x, tap[-1][1])]
        for rank in range(self.rank[path] + 1, last + 1):
            pin = next(p for p in pins[rank] if (p.edge == edge if rank == last else p.edge is None and p.net == net))
            if abs(pin.x - x) > ROUNDED:
                points += [(x, tracks[rank][net]), (pin.x, tracks[rank][net])]
            x = pin.x
        rank_node = self.rank_nodes[link.target, last]
        assert rank_node.fragment is not None
        foot = rank_node.fragment.foot
        if edge in rank_node.enter:
            end = rank_node.fragment.ends[edge]
            points += [(x, end[0][1]), *end]
        else:
            points += [(a, foot + b) for a, b in pin.end] or [(x, foot)]
        return WirePath(
            maker(edge.source.origin).path,
            edge.target,
            straightened(points),
            edge.port,
            "main" if self.row is None or (edge in rank_node.ways and not edge.trains) else style_of(edge),
            not rank_node.framed or edge in rank_node.enter,
            partial=edge.partial,
            from_inside=edge.source.from_inside,
            passage=edge.passage,
            place=edge.place,
        )

    def level(self, link: ItemLink) -> WirePath:
        """Return a wire to another block of the same rank."""
        start, end = (self.rank_nodes[path, self.rank[path]] for path in (link.source, link.target))
        side = 1 if end.x > start.x else -1
        (x, y), (near, height) = border(start, side), border(end, -side)
        turn = (x + near) / 2
        points = straightened([(x, y), (turn, y), (turn, height), (near, height)])
        edge = link.edge
        made = maker(edge.source.origin).path
        return WirePath(made, edge.target, points, edge.port, style_of(edge), partial=edge.partial, place=edge.place)


def border(one: RankNode, side: int) -> Point:
    """Return the middle of a side of a box, or of a circle."""
    assert one.fragment is not None
    for merge in one.fragment.pieces.merges:
        return merge.x + side * RADIUS, merge.y
    area = one.fragment.pieces.boxes[0].area
    return area.right if side > 0 else area.left, (area.top + area.bottom) / 2


def _packed(wanted: Sequence[float], rooms: Sequence[float], low: float, high: float) -> list[float]:
    """Return places from the left, as near to the wanted ones as can be between two others, each with some room at its right."""
    found: list[float] = []
    for number, x in enumerate(wanted):
        least = found[-1] + rooms[number - 1] if found else low
        found.append(max(min(x, high - sum(rooms[number:])), least))
    return found


def slot(net: str, typography: Typography) -> float:
    """Return the width that a second output needs with its name."""
    return typography.width(net.rpartition(".")[2], "port") + 14
