"""The cost of a block."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """FLOPs of one forward pass as expressions of the block's sizes; a multiply and an add count as two.

    Examples:
        >>> from blocks.core import Cost
        >>> Cost("2 * batch * time * dim * hidden").per_pair
        ''
    """

    dense: str
    """FLOPs if no masked pairs are skipped."""
    per_pair: str = ""
    """The part of `dense` that is spent on each (query, key) pair, for one pair; the mask scales it."""
    pairs: str = ""
    """The number of pairs without a mask: `batch * time * source`."""
