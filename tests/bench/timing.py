"""Times that can be compared: the same work in turn, in one process, and how far the machine can be believed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter

import torch

from tests.bench.tables import BUSY

Work = Callable[[], object]
CONTROL = "control"
"""The name of the second timing of the first work."""
MAX_TRIES = 4
"""How often works are timed, as long as the control shows that the machine was busy."""


@dataclass(frozen=True)
class Times:
    """The median seconds of each work, and the control: two timings of the first one, as a ratio (A/A)."""

    seconds: Mapping[str, float]
    control: float

    def speed(self, name: str, beside: str) -> float:
        """Return how many times as fast a work is as another."""
        return self.seconds[beside] / self.seconds[name]


def in_turn(timings: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Return the median of each timing; every other round goes the other way round."""
    found: dict[str, list[float]] = {name: [] for name in timings}
    for number in range(rounds):
        for name in list(timings) if number % 2 == 0 else reversed(timings):
            found[name].append(timings[name]())
    return {name: statistics.median(values) for name, values in found.items()}


def times(works: Mapping[str, Work], *, rounds: int, clock: Callable[[], float] = perf_counter) -> Times:
    """Time each work in turn on a processor, after a first call of each; the first of them is timed twice. Where its two timings
    differ, because the machine was busy, all are timed again; what is returned is the try in which they differ least.
    """
    for work in works.values():
        work()
    first = next(iter(works))
    best: Times | None = None
    for _ in range(MAX_TRIES):
        found = in_turn({name: timing(work, clock) for name, work in {**works, CONTROL: works[first]}.items()}, rounds)
        again = found.pop(CONTROL)
        tried = Times(found, again / found[first])
        best = tried if best is None or abs(tried.control - 1) < abs(best.control - 1) else best
        if abs(best.control - 1) <= BUSY:
            break
    assert best is not None, "it is tried at least once"
    return best


def timing(work: Work, clock: Callable[[], float] = perf_counter) -> Callable[[], float]:
    """Return a function that returns the seconds of one call, by a clock such as that of the process."""

    def measure() -> float:
        start = clock()
        work()
        return clock() - start

    return measure


def passes(function: Callable[[], torch.Tensor], *, train: bool) -> Work:
    """Return a function for one forward, or a forward and a backward."""

    def forward() -> torch.Tensor:
        with torch.inference_mode():
            return function()

    return (lambda: function().sum().backward()) if train else forward
