"""Retrieval: how far in front a model ranks the row that belongs to another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

AT = (1, 5, 10)
"""How many of the first rows are looked at."""
CHUNK = 1024
"""Rows whose scores are computed at a time."""


@dataclass(frozen=True)
class Retrieval:
    """How well the partner of a row is found among all rows, by its score.

    Examples:
        >>> from composer.evaluate import Retrieval
        >>> found = Retrieval((1, 3, 2, 1))
        >>> found.recall_at(1), round(found.reciprocal_rank, 4)
        (0.5, 0.7083)
    """

    ranks: tuple[int, ...]
    """For each row, the place of its partner among all, from 1. Of equal scores, the partner's is taken to be the last."""

    def recall_at(self, first: int) -> float:
        """Return the share of rows whose partner is among the first ones.

        Args:
            first: How many.
        """
        return sum(rank <= first for rank in self.ranks) / len(self.ranks)

    @property
    def reciprocal_rank(self) -> float:
        """The mean of 1 / rank (MRR)."""
        return sum(1 / rank for rank in self.ranks) / len(self.ranks)

    def to_json(self) -> dict[str, float]:
        """Return the numbers by name."""
        return {**{f"recall_at_{first}": self.recall_at(first) for first in AT}, "mean_reciprocal_rank": self.reciprocal_rank}

    def __str__(self) -> str:
        at = ", ".join(f"{self.recall_at(first):.2%} at {first}" for first in AT if first <= len(self.ranks))
        return f"recall {at}, mean reciprocal rank {self.reciprocal_rank:.3f}, among {len(self.ranks):,}"


def retrieved(a: Sequence[Tensor], b: Sequence[Tensor]) -> Retrieval:
    """Return the ranks of the rows of b for those of a, by their dot products.

    Args:
        a: Batches of vectors [B, D].
        b: The vectors that belong to them, in the same order.
    """
    one, other = (torch.cat([*each]).double() for each in (a, b))
    ranks: list[int] = []
    for begin in range(0, len(one), CHUNK):
        scores = one[begin : begin + CHUNK] @ other.T  # [rows, all]
        own = scores.diagonal(begin)[:, None]
        ranks += (scores >= own).sum(-1).tolist()
    return Retrieval(tuple(ranks))
