"""All that a session keeps: the cache of each module, and what was computed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from composer.decode.caches.cache import Cache, FixedModule, ModuleRun, RunSnapshot
from composer.decode.caches.fixed_cache import Clock, FixedCache
from composer.decode.caches.preallocation import obstacles
from composer.decode.errors import DecodeError
from composer.lower.model import Model, module_at

CacheSnapshots = tuple[tuple[RunSnapshot, ...], ...]
"""What each cache holds for each of its runs per call."""


class Contents:
    """The caches of a model, one for each node of its cache layout, and the results that do not depend on the text.

    Raises:
        DecodeError: The model cannot have caches of a fixed size.
    """

    def __init__(self, model: Model, initial_length: int, max_length: int | None) -> None:
        layout = model.cache_layout
        nodes, fixed = (layout.nodes, layout.fixed) if layout is not None else ((), ())
        self.clock: Clock | None = None
        """With a maximum length, what counts the tokens."""
        if max_length is None or layout is None:
            self.caches = [Cache(node.slots, initial_length) for node in nodes]
        else:
            if (reason := next(obstacles(model.program, layout), None)) is not None:
                raise DecodeError(f"the model cannot have a session with `max_length`: {reason}")
            self.clock = clock = Clock(max_length, next(model.parameters()).device)
            self.caches = [FixedCache(node, clock) for node in nodes]
        modules: Iterator[tuple[Any, nn.Module | None]] = ((one, module_at(model, one.module)) for one in fixed)
        self.once = {one.module: FixedModule(module.forward, one.batch) for one, module in modules if module is not None}
        """What computes once, by the paths of the modules."""

    @property
    def length(self) -> int:
        """Number of tokens so far."""
        return max((run.counted for run in self.runs()), default=0) if self.clock is None else self.clock.count

    def runs(self) -> Iterator[ModuleRun]:
        """Yield the contents of every cache for each of its runs per call."""
        return (run for cache in self.caches for run in cache.runs)

    def begin(self) -> None:
        """Start a new call of the model."""
        for cache in self.caches:
            cache.begin()
        for once in self.once.values():
            once.begin()

    def reorder(self, rows: torch.Tensor, count: int) -> None:
        """Continue with selected rows of the batch of `count`, which may repeat."""
        for run in self.runs():
            run.reorder(rows, count)
        for once in self.once.values():
            once.reorder(rows, count)

    @property
    def has_states(self) -> bool:
        """Whether something is replaced at each call, so that there is no way back but to a mark."""
        return any(run.states for run in self.runs())

    def can_go_back(self, length: int) -> bool:
        """Return whether nothing is missing that tokens after the first `length` may see."""
        return all(not run.states and run.can_go_back(length) for run in self.runs())

    def truncate(self, length: int) -> None:
        """Drop all but the first `length` tokens; at 0, everything."""
        for run in self.runs():
            run.truncate(length)
        if self.clock is not None:
            self.clock.set(min(length, self.clock.count))
        if length == 0:
            for once in self.once.values():
                once.given = []

    def snapshot(self) -> tuple[CacheSnapshots, Mapping[str, tuple[Any, ...]]]:
        """Return what each cache holds now, and what was computed once."""
        return tuple(cache.snapshot() for cache in self.caches), {name: tuple(one.given) for name, one in self.once.items()}

    def restore(self, length: int, caches: CacheSnapshots, once: Mapping[str, tuple[Any, ...]], *, copied: bool) -> None:
        """Go on from a snapshot after `length` tokens, or from a copy of it."""
        for cache, contents in zip(self.caches, caches, strict=True):
            cache.restore(contents, copied=copied)
        if self.clock is not None:
            self.clock.set(length)
        for name, one in self.once.items():
            one.given = list(once.get(name, ()))
