"""Positions inside attention: what turns queries and keys."""

from __future__ import annotations

from typing import Any

from blocks.core import BlockError, Part, SideLook, Sizes, declaration


class Positions(Part):
    """Turns queries and keys by their positions. Beside its fields it knows, when it runs, the `head_dim` of its holder."""

    @declaration
    def look_beside(self) -> SideLook:
        """Return what it looks like beside the attention that it is a field of."""
        return SideLook("positions", self.called())

    def prepare(self, position_ids: Any) -> Any:
        """Return what depends on the positions alone, [T] or [B, T]: computed once per call, for all layers
        with the same settings.
        """
        raise NotImplementedError

    def rotate(self, x: Any, table: Any) -> Any:
        """Return queries or keys [B, heads, T, head_dim] rotated by the table that `prepare` made of their positions."""
        raise NotImplementedError


def check_leading_axes(sizes: Sizes) -> None:
    """Raise `BlockError` where positions, or a bias of scores, stand before anything but the batch: `int[time]` and
    `int[batch, time]` are positions.
    """
    leading = [axis.size for axis in sizes.get("...", ())]
    if leading not in ([], [sizes.get("batch")]):
        shown = ", ".join(map(str, leading))
        raise BlockError(f"positions and a bias of scores may have a batch axis in front, not [{shown}]", code="type-mismatch")
