"""What a thing in a drawing stands for, with or without a place."""

from __future__ import annotations

from dataclasses import dataclass, replace

TIP_SEPARATOR = " — "
"""Between the pieces of what is said in one line."""


@dataclass(frozen=True, slots=True)
class About:
    """What a thing on the page stands for."""

    path: str
    """Of the node, `layers.attn.body`; a folded repeat has no index."""
    tip: str = ""
    """What is shown, in one line: title, detail, parameters."""
    lines: tuple[int, int] | None = None
    """The first and the last line in the recipe's text; none for what stands in another file."""
    parameters: int = 0
    """How many are learned here, in all places that it stands for; those of the things inside it not counted."""
    covers: tuple[str, ...] = ()
    """Paths of nodes and of parameters that are not drawn by themselves but in it."""
    description: str = ""
    """What is set, shown or not, and how parameters start."""
    merged: tuple[str, ...] = ()
    """Paths of the nodes that it stands for, where a reader wants several as one."""

    def saying(self, more: str) -> About:
        """Return the same of a thing of which more is told, if anything is."""
        return replace(self, description="; ".join(filter(None, (self.description, more))))

    def with_parameters(self, count: int) -> About:
        """Return the same of a thing that holds so many."""
        return replace(self, parameters=count)
