"""The largest batch whose training step fits into a memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from composer.cost.lengths import axes, lengths_of
from composer.estimate.devices import EstimateError
from composer.estimate.estimating import is_trainable, traced_step
from composer.train.settings import TrainSettings

if TYPE_CHECKING:
    from composer.recipe import Recipe

MOST = 1 << 20
"""The largest batch that is tried."""


def largest_batch(
    recipe: Recipe,
    memory: int,
    lengths: Mapping[str, int] | None = None,
    *,
    settings: TrainSettings | None = None,
    on_gpu: bool = True,
) -> int:
    """Return the largest batch of a training step that holds at most so many bytes; 0 if not even a batch of one fits.

    Args:
        recipe: The recipe.
        memory: Bytes.
        lengths: Lengths of the other axes, as in `estimate`.
        settings: As in `estimate`.
        on_gpu: Whether the memory is that of a GPU.

    Raises:
        RecipeError: The recipe has errors.
        TrainingError: A pattern of the settings matches nothing.
        EstimateError: The model has no batch, or nothing says what it learns.

    Examples:
        >>> import composer
        >>> from composer.estimate import largest_batch
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> gpt = composer.load("gpt2", tiny)
        >>> largest_batch(gpt, 2**24) > largest_batch(gpt, 2**23) > 0
        True
    """
    settings = settings or TrainSettings()
    if settings.precision == "auto":
        settings = replace(settings, precision="bf16" if on_gpu else "fp32")
    model = recipe.compile(device="meta")
    if "batch" not in axes(model.program):
        raise EstimateError(f"{recipe.name} has no axis `batch`", hint="the first axis of its inputs must be called batch")
    if not is_trainable(model):
        raise EstimateError(f"{recipe.name} has no task with a loss and no losses, so there is no training step")

    def peak(batch: int) -> int:
        at = lengths_of(model.program, {**(lengths or {}), "batch": batch})
        return traced_step(recipe.compile(device="meta"), at, settings, on_gpu=on_gpu).memory.peak

    return largest(peak, memory)


def largest(peak: Callable[[int], int], memory: int, most: int = MOST) -> int:
    """Return the largest number from 1 to `most` with a peak of at most `memory`, of a peak that never falls; 0 if there is none.

    It is nearly a straight line, so that a few evaluations suffice; each guess continues the line through the last two.
    """
    fits, at_fits = 0, 0
    fails, last = most + 1, (0, 0)
    guess = 1
    for turn in range(200):
        found = peak(guess)
        (number, value), last = last, (guess, found)
        slope = (found - value) / (guess - number) if guess != number and number else 0.0
        if found <= memory:
            fits, at_fits = guess, found
        else:
            fails = guess
        if fails - fits <= 1:
            return fits
        if slope > 0 and turn < 8:
            guess = fits + int((memory - at_fits) / slope) if found <= memory else guess - max(1, int((found - memory) / slope))
        else:
            guess = 2 if fits == 1 and turn == 0 else (fits + fails) // 2 if fails <= most else 4 * fits
        guess = min(max(guess, fits + 1), fails - 1)
    raise AssertionError("a number was not found")
