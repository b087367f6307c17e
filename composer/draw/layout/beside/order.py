"""In which order things stand in ranks: wires cross as rarely as they can, then the order of the recipe."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations, permutations, product
from operator import itemgetter
from typing import TypeAlias

Name: TypeAlias = tuple[str, int]
"""A block and its rank; or the value of a block on its way through a rank above it."""
Ranks: TypeAlias = Sequence[Sequence[Name]]
"""What stands in each rank, from the left."""
Kin: TypeAlias = Mapping[Name, tuple[str, int]]
"""Of blocks, what each is called, and its place in the recipe."""
NO_WIRE = -1
"""In place of the number of a column, of what is no wire."""
MAX_CHANGES = 60
"""How often an order is changed: each time it becomes better, so there is an end, and it is near."""


@dataclass(frozen=True, eq=False)
class Ordering:
    """What makes one order of ranks better than another."""

    hops: Sequence[tuple[Name, Name]]
    """Wires from each rank to the next."""
    number: Mapping[Name, int]
    """Of each block in the recipe."""
    columns: Mapping[Name, int]
    """Which things are one stream, and so in one column."""
    first: Sequence[Name]
    """What stands in this order in the lowest rank."""
    fans: Mapping[Name, Collection[Name]]
    """Of each value that goes past some of what it feeds, these."""
    ports: Mapping[tuple[Name, Name], float]
    """Of frames with several passages and what is next above each of these, how far from the middle of the frame that is; of
    boxes that several streams go through, what is next below each of these too.
    """
    kin: Kin = field(default_factory=dict)
    """What stands in the order of the recipe rather than all others."""
    ways: Mapping[Name, tuple[Name, Collection[Name]]] = field(default_factory=dict)
    """Of each value on its way through a rank, the block that it comes from and those that read it."""
    siblings: Sequence[Sequence[Name]] = ()
    """Rows of alike blocks that one block reads, which stand together, in its order."""

    @cached_property
    def hops_to(self) -> Mapping[int, Sequence[tuple[Name, Name]]]:
        """The wires to each rank from the one below."""
        found: dict[int, list[tuple[Name, Name]]] = {}
        for hop in self.hops:
            found.setdefault(hop[1][1], []).append(hop)
        return found

    @cached_property
    def key(self) -> tuple[object, ...]:
        """All that is told of an order."""
        told = self.number, self.columns, self.ports, self.kin
        fans = tuple((wire, *fed) for wire, fed in self.fans.items())
        ways = tuple((wire, source, *readers) for wire, (source, readers) in self.ways.items())
        return (
            tuple(self.hops),
            tuple(self.first),
            tuple(map(tuple, self.siblings)),
            fans,
            ways,
            *(tuple(each.items()) for each in told),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ordering) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def in_recipe_order(self, rows: Ranks) -> Ranks:
        """Return the ranks in the best order that is found: from theirs or its mirror image, or with all columns in the order of
        the recipe at first.
        """
        return _best_order(self, tuple(map(tuple, rows)))

    def best_order(self, rows: Ranks) -> Ranks:
        """Return the same, looked for anew."""
        mirrored = [row[::-1] for row in rows]
        usual = min((rows, mirrored), key=self.inverted) if len(self.first) < 2 else rows
        starts = [one for one in (usual, *([self.by_columns(rows)] if self.kin else [])) if self.keeps_first(one)]
        return min((self.improved(start) for start in starts or [rows]), key=self.cost)

    def improved(self, rows: Ranks) -> Ranks:
        """Return the ranks changed until no change makes fewer crossings, or as many and more blocks in the order of the recipe,
        or wires in the middle of what they go past.
        """
        best = rows
        for _ in range(MAX_CHANGES):
            least, other = min(self.gains(best), key=itemgetter(0), default=((), best))
            if other is best or least >= (0,) * len(least):
                break
            best = other
        return best

    def gains(self, rows: Ranks) -> Iterator[tuple[tuple[int, ...], Ranks]]:
        """Yield what each change costs more than the ranks as they are, which is less than nothing where it is better. Only ranks
        that it changes and their neighbors are looked at: of many ranks, a change leaves most as they are.
        """
        now = [self.cost_at(rank, rows) for rank in range(len(rows))]
        for other in self.changes(rows):
            changed = [rank for rank, row in enumerate(other) if row is not rows[rank] and row != rows[rank]]
            if changed and self.keeps_first(other):
                near = {*changed, *(rank + 1 for rank in changed if rank + 1 < len(rows))}
                costs = [[new - old for new, old in zip(self.cost_at(rank, other), now[rank], strict=True)] for rank in near]
                yield tuple(map(sum, zip(*costs, strict=True))), other

    def changes(self, rows: Ranks) -> Iterator[Ranks]:
        """Yield the ranks with two blocks, or their columns, in each other's place, and with a column moved past others."""
        for a, b in (pair for row in rows for pair in combinations(row, 2)):
            if self.may_change(a, b):
                yield self.exchanged(rows, a, b)
                yield self.columns_exchanged(rows, a, b)
        for one, other in permutations(self.outermost_first(), 2):
            yield self.moved(rows, self.columns, one, other)
        if self.siblings:  # which keep their order where the wires to them take another
            wires = {**self.columns, **dict.fromkeys(self.number, NO_WIRE)}
            for one, other in product({*wires.values()} - {NO_WIRE}, {*self.columns.values()}):
                yield self.moved(rows, wires, one, other)

    def outermost_first(self) -> list[int]:
        """Return the columns, those of wires alone before others, and of these the long ones first, which go around others."""
        high, blocks = Counter(self.columns.values()), {self.columns[name] for name in self.number}
        return sorted(high, key=lambda column: (column in blocks, -high[column]))

    def by_columns(self, rows: Ranks) -> Ranks:
        """Return the ranks with the columns in the order of the last blocks in each; wires stand where they lead to."""
        last: dict[int, int] = {}
        for name, (_, number) in self.kin.items():
            column = self.columns[name]
            last[column] = max(number, last.get(column, number))
        for a, b in sorted(self.hops, key=lambda hop: hop[0][1], reverse=True):
            last.setdefault(self.columns[a], last.get(self.columns[b], 0))
        return [sorted(row, key=lambda one: last[self.columns[one]]) for row in rows]

    def by_siblings(self, rows: Ranks) -> Ranks:
        """Return the ranks with siblings together, and the columns of all else where they end."""
        place = {name: float(at) for row in rows for at, name in enumerate(row)}
        for row in self.siblings:
            middle = sum(place[name] for name in row) / len(row)
            place |= {name: middle + at / len(rows) / 1000 for at, name in enumerate(row)}
        key = {self.columns[name]: place[name] for row in self.siblings for name in row}
        for a, b in sorted(self.hops, key=lambda hop: hop[0][1], reverse=True):
            if self.columns[b] in key:
                key.setdefault(self.columns[a], key[self.columns[b]])
        return [sorted(row, key=lambda name: key.get(self.columns[name], place[name])) for row in rows]

    def moved(self, rows: Ranks, moving: Mapping[Name, int], column: int, other: int) -> Ranks:
        """Return the ranks with what is `moving` of a column at the far side of another, wherever both are in a rank."""

        def beside(row: Sequence[Name]) -> Sequence[Name]:
            here = next((place for place, name in enumerate(row) if moving[name] == column), None)
            there = next((place for place, name in enumerate(row) if self.columns[name] == other), None)
            if here is None or there is None or here == there:
                return row
            rest = [*row[:here], *row[here + 1 :]]
            return [*rest[:there], row[here], *rest[there:]]

        return [beside(row) for row in rows]

    def may_change(self, a: Name, b: Name) -> bool:
        """Return whether a thing may stand better at the right of another."""
        wrong = self.number.get(a, -1) > self.number.get(b, len(self.number))
        by_frame = any((frame, a) in self.ports and (frame, b) in self.ports for frame, _ in self.ports)
        return wrong or by_frame or a in self.fans.get(b, ()) or b in self.fans.get(a, ())

    def exchanged(self, rows: Ranks, a: Name, b: Name) -> Ranks:
        """Return the ranks with two things in each other's place."""
        other = {a: b, b: a}
        return [[other.get(one, one) for one in row] if rank == a[1] else row for rank, row in enumerate(rows)]

    def columns_exchanged(self, rows: Ranks, a: Name, b: Name) -> Ranks:
        """Return the ranks with the columns of two things in each other's place, wherever both are in a rank."""
        for rank, row in enumerate(rows):
            here = {self.columns[one]: one for one in row if self.columns[one] in (self.columns[a], self.columns[b])}
            if len(here) == 2:
                rows = self.exchanged(rows, *((one, rank) for one, _ in here.values()))
        return rows

    def keeps_first(self, rows: Ranks) -> bool:
        """Return whether the lowest rank has its order."""
        return [one for one in rows[0] if one in self.first] == [*self.first]

    def cost(self, rows: Ranks) -> tuple[int, ...]:
        """Return what ranks cost together; the less, the better is their order."""
        return tuple(map(sum, zip(*(self.cost_at(rank, rows) for rank in range(len(rows))), strict=True)))

    def cost_at(self, rank: int, rows: Ranks) -> tuple[int, ...]:
        """Return how far siblings in a rank are from standing together; then how many wires cross below it; then how many blocks
        in it that are called the same are not in the recipe's order; then how many of all blocks; then how far wires are from
        the middle of what they go past, and how many go around something.
        """
        row = rows[rank]
        order = turned([row], self.kin), self.inverted([row])
        return self.scattered(rank, row), self.crossings_below(rank, rows), *order, self.aside(row), self.around(row)

    def scattered(self, rank: int, row: Sequence[Name]) -> int:
        """Return how many pairs of siblings in a rank are not in their order, and how many other blocks stand between some."""
        found = 0
        numbered = [one for one in row if one in self.number]
        for several in (each for each in self.siblings if each[0][1] == rank):
            places = [numbered.index(one) for one in several]
            found += sum(a > b for a, b in combinations(places, 2)) + max(places) - min(places) + 1 - len(places)
        return found

    def crossings_below(self, rank: int, rows: Ranks) -> int:
        """Return how many wires cross between a rank and the one below it."""
        if not rank:
            return 0
        place = {name: number for row in rows[rank - 1 : rank + 1] for number, name in enumerate(row)}
        count = 0
        ports = self.ports
        ends: list[tuple[int, float]] = []
        hops = self.hops_to.get(rank, ())
        for way in sorted((place[a], ports.get((a, b), 0.0), place[b], ports.get((b, a), 0.0)) for a, b in hops):
            end = way[2:]
            count += len(ends) - bisect_right(ends, end)
            insort(ends, end)
        return count

    def inverted(self, rows: Ranks) -> int:
        """Return how many pairs of blocks in a rank are not in the recipe's order."""
        numbered = ([self.number[one] for one in row if one in self.number] for row in rows)
        return sum(a > b for row in numbered for a, b in combinations(row, 2))

    def aside(self, row: Sequence[Name]) -> int:
        """Return how many more blocks of a rank stand at one side of wires that feed them than at the other."""
        places = {name: number for number, name in enumerate(row)}
        fans = ((place, self.fans[wire]) for wire, place in places.items() if wire in self.fans)
        return sum(abs(2 * sum(place > places[one] for one in fed) - len(fed)) for place, fed in fans)

    def around(self, row: Sequence[Name]) -> int:
        """Return how often values go past the column that they come from at the other side than where they end, in a rank."""
        count = 0
        places = {self.columns[name]: place for place, name in enumerate(row)}
        for place, name in enumerate(row):
            source, readers = self.ways.get(name, (name, ()))
            own = places.get(self.columns[source], place)
            ends = {places[self.columns[one]] for one in readers if self.columns[one] in places} - {own}
            count += own != place and bool(ends) and all((place > own) != (end > own) for end in ends)
        return count


@lru_cache(maxsize=64)
def _best_order(ordering: Ordering, rows: tuple[tuple[Name, ...], ...]) -> Ranks:
    """Return the best order of ranks, looked for once: a page is laid out again until all fits, most of it as before."""
    return [list(row) for row in ordering.best_order([list(row) for row in rows])]


def turned(rows: Ranks, kin: Kin) -> int:
    """Return how many pairs of blocks in a rank that are called the same are not in the recipe's order."""
    called = ([kin[one] for one in row if one in kin] for row in rows)
    return sum(a > b and kind == other for row in called for (kind, a), (other, b) in combinations(row, 2))


def columns_of(names: Collection[Name], pairs: Collection[tuple[Name, Name]]) -> dict[Name, int]:
    """Return a number for each thing, the same for those that pairs connect."""
    found = {name: number for number, name in enumerate(names)}
    for a, b in pairs:
        old, new = found[a], found[b]
        if old != new:
            found = {name: new if number == old else number for name, number in found.items()}
    return found


def lines_of(names: Collection[Name], weights: Mapping[tuple[Name, Name], int], passing: Collection[Name]) -> dict[Name, int]:
    """Return a number for each thing, the same for those that stand above each other: what wires connect, those first that count
    most, one in each rank; of the lightest wires, only what is `passing` and where it ends.
    """
    number = {name: at for at, name in enumerate(names)}
    members: dict[int, list[Name]] = {at: [name] for name, at in number.items()}
    for (a, b), weight in sorted(weights.items(), key=lambda one: -one[1]):
        one, other = number[a], number[b]
        ranks = {rank for _, rank in members[one]}
        if one != other and (weight > 1 or a in passing) and ranks.isdisjoint(rank for _, rank in members[other]):
            members[one] += members.pop(other)
            number |= dict.fromkeys(members[one], one)
    return number
