"""The base of positional encodings inside attention."""

from __future__ import annotations

from typing import Any, Self

from blocks.core import BlockError, Part, SideLook, Sizes, declaration


class Positions(Part):
    """A positional encoding that is applied to queries and keys. At run time it also has the `head_dim` of the attention."""

    @declaration
    def look_beside(self) -> SideLook:
        """Return its look beside the attention that contains it."""
        return SideLook("positions", self.called())

    @declaration
    def settled(self) -> Self:
        """Return it without settings that have no effect beside the others, so that two that encode alike are equal."""
        return self

    @declaration
    def length_class(self, length: int) -> int | None:
        """Return a number that two lengths of a text share where positions are encoded alike; None if no length matters."""
        return None

    def prepare(self, position_ids: Any) -> Any:
        """Return the values that depend only on positions, [T] or [B, T]; they are computed once per call, for all layers with
        the same settings.
        """
        raise NotImplementedError

    def rotate(self, x: Any, table: Any) -> Any:
        """Return queries or keys [B, heads, T, head_dim], encoded with the result of `prepare` for their positions."""
        raise NotImplementedError


def check_leading_axes(sizes: Sizes) -> None:
    """Raise `BlockError` if positions, or a bias of scores, have a leading axis other than the batch: `int[time]` and
    `int[batch, time]` are positions.
    """
    leading = [axis.size for axis in sizes.get("...", ())]
    if leading not in ([], [sizes.get("batch")]):
        shown = ", ".join(map(str, leading))
        raise BlockError(f"positions and a bias of scores may have a batch axis in front, not [{shown}]", code="type-mismatch")
