"""How many parameters a token meets: all but those of experts that it does not visit."""

from __future__ import annotations

from fractions import Fraction
from math import prod

from blocks.core import Mixture
from composer.graph.parameters import holders, parameters
from composer.graph.type_patterns import declared, size
from composer.graph.typed import TypedBlock, TypedProgram
from composer.graph.visit import walk

MANY_POSITIONS = 1 << 20
"""Positions over which visits are averaged, where experts choose theirs."""


def visited(mixture: Mixture) -> int:
    """Return how many experts a token visits, on average where that depends."""
    visits = size(declared(mixture.visits), {"time": MANY_POSITIONS, "experts": mixture.experts})
    assert isinstance(visits, int)
    return min(visits // MANY_POSITIONS, mixture.experts)


def active_parameters(typed: TypedProgram) -> int:
    """Return the number of parameters that one token meets; a tied tensor counts once."""
    shares: dict[str, Fraction] = {}
    for visit in walk(typed.root):
        if isinstance(visit.node, TypedBlock) and (mixture := visit.node.part.mixture()) is not None:
            shares[f"{visit.path}.{mixture.expert}"] = Fraction(visited(mixture), mixture.experts)
    met = (
        entry.numel * prod((shares[path] for path in holders(entry.name) if path in shares), start=Fraction(1))
        for entry in parameters(typed)
        if not entry.tied_to
    )
    return int(sum(met))
