"""A pairing of the nodes of two models: the result of matching."""

from __future__ import annotations

from dataclasses import dataclass, field

from composer.diff.flat_graph import FlatModel


@dataclass(slots=True)
class Pairing:
    """Pairs of nodes of two models; each node has at most one partner."""

    before: FlatModel
    after: FlatModel
    forward: dict[int, int] = field(default_factory=dict)
    """From nodes of the first model to their partners."""
    backward: dict[int, int] = field(default_factory=dict)

    def join(self, one: int, other: int) -> None:
        """Make two nodes a pair."""
        self.forward[one], self.backward[other] = other, one

    @property
    def unpaired_before(self) -> list[int]:
        """Nodes of the first model without partner."""
        return [index for index in range(len(self.before.nodes)) if index not in self.forward]

    @property
    def unpaired_after(self) -> list[int]:
        """Nodes of the second model without partner."""
        return [index for index in range(len(self.after.nodes)) if index not in self.backward]
