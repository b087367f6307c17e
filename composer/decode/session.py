"""Writing on: what a model's parts remember from call to call, held on them while a session is open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import torch
from torch.utils.hooks import RemovableHandle

from composer.decode.problem import DecodeError
from composer.lower.keepers import Kept
from composer.lower.model import Model


class Cache:
    """What one part remembers. A part that runs several times in a call, for passes with one set of weights, remembers for each
    time by itself: the first time in a call goes on from the first time in the call before.
    """

    def __init__(self, names: Mapping[str, Kept], capacity: int) -> None:
        self.names, self.capacity = names, capacity
        self.runs: list[Memory] = []
        self.done: Counter[str] = Counter()
        """How often each thing was asked for in this call."""

    def begin(self) -> None:
        """A new call."""
        self.done.clear()

    def count(self, more: int) -> int:
        """The position of the first of `more` tokens."""
        return self._run("count").count(more)

    def append(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """All that was given under the name so far, with `value` at the end."""
        return self._run(f"append {name}").append(name, value)

    def recall(self, name: str) -> torch.Tensor | None:
        """The state that the call before left."""
        return self._run(f"recall {name}").recall(name)

    def leave(self, more: int, states: Mapping[str, torch.Tensor]) -> None:
        """New states, `more` tokens after those before."""
        self._run("leave").leave(more, states)

    def _run(self, what: str) -> Memory:
        number = self.done[what]
        self.done[what] += 1
        if number == len(self.runs):
            self.runs.append(Memory(self.names, self.capacity))
        return self.runs[number]


class Memory:
    """What a part remembers of one run in each call, in memory that doubles where it is too short."""

    def __init__(self, names: Mapping[str, Kept], capacity: int) -> None:
        self.names, self.capacity = names, capacity
        self.buffers: dict[str, torch.Tensor] = {}
        self.lengths: dict[str, int] = {}
        self.states: dict[str, torch.Tensor] = {}
        self.counted = 0

    def count(self, more: int) -> int:
        """The position of the first of `more` tokens."""
        start = self.counted
        self.counted += more
        return start

    def append(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """All that was given under the name so far, with `value` at the end."""
        axis = self._axis(name, value)
        start, more = self.lengths.get(name, 0), value.shape[axis]
        buffer = self.buffers.get(name)
        if buffer is None or buffer.shape[axis] < start + more or buffer.dtype != value.dtype:
            shape = list(value.shape)
            shape[axis] = max(self.capacity, start + more, 2 * start)
            grown = value.new_empty(shape)
            if buffer is not None:
                grown.narrow(axis, 0, start).copy_(buffer.narrow(axis, 0, start))
            buffer = self.buffers[name] = grown
        buffer.narrow(axis, start, more).copy_(value)
        self.lengths[name] = start + more
        return buffer.narrow(axis, 0, start + more)

    def recall(self, name: str) -> torch.Tensor | None:
        """The state that the call before left."""
        return self.states.get(name)

    def leave(self, more: int, states: Mapping[str, torch.Tensor]) -> None:
        """New states, `more` tokens after those before."""
        self.states.update(states)
        self.counted += more

    def reorder(self, rows: torch.Tensor) -> None:
        """Rows of the batch, chosen or repeated: what a beam needs."""
        self.states = {name: state.index_select(0, rows.to(state.device)) for name, state in self.states.items()}
        for name, buffer in self.buffers.items():
            if self.names[name].batch and buffer.dim() > 1:
                self.buffers[name] = buffer.index_select(0, rows.to(buffer.device))

    def crop(self, length: int) -> None:
        """Forgets all after the first `length` tokens; a state, only where that is all."""
        if length == 0:
            self.states = {}
        self.counted = min(self.counted, length)
        self.lengths = {name: min(kept, length) for name, kept in self.lengths.items()}

    def _axis(self, name: str, value: torch.Tensor) -> int:
        axis = self.names[name].axis
        assert axis is not None
        return value.dim() + axis


class Session:
    """A model that continues where its last call ended: each call takes the next tokens only.

    Logits are those that one call over all tokens gives. Every call of a session has the same rows; an optional input that
    the first call was given (`valid`), each call is given, for its own tokens.
    """

    def __init__(self, model: Model, capacity: int = 256) -> None:
        self.model = model
        self.capacity = capacity
        self._caches: list[Cache] = []
        self._holders: list[Any] = []
        self._without_gradients = torch.no_grad()
        self._begin: RemovableHandle | None = None

    def __enter__(self) -> Self:
        for keeper in self.model.keepers:
            holder: Any = self.model.get_submodule(keeper.module)
            for name in keeper.attribute:
                holder = holder.__dict__[name]
            if holder.__dict__.get("cache") is not None:
                self._close()
                raise RuntimeError("this model is in a session already")
            holder.__dict__["cache"] = cache = Cache(keeper.names, self.capacity)
            self._caches.append(cache)
            self._holders.append(holder)
        self._begin = self.model.register_forward_pre_hook(self._new_call)
        self._without_gradients.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._without_gradients.__exit__(kind, error, traceback)
        self._close()

    def _new_call(self, *_: Any) -> None:
        for cache in self._caches:
            cache.begin()

    def _close(self) -> None:
        if self._begin is not None:
            self._begin.remove()
        for holder in self._holders:
            holder.__dict__.pop("cache", None)
        self._holders, self._caches = [], []

    @property
    def length(self) -> int:
        """Tokens so far."""
        return max((memory.counted for memory in self._memories()), default=0)

    def _memories(self) -> Iterator[Memory]:
        return (memory for cache in self._caches for memory in cache.runs)

    def reorder(self, rows: torch.Tensor) -> None:
        """Rows of the batch, chosen or repeated, [B] of indices."""
        for memory in self._memories():
            memory.reorder(rows)

    def crop(self, length: int) -> None:
        """Forgets all after the first `length` tokens.

        Raises:
            DecodeError: where a part carries a state, which does not say what it was before.
        """
        if 0 < length < self.length and any(memory.states for memory in self._memories()):
            raise DecodeError(
                f"after {self.length} tokens the state of a recurrent block cannot go back to {length}; "
                "begin again with crop(0), or open another session"
            )
        for memory in self._memories():
            memory.crop(length)


def session(model: Model, capacity: int = 256) -> Session:
    """A session of a compiled model, to be used in a `with`."""
    return Session(model, capacity)
