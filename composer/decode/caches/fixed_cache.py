"""Caches of a fixed size: neither a shape nor an address depends on how many tokens there are, as `torch.compile` and CUDA graphs
need it, and nothing waits for the device to know how many.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from blocks.masks.kept_keys import KeptKeys
from composer.decode.caches.cache import Cache, ModuleRun, RunSnapshot, selected
from composer.decode.caches.kept_rows import RowsSnapshot
from composer.decode.errors import DecodeError
from composer.lower.passes.cache_layout import CachedNode, CacheSlot

POSITIONS = "position_ids"
"""The slot in which masks keep the positions of keys."""


class Clock:
    """How many tokens a session has read: on the device, where a step reads it, and beside it, where calls are checked."""

    def __init__(self, max_length: int, device: torch.device) -> None:
        self.max_length, self.count = max_length, 0
        self.position = torch.zeros((), dtype=torch.int64, device=device)

    def set(self, count: int) -> None:
        """Go to a number of tokens."""
        self.count = count
        self.position.fill_(count)

    def advance(self, more: int) -> None:
        """Count `more` tokens; on the device, that is one operation that a CUDA graph can replay."""
        self.count += more
        self.position.add_(more)


class FixedRows:
    """The rows of one slot, in a buffer of the maximum length. Places without a row are hidden as those of later tokens are.

    If no query sees beyond the first `kept.first` keys and the `kept.latest` before it, the places behind the first ones are a
    ring buffer: the row at position p is in the place of the one that this query is the first not to see.
    """

    def __init__(self, axis: int, kept: KeptKeys | None, clock: Clock, blank: int) -> None:
        """Take the axis of the rows, which of them are kept, and what is in a place without a row: the maximum length if the rows
        are positions of keys, else 0.
        """
        self.axis, self.clock, self.blank = axis, clock, blank
        self.first, self.latest = (0, 0) if kept is None else (kept.first, max(1, kept.latest))
        longest = clock.max_length
        self.size = longest if kept is None else min(longest, self.first + self.latest + 1)
        """The number of places."""
        self.ring = self.size - self.first if self.size < longest else 0
        """How many of them are a ring buffer."""
        self.buffer: torch.Tensor | None = None

    def append(self, value: torch.Tensor) -> torch.Tensor:
        """Write rows to their places, and return all that their queries may see: every place, and where several rows do not fit
        into the ring buffer beside what the first of them sees, these behind it.
        """
        axis = value.dim() + self.axis
        buffer = self._buffer_for(value)
        value = value.to(buffer.dtype)
        rows = value.shape[axis]
        positions = self.clock.position + torch.arange(rows, device=value.device)
        if self.ring and rows > 1:
            seen = torch.cat([buffer, value], dim=axis)
            self._write_latest(buffer, value, axis)
            return seen
        buffer.index_copy_(axis, self._places(positions), value)
        return buffer

    def _buffer_for(self, value: torch.Tensor) -> torch.Tensor:
        if self.buffer is None:
            shape = list(value.shape)
            shape[self.axis] = self.size
            self.buffer = value.new_full(shape, self.blank)
        return self.buffer

    def _places(self, positions: torch.Tensor) -> torch.Tensor:
        """Return where the rows at these positions are."""
        if not self.ring:
            return positions
        behind = self.first + (positions - self.first).remainder(self.ring)
        return torch.where(positions < self.first, positions, behind) if self.first else behind

    def _write_latest(self, buffer: torch.Tensor, value: torch.Tensor, axis: int) -> None:
        """Write several rows, of which the later ones may have the places of the earlier ones: each place reads its latest."""
        rows = value.shape[axis]
        places = torch.arange(self.size, device=value.device)
        last = self.clock.position + rows - 1
        latest = places + (last - places).div(self.ring, rounding_mode="floor") * self.ring  # the latest position of each place
        positions = torch.where(places < self.first, places, latest) if self.first else latest
        index = positions - self.clock.position
        shape = [1] * value.dim()
        shape[axis] = self.size
        is_new = (index >= 0) & (index < rows) & ((places < self.first) | (latest >= self.first))
        buffer.copy_(torch.where(is_new.view(shape), value.index_select(axis, index.clamp(0, rows - 1)), buffer))

    def can_go_back(self, length: int) -> bool:
        """Return whether all rows are there that tokens after the first `length` may see."""
        count = self.clock.count
        return length >= count or count <= self.size or not self.ring or length - self.latest >= count - self.ring

    def truncate(self, length: int) -> None:
        """Let no query see a row behind the first `length` again, of those that masks compare: it may be in a ring buffer still
        when a row of the same position comes.
        """
        if self.blank and self.buffer is not None:
            self.buffer.masked_fill_(self.buffer >= length, self.blank)

    def snapshot(self) -> RowsSnapshot:
        """Return a copy of the rows, in the order of the text."""
        count = self.clock.count
        if self.buffer is None:
            return RowsSnapshot(None, 0, 0)
        held = min(count, self.size)
        positions = torch.arange(held, device=self.buffer.device)
        positions = torch.where(positions < self.first, positions, positions + (count - held))
        return RowsSnapshot(self.buffer.index_select(self.buffer.dim() + self.axis, self._places(positions)), held, count - held)

    def restore(self, snapshot: RowsSnapshot) -> None:
        """Go on from a copy of a snapshot, be it of a buffer that grows or of this one."""
        if snapshot.buffer is None:
            self.buffer = None
            return
        axis = snapshot.buffer.dim() + self.axis
        rows = snapshot.buffer.narrow(axis, 0, snapshot.held)
        positions = torch.arange(snapshot.held, device=rows.device)
        if snapshot.dropped:
            positions = torch.where(positions < self.first, positions, positions + snapshot.dropped)
        if self.ring:  # of the rows for one place, only the latest
            total = snapshot.held + snapshot.dropped
            kept = ((positions < self.first) | (positions >= total - self.ring)).nonzero()[:, 0]
            rows, positions = rows.index_select(axis, kept), positions[kept]
        shape = list(rows.shape)
        shape[axis] = self.size
        if self.buffer is None or list(self.buffer.shape) != shape or self.buffer.dtype != rows.dtype:
            self.buffer = rows.new_empty(shape)
        self.buffer.fill_(self.blank)
        self.buffer.index_copy_(axis, self._places(positions), rows)


class FixedRun(ModuleRun):
    """The contents of a cache of a fixed size for one run per call."""

    def __init__(self, node: CachedNode, clock: Clock) -> None:
        super().__init__(node.slots, clock.max_length)
        self.node, self.clock = node, clock
        self.fixed: dict[str, FixedRows] = {}
        self.spare: dict[str, torch.Tensor] = {}
        """Tensors of states that were dropped, into which the next ones are written."""

    def next_positions(self, rows: int, device: torch.device) -> torch.Tensor:
        return self.clock.position + torch.arange(rows, device=device)

    def append(self, name: str, value: torch.Tensor) -> torch.Tensor:
        slot = self.names[name]
        if slot.whole:
            return self.whole.setdefault(name, value)
        rows = self.fixed.get(name)
        if rows is None:
            rows = self.fixed[name] = self._rows(name, slot)
        return rows.append(value)

    def _rows(self, name: str, slot: CacheSlot) -> FixedRows:
        assert slot.axis is not None
        is_of_keys = bool(self.node.attribute) and name == POSITIONS  # a place without a row is as that of a token to come
        return FixedRows(slot.axis, slot.kept, self.clock, self.clock.max_length if is_of_keys else 0)

    def get(self, name: str) -> torch.Tensor | None:
        if self.names[name].whole:
            return self.whole.get(name)
        state = self.states.get(name)
        return None if state is None else state.clone()  # it is overwritten, maybe before its reader reads it

    def store(self, more: int, states: Mapping[str, torch.Tensor]) -> None:
        for name, state in states.items():
            held = self.states.get(name)
            if held is None:
                held = self.spare.pop(name, None)
                self.states[name] = state.clone() if held is None or held.shape != state.shape else held.copy_(state)
            elif held.shape != state.shape:
                shapes = f"{list(held.shape)} and then {list(state.shape)}"
                raise DecodeError(f"`{self.node.module}` keeps `{name}` of {shapes}; a session with `max_length` keeps one shape")
            else:
                held.copy_(state)

    def reorder(self, rows: torch.Tensor, count: int) -> None:
        super().reorder(rows, count)
        for name, fixed in self.fixed.items():
            axis, buffer = self.names[name].batch, fixed.buffer
            if axis is not None and buffer is not None and buffer.dim() > 1:
                chosen = selected(buffer, axis, rows, count)
                fixed.buffer = buffer.copy_(chosen) if chosen.shape == buffer.shape else chosen

    def can_go_back(self, length: int) -> bool:
        return all(rows.can_go_back(length) for rows in self.fixed.values())

    def snapshot(self) -> RunSnapshot:
        states = {name: state.clone() for name, state in self.states.items()}
        rows = {name: fixed.snapshot() for name, fixed in self.fixed.items()}
        return RunSnapshot(self.clock.count, states, dict(self.whole), rows)

    def restore(self, snapshot: RunSnapshot, *, copied: bool) -> None:
        self.whole = dict(snapshot.whole)
        self.spare, self.states = {**self.spare, **self.states}, {}
        self.store(0, snapshot.states)
        for name, rows in snapshot.rows.items():
            if name not in self.fixed:
                self.fixed[name] = self._rows(name, self.names[name])
            self.fixed[name].restore(rows)

    def truncate(self, length: int) -> None:
        for rows in self.fixed.values():
            rows.truncate(length)
        if length == 0:
            self.spare, self.states, self.whole = {**self.spare, **self.states}, {}, {}


class FixedCache(Cache):
    """The cache of one module, of a fixed size."""

    is_preallocated = True

    def __init__(self, node: CachedNode, clock: Clock) -> None:
        super().__init__(node.slots, clock.max_length)
        self.node, self.clock = node, clock

    def new_run(self) -> FixedRun:
        return FixedRun(self.node, self.clock)
