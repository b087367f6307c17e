"""A pairing of the nodes of two models."""

from __future__ import annotations

from dataclasses import dataclass, field

from composer.diff.flat_graph import FlatModel


@dataclass(slots=True)
class Pairing:
    """Nodes of two models, each with at most one of the other."""

    before: FlatModel
    after: FlatModel
    there: dict[int, int] = field(default_factory=dict)
    """From the first model to the second."""
    back: dict[int, int] = field(default_factory=dict)

    def join(self, one: int, other: int) -> None:
        """Join two nodes as the same one."""
        self.there[one], self.back[other] = other, one

    @property
    def left(self) -> list[int]:
        """Nodes of the first model without partner."""
        return [index for index in range(len(self.before.nodes)) if index not in self.there]

    @property
    def right(self) -> list[int]:
        """Nodes of the second model without partner."""
        return [index for index in range(len(self.after.nodes)) if index not in self.back]
