"""What `torch.compile` compiles in a run that leaves the choice to a trial."""

from __future__ import annotations

import copy
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import nn

from composer.train.criteria.criterion import Criterion
from composer.train.data.objectives import Batches
from composer.train.device import device_of
from composer.train.errors import TrainingError
from composer.train.following.callbacks import Callback
from composer.train.loop import batches_of_step, build_optimizer, update, with_logits_chunk
from composer.train.settings import TrainSettings
from composer.train.techniques.compiling import compiled_modules
from composer.train.techniques.recompute import recomputing

D = TypeVar("D")

SHORTEST = 300.0
"""Seconds that the steps of a run take at least before compiling is tried, which takes half a minute and saves some percent."""
GAIN = 0.03
"""Share of a step that compiling must save; less is within what two timings of the same work differ by."""
TRIES = 3
"""Steps of which the fastest counts."""


@dataclass(frozen=True)
class CompileChoice:
    """What is compiled, and why."""

    mode: str
    """The name of a row of `COMPILE_MODES`."""
    reason: str

    def __str__(self) -> str:
        return f"compile: {self.mode}, since {self.reason}"


def compile_choice(
    model: nn.Module,
    data: D,
    settings: TrainSettings,
    objective: Batches[D],
    criterion: Criterion,
    callbacks: Sequence[Callback],
) -> CompileChoice:
    """Return what pays in a run of so many steps, by a trial of a few with a copy of the model.

    The copy, its optimizer and what was compiled are given up afterward; random numbers go on as if nothing had run.
    """
    device = device_of(model)
    if device.type == "cpu" and not has_compiler():
        return CompileChoice("off", "no C++ compiler is found")
    try:
        for callback in callbacks:
            callback.check(model, replace(settings, compile="block"))
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            return _tried(copy.deepcopy(model).train(), data, settings, objective, criterion)
    except (torch.OutOfMemoryError, MemoryError):
        return CompileChoice("off", "there is no memory for a trial")
    except TrainingError as error:
        return CompileChoice("off", str(error))
    finally:
        torch.compiler.reset()  # what a run compiles depends on the run alone


def _tried(model: nn.Module, data: D, settings: TrainSettings, objective: Batches[D], criterion: Criterion) -> CompileChoice:
    settings = with_logits_chunk(settings, model)
    optimizer, device, generator = build_optimizer(model, settings), device_of(model), torch.Generator()

    def step() -> None:
        batches = batches_of_step(1, objective, data, settings, generator)
        update(model, optimizer, batches, settings, rate=settings.learning_rate, criterion=criterion)

    with recomputing(model, settings.recompute):
        first = seconds_of(step, device)  # the slowest, since it allocates
        if first * settings.steps < SHORTEST:
            return CompileChoice("off", f"a run of about {first * settings.steps:.0f} s is too short to pay for it")
        plain = min(seconds_of(step, device) for _ in range(TRIES))
        with compiled_modules(model, "block", dynamic=not objective.windows):
            compiling = seconds_of(step, device)
            fast = min(seconds_of(step, device) for _ in range(TRIES))
    if fast > (1 - GAIN) * plain or (plain - fast) * settings.steps < compiling:
        return CompileChoice("off", f"a step takes {1000 * plain:.3g} ms, and {1000 * fast:.3g} ms compiled")
    return CompileChoice("block", f"a step takes {1000 * fast:.3g} ms in place of {1000 * plain:.3g} ms")


def has_compiler() -> bool:
    """Return whether there is a C++ compiler, by the names that torch looks for."""
    return any(shutil.which(name) for name in (os.environ.get("CXX"), "g++", "clang++", "c++", "cl") if name)


def seconds_of(step: Callable[[], None], device: torch.device) -> float:
    """Return the seconds that a step takes, with what it starts on a GPU."""
    began = time.perf_counter()
    step()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - began
