"""Paths of nodes: `layers.attn.body` lies in `layers.attn`."""

from __future__ import annotations

from collections.abc import Collection


def above(path: str) -> list[str]:
    """A path and all that lead to it, the shortest first."""
    steps = path.split(".")
    return [".".join(steps[: end + 1]) for end in range(len(steps))]


def belongs(path: str, holders: Collection[str]) -> bool:
    """Whether a path is one of some, or lies in one of them."""
    return any(one in holders for one in above(path))


def lies_in(path: str, holder: str) -> bool:
    """Whether a path is another one, or lies in it."""
    return path == holder or path.startswith(f"{holder}.")
