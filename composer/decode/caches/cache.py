"""What a session keeps of earlier calls: the cache of each module, and results that do not depend on the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from composer.decode.caches.kept_rows import KeptRows, RowsSnapshot
from composer.lower.passes.batch_axis import BatchAxis
from composer.lower.passes.cache_layout import CacheSlot


class Cache:
    """The cache of one module. A module that runs several times in a call, for passes that share weights, has separate contents
    for each run: the first run of a call continues the first run of the previous call.
    """

    is_preallocated = False
    """Whether slots have places for the rows of later calls."""

    def __init__(self, names: Mapping[str, CacheSlot], initial_length: int) -> None:
        self.names, self.initial_length = names, initial_length
        self.runs: list[ModuleRun] = []
        self.done: dict[str, int] = {}
        """How often each slot was appended to during this call of the model, and how often each other method was called."""

    def begin(self) -> None:
        """Start a new call of the model."""
        self.done.clear()

    def snapshot(self) -> tuple[RunSnapshot, ...]:
        """Return the contents as they are now."""
        return tuple(run.snapshot() for run in self.runs)

    def restore(self, snapshot: Sequence[RunSnapshot], *, copied: bool = False) -> None:
        """Go on from a snapshot, or from a copy of it."""
        self.runs = [*self.runs[: len(snapshot)], *(self.new_run() for _ in range(len(snapshot) - len(self.runs)))]
        for run, contents in zip(self.runs, snapshot, strict=True):
            run.restore(contents, copied=copied)

    def next_positions(self, rows: int, device: torch.device) -> torch.Tensor:
        """Return the positions of the rows of this call, [rows]."""
        return self._run("to count").next_positions(rows, device)

    def append(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """Append a value to a slot, and return the whole slot; a value that is cached elsewhere, or not at all, is returned."""
        if name not in self.names:
            return value
        return self._run(name).append(name, value)

    def get(self, name: str) -> torch.Tensor | None:
        """Return the state that the previous call stored."""
        if name not in self.names:
            return None
        return self._run(f"to get {name}").get(name)

    def store(self, more: int, states: Mapping[str, torch.Tensor]) -> None:
        """Store new states, `more` tokens after the previous ones."""
        self._run("to store").store(more, states)

    def _run(self, what: str) -> ModuleRun:
        number = self.done.get(what, 0)
        self.done[what] = number + 1
        if number == len(self.runs):
            self.runs.append(self.new_run())
        return self.runs[number]

    def new_run(self) -> ModuleRun:
        """Return the contents, as yet empty, for another run per call."""
        return ModuleRun(self.names, self.initial_length)


def _is_whole(state: torch.Tensor) -> bool:
    """Return whether a tensor is all that its storage holds: the last rows of a prompt would keep the whole prompt in memory."""
    return state.untyped_storage().nbytes() == state.nbytes


class ModuleRun:
    """The contents of a cache for one run per call."""

    def __init__(self, names: Mapping[str, CacheSlot], initial_length: int) -> None:
        self.names, self.initial_length = names, initial_length
        self.rows: dict[str, KeptRows] = {}
        self.states: dict[str, torch.Tensor] = {}
        self.whole: dict[str, torch.Tensor] = {}
        self.counted = 0

    def next_positions(self, rows: int, device: torch.device) -> torch.Tensor:
        """Return the positions of the rows of this call, [rows]."""
        start = self.counted
        self.counted += rows
        return torch.arange(start, start + rows, device=device)

    def append(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """Append a value to a slot, and return the whole slot, or what is left of it that a query may see; a slot that does not
        grow keeps its first value.
        """
        slot = self.names[name]
        if slot.whole:
            return self.whole.setdefault(name, value)
        rows = self.rows.get(name)
        if rows is None:
            assert slot.axis is not None
            rows = self.rows[name] = KeptRows(slot.axis, slot.kept, self.initial_length)
        return rows.append(value)

    def get(self, name: str) -> torch.Tensor | None:
        """Return the state that the previous call stored, or the value of a slot that does not grow."""
        return self.whole.get(name) if self.names[name].whole else self.states.get(name)

    def store(self, more: int, states: Mapping[str, torch.Tensor]) -> None:
        """Store new states, `more` tokens after the previous ones."""
        self.states |= {name: state if _is_whole(state) else state.clone() for name, state in states.items()}
        self.counted += more

    def reorder(self, rows: torch.Tensor, count: int) -> None:
        """Continue with selected rows of the batch of `count`, which may repeat."""
        for held in (self.states, self.whole):
            for name, value in held.items():
                axis = self.names[name].batch
                if axis is not None and (held is self.states or value.dim() > 1):
                    held[name] = selected(value, axis, rows, count)
        for name, kept in self.rows.items():
            axis, buffer = self.names[name].batch, kept.buffer
            if axis is not None and buffer is not None and buffer.dim() > 1:  # positions without a batch are those of all rows
                kept.buffer = selected(buffer, axis, rows, count)

    def can_go_back(self, length: int) -> bool:
        """Return whether nothing was dropped that tokens after the first `length` may see; states are another matter."""
        return all(rows.can_go_back(length) for rows in self.rows.values())

    def snapshot(self) -> RunSnapshot:
        """Return the contents as they are now, of which nothing is copied."""
        rows = {name: kept.snapshot() for name, kept in self.rows.items()}
        return RunSnapshot(self.counted, dict(self.states), dict(self.whole), rows)

    def restore(self, snapshot: RunSnapshot, *, copied: bool) -> None:
        """Go on from a snapshot, or from a copy of the rows that will be added to; states are replaced and never changed."""
        self.counted, self.states, self.whole = snapshot.counted, dict(snapshot.states), dict(snapshot.whole)
        self.rows = {}
        for name, rows in snapshot.rows.items():
            axis = self.names[name].axis
            assert axis is not None
            self.rows[name] = KeptRows(axis, self.names[name].kept, self.initial_length)
            self.rows[name].restore(rows, copied=copied)

    def truncate(self, length: int) -> None:
        """Drop all but the first `length` tokens; states are dropped only at length 0."""
        if length == 0:
            self.states, self.whole = {}, {}
        self.counted = min(self.counted, length)
        for rows in self.rows.values():
            rows.truncate(length)


class RunSnapshot(NamedTuple):
    """The contents of a cache for one run, at some time."""

    counted: int
    states: Mapping[str, torch.Tensor]
    whole: Mapping[str, torch.Tensor]
    rows: Mapping[str, RowsSnapshot]


def selected(value: torch.Tensor, axis: BatchAxis, rows: torch.Tensor, count: int) -> torch.Tensor:
    """Return a value with selected rows of the batch of `count`."""
    rows = rows.to(value.device)
    if axis.before == axis.behind == 1:
        return value.index_select(axis.index, rows)
    before, behind = (-1 if length is None else length for length in (axis.before, axis.behind))
    apart = torch.unflatten(value, axis.index, (before, count, behind))
    return apart.index_select(axis.index + 1, rows).flatten(axis.index, axis.index + 2)


class FixedModule:
    """The forward of a module that does not depend on the text: it computes in the first call, and returns the same results in
    all later ones. If a module runs several times in a call, each run has its own result.
    """

    def __init__(self, forward: Callable[..., Any], batch: Sequence[BatchAxis | None]) -> None:
        self.forward, self.batch = forward, batch
        self.given: list[Any] = []
        self.done = 0

    def begin(self) -> None:
        """Start a new call of the model."""
        self.done = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.done == len(self.given):
            self.given.append(self.forward(*args, **kwargs))
        self.done += 1
        return self.given[self.done - 1]

    def reorder(self, rows: torch.Tensor, count: int) -> None:
        """Continue with selected rows of the batch of `count`, which may repeat; if they cannot be told apart, compute again."""
        known = all(axis is None or axis.is_known for axis in self.batch)
        self.given = [self._chosen(given, rows, count) for given in self.given] if known else []

    def _chosen(self, given: Any, rows: torch.Tensor, count: int) -> Any:
        values = given if isinstance(given, tuple) else (given,)
        chosen = tuple(
            selected(value, axis, rows, count) if axis is not None and value is not None else value
            for value, axis in zip(values, self.batch, strict=True)
        )
        return chosen if isinstance(given, tuple) else chosen[0]
