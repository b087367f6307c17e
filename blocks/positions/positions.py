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

    @declaration
    def coordinates(self) -> int | None:
        """Return how many coordinates a token may have beside its position; None if it has none."""
        return None

    def prepare(self, position_ids: Any, coordinates: Any = None) -> Any:
        """Return the values that depend only on positions, [T] or [B, T], and on coordinates, [T, C] or [B, T, C], where they are
        wired; they are computed once per call, for all layers with the same settings.
        """
        raise NotImplementedError

    def rotate(self, x: Any, table: Any) -> Any:
        """Return queries or keys [B, heads, T, head_dim], encoded with the result of `prepare` for their positions."""
        raise NotImplementedError


def position_ports(wired: frozenset[str], prefix: str = "") -> tuple[str, ...]:
    """Return the ports of attention that `prepare` reads: positions, and coordinates if they are wired; those of the `memory_`
    with this prefix.
    """
    positions, coordinates = f"{prefix}position_ids", f"{prefix}coordinates"
    return (positions, coordinates) if coordinates in wired else (positions,)


def check_coordinates(positions: Positions | None, sizes: Sizes, wired: frozenset[str]) -> None:
    """Raise `BlockError` if attention is given coordinates that its positions do not take, or so for its queries alone."""
    given = sorted(wired & {"coordinates", "memory_coordinates"})
    if not given:
        return
    count = positions.coordinates() if positions is not None else None
    if count is None:
        hint = "such as `positions: {type: rotary, sections: [2, 3, 3]}`, which turns 2, 3 and 3 pairs by three coordinates"
        raise BlockError("has no positions that are encoded by coordinates", port=given[0], hint=hint)
    if sizes["coordinate"] != count:
        raise BlockError(
            f"encodes {count} coordinates of a token, and is given {sizes['coordinate']}",
            port=given[0],
            hint="`sections` has a number of pairs for each coordinate",
        )
    projects_memory = "memory" in wired and "k" not in wired
    if "memory_coordinates" in wired and not projects_memory:
        raise BlockError("computes no keys from a memory", port="memory_coordinates", hint="`coordinates` are those of x")
    if len(given) == 1 and projects_memory:
        raise BlockError(
            f"is given coordinates of {'queries' if given[0] == 'coordinates' else 'keys'} alone",
            port=given[0],
            hint="wire both `coordinates` and `memory_coordinates`",
        )


def check_leading_axes(sizes: Sizes) -> None:
    """Raise `BlockError` if positions, or a bias of scores, have a leading axis other than the batch: `int[time]` and
    `int[batch, time]` are positions.
    """
    leading = [axis.size for axis in sizes.get("...", ())]
    if leading not in ([], [sizes.get("batch")]):
        shown = ", ".join(map(str, leading))
        raise BlockError(f"positions and a bias of scores may have a batch axis in front, not [{shown}]", code="type-mismatch")
