"""In which order things stand in ranks: wires cross as rarely as they can, then the order of the recipe."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

Name: TypeAlias = tuple[str, int]
"""A block and its rank; or the value of a block on its way through a rank above it."""
Ranks: TypeAlias = Sequence[Sequence[Name]]
"""What stands in each rank, from the left."""
MAX_ROUNDS = 12
"""How often all exchanges are tried: each makes the order better, so there is an end, and it is near."""


@dataclass(frozen=True, slots=True)
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
    """Of frames with several passages and what is next above each of these, how far from the middle of the frame that is."""

    def in_recipe_order(self, rows: Ranks) -> Ranks:
        """Return the ranks with blocks, or whole columns, exchanged until no exchange has fewer crossings, or as many and
        more blocks in the order of the recipe, or wires in the middle of what they go past; their mirror image, if that has.
        """
        mirrored = [row[::-1] for row in rows]
        best = min((rows, mirrored), key=self.inverted) if len(self.first) < 2 else rows
        cost = self.cost(best)
        for _ in range(MAX_ROUNDS):
            before = cost
            for rank in range(len(rows)):
                for a, b in combinations(best[rank], 2):
                    if self.may_change(a, b):
                        for other in (self.exchanged(best, a, b), self.columns_exchanged(best, a, b)):
                            if self.keeps_first(other) and self.cost(other) < cost:
                                best, cost = other, self.cost(other)
                                break
            if cost == before:
                break
        return best

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

    def cost(self, rows: Ranks) -> tuple[int, int, int]:
        """Return how many wires cross; then how many blocks are not in the recipe's order; then how far wires are from the middle
        of what they go past.
        """
        return self.crossings(rows), self.inverted(rows), self.aside(rows)

    def crossings(self, rows: Ranks) -> int:
        """Return how many wires between neighboring ranks cross."""
        place = {name: number for row in rows for number, name in enumerate(row)}
        count = 0
        for rank in range(1, len(rows)):
            ends: list[int] = []
            ways = ((place[a], self.ports.get((a, b), 0.0), place[b]) for a, b in self.hops if b[1] == rank)
            for _, _, high in sorted(ways):
                count += len(ends) - bisect_left(ends, high + 1)
                insort(ends, high)
        return count

    def inverted(self, rows: Ranks) -> int:
        """Return how many pairs of blocks in a rank are not in the recipe's order."""
        numbered = ([self.number[one] for one in row if one in self.number] for row in rows)
        return sum(a > b for row in numbered for a, b in combinations(row, 2))

    def aside(self, rows: Ranks) -> int:
        """Return how many more blocks stand at one side of wires that feed them than at the other."""
        places = [{name: number for number, name in enumerate(row)} for row in rows]
        sides = ((places[wire[1]][wire] > places[wire[1]][one] for one in fed) for wire, fed in self.fans.items())
        return sum(abs(2 * sum(before) - len(self.fans[wire])) for before, wire in zip(map(list, sides), self.fans, strict=True))


def columns_of(names: Collection[Name], pairs: Collection[tuple[Name, Name]]) -> dict[Name, int]:
    """Return a number for each thing, the same for those that pairs connect."""
    found = {name: number for number, name in enumerate(names)}
    for a, b in pairs:
        old, new = found[a], found[b]
        if old != new:
            found = {name: new if number == old else number for name, number in found.items()}
    return found
