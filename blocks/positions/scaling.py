"""Scaling of rotary frequencies for contexts longer than in training."""

from __future__ import annotations

import math
from typing import Any

from blocks.core import BlockError, Paper, Part, PositiveFloat, PositiveInt, Sizes, declaration, torch


class Scaling(Part):
    """Maps the frequencies of rotary position embeddings, in radians per position, to lower ones."""

    @declaration
    def fact(self) -> str:
        """Return short facts for drawings."""
        return "scaled"

    def scale(self, frequencies: Any) -> Any:
        """Return the scaled frequencies [head_dim / 2]."""
        raise NotImplementedError


class LinearScaling(Scaling, kind="linear_scaling"):
    """Linear scaling of rotary frequencies (position interpolation): `frequency / factor`."""

    factor: PositiveFloat
    """How many times longer the context becomes."""

    paper = Paper("Extending Context Window of Large Language Models via Positional Interpolation", "arXiv:2306.15595")

    def fact(self) -> str:
        return f"scaled {self.factor:g} ×"

    def scale(self, frequencies: torch.Tensor) -> torch.Tensor:
        return frequencies / self.factor


class Llama3Scaling(Scaling, kind="llama3"):
    """Scaling of rotary frequencies in Llama 3.1: `frequency / factor` for low frequencies, high ones unchanged, and a linear
    blend in between.

    Low are frequencies with fewer than `low_freq_factor` full rotations within the original context, high those with more than
    `high_freq_factor`.
    """

    factor: PositiveFloat = 8.0
    """How many times longer the context becomes."""
    low_freq_factor: PositiveFloat = 1.0
    """Rotations within the original context up to which a frequency is divided by the whole factor."""
    high_freq_factor: PositiveFloat = 4.0
    """Rotations within the original context from which on a frequency is unchanged."""
    original_max_position_embeddings: PositiveInt = 8192
    """Context length of pretraining, in tokens."""

    paper = Paper("The Llama 3 Herd of Models", "arXiv:2407.21783")

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        if self.high_freq_factor <= self.low_freq_factor:
            raise BlockError(
                f"high_freq_factor {self.high_freq_factor:g} is not above low_freq_factor {self.low_freq_factor:g}",
                field="high_freq_factor",
                hint="frequencies are divided below the low factor and unchanged above the high one",
            )

    def fact(self) -> str:
        return f"scaled {self.factor:g} ×"

    def scale(self, frequencies: torch.Tensor) -> torch.Tensor:
        turns = self.original_max_position_embeddings * frequencies / (2 * math.pi)  # within the original context
        blend = (turns - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)
        blend = blend.clamp(0, 1)  # 0 slow, 1 fast
        return (1 - blend) * frequencies / self.factor + blend * frequencies
