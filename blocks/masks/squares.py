"""Shapes in the plane of queries and keys, and how they look in a rectangle of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from blocks.masks.by_chance import drawn


@dataclass(frozen=True, slots=True)
class Band:
    """`low ≤ q − k ≤ high`; None: no border on that side."""

    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class Below:
    """A position under a limit."""

    axis: Literal["q", "k"]
    limit: int


@dataclass(frozen=True, slots=True)
class Multiple:
    """`step` divides `q − k + start`, for 0 ≤ start < step."""

    step: int
    start: int


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks at most `radius` apart: `|⌊(q + first_q) / block⌋ − ⌊(k + first_k) / block⌋| ≤ radius`."""

    block: int
    radius: int
    first_q: int
    first_k: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """The block of `k + first_k` is among those drawn for the block of `q + first_q`."""

    count: int
    block: int
    seed: int
    first_q: int
    first_k: int


@dataclass(frozen=True, slots=True)
class No:
    """Where the shape is not."""

    shape: Shape | bool


@dataclass(frozen=True, slots=True)
class All:
    """Where all of them are."""

    shapes: tuple[Shape | bool, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """Where at least one of them is."""

    shapes: tuple[Shape | bool, ...]


MANY = 256
"""Blocks of queries whose draws are not gone through: some of them see something of the rectangle."""
Shape: TypeAlias = Band | Below | Multiple | Blocks | Drawn | No | All | Some


def placed(shape: Shape | bool, q: int, k: int, height: int, width: int) -> Shape | bool:
    """A shape as it looks in the rectangle of `height` queries from q on and `width` keys from k on, counted from its corner:
    true or false where it covers all of it or nothing. What looks the same is equal.
    """
    match shape:
        case Band(low, high):
            low, high = (None if border is None else border - q + k for border in (low, high))
            low = None if low is None or low <= 1 - width else low
            high = None if high is None or high >= height - 1 else high
            if low is None and high is None:
                return True
            outside = (low is not None and low >= height) or (high is not None and high <= -width)
            return not outside and (low is None or high is None or low <= high) and Band(low, high)
        case Below(axis, limit):
            limit -= q if axis == "q" else k
            return limit >= (height if axis == "q" else width) or (limit > 0 and Below(axis, limit))
        case Multiple(step, start):
            start = (start + q - k) % step
            least, greatest = start - width + 1, start + height - 1
            if step == 1 or least == greatest == 0:
                return True
            return greatest // step > (least - 1) // step and Multiple(step, start)  # a multiple lies between them
        case Blocks():
            return _blocks(shape, q, k, height, width)
        case Drawn():
            return _drawn(shape, q, k, height, width)
        case No(inner):
            left = placed(inner, q, k, height, width)
            return not left if isinstance(left, bool) else No(left)
        case All(shapes):
            rest = [placed(one, q, k, height, width) for one in shapes]
            return False not in rest and _joined(All, [one for one in rest if one is not True], True)
        case Some(shapes):
            rest = [placed(one, q, k, height, width) for one in shapes]
            return True in rest or _joined(Some, [one for one in rest if one is not False], False)
    return shape


def _joined(join: type[All] | type[Some], shapes: list[Shape | bool], empty: bool) -> Shape | bool:
    distinct = tuple(dict.fromkeys(shapes))
    return empty if not distinct else distinct[0] if len(distinct) == 1 else join(distinct)


def _blocks(shape: Blocks, q: int, k: int, height: int, width: int) -> Blocks | bool:
    block, radius = shape.block, shape.radius
    q, k = q + shape.first_q, k + shape.first_k
    together = q // block * block  # only the distance between blocks counts
    q, k = q - together, k - together
    first = q // block - (k + width - 1) // block  # the least and the greatest distance, with their signs
    last = (q + height - 1) // block - k // block
    if -radius <= first and last <= radius:
        return True
    return -radius <= last and first <= radius and Blocks(block, radius, q, k)


def _drawn(shape: Drawn, q: int, k: int, height: int, width: int) -> Drawn | bool:
    block, q, k = shape.block, q + shape.first_q, k + shape.first_k
    blocks = range(q // block, (q + height - 1) // block + 1)
    first, last = k // block, (k + width - 1) // block
    reached = len(blocks) > MANY or any(first <= one <= last for b in blocks for one in _blocks_drawn(shape.count, b, shape.seed))
    if not reached or (first == last and len(blocks) == 1):
        return reached
    return Drawn(shape.count, block, shape.seed, q, k)


@cache
def _blocks_drawn(count: int, b: int, seed: int) -> list[int]:
    return drawn(count, b, seed)
