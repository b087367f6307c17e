"""Areas in the plane of queries and keys, and their restriction to rectangles of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias


class AreaShape(ABC):
    """A part of the plane; equal shapes contain the same pairs."""

    __slots__ = ()

    @abstractmethod
    def placed(self, q: int, k: int, height: int, width: int) -> MaskArea:
        """Return the shape in the rectangle of `height` queries from q on and `width` keys from k on, with coordinates from its
        corner: True or False if it covers all or nothing of the rectangle.
        """


MaskArea: TypeAlias = AreaShape | bool
"""A shape, True for the whole plane, or False for nothing."""


def placed(area: MaskArea, q: int, k: int, height: int, width: int) -> MaskArea:
    """Return the restriction of an area to a rectangle; see `AreaShape.placed`."""
    return area if isinstance(area, bool) else area.placed(q, k, height, width)


@dataclass(frozen=True, slots=True)
class Band(AreaShape):
    """`low ≤ q − k ≤ high`; None for no bound on that side."""

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
    """A position below a limit."""

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
        together = q // block * block  # only the distance between blocks matters
        q, k = q - together, k - together
        first = q // block - (k + width - 1) // block  # the smallest and the largest signed distance
        last = (q + height - 1) // block - k // block
        if -radius <= first and last <= radius:
            return True
        return -radius <= last and first <= radius and BlockBand(block, radius, q, k)


@dataclass(frozen=True, slots=True)
class No(AreaShape):
    """The complement of an area."""

    area: MaskArea

    def placed(self, q: int, k: int, height: int, width: int) -> MaskArea:
        left = placed(self.area, q, k, height, width)
        return not left if isinstance(left, bool) else No(left)


@dataclass(frozen=True, slots=True)
class All(AreaShape):
    """The intersection of areas."""

    areas: tuple[MaskArea, ...]

    def placed(self, q: int, k: int, height: int, width: int) -> MaskArea:
        rest = [placed(one, q, k, height, width) for one in self.areas]
        return False not in rest and _joined(All, [one for one in rest if one is not True], True)


@dataclass(frozen=True, slots=True)
class Some(AreaShape):
    """The union of areas."""

    areas: tuple[MaskArea, ...]

    def placed(self, q: int, k: int, height: int, width: int) -> MaskArea:
        rest = [placed(one, q, k, height, width) for one in self.areas]
        return True in rest or _joined(Some, [one for one in rest if one is not False], False)


def _joined(join: type[All] | type[Some], areas: list[MaskArea], empty: bool) -> MaskArea:
    distinct = tuple(dict.fromkeys(areas))
    return empty if not distinct else distinct[0] if len(distinct) == 1 else join(distinct)


# -- areas given only by a predicate

PairPredicate: TypeAlias = Callable[[int, int], bool]
ASKED = 2**20
"""Most pairs for which a predicate is evaluated one by one; in larger planes, only for the rows that a count samples."""
STRETCH = 1024
"""Keys of a row that are evaluated at a time, so that keys hidden by another mask are skipped."""


def area_of(allows: PairPredicate, queries: int, keys: int) -> MaskArea:
    """Return the area of a predicate for given numbers of queries and keys."""
    if queries * keys > ASKED:
        return UnknownPairs(allows, 0, 0)
    return KnownPairs(tuple(_row(allows, q, range(keys)) for q in range(queries)))


@dataclass(frozen=True, slots=True)
class KnownPairs(AreaShape):
    """An area given by all of its pairs."""

    rows: tuple[int, ...]
    """For each query a number whose bit k is set where it sees key k."""

    def placed(self, q: int, k: int, height: int, width: int) -> MaskArea:
        full = (1 << width) - 1
        rows = tuple(row >> k & full for row in self.rows[q : q + height])
        rows += (0,) * (height - len(rows))
        return any(rows) and (all(row == full for row in rows) or KnownPairs(rows))


@dataclass(frozen=True, slots=True)
class UnknownPairs(AreaShape):
    """An area given by a predicate that is not evaluated yet, with coordinates from a corner."""

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
