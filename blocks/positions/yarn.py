"""YaRN, a scaling of rotary frequencies by their number of rotations."""

from __future__ import annotations

import math
from typing import Annotated, Any

import annotated_types

from blocks.core import BlockError, Paper, PositiveFloat, PositiveInt, Sizes, torch
from blocks.positions.scaling import Scaling, check_lengths, check_told, lacks_length, original_length, times_longer

Weight = Annotated[float, annotated_types.Ge(0)]


class Yarn(Scaling, kind="yarn"):
    """YaRN scaling of rotary frequencies: `frequency / factor` for low frequencies, high ones unchanged, and in between a blend
    that is linear in the index of the pair. Queries and keys are multiplied by `attention_factor`.

    Low are frequencies with fewer than `beta_slow` full rotations within the original context, high those with more than
    `beta_fast`.
    """

    factor: PositiveFloat | None = None
    """How many times longer the context becomes; by default, `max_position_embeddings` of the rotary embedding divided by the
    original length.
    """
    original_max_position_embeddings: PositiveInt | None = None
    """Context length of pretraining, in tokens; by default, `max_position_embeddings` of the rotary embedding."""
    beta_fast: PositiveFloat = 32.0
    """Rotations within the original context from which on a frequency is unchanged."""
    beta_slow: PositiveFloat = 1.0
    """Rotations within the original context up to which a frequency is divided by the whole factor."""
    truncate: bool = True
    """Whether the blend begins and ends at whole pairs; not so in GPT-OSS."""
    attention_factor: PositiveFloat | None = None
    """Factor of queries and of keys; by default `0.1 · ln(factor) + 1`, or with `mscale` and `mscale_all_dim` the quotient of
    `0.1 · mscale · ln(factor) + 1` for the two.
    """
    mscale: Weight | None = None
    """Weight of the logarithm in the numerator of the attention factor, as in DeepSeek-V2."""
    mscale_all_dim: Weight | None = None
    """Weight of the logarithm in its denominator."""

    title = "YaRN"
    paper = Paper("YaRN: Efficient Context Window Extension of Large Language Models", "arXiv:2309.00071")
    example = """
inputs: {x: "float[batch, time, 32]"}
graph:
  y:
    type: attention
    heads: 4
    mask: causal
    positions: {type: rotary, scaling: {type: yarn, factor: 4, original_max_position_embeddings: 128}}
    in: x
"""

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        check_told(self)
        if self.beta_fast <= self.beta_slow:
            raise BlockError(
                f"beta_fast {self.beta_fast:g} is not above beta_slow {self.beta_slow:g}",
                field="beta_fast",
                hint="frequencies are divided below the slow number of rotations and unchanged above the fast one",
            )

    def takes_longest(self) -> bool:
        return lacks_length(self)

    def check_fit(self, pairs: int, theta: float, longest: int | None) -> None:
        check_lengths(self, longest)
        if theta <= 1:
            raise BlockError("frequencies that do not fall from pair to pair have no bands", hint="use a theta above 1")

    def fact(self) -> str:
        return "YaRN" if self.factor is None else f"YaRN {self.factor:g} ×"

    def scale(
        self: Any, frequencies: torch.Tensor, theta: float, longest: int | None, position_ids: torch.Tensor
    ) -> torch.Tensor:
        pairs, original = frequencies.shape[-1], original_length(self, longest)
        # The pair, as a real number, that rotates so many times within the original context.
        first, last = (
            pairs * math.log(original / (2 * math.pi * turns)) / math.log(theta) for turns in (self.beta_fast, self.beta_slow)
        )
        if self.truncate:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, 2 * pairs - 1)
        index = torch.arange(pairs, dtype=torch.float32, device=frequencies.device)
        blend = ((index - first) / (last - first if last != first else 0.001)).clamp(0, 1)  # 0 fast, 1 slow
        return frequencies / times_longer(self, longest) * blend + frequencies * (1 - blend)

    def amplitude(self, longest: int | None) -> float:
        if self.attention_factor is not None:
            return self.attention_factor
        factor = times_longer(self, longest)
        logarithm = 0.1 * math.log(factor) if factor > 1 else 0.0
        if self.mscale and self.mscale_all_dim:
            return (self.mscale * logarithm + 1) / (self.mscale_all_dim * logarithm + 1)
        return logarithm + 1
