"""What one call of a block computes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """FLOPs of one forward, a multiply and an add counting as two, as expressions of the block's sizes."""

    dense: str
    """What a kernel without knowledge of the mask computes."""
    per_pair: str = ""
    """The part of `dense` that is spent per (query, key) pair, for one pair; the mask scales it."""
    pairs: str = ""
    """How many pairs there are without a mask: `batch * time * source`."""
