"""How many parameters stand where, and which are another's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from composer.cost.units import short
from composer.draw.paths import above, of_pass
from composer.graph.parameters import NamedParameter, owned

SHARED_WITH = "shared with "
"""What stands before the path of what has the parameters of a box, where it has none of its own."""


class ParameterCounts:
    """Parameters by the names of what holds them."""

    def __init__(self, table: Sequence[NamedParameter], *, visible: bool = True) -> None:
        self.visible = visible
        """Whether blocks tell how many parameters they have."""
        self.owned = owned(table)
        """Path to all that is owned at it or below."""
        self.frozen = owned(entry for entry in table if not entry.trainable)
        """The same of what is not trained."""
        self.adapters = owned(entry for entry in table if entry.parameter.role == "adapter")
        """The same of what is added to linear maps."""
        self.tied: dict[str, str] = {}
        """Path to the name of another's tensor that stands at it or below."""
        self.partners: dict[str, set[str]] = {}
        """Path to those of whose tensors all that stand below it are: one, where a whole part of the model is another's."""
        for entry in table:
            for path in above(entry.name) if entry.tied_to else ():
                self.tied.setdefault(path, entry.tied_to)
                end = entry.name.removeprefix(path)
                whole = entry.tied_to.endswith(end) and entry.tied_to != end
                self.partners.setdefault(path, set()).add(entry.tied_to.removesuffix(end) if whole else "")

    def total(self, paths: Iterable[str]) -> int:
        """Return the sum of what is owned at some paths."""
        return sum(self.owned.get(path, 0) for path in paths)

    def shown(self, path: str) -> str:
        """Return what a block says of its parameters: how many, or that they are another's."""
        return self.shown_of([path])

    def shown_whole(self, path: str) -> str:
        """Return what a part of the model that holds blocks says of its parameters: how many, or which other part has them."""
        said, partners = self.shown(path), self.partners.get(path, set())
        whole = said == "tied" and len(partners) == 1 and all(partners)
        return f"{SHARED_WITH}{of_pass(next(iter(partners)), path)}" if whole else said

    def shown_of(self, paths: Sequence[str]) -> str:
        """Return what a piece of a block says of its parameters, which parameters stand at some paths."""
        if not self.visible:
            return ""
        if count := self.total(paths):
            frozen = sum(self.frozen.get(path, 0) for path in paths)
            adapters = sum(self.adapters.get(path, 0) for path in paths)
            if adapters and adapters + frozen == count:
                return f"{short(frozen)} + LoRA"
            return short(count) + ("" if not frozen else " frozen" if frozen == count else ", some frozen")
        return "tied" if any(path in self.tied for path in paths) else ""
