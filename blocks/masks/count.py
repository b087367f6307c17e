"""Counting the pairs that a mask allows, without visiting each."""

from __future__ import annotations

import random
from collections import Counter
from functools import lru_cache

from blocks.masks.areas import All, Below, MaskArea, placed
from blocks.masks.mask import Mask

MAX_SQUARE_KINDS = 5_000
"""Most kinds of squares of one size that are counted exactly. With more kinds (long texts under `random`, or under chunks of
several lengths), the count is an estimate.
"""
SAMPLED = 100
"""Number of queries that an estimate samples."""


@lru_cache(maxsize=256)
def visible(mask: Mask, queries: int, keys: int) -> int:
    """Return the number of (query, key) pairs that a mask allows among positions 0 … queries − 1 and 0 … keys − 1.

    Pairs that depend on data count as allowed. Masks that are too irregular are estimated from queries sampled over the text.
    """
    size = 1 << (max(queries, keys) - 1).bit_length()
    area = All((Below("q", queries), Below("k", keys), mask.area(queries, keys, True)))
    exact = _count(placed(area, 0, 0, size, size), size, size, MAX_SQUARE_KINDS)
    if exact is not None:
        return exact
    draw = random.Random(0)
    rows = [int((stretch + draw.random()) * queries / SAMPLED) for stretch in range(SAMPLED)]
    return sum(_count(placed(area, q, 0, 1, size), 1, size) or 0 for q in rows) * queries // SAMPLED


def _count(area: MaskArea, height: int, width: int, most: int | None = None) -> int | None:
    """Return the number of pairs of an area in a rectangle, or None if there are more kinds of pieces than `most`.

    A piece that is neither allowed nor hidden as a whole is halved on each side, down to single pairs. Pieces with the same
    area are counted once: along a diagonal there are few kinds, however long it is.
    """
    total, pieces = 0, Counter({area: 1})
    while pieces and (most is None or len(pieces) <= most):
        smaller: Counter[MaskArea] = Counter()
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
