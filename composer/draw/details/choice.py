"""Which closed blocks are worth a detail: those that few words do not tell, the rarest first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from composer.draw.build.group_places import GroupPlace, branching, contents

MIN_NODES = 3
"""Nodes of a block from which on it is worth a detail of its own."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Closed blocks that are alike but for their numbers."""

    places: tuple[GroupPlace, ...]
    """In the order of the data."""

    @property
    def path(self) -> str:
        """That of the first one, which stands for all."""
        return self.places[0].path

    @property
    def names(self) -> frozenset[str]:
        """By what it may be asked for: the paths, and the name of its block in the recipe."""
        return frozenset([*(one.path for one in self.places), self.places[0].block])

    @property
    def branching(self) -> int:
        """How much of it is no chain; 0 where it is so small that its box tells all."""
        graph = contents(self.places[0].node)
        return branching(graph) if graph is not None and len(graph.nodes) >= MIN_NODES else 0


def candidates(groups: Sequence[GroupPlace], boxes: Collection[str], frames: Collection[str]) -> Iterator[Candidate]:
    """Yield the closed blocks of a drawing, given the paths of its boxes and of its frames, that stand open nowhere in it."""
    opened = {one.form for one in groups if one.path in frames}
    alike: dict[object, list[GroupPlace]] = {}
    for one in groups:
        if one.path in boxes and one.form not in opened:
            alike.setdefault(one.form, []).append(one)
    return (Candidate(tuple(places)) for places in alike.values())


def wanted(found: Iterable[Candidate], details: Sequence[str]) -> list[Candidate]:
    """Return those that a figure shows, what comes first first: the named ones in their order, or what is least like a chain."""
    if not details:
        worth = [one for one in found if one.branching > 0]
        return sorted(worth, key=lambda one: -one.branching)
    every = list(found)
    return [one for name in details for one in every if name in one.names]
