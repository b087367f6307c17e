"""The rows that one slot of a cache keeps: those of all tokens, or only those that later tokens may still read."""

from __future__ import annotations

from typing import NamedTuple

import torch

from blocks.masks.kept_keys import KeptKeys

LEAST_SLACK = 16
"""Rows that a buffer holds at least beyond those that are needed."""
SLACK = 8
"""The same, as a share of those that are needed: one in so many."""


class KeptRows:
    """The rows of one slot, in a buffer that doubles when it is full.

    If no query sees beyond the first `kept.first` keys and the `kept.latest` before it, other rows are dropped, so that neither
    memory nor time grows with the text. They are dropped several at a time, whenever a fixed number is there: what is left is
    moved to a new buffer, so a row is moved once in many calls, and rows that earlier calls returned stay as they are.
    Which rows are there follows from the numbers of rows alone, so it is the same for keys, values and what masks compare.
    """

    def __init__(self, axis: int, kept: KeptKeys | None, initial_length: int) -> None:
        self.axis, self.initial_length = axis, initial_length
        self.first = kept.first if kept is not None else 0
        self.latest = None if kept is None else max(1, kept.latest)  # with none, a call could pass for the first one
        self.limit = None if self.latest is None else self.first + self.latest + _slack(self.latest, initial_length)
        """The number of rows beyond which some are dropped."""
        self.buffer: torch.Tensor | None = None
        self.held = 0
        """Number of rows in the buffer."""
        self.dropped = 0
        """Number of rows, behind the first ones, that are no longer there."""

    def append(self, value: torch.Tensor) -> torch.Tensor:
        """Append rows, and return all that their queries may see, in the order of the text."""
        axis = value.dim() + self.axis
        stop = self.held + value.shape[axis]
        if self.limit is not None and stop > self.limit:
            return self._dropping(value, axis)
        skipped = self._skipped()
        buffer = self._with_room(value, axis, stop)
        buffer.narrow(axis, self.held, stop - self.held).copy_(value)
        self.held = stop
        return buffer.narrow(axis, skipped, stop - skipped)

    def _skipped(self) -> int:
        """Return how many rows at the start of the buffer the next queries do not see. If the first of the text are kept, what
        is behind them is returned as it is: the mask hides it.
        """
        return 0 if self.latest is None or self.first else max(0, self.held - self.latest)

    def _with_room(self, value: torch.Tensor, axis: int, stop: int) -> torch.Tensor:
        """Return the buffer with room for `stop` rows like those of a value."""
        buffer = self.buffer
        if buffer is not None and buffer.shape[axis] >= stop and buffer.dtype == value.dtype:
            return buffer
        shape = list(value.shape)
        shape[axis] = max(self.initial_length, stop, 2 * self.held)
        if self.limit is not None:
            shape[axis] = min(shape[axis], self.limit)
        grown = value.new_empty(shape)
        if buffer is not None:
            grown.narrow(axis, 0, self.held).copy_(buffer.narrow(axis, 0, self.held))
        self.buffer = grown
        return grown

    def _dropping(self, value: torch.Tensor, axis: int) -> torch.Tensor:
        """Append rows and keep only what later queries may see; return what those of these rows may see."""
        assert self.latest is not None
        rows = value
        if self.buffer is not None and self.held:
            beginning = min(self.first, self.held)
            latest = min(self.latest, self.held - beginning)
            before = [
                self.buffer.narrow(axis, 0, beginning),
                self.buffer.narrow(axis, self.held - latest, latest),
            ]
            rows = torch.cat([*(each for each in before if each.shape[axis]), value], dim=axis)
        total = self.dropped + self.held + value.shape[axis]
        count = rows.shape[axis]
        self.held = min(count, self.first + self.latest)
        self.dropped = total - self.held
        beginning = min(self.first, self.held)
        latest = self.held - beginning
        shape = list(value.shape)
        shape[axis] = self.limit or self.held
        self.buffer = value.new_empty(shape)
        self.buffer.narrow(axis, 0, beginning).copy_(rows.narrow(axis, 0, beginning))
        self.buffer.narrow(axis, beginning, latest).copy_(rows.narrow(axis, count - latest, latest))
        return rows

    def can_go_back(self, length: int) -> bool:
        """Return whether all rows are there that tokens after the first `length` may see."""
        total = self.held + self.dropped
        return length >= total or self.dropped == 0 or length - (self.latest or 0) >= self.first + self.dropped

    def truncate(self, length: int) -> None:
        """Drop all rows but those of the first `length` tokens."""
        if length == 0:
            self.held = self.dropped = 0
        self.held -= max(0, self.held + self.dropped - length)

    def snapshot(self) -> RowsSnapshot:
        """Return what is there now. Later rows are written behind it or into another buffer, so it stays true until some of it is
        replaced, after `truncate`.
        """
        return RowsSnapshot(self.buffer, self.held, self.dropped)

    def restore(self, snapshot: RowsSnapshot, *, copied: bool) -> None:
        """Go on from a snapshot, or from a copy of it."""
        self.buffer, self.held, self.dropped = snapshot.buffer, snapshot.held, snapshot.dropped
        if copied and self.buffer is not None:
            self.buffer = self.buffer.clone()


class RowsSnapshot(NamedTuple):
    """The rows of one slot at some time."""

    buffer: torch.Tensor | None
    held: int
    dropped: int


def _slack(needed: int, initial_length: int) -> int:
    """Return how many rows a buffer holds beyond those that are needed; few where it shall be small at first."""
    return min(initial_length, max(LEAST_SLACK, needed // SLACK))
