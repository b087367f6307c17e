"""How many experts a token visits."""

from __future__ import annotations

from blocks.core import Mixture
from composer.graph.type_patterns import declared, size

MANY = 1 << 20
"""Positions, so many that rounding does not show."""


def visited(mixture: Mixture) -> int:
    """Return how many experts a token visits, on average where that depends."""
    visits = size(declared(mixture.visits), {"time": MANY, "experts": mixture.experts})
    assert isinstance(visits, int)
    return visits // MANY
