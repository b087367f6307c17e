"""Whether a mask lets a query see later keys, decided without visiting each pair."""

from __future__ import annotations

from functools import lru_cache

from blocks.masks.areas import All, Band, MaskArea, UnknownPairs, placed
from blocks.masks.mask import Mask
from blocks.masks.operators import And, Or

FAR = 2**17
"""Number of positions that are looked at; more for a mask with larger numbers."""
NEAR = 128
"""Number of positions all of whose pairs are looked at for a mask that only its predicate describes."""
MOST_KINDS = 5_000
"""Most kinds of squares of one size that are told apart; with more, pairs are sampled."""


def first_ahead(mask: Mask, optional: frozenset[str] = frozenset(), *, prefixes: bool = False) -> tuple[int, int] | None:
    """Return a query and a later key that it may see, an early one if there is one; None if no query sees ahead.

    Pairs that depend on data count as seen. A prefix that is always given counts as empty, unless `prefixes` is set: all of it is
    there in the first call of a session. `optional` are the edges that may be absent.
    """
    return _ahead(mask if prefixes else mask.continued(optional))


def needs_end(mask: Mask) -> bool:
    """Return whether a mask, or a part of it, depends on which positions are last."""
    return mask.needs_ends or any(needs_end(part) for part in mask.inner())


@lru_cache(maxsize=512)
def _ahead(mask: Mask) -> tuple[int, int] | None:
    structure = mask.structure()
    if structure is not None and structure.causal:
        return None
    if isinstance(mask, And | Or):
        sides = [_ahead(side) for side in (mask.left, mask.right)]
        if (None in sides) if isinstance(mask, And) else (sides == [None, None]):
            return None
    near = _first(mask, NEAR)
    if near is not None:
        return near
    count = max(FAR, 4 * _largest(mask))
    area = All((mask.area(count, count, True), Band(None, -1)))
    return _sampled(area, count) if _is_opaque(area) else _searched(area, count)


def _first(mask: Mask, count: int) -> tuple[int, int] | None:
    """Return the first query that sees a later key, among a few positions."""
    area = All((mask.area(count, count, True), Band(None, -1)))
    rows = ((q, placed(area, q, 0, 1, count)) for q in range(count))
    pairs = ((q, k, row) for q, row in rows if row is not False for k in range(q + 1, count))
    return next(((q, k) for q, k, row in pairs if placed(row, 0, k, 1, 1) is True), None)


def _searched(area: MaskArea, count: int) -> tuple[int, int] | None:
    """Return a pair of an area, or None if it is empty. A square that is neither empty nor full is halved on each side, and
    squares with the same area are looked at once.
    """
    side = 1 << (count - 1).bit_length()
    pieces = {placed(area, 0, 0, side, side): (0, 0)}
    while pieces and len(pieces) <= MOST_KINDS:
        if True in pieces:
            return pieces[True]
        half = max(1, side // 2)
        smaller: dict[MaskArea, tuple[int, int]] = {}
        for piece, (q, k) in pieces.items():
            if piece is not False:
                for down in {0, side - half}:
                    for right in {0, side - half}:
                        smaller.setdefault(placed(piece, down, right, half, half), (q + down, k + right))
        pieces, side = smaller, half
        pieces.pop(False, None)
    return _sampled(area, count) if pieces else None


def _sampled(area: MaskArea, count: int) -> tuple[int, int] | None:
    """Return a pair of an area among pairs near and far, for areas that are too irregular to search."""
    steps = [1 << power for power in range((count - 1).bit_length())]
    queries = sorted({at for step in steps for at in (step - 1, step, step + step // 2)})
    pairs = ((q, q + step) for q in queries for step in steps if q + step < count)
    return next(((q, k) for q, k in pairs if placed(area, q, k, 1, 1) is True), None)


def _is_opaque(area: MaskArea) -> bool:
    """Return whether a part of an area is known only by its predicate."""
    inner = getattr(area, "areas", ()) or [getattr(area, "area", False)]
    return isinstance(area, UnknownPairs) or any(not isinstance(one, bool) and _is_opaque(one) for one in inner)


def _largest(mask: Mask) -> int:
    """Return the largest number among the fields of a mask and of its parts."""
    numbers = [value for name in type(mask).model_fields if isinstance(value := getattr(mask, name), int)]
    return max([*numbers, *map(_largest, mask.inner())], default=0)
