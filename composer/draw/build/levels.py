"""How much of a model a drawing shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from composer.draw.paths import lies_in

Level: TypeAlias = Literal["overview", "block", "full"]
LEVELS: tuple[Level, ...] = ("overview", "block", "full")


@dataclass(frozen=True, slots=True)
class PassRange:
    """Some passes of a repeat, from one to before another, as a recipe counts them; a negative number counts from the end."""

    path: str
    """Of the repeat."""
    start: int | None = None
    stop: int | None = None

    def __str__(self) -> str:
        """Return them as they are written."""
        start, stop = ("" if one is None else str(one) for one in (self.start, self.stop))
        return f"{start}:{stop}"

    def of(self, count: int) -> range:
        """Return their numbers, where there are so many."""
        return range(*slice(self.start, self.stop).indices(count))


def passes(path: str, text: str) -> PassRange | None:
    """Return the passes that a text names, `1:3`, `:2`, `-1:` or `4`; None where it names none."""
    if not (found := re.fullmatch(r"(-?\d{1,6})?(:)?(-?\d{1,6})?", text.strip())) or not (found[2] or found[1]):
        return None
    start, stop = (int(one) if one else None for one in (found[1], found[3]))
    if not found[2]:
        assert start is not None
        return PassRange(path, start, None if start == -1 else start + 1)
    return PassRange(path, start, stop)


@dataclass(frozen=True, slots=True)
class Depth:
    """How much of a model is shown."""

    level: Level = "block"
    opened: frozenset[str] = frozenset()
    """Paths of what is shown from inside, whatever the level."""
    unrolled: bool = False
    """Whether every pass of a repeat is drawn."""
    passes: tuple[PassRange, ...] = ()
    """Which passes are drawn by themselves of repeats where others are not."""
    params: bool = True
    """Whether blocks tell how many parameters they have."""
    spacious: bool = True
    """Whether there is room for what explains itself: more than a few experts of a mixture, and both directions of a recurrent
    layer.
    """
    operations: bool = True
    """Whether a formula that consists of a few sums, products and activations is shown as these."""
    notes: bool = True
    """Whether there is room for it behind the name of an input that it is one."""
    experts: bool = True
    """Whether mixtures of experts are shown from inside."""
    layers: bool = True
    """Whether repeats are."""
    nested: bool = True
    """Whether repeats in repeats are, such as the layers of stages."""
    closed: frozenset[str] = frozenset()
    """Paths of groups that are not, unless they are to be opened or something in them is."""
    dropout: bool = True
    """Whether a dropout is a box where words cannot tell it."""
    named: frozenset[str] = frozenset()
    """Paths of what is to be hidden, merged, called otherwise or the end of a column."""
    bright: frozenset[str] = frozenset()
    """Paths of what is highlighted."""
    whole: frozenset[str] = frozenset()
    """Paths of what is drawn by itself, as a detail, so that all that it returns is its one output."""

    def shows(self, path: str) -> bool:
        """Return whether something that holds a graph is open whatever the level: it is to be opened, or something in it is."""
        return any(lies_in(one, path) for one in self.opened)

    def names(self, path: str) -> bool:
        """Return whether something that is to be shown in its own way is a repeat or lies in it."""
        return any(lies_in(one, path) for one in (*self.opened, *self.named, *(one.path for one in self.passes)))

    def points_at(self, path: str) -> bool:
        """Return whether something that is to be shown in its own way, or to be bright, is at a path or lies there."""
        return self.names(path) or any(lies_in(one, path) for one in self.bright)

    def passes_of(self, path: str, count: int) -> range | None:
        """Return which passes of a repeat are drawn by themselves; None where it is folded."""
        if self.unrolled:
            return range(count)
        return next((one.of(count) for one in self.passes if one.path == path), None)
