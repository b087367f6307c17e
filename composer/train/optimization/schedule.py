"""The learning rate at each step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol


class ScheduleSettings(Protocol):
    """The settings of a schedule."""

    @property
    def steps(self) -> int:
        """Number of optimizer steps."""

    @property
    def learning_rate(self) -> float:
        """The peak."""

    @property
    def warmup_steps(self) -> int:
        """Steps of linear warm-up from 0."""

    @property
    def min_lr_ratio(self) -> float:
        """The final learning rate, as a fraction of the peak."""

    @property
    def decay_ratio(self) -> float:
        """Share of the steps in which the learning rate falls."""


def learning_rate(settings: ScheduleSettings, schedule: str, step: int) -> float:
    """Return the learning rate of step 1, 2, … `steps`: linear warm-up to the peak, then what the schedule says."""
    if step <= settings.warmup_steps:
        return settings.learning_rate * step / settings.warmup_steps
    return settings.learning_rate * SCHEDULES[schedule].after(settings, step)


def _progress(start: float, step: int, end: int) -> float:
    """Return how much of the way from one step to another is done."""
    return (step - start) / (end - start) if step > start else 0.0


def _down(settings: ScheduleSettings, left: float) -> float:
    """Return the share of the peak, of which the part above the final rate is left to some share."""
    return settings.min_lr_ratio + (1 - settings.min_lr_ratio) * left


def cosine(settings: ScheduleSettings, step: int) -> float:
    """Return half a cosine from the peak to the final rate (Loshchilov and Hutter 2017, without restarts)."""
    progress = _progress(settings.warmup_steps, step, settings.steps)
    return _down(settings, (1 + math.cos(math.pi * progress)) / 2)


def linear(settings: ScheduleSettings, step: int) -> float:
    """Return a line from the peak to the final rate."""
    return _down(settings, 1 - _progress(settings.warmup_steps, step, settings.steps))


def constant(settings: ScheduleSettings, step: int) -> float:
    """Return the peak."""
    return 1.0


def inverse_sqrt(settings: ScheduleSettings, step: int) -> float:
    """Return 1 / √step, scaled to the peak at the end of warm-up (Vaswani et al. 2017)."""
    return math.sqrt(max(settings.warmup_steps, 1) / step)


def wsd(settings: ScheduleSettings, step: int) -> float:
    """Return the peak, and a line to the final rate over the last steps: warm-up, stable, decay (Hu et al. 2024)."""
    start = max(settings.warmup_steps, settings.steps * (1 - settings.decay_ratio))
    return _down(settings, 1 - _progress(start, step, settings.steps))


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule, and the settings that only some schedules read."""

    after: Callable[[ScheduleSettings, int], float]
    """The rate after warm-up, as a fraction of the peak."""
    reads: frozenset[str] = frozenset()


SCHEDULES: Mapping[str, Schedule] = {
    "cosine": Schedule(cosine, frozenset({"min_lr_ratio"})),
    "linear": Schedule(linear, frozenset({"min_lr_ratio"})),
    "constant": Schedule(constant),
    "inverse_sqrt": Schedule(inverse_sqrt),
    "wsd": Schedule(wsd, frozenset({"min_lr_ratio", "decay_ratio"})),
}
