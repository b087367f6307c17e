"""How many pairs a mask leaves, without looking at each."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache

from blocks.masks.by_block import BlockWindow, Chunk, Dilated, Strided
from blocks.masks.by_chance import Random
from blocks.masks.by_data import Prefix
from blocks.masks.by_position import Causal, First, Full, Last, Lookahead, Near, Window
from blocks.masks.mask import Mask
from blocks.masks.operators import And, Not, Or
from blocks.masks.squares import All, Band, Below, Blocks, Drawn, Multiple, No, Shape, Some, placed

MOST = 5_000
"""Kinds of squares of one size that are told apart. Where there are more (long texts under `random`, or under chunks of several
lengths), the count is an estimate.
"""
SAMPLED = 100
"""Queries that an estimate looks at."""


@cache
def visible(mask: Mask, queries: int, keys: int) -> int:
    """The number of (query, key) pairs that a mask allows among positions 0 … queries − 1 and 0 … keys − 1.

    What only data decides counts as seen. Masks too irregular for that are counted at queries drawn from all over the text.
    """
    size = 1 << (max(queries, keys) - 1).bit_length()
    shape = All((Below("q", queries), Below("k", keys), _shape(mask, queries, keys, True)))
    exact = _count(placed(shape, 0, 0, size, size), size, size, MOST)
    if exact is not None:
        return exact
    draw = random.Random(0)
    rows = [int((stretch + draw.random()) * queries / SAMPLED) for stretch in range(SAMPLED)]
    return sum(_count(placed(shape, q, 0, 1, size), 1, size) or 0 for q in rows) * queries // SAMPLED


def _count(shape: Shape | bool, height: int, width: int, most: int | None = None) -> int | None:
    """The pairs of a shape in a rectangle, None where there are more kinds of pieces than `most`.

    What is neither seen nor hidden as a whole is cut in half on each side, down to single pairs. Pieces in which the shape looks
    the same are counted together: along a diagonal there are few kinds, however long it is.
    """
    total, pieces = 0, Counter({shape: 1})
    while pieces and (most is None or len(pieces) <= most):
        smaller: Counter[Shape | bool] = Counter()
        rows, columns = {0, height // 2}, {0, width // 2}
        for found, times in pieces.items():
            if found is True:
                total += times * height * width
            elif found is not False:
                for q in rows:
                    for k in columns:
                        smaller[placed(found, q, k, -(-height // 2), -(-width // 2))] += times
        pieces, height, width = smaller, -(-height // 2), -(-width // 2)
    return None if pieces else total


def _shape(mask: Mask, queries: int, keys: int, seen: bool) -> Shape | bool:
    """What a mask looks like in the plane; `seen` for what has no shape that is known: data, and kinds from elsewhere."""
    match mask:
        case And(left=left, right=right):
            return All((_shape(left, queries, keys, seen), _shape(right, queries, keys, seen)))
        case Or(left=left, right=right):
            return Some((_shape(left, queries, keys, seen), _shape(right, queries, keys, seen)))
        case Not(mask=inner):
            return No(_shape(inner, queries, keys, not seen))
        case Full():
            return True
        case Causal():
            return Band(0, None)
        case Lookahead(count=count):
            return Band(-count, None)
        case Window(width=width):
            return Band(1 - width, width - 1)
        case Near(radius=radius):
            return Band(-radius, radius)
        case Dilated(width=width, step=step):
            return All((Band(1 - width * step, width * step - 1), Multiple(step, 0)))
        case Strided(step=step):
            return Multiple(step, 0)
        case Chunk(length=length):
            return Blocks(length, 0, 0, 0)
        case BlockWindow(block=block, radius=radius):
            return Blocks(block, radius, 0, 0)
        case First(count=count):
            return Some((Below("q", count), Below("k", count)))
        case Last(count=count):
            return Some((No(Below("q", queries - count)), No(Below("k", keys - count))))
        case Prefix(length=int(length)):
            return Below("k", length)
        case Random(count=count, block=block, seed=seed):
            return Drawn(count, block, seed, 0, 0)
    return seen
