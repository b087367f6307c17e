"""How rotary frequencies are slowed for contexts longer than those of training."""

from __future__ import annotations

import math
from typing import Any

from blocks.core import BlockError, Paper, Part, PositiveFloat, PositiveInt, Sizes, declaration, torch


class Scaling(Part):
    """Maps the frequencies of rotary positions, in radians per position, to slower ones."""

    @declaration
    def fact(self) -> str:
        """Return what drawings say of it."""
        return "scaled"

    def scale(self, frequencies: Any) -> Any:
        """Each frequency [head_dim / 2] slowed, or left."""
        raise NotImplementedError


class LinearScaling(Scaling, kind="linear_scaling"):
    """All frequencies by one factor, as if positions lay closer together; also called position interpolation."""

    factor: PositiveFloat
    """How many times longer the context becomes."""

    paper = Paper("Extending Context Window of Large Language Models via Positional Interpolation", "arXiv:2306.15595")

    def fact(self) -> str:
        return f"scaled {self.factor:g} ×"

    def scale(self, frequencies: torch.Tensor) -> torch.Tensor:
        return frequencies / self.factor


class Llama3Scaling(Scaling, kind="llama3"):
    """Slow frequencies by a factor, leave fast ones, and blend in between: those that turn less than `low_freq_factor`
    times within the original context are slow, those that turn more than `high_freq_factor` times are fast.
    """

    factor: PositiveFloat = 8.0
    """How many times longer the context becomes."""
    low_freq_factor: PositiveFloat = 1.0
    """Turns within the original context up to which a frequency is divided by the whole factor."""
    high_freq_factor: PositiveFloat = 4.0
    """Turns within the original context from which a frequency stays as it is."""
    original_max_position_embeddings: PositiveInt = 8192
    """Tokens of context in the first training."""

    paper = Paper("The Llama 3 Herd of Models", "arXiv:2407.21783")

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        if self.high_freq_factor <= self.low_freq_factor:
            raise BlockError(
                f"frequencies are slow below {self.low_freq_factor:g} turns and fast above {self.high_freq_factor:g}",
                field="high_freq_factor",
                hint="the high factor must be larger than the low one",
            )

    def fact(self) -> str:
        return f"scaled {self.factor:g} ×"

    def scale(self, frequencies: torch.Tensor) -> torch.Tensor:
        turns = self.original_max_position_embeddings * frequencies / (2 * math.pi)  # within the original context
        blend = (turns - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)
        blend = blend.clamp(0, 1)  # 0 slow, 1 fast
        return (1 - blend) * frequencies / self.factor + blend * frequencies
