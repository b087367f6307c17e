"""Blocks in ranks moved to the middle of what they feed or of what feeds them, as far as there is room."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from composer.draw.layout.beside.order import Name, Ranks
from composer.draw.layout.beside.tracks import RankNode

BESIDE = 21.6
"""Between two things in a rank."""
ROUNDS = 3
"""How often all are moved: those that have moved make room for others."""


@dataclass(frozen=True, slots=True)
class Middle:
    """Blocks with their places, to be moved without any wire becoming longer."""

    rank_nodes: Mapping[Name, RankNode]
    rows: Ranks
    hops: Mapping[tuple[Name, Name], int]
    """Wires from each rank to the next, and how much each counts."""
    columns: Mapping[Name, int]
    """What moves together."""

    def center(self, fans: Sequence[tuple[Name, Collection[Name]]]) -> None:
        """Move hubs to the middle of their rows, and rows to the middle of their hubs; then hubs with the wires beside them."""
        for _ in range(ROUNDS):
            for hub, row in fans:
                self.move([hub])
                self.move(row)
        for hub, row in fans:
            self.move_with_wires(hub, row)

    def move(self, some: Collection[Name]) -> None:
        """Move things, each with its column, to the middle of all places where their wires are equally short in sum."""
        columns = {self.columns[one] for one in some}
        parts = [one for one in self.rank_nodes if self.columns[one] in columns]
        low, high = self.shortest(frozenset(parts))
        if high - low > 0.1:
            least, most = self.room(frozenset(parts))
            by = round(min(max((low + high) / 2, least), most), 1)
            for one in parts:
                self.rank_nodes[one].x = round(self.rank_nodes[one].x + by, 1)

    def move_with_wires(self, hub: Name, row: Collection[Name]) -> None:
        """Move what feeds a row to the middle of this, with its column and all values that go past others from there, where no
        wire becomes longer in sum; but for what is straight below one of the row.
        """
        column = [one for one in self.rank_nodes if self.columns[one] == self.columns[hub]]
        parts = self.led_from(column)
        ends = [self.rank_nodes[one].x - self.rank_nodes[hub].x for one in row]
        if hub[1] > min(rank for _, rank in row) or len(parts) == len(column) or any(abs(x) < 1 for x in ends):
            return
        (low, high), (least, most) = self.shortest(parts), self.room(parts)
        low, high = max(low, least), min(high, most)
        if low > high:
            return
        by = min(max(round((min(ends) + max(ends)) / 2, 1), low), high)
        for one in parts:
            self.rank_nodes[one].x = round(self.rank_nodes[one].x + by, 1)

    def led_from(self, column: Sequence[Name]) -> frozenset[Name]:
        """Return a column with the values that go past others from there, as far as these do."""
        found = {*column}
        for a, b in sorted(self.hops, key=lambda hop: hop[0][1]):
            if a in found and self.rank_nodes[b].fragment is None:
                found.add(b)
        return frozenset(found)

    def move_by(self, one: Name, by: float) -> bool:
        """Move a thing with its column, if there is room for that; return whether it is."""
        parts = frozenset(other for other in self.rank_nodes if self.columns[other] == self.columns[one])
        least, most = self.room(parts)
        if not least <= by <= most:
            return False
        for part in parts:
            self.rank_nodes[part].x += by
        return True

    def shortest(self, parts: Collection[Name]) -> tuple[float, float]:
        """Return between which distances things may be moved to have the shortest wires in sum."""
        pulls = sorted(self.pulls(parts))
        half = sum(weight for _, weight in pulls) / 2
        below = 0
        for number, (by, weight) in enumerate(pulls):
            below += weight
            if below == half:
                return by, pulls[number + 1][0]
            if below > half:
                return by, by
        return 0.0, 0.0

    def pulls(self, parts: Collection[Name]) -> Iterator[tuple[float, int]]:
        """Yield how far to move things until each wire to something else is straight, and how much it counts."""
        for (a, b), weight in self.hops.items():
            if (a in parts) != (b in parts):
                inner, outer = (a, b) if a in parts else (b, a)
                yield round(self.rank_nodes[outer].x - self.rank_nodes[inner].x, 1), weight

    def room(self, parts: Collection[Name]) -> tuple[float, float]:
        """Return how far things may be moved to the left and to the right until they are next to others; none if they are already
        nearer.
        """
        least, most = -inf, inf
        for row in self.rows:
            for a, b in pairwise(row):
                if (a in parts) != (b in parts):
                    left, right = self.rank_nodes[a], self.rank_nodes[b]
                    free = max(0.0, right.x - left.x - (left.width + right.width) / 2 - BESIDE)
                    least, most = (least, min(most, free)) if a in parts else (max(least, -free), most)
        return least, most
