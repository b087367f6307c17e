"""How many parameters stand where, and which are another's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from composer.cost.costs import numbers
from composer.draw.wording import counted
from composer.graph.parameters import NamedParameter


class ParameterCounts:
    """Parameters by the names of what holds them."""

    def __init__(self, table: Iterable[NamedParameter], *, visible: bool = True) -> None:
        self.visible = visible
        """Whether blocks tell how many parameters they have."""
        self.owned: dict[str, int] = {}
        """Path to all that is owned at it or below."""
        self.frozen: dict[str, int] = {}
        """The same of what is not trained."""
        self.tied: dict[str, str] = {}
        """Path to the name of another's tensor that stands at it or below."""
        for entry in table:
            steps = entry.name.split(".")
            for end in range(len(steps) + 1):
                above = ".".join(steps[:end])
                if entry.tied_to:
                    self.tied.setdefault(above, entry.tied_to)
                else:
                    self.owned[above] = self.owned.get(above, 0) + numbers(entry)
                    if not entry.trainable:
                        self.frozen[above] = self.frozen.get(above, 0) + numbers(entry)

    def total(self, paths: Iterable[str]) -> int:
        """Return the sum of what is owned at some paths."""
        return sum(self.owned.get(path, 0) for path in paths)

    def shown(self, path: str) -> str:
        """Return what a block says of its parameters: how many, or that they are another's."""
        return self.shown_of([path])

    def shown_of(self, paths: Sequence[str]) -> str:
        """Return what a piece of a block says of its parameters, which parameters stand at some paths."""
        if not self.visible:
            return ""
        if count := self.total(paths):
            frozen = sum(self.frozen.get(path, 0) for path in paths)
            return counted(count) + ("" if not frozen else " frozen" if frozen == count else ", some frozen")
        return "tied" if any(path in self.tied for path in paths) else ""
