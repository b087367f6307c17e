"""How many experts a token visits."""

from __future__ import annotations

from blocks.experts.moe import MixtureOfExperts
from composer.graph.type_patterns import declared, size

MANY = 1 << 20
"""Positions, so many that rounding does not show."""


def visited(part: MixtureOfExperts) -> int:
    """Experts that a token visits, on average where that depends."""
    visits = size(declared(part.router.visits()), {"time": MANY, "experts": part.experts})
    assert isinstance(visits, int)
    return visits // MANY
