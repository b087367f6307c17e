"""Areas in the plane of queries and keys, and how they look in a rectangle of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias


class AreaShape(ABC):
    """A part of the plane. Shapes that are equal look the same."""

    __slots__ = ()

    @abstractmethod
    def placed(self, q: int, k: int, height: int, width: int) -> MaskArea:
        """Return how it looks in the rectangle of `height` queries from q on and `width` keys from k on, counted from its corner:
        true or false where it covers all of it or nothing.
        """


MaskArea: TypeAlias = AreaShape | bool
"""A shape, or the whole plane, or nothing."""


def placed(area: MaskArea, q: int, k: int, height: int, width: int) -> MaskArea:
    """Return how an area looks in a rectangle; see `Shape.placed`."""
    return area if isinstance(area, bool) else area.placed(q, k, height, width)


@dataclass(frozen=True, slots=True)
class Band(AreaShape):
    """`low ≤ q − k ≤ high`; None: no border on that side."""

    low: int | None
    high: int | None

    def placed(self, q: int, k: int, height: int, width: int) -> MaskArea:
        low, high = (None if border is None else border - q + k for border in (self.low, self.high))
        low = None if low is None or low <= 1 - width else low
        high = None if high is None or high >= height - 1 else high
        if low is None and high is None:
            return True
        outside = (low is not None and low >= height) or (high is not None and high <= -width)
        return not outside and (low is None or high is None or low <= high) and Band(low, high)


@dataclass(frozen=True, slots=True)
class Below(AreaShape):
    """A position under a limit."""

    axis: Literal["q", "k"]
    limit: int

    def placed(self, q: int, k: int, height: int, width: int) -> MaskArea:
        limit = self.limit - (q if self.axis == "q" else k)
        return limit >= (height if self.axis == "q" else width) or (limit > 0 and Below(self.axis, limit))


@dataclass(frozen=True, slots=True)
class Multiple(AreaShape):
    """`step` divides `q − k + start`, for 0 ≤ start < step."""

    step: int
    start: int = 0

    def placed(self, q: int, k: int, height: int, width: int) -> MaskArea:
        start = (self.start + q - k) % self.step
        least, greatest = start - width + 1, start + height - 1
        if self.step == 1 or least == greatest == 0:
            return True
        return greatest // self.step > (least - 1) // self.step and Multiple(self.step, start)  # a multiple lies between them


@dataclass(frozen=True, slots=True)
class BlockBand(AreaShape):
    """Blocks at most `radius` apart: `|⌊(q + first_q) / block⌋ − ⌊(k + first_k) / block⌋| ≤ radius`."""

    block: int
    radius: int
    first_q: int = 0
    first_k: int = 0

    def placed(self, q: int, k: int, height: int, width: int) -> MaskArea:
        block, radius = self.block, self.radius
        q, k = q + self.first_q, k + self.first_k
        together = q // block * block  # only the distance between blocks counts
        q, k = q - together, k - together
        first = q // block - (k + width - 1) // block  # the least and the greatest distance, with their signs
        last = (q + height - 1) // block - k // block
        if -radius <= first and last <= radius:
            return True
        return -radius <= last and first <= radius and BlockBand(block, radius, q, k)


@dataclass(frozen=True, slots=True)
class No(AreaShape):
    """Where the area is not."""

    area: MaskArea

    def placed(self, q: int, k: int, height: int, width: int) -> MaskArea:
        left = placed(self.area, q, k, height, width)
        return not left if isinstance(left, bool) else No(left)


@dataclass(frozen=True, slots=True)
class All(AreaShape):
    """Where all of them are."""

    areas: tuple[MaskArea, ...]

    def placed(self, q: int, k: int, height: int, width: int) -> MaskArea:
        rest = [placed(one, q, k, height, width) for one in self.areas]
        return False not in rest and _joined(All, [one for one in rest if one is not True], True)


@dataclass(frozen=True, slots=True)
class Some(AreaShape):
    """Where at least one of them is."""

    areas: tuple[MaskArea, ...]

    def placed(self, q: int, k: int, height: int, width: int) -> MaskArea:
        rest = [placed(one, q, k, height, width) for one in self.areas]
        return True in rest or _joined(Some, [one for one in rest if one is not False], False)


def _joined(join: type[All] | type[Some], areas: list[MaskArea], empty: bool) -> MaskArea:
    distinct = tuple(dict.fromkeys(areas))
    return empty if not distinct else distinct[0] if len(distinct) == 1 else join(distinct)


# -- areas of which only a predicate is known

PairPredicate: TypeAlias = Callable[[int, int], bool]
ASKED = 2**20
"""Pairs up to which a predicate is asked for each; of larger planes only the rows that a count looks at are."""
STRETCH = 1024
"""Keys for which a row is asked at once, so that keys that something else hides are not."""


def area_of(allows: PairPredicate, queries: int, keys: int) -> MaskArea:
    """Return the area of a predicate among so many queries and keys."""
    if queries * keys > ASKED:
        return UnknownPairs(allows, 0, 0)
    return KnownPairs(tuple(_row(allows, q, range(keys)) for q in range(queries)))


@dataclass(frozen=True, slots=True)
class KnownPairs(AreaShape):
    """Pairs that are known one by one."""

    rows: tuple[int, ...]
    """For each query a number whose bit k is set where it sees key k."""

    def placed(self, q: int, k: int, height: int, width: int) -> MaskArea:
        full = (1 << width) - 1
        rows = tuple(row >> k & full for row in self.rows[q : q + height])
        rows += (0,) * (height - len(rows))
        return any(rows) and (all(row == full for row in rows) or KnownPairs(rows))


@dataclass(frozen=True, slots=True)
class UnknownPairs(AreaShape):
    """A predicate that has not been asked yet, as it looks from a corner on."""

    allows: PairPredicate
    first_q: int
    first_k: int

    def placed(self, q: int, k: int, height: int, width: int) -> MaskArea:
        q, k = q + self.first_q, k + self.first_k
        if height > 1 or width > STRETCH:
            return UnknownPairs(self.allows, q, k)
        return KnownPairs((_row(self.allows, q, range(k, k + width)),)).placed(0, 0, 1, width)


def _row(allows: PairPredicate, q: int, keys: Iterable[int]) -> int:
    return int("".join("1" if allows(q, k) else "0" for k in keys)[::-1], 2)
