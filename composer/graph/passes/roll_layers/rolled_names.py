"""How nodes are called where the layers that a recipe writes are a repeat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RolledNames:
    """How the nodes of a graph are called where its layers are folded."""

    steps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of what has moved, the way to it: `norm3` is at `layers`, `2`, `norm`."""
    below: Mapping[str, RolledNames] = field(default_factory=dict)
    """Of what has a graph of its own, the names in there; of a repeat, by pass."""

    def called(self, path: str) -> str:
        """Return a path as it is after folding."""
        found: list[str] = []
        here = self
        for step in path.split("."):
            found += here.steps.get(step, (step,))
            here = here.below.get(step, UNCHANGED)
        return ".".join(found)


UNCHANGED = RolledNames()
