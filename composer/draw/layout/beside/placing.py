"""Where things stand in ranks: Graphviz says it, then ties go to the order of the recipe and to the middle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from composer.draw.graphviz_programs import node_places
from composer.draw.layout.beside.middle import BESIDE, ROUNDS, Middle
from composer.draw.layout.beside.order import Kin, Name, Ordering, Ranks, columns_of, lines_of
from composer.draw.layout.beside.parallel_streams import ParallelStreams, Passing
from composer.draw.layout.beside.tracks import RankNode
from composer.draw.passes.layers import Fan, ItemLink

POINTS = 72.0
"""Of Graphviz to an inch."""
NEAR = 8
"""How much less it counts that neighbors are near each other than that a wire is straight."""

PAST = 16
"""How much it counts that a wire is straight where it goes past blocks."""
ASIDE = 10.0
"""How far a wire that goes past several ranks is moved to come in straight."""


@dataclass(frozen=True, slots=True)
class Placing:
    """What is known of things in ranks before they have a place."""

    links: Sequence[ItemLink]
    rank: Mapping[str, int]
    """Of each block, counted from below."""
    rank_nodes: Mapping[Name, RankNode]
    """The blocks, and the wires that go past others."""
    anchor: Name
    """What stands on the spine."""
    straight: Mapping[tuple[str, str], int]
    """Wires that are rather straight than others, and how much more they count."""
    kin: Kin
    """What stands in the order of the recipe rather than all others."""
    row: Sequence[str] | None
    """What stands in this order in the lowest rank, from the left; without it, everything stays where Graphviz puts it."""
    mirrored: bool
    """Whether Graphviz is asked for the mirror image, which it may find a better one for."""
    fans: Sequence[Fan]
    parallel: ParallelStreams | None
    """Where streams stand that have columns of their own; none where Graphviz is asked for the order."""
    siblings: Sequence[Sequence[Name]]
    """Rows of alike blocks that one block reads, which stand together, in its order."""

    def place(self) -> None:
        """Tell everything how far to the right it stands, the anchor on the spine."""
        weights = self.weights()
        if self.row is None:
            self.put_at(self.answer(weights, []))
        elif self.parallel is not None:
            rows = self.parallel.rows(self.links, self.rank)
            self.put_at(self.answer({hop: NEAR * weight for hop, weight in weights.items()}, rows))
            self.center(weights, rows)
            self.put_below_passages(weights, rows)
            self.put_between(weights, rows)
            self.align()
        else:
            first = [(path, 0) for path in (self.row[::-1] if self.mirrored else self.row)]
            self.put_at(self.answer(weights, [first]))
            found = self.ranks()
            better = self.ordering(weights).in_recipe_order([one[::-1] for one in found] if self.mirrored else found)
            if better != found:
                self.put_at(self.answer({hop: NEAR * weight for hop, weight in weights.items()}, better))
            self.center(weights, better)
            self.put_below_passages(weights, better)
            self.align()

    def hops(self, link: ItemLink) -> list[tuple[Name, Name]]:
        """Return the way of a wire from rank to rank; nothing for a level one."""
        low, high = self.rank[link.source], self.rank[link.target]
        if low == high:
            return []
        return [*pairwise([(link.source, low), *((link.net, rank) for rank in range(low + 1, high)), (link.target, high)])]

    def weights(self) -> dict[tuple[Name, Name], int]:
        """Return how much it counts that each way from a rank to the next is straight."""
        weights: dict[tuple[Name, Name], int] = {}
        past = PAST if self.row is not None else PAST // 4
        passing = Passing(self.parallel, self.links, self.rank) if self.parallel else None
        for link in self.links:
            for hop in self.hops(link):
                last = hop[1] == (link.target, self.rank[link.target])
                weight = self.straight.get((link.source, link.target)) or (
                    1 if last or (passing and passing.turns(hop)) else past
                )
                weights[hop] = max(weight, weights.get(hop, 0))
        return weights

    def ways(self) -> dict[Name, tuple[Name, Collection[Name]]]:
        """Return of each value on its way through a rank the block that it comes from and those that read it above."""
        found: dict[Name, tuple[Name, list[Name]]] = {}
        for link in self.links:
            for rank in range(self.rank[link.source] + 1, self.rank[link.target]):
                source = link.source, self.rank[link.source]
                found.setdefault((link.net, rank), (source, []))[1].append((link.target, self.rank[link.target]))
        return {**found}

    def answer(self, weights: Mapping[tuple[Name, Name], int], rows: Ranks) -> dict[Name, float]:
        """Return how far to the right Graphviz puts everything, some of it in an order."""
        names = {name: f"n{number}" for number, name in enumerate(self.rank_nodes)}
        lines = [f'{names[name]} [width="{rank_node.width / POINTS:.3f}"]' for name, rank_node in self.rank_nodes.items()]
        lines += [f"{names[a]} -> {names[b]} [weight={weight}]" for (a, b), weight in weights.items()]
        if self.row is not None:
            for rank in range(max(self.rank.values()) + 1):
                lines.append("{rank=same " + " ".join(names[name] for name in names if name[1] == rank) + "}")
        lines += [f"{names[a]} -> {names[b]} [style=invis]" for row in rows for a, b in pairwise(row)]
        head = f'node [shape=box fixedsize=true label="" height=0.5] nodesep={BESIDE / POINTS:.1f} splines=false'
        places = node_places("digraph { " + head + " " + "; ".join(lines) + " }")
        return {name: places[called][0] for name, called in names.items()}

    def put_at(self, places: Mapping[Name, float]) -> None:
        """Put everything at its place, the anchor in the middle."""
        for name, rank_node in self.rank_nodes.items():
            rank_node.x = round(places[name] - places[self.anchor], 1)

    def ordering(self, weights: Mapping[tuple[Name, Name], int]) -> Ordering:
        """Return what order everything should have."""
        inputs = [(path, 0) for path in self.row or ()]
        blocks = [(path, rank) for path, rank in self.rank.items() if (path, rank) not in inputs]
        passing = {name for name in self.rank_nodes if self.rank.get(name[0]) != name[1]}
        columns = lines_of(self.rank_nodes, weights, passing)
        rows = [((fan.hub, self.rank[fan.row[0]]), [(path, self.rank[path]) for path in fan.row]) for fan in self.fans]
        fans = {wire: row for wire, row in rows if wire in self.rank_nodes}
        numbers = {name: number for number, name in enumerate([*inputs, *blocks])}
        ports = {(frame, other): beside for frame, other, beside, _ in self.passage_ports() if self.has_order(frame, other)}
        return Ordering([*weights], numbers, columns, inputs, fans, ports, self.kin, self.ways(), self.siblings)

    def center(self, weights: Mapping[tuple[Name, Name], int], rows: Ranks) -> None:
        """Move what feeds or reads several blocks that are alike to their middle."""
        given, read = Counter(a for a, _ in weights), Counter(b for _, b in weights)
        level = [(a, b) for a, b in weights if abs(self.rank_nodes[a].x - self.rank_nodes[b].x) < 1]
        first = [*self.rank_nodes.values()]
        for name, number in columns_of(self.rank_nodes, level).items():
            self.rank_nodes[name].x = first[number].x  # hardly aside, and no corner in a wire for it
        whole = [(a, b) for a, b in level if weights[a, b] > 1 or (given[a] == 1 == read[b])]
        middle = Middle(self.rank_nodes, rows, weights, columns_of(self.rank_nodes, whole))
        middle.center([((fan.hub, self.rank[fan.hub]), [(path, self.rank[path]) for path in fan.row]) for fan in self.fans])

    def put_below_passages(self, weights: Mapping[tuple[Name, Name], int], rows: Ranks) -> None:
        """Put columns straight below and above the passages of frames that they lead to and come from, where there is room."""
        ports = self.passage_ports()
        framed = {frame for frame, *_ in ports}
        level = [
            (a, b)
            for a, b in weights
            if a not in framed and b not in framed and abs(self.rank_nodes[a].x - self.rank_nodes[b].x) < 1
        ]
        columns = columns_of(self.rank_nodes, level) if ports else {}
        middle = Middle(self.rank_nodes, rows, weights, columns)
        first: dict[str, Name] = {}
        for name, one in self.rank_nodes.items():
            if one.line and first.setdefault(one.line, name) != name:
                middle.move_by(name, self.rank_nodes[first[one.line]].x - one.x)
        begins = {other for frame, other, *_ in ports if other[1] < frame[1] and self.in_line(frame)}
        ports = [
            one for one in ports if one[1][1] < one[0][1] or one[1] not in begins or self.rank_nodes[one[1]].fragment is None
        ]
        straight: set[int] = {columns[name] for name, one in self.rank_nodes.items() if one.line}
        for _ in range(ROUNDS):
            for frame, other, beside, place in ports:
                by = self.rank_nodes[frame].x + beside - self.rank_nodes[other].x - place
                if columns[other] not in straight and middle.move_by(other, by):
                    straight.add(columns[other])

    def passage_ports(self) -> list[tuple[Name, Name, float, float]]:
        """Return what several streams go through, what is next to where each comes in and goes out, and how far from the middle
        of both of these that is.
        """
        found = []
        for link in self.links:
            hops = self.hops(link)
            giver, reader = (self.rank_nodes[path, self.rank[path]] for path in (link.source, link.target))
            out, into = giver.goes_out(link.net), reader.comes_in(link.edge)
            if hops and out is not None:
                found.append((*hops[0], out, (into or 0.0) if len(hops) == 1 else 0.0))
            if hops and into is not None:
                found.append((*hops[-1][::-1], into, (out or 0.0) if len(hops) == 1 else 0.0))
        return [*dict.fromkeys(found)]

    def has_order(self, frame: Name, other: Name) -> bool:
        """Return whether it counts in which order a frame or a box has passages to something: above it, and below a wide box."""
        return other[1] > frame[1] or self.in_line(frame)

    def in_line(self, name: Name) -> bool:
        """Return whether several streams go straight up into something: a wide box, or a frame above others."""
        return bool(self.rank_nodes[name].ways or self.rank_nodes[name].line)

    def put_between(self, weights: Mapping[tuple[Name, Name], int], rows: Ranks) -> None:
        """Put what only level wires lead to and from in the middle between its neighbors."""
        tied = {name for hop in weights for name in hop}
        for row in rows:
            for left, one, right in zip(row, row[1:], row[2:], strict=False):
                if one not in tied:
                    a, b, c = (self.rank_nodes[name] for name in (left, one, right))
                    b.x = round((a.x + a.width / 2 + c.x - c.width / 2) / 2, 1)

    def ranks(self) -> Ranks:
        """Return what stands in each rank, from the left."""
        across = sorted(self.rank_nodes, key=lambda name: self.rank_nodes[name].x)
        return [[name for name in across if name[1] == rank] for rank in range(max(self.rank.values()) + 1)]

    def align(self) -> None:
        """Move wires that go past several ranks to one place, where there is room for them in all of these."""
        ranks = self.ranks()
        passing = Passing(self.parallel, self.links, self.rank) if self.parallel else None
        for net, path in {link.net: link.source for link in self.links}.items():
            ways = [name for name in self.rank_nodes if name[0] == net and self.rank_nodes[name].fragment is None]
            ways = [name for name in ways if not (passing and passing.in_column(*name))]
            low, high = -inf, inf
            for name in ways:
                place, width = ranks[name[1]].index(name), self.rank_nodes[name].width
                for left in map(self.rank_nodes.__getitem__, ranks[name[1]][max(place - 1, 0) : place]):
                    low = max(low, left.x + (left.width + width) / 2 + BESIDE)
                for right in map(self.rank_nodes.__getitem__, ranks[name[1]][place + 1 : place + 2]):
                    high = min(high, right.x - (right.width + width) / 2 - BESIDE)
            if len(ways) > 1 and low <= high:
                ends = [self.rank_nodes[name].x for name in ways]
                wanted = self.rank_nodes[path, self.rank[path]].x
                x = min(max(wanted if min(ends) <= wanted <= max(ends) else sorted(ends)[len(ends) // 2], low), high)
                readers = [self.rank_nodes[link.target, self.rank[link.target]].x for link in self.links if link.net == net]
                for name in ways:
                    self.rank_nodes[name].x = next((to for to in readers if abs(to - x) <= ASIDE and low <= to <= high), x)
