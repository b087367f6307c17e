"""How much of a model a drawing shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["overview", "block", "full"]
LEVELS: tuple[Level, ...] = ("overview", "block", "full")


@dataclass(frozen=True, slots=True)
class Depth:
    """How much of a model is shown."""

    level: Level = "block"
    opened: frozenset[str] = frozenset()
    """Paths of what is shown from inside, whatever the level."""
    unrolled: bool = False
    """Whether every pass of a repeat is drawn."""
    params: bool = True
    """Whether blocks tell how many parameters they have."""
    spacious: bool = True
    """Whether there is room for what explains itself: more than a few experts of a mixture, both directions of a recurrent layer,
    and that an input is one.
    """
    experts: bool = True
    """Whether mixtures of experts are shown from inside."""
    layers: bool = True
    """Whether repeats are."""
    nested: bool = True
    """Whether repeats in repeats are, such as the layers of stages."""
    dropout: bool = True
    """Whether a dropout is a box where words cannot tell it."""
