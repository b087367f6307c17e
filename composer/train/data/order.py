"""The order of the data: what a batch draws depends on the seed and on its number alone, not on batches before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch


def at_batch(generator: torch.Generator, seed: int, number: int) -> torch.Generator:
    """Set a generator to where a batch begins, and return it: to a hash of both numbers.

    So the position in the data is a number, whatever was drawn before it and by whom.

    Args:
        generator: The generator.
        seed: The seed of the run.
        number: The number of the batch, from 0; each step has as many as gradients are accumulated.
    """
    words = np.array([seed, number], dtype=np.uint32) if 0 <= seed < 2**32 > number else [seed, number]  # an array is faster
    (state,) = np.random.SeedSequence(words).generate_state(1, np.uint64)
    return generator.manual_seed(int(state) >> 1)


def systematic(weights: np.ndarray, count: int, generator: torch.Generator) -> np.ndarray:
    """Return `count` places of weights [n], each as often as its share says, up or down to a whole number (systematic sampling).

    Args:
        weights: Positive numbers.
        count: How many places.
        generator: The generator.
    """
    offset = torch.rand((), generator=generator, dtype=torch.float64).item()
    ends = np.cumsum(weights) / np.sum(weights)
    return np.minimum(np.searchsorted(ends, (np.arange(count) + offset) / count, side="right"), len(weights) - 1)


def drawn_by_weight(
    stops: npt.NDArray[np.int64], weights: Sequence[float], count: int, generator: torch.Generator
) -> npt.NDArray[np.int64]:
    """Return `count` of the places from 0 to the last stop: of each source as many as its weight says, uniformly in it.

    Args:
        stops: Where the places of each source end, in ascending order.
        weights: The weight of each source, a positive number.
        count: How many places.
        generator: The generator.
    """
    first = np.concatenate([np.zeros(1, dtype=np.int64), stops[:-1]])
    source = systematic(np.array(weights), count, generator)
    within = torch.rand(count, generator=generator, dtype=torch.float64).numpy()
    return np.asarray(first[source] + (within * (stops - first)[source]).astype(np.int64))
