"""Scaling of rotary frequencies for contexts longer than in training."""

from __future__ import annotations

import math
from typing import Annotated, Any

import annotated_types

from blocks.core import BlockError, F, Paper, Part, PositiveFloat, PositiveInt, Sizes, declaration, torch


class Scaling(Part):
    """Maps the frequencies of rotary position embeddings, in radians per position, to lower ones.

    What it is not told, it takes from the rotary embedding: `theta`, and its `max_position_embeddings`, here `longest`.
    """

    @declaration
    def fact(self) -> str:
        """Return short facts for drawings."""
        return "scaled"

    @declaration
    def takes_longest(self) -> bool:
        """Return whether it takes anything from `max_position_embeddings` of the rotary embedding."""
        return False

    @declaration
    def check_fit(self, pairs: int, theta: float, longest: int | None) -> None:
        """Raise `BlockError` if it cannot scale so many frequencies, or is not told what it needs."""

    @declaration
    def length_class(self, length: int, longest: int | None) -> int | None:
        """Return a number that two lengths of a text share where frequencies are scaled alike; None if no length matters."""
        return None

    def scale(self, frequencies: Any, theta: float, longest: int | None, position_ids: Any) -> Any:
        """Return the scaled frequencies [n/2]; where they depend on positions [T] or [B, T], [1, n/2] or [B, 1, n/2]."""
        raise NotImplementedError

    def amplitude(self, longest: int | None) -> float:
        """Return the factor of queries and of keys."""
        return 1.0


class LinearScaling(Scaling, kind="linear_scaling"):
    """Linear scaling of rotary frequencies (position interpolation): `frequency / factor`."""

    factor: PositiveFloat
    """How many times longer the context becomes."""

    paper = Paper("Extending Context Window of Large Language Models via Positional Interpolation", "arXiv:2306.15595")
    example = """
inputs: {x: "float[batch, time, 32]"}
graph:
  y:
    type: attention
    heads: 4
    mask: causal
    positions: {type: rotary, scaling: {type: linear_scaling, factor: 4}}
    in: x
"""

    def fact(self) -> str:
        return f"scaled {self.factor:g} ×"

    def scale(self, frequencies: torch.Tensor, theta: float, longest: int | None, position_ids: torch.Tensor) -> torch.Tensor:
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
    example = """
inputs: {x: "float[batch, time, 32]"}
graph:
  y:
    type: attention
    heads: 4
    mask: causal
    positions: {type: rotary, theta: 500000, scaling: llama3}
    in: x
"""

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        if self.high_freq_factor <= self.low_freq_factor:
            raise BlockError(
                f"high_freq_factor {self.high_freq_factor:g} is not above low_freq_factor {self.low_freq_factor:g}",
                field="high_freq_factor",
                hint="frequencies are divided below the low factor and unchanged above the high one",
            )

    def fact(self) -> str:
        return f"scaled {self.factor:g} ×"

    def scale(self, frequencies: torch.Tensor, theta: float, longest: int | None, position_ids: torch.Tensor) -> torch.Tensor:
        turns = self.original_max_position_embeddings * frequencies / (2 * math.pi)  # within the original context
        blend = (turns - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)
        blend = blend.clamp(0, 1)  # 0 slow, 1 fast
        return (1 - blend) * frequencies / self.factor + blend * frequencies


class ProportionalScaling(Scaling, kind="proportional_scaling"):
    """Rotary frequencies of which a share turns: `frequency / factor` for the first pairs, the fastest, and 0 for the others,
    which carry no position, as in Gemma 4.

    Unlike those of the `partial_rotary_factor` of the rotary embedding, the pairs that turn are spread over the whole head, and
    have the frequencies that they have where all turn.
    """

    partial_rotary_factor: Annotated[float, annotated_types.Gt(0), annotated_types.Le(1)] = 1.0
    """Fraction of the pairs that turns, rounded down to whole pairs."""
    factor: PositiveFloat = 1.0
    """What the frequencies of these are divided by."""

    title = "proportional RoPE"
    example = """
inputs: {x: "float[batch, time, 32]"}
graph:
  y:
    type: attention
    heads: 4
    mask: causal
    positions: {type: rotary, scaling: {type: proportional_scaling, partial_rotary_factor: 0.25}}
    in: x
"""

    def check_fit(self, pairs: int, theta: float, longest: int | None) -> None:
        if turning_pairs(self.partial_rotary_factor, pairs) == 0:
            raise BlockError(
                f"{self.partial_rotary_factor:.6g} of {pairs} pair{'s' * (pairs != 1)} of channels is less than one",
                field="partial_rotary_factor",
                hint=f"{1 / pairs:.6g} turns one pair",
            )

    def fact(self) -> str:
        share = f"{self.partial_rotary_factor:.0%} of pairs turn"
        return share if self.factor == 1 else f"{share}, scaled {self.factor:g} ×"

    def scale(
        self: Any, frequencies: torch.Tensor, theta: float, longest: int | None, position_ids: torch.Tensor
    ) -> torch.Tensor:
        pairs = frequencies.shape[-1]
        turning = turning_pairs(self.partial_rotary_factor, pairs)
        return F.pad(frequencies[:turning] / self.factor, (0, pairs - turning))


def turning_pairs(share: float, pairs: int) -> int:
    """Return how many of so many pairs turn, rounded as in transformers."""
    return int(share * 2 * pairs // 2)


def check_told(scaling: Any) -> None:
    """Raise `BlockError` if a scaling has neither its factor nor the length of pretraining, and so would change nothing."""
    if scaling.factor is None and scaling.original_max_position_embeddings is None:
        raise BlockError("how much longer the context becomes is not known", field="factor", hint="such as `factor: 4`")


def check_lengths(scaling: Any, longest: int | None) -> None:
    """Raise `BlockError` if one of both is not told, and does not follow from `max_position_embeddings` of the embedding."""
    for name in ("factor", "original_max_position_embeddings"):
        if getattr(scaling, name) is None and longest is None:
            hint = "set it, or `max_position_embeddings` of the rotary embedding, from which it follows"
            raise BlockError(f"{name} is not known", field=name, hint=hint)


def lacks_length(scaling: Any) -> bool:
    """Return whether one of both is not told."""
    return scaling.factor is None or scaling.original_max_position_embeddings is None


def original_length(scaling: Any, longest: Any) -> int:
    """Return the context length of pretraining: what a scaling says, or else `max_position_embeddings` of the embedding."""
    return int(scaling.original_max_position_embeddings or longest)


def times_longer(scaling: Any, longest: Any) -> float:
    """Return how many times longer the context becomes: what a scaling says, or else the quotient of both lengths."""
    return float(scaling.factor or longest / original_length(scaling, longest))
