"""How many pairs a mask leaves, in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from blocks.masks.by_data import Prefix
from blocks.masks.by_position import Causal, First, Full, Near, Window
from blocks.masks.mask import Mask
from blocks.masks.operators import And, Not, Or


def visible(mask: Mask, queries: int, keys: int) -> int:
    """The number of (query, key) pairs that a mask allows among positions 0 … queries − 1 and 0 … keys − 1.

    What only data decides counts as seen. The borders of a mask are straight lines in the plane of q and k: they cut it
    into cells that are seen as a whole or not at all, and one pair of each cell tells which. The cost does not depend on
    the number of positions.
    """
    mask = _at_most(mask, True)
    borders = _borders(mask)
    lines = [_Line(1, start) for start in borders.diagonals] + [_Line(0, start) for start in borders.keys | {0, keys}]
    crossings = {flat.start - steep.start for flat in lines for steep in lines if flat.slope < steep.slope}
    turns = sorted({0, queries} | {q for q in borders.queries | crossings if 0 < q < queries})
    return sum(_visible_between(mask, lines, first, stop, keys) for first, stop in pairwise(turns))


@dataclass(frozen=True, slots=True)
class _Line:
    """Where a row of the plane is cut: at key `start + slope · q`."""

    slope: int
    start: int

    def at(self, q: int) -> int:
        return self.start + self.slope * q


@dataclass(frozen=True, slots=True)
class _Borders:
    """Where a mask may change: across `k = q + diagonal`, across `k = key`, across `q = query`."""

    diagonals: frozenset[int] = frozenset()
    keys: frozenset[int] = frozenset()
    queries: frozenset[int] = frozenset()

    def __or__(self, other: _Borders) -> _Borders:
        return _Borders(self.diagonals | other.diagonals, self.keys | other.keys, self.queries | other.queries)


def _visible_between(mask: Mask, lines: list[_Line], first: int, stop: int, keys: int) -> int:
    """The visible pairs of the queries `first` … `stop − 1`, among which no two lines cross."""
    last = stop - 1
    total = 0
    for low, high in pairwise(sorted(lines, key=lambda line: (line.at(first), line.slope))):
        q = first if low.slope > high.slope else last  # where the cell is widest
        k = low.at(q)
        if 0 <= k < min(keys, high.at(q)) and mask.allows(q, k):
            widths = high.at(first) - low.at(first), high.at(last) - low.at(last)
            total += (stop - first) * sum(widths) // 2  # an arithmetic series
    return total


def _borders(mask: Mask) -> _Borders:
    match mask:
        case And(left=left, right=right) | Or(left=left, right=right):
            return _borders(left) | _borders(right)
        case Not(mask=inner):
            return _borders(inner)
        case Causal():
            return _Borders(diagonals=frozenset({1}))
        case Window(width=width):
            return _Borders(diagonals=frozenset({1 - width, width}))
        case Near(radius=radius):
            return _Borders(diagonals=frozenset({-radius, radius + 1}))
        case First(count=count):
            return _Borders(keys=frozenset({count}), queries=frozenset({count}))
        case Prefix(length=int(length)):
            return _Borders(keys=frozenset({length}))
    return _Borders()


def _at_most(mask: Mask, seen: bool) -> Mask:
    """The mask with `seen` for what has no borders that are known: data, and kinds that come from elsewhere."""
    match mask:
        case And(left=left, right=right):
            return And(left=_at_most(left, seen), right=_at_most(right, seen))
        case Or(left=left, right=right):
            return Or(left=_at_most(left, seen), right=_at_most(right, seen))
        case Not(mask=inner):
            return Not(mask=_at_most(inner, not seen))
        case Full() | Causal() | Window() | Near() | First() | Prefix(length=int()):
            return mask
    return Full() if seen else Not(mask=Full())
