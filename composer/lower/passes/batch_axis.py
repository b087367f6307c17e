"""Where the rows of the batch stand in a value that a session keeps, so that it can put them in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from composer.graph.dims import Dim, Symbolic, leaves
from composer.graph.types import Axis


@dataclass(frozen=True, slots=True)
class BatchAxis:
    """The axis of a value in which the rows of the batch stand, alone or with other axes folded into it."""

    index: int
    before: int | None = 1
    """The product of the lengths that are folded before the rows; None where it is known only when the model runs."""
    behind: int | None = 1
    """The product of those behind them."""

    @property
    def is_known(self) -> bool:
        """Whether the rows can be told apart, given their number."""
        return self.before is not None or self.behind is not None


def batch_axis(axes: Sequence[Sequence[Dim]], rows: Dim) -> BatchAxis | None:
    """Return where the rows of the batch stand in a value; None for one that does not depend on their number.

    Args:
        axes: The size of each axis of the value, of a folded one those of its parts in order.
        rows: The number of rows.

    Examples:
        >>> from composer.graph.dims import symbol
        >>> from composer.lower.passes.batch_axis import batch_axis
        >>> batch, time = symbol("batch"), symbol("time")
        >>> batch_axis([[3, batch], [time], [8]], batch)
        BatchAxis(index=0, before=3, behind=1)
        >>> batch_axis([[3 * batch], [time], [8]], batch).is_known
        False
    """
    for index, parts in enumerate(axes):
        places = [place for place, size in enumerate(parts) if _depends(size, rows)]
        if places and [parts[place] for place in places] != [rows]:
            return BatchAxis(index, None, None)  # in which order they were merged is not in the type
        if places:
            return BatchAxis(index, _product(parts[: places[0]]), _product(parts[places[0] + 1 :]))
    return None


def _depends(size: Dim, rows: Dim) -> bool:
    """Return whether a size depends on the number of rows; where that is fixed, it is known by being the same."""
    if isinstance(rows, Symbolic):
        return isinstance(size, Symbolic) and not leaves(rows).isdisjoint(leaves(size))
    return size == rows


def _product(sizes: Sequence[Dim]) -> int | None:
    known = [size for size in sizes if isinstance(size, int)]
    return prod(known) if len(known) == len(sizes) else None


def each_size(axes: Sequence[Axis], folded: int = 0) -> list[list[Dim]]:
    """Return the sizes of axes for `batch_axis`.

    Args:
        axes: The axes.
        folded: How many of the first are folded into one.
    """
    sizes: list[Dim] = [axis.size for axis in axes]
    return [*([sizes[:folded]] if folded else []), *([size] for size in sizes[folded:])]
