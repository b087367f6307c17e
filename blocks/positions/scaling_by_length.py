"""Scalings of rotary frequencies that depend on the length of the text: LongRoPE and dynamic NTK.

All positions of a call are encoded alike, so a text that grows beyond a length is encoded anew. A session cannot do that with
what it has cached, and refuses the call that would need it: `length_class` says which lengths are encoded alike.
"""

from __future__ import annotations

import math
from typing import Any

from blocks.core import BlockError, F, Paper, PositiveFloat, PositiveInt, Sizes, torch
from blocks.positions.scaling import Scaling, check_lengths, check_told, lacks_length, original_length, times_longer


class LongRope(Scaling, kind="longrope"):
    """LongRoPE scaling of rotary frequencies, each by a factor of its own: `frequency / short_factor` in a text of up to
    `original_max_position_embeddings` tokens, and `frequency / long_factor` in a longer one. Queries and keys are multiplied by
    `attention_factor`.

    The length of a text is that of its row: the greatest position in it, plus 1. A session raises an error where a text that it
    has begun with short factors becomes longer.
    """

    short_factor: tuple[PositiveFloat, ...]
    """What the frequency of each pair is divided by, in a text of the original length."""
    long_factor: tuple[PositiveFloat, ...]
    """What the frequency of each pair is divided by, in a longer text."""
    factor: PositiveFloat | None = None
    """How many times longer the context becomes; by default, `max_position_embeddings` of the rotary embedding divided by the
    original length.
    """
    original_max_position_embeddings: PositiveInt | None = None
    """Context length of pretraining, in tokens; by default, `max_position_embeddings` of the rotary embedding."""
    attention_factor: PositiveFloat | None = None
    """Factor of queries and of keys; by default `sqrt(1 + ln(factor) / ln(original_max_position_embeddings))`."""

    title = "LongRoPE"
    paper = Paper("LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens", "arXiv:2402.13753")
    example = """
inputs: {x: "float[batch, time, 32]"}
graph:
  y:
    type: attention
    heads: 4
    positions:
      type: rotary
      max_position_embeddings: 256
      scaling: {type: longrope, factor: 4, short_factor: [1, 1, 1.5, 2], long_factor: [1, 2, 4, 8]}
    in: x
"""

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        check_told(self)

    def takes_longest(self) -> bool:
        return lacks_length(self)

    def check_fit(self, pairs: int, theta: float, longest: int | None) -> None:
        check_lengths(self, longest)
        for field in ("short_factor", "long_factor"):
            if (count := len(getattr(self, field))) != pairs:
                raise BlockError(
                    f"{field} has {count} number{'s' * (count != 1)}, and {pairs} pairs of channels are rotated", field=field
                )
        if original_length(self, longest) < 2:
            raise BlockError("a text of 1 token has no positions to scale", field="original_max_position_embeddings")

    def length_class(self, length: int, longest: int | None) -> int:
        return int(length > original_length(self, longest))

    def scale(
        self: Any, frequencies: torch.Tensor, theta: float, longest: int | None, position_ids: torch.Tensor
    ) -> torch.Tensor:
        factors = torch.tensor([self.short_factor, self.long_factor], dtype=torch.float32, device=frequencies.device)
        short, long = (frequencies / factors).unbind()  # [n/2]
        return torch.where(text_length(position_ids) > original_length(self, longest), long, short)

    def amplitude(self, longest: int | None) -> float:
        if self.attention_factor is not None:
            return self.attention_factor
        factor = times_longer(self, longest)
        return math.sqrt(1 + math.log(factor) / math.log(original_length(self, longest))) if factor > 1 else 1.0


class DynamicScaling(Scaling, kind="dynamic_scaling"):
    """Dynamic NTK scaling of rotary frequencies: none in a text of up to L tokens, `max_position_embeddings` of the rotary
    embedding, and in a text of n tokens beyond, the frequencies of a larger base,
    `theta · (factor · n / L − (factor − 1))^(d / (d − 2))` with d rotated channels in each head.

    The length of a text is that of its row: the greatest position in it, plus 1. A session raises an error where a text grows
    beyond L.
    """

    factor: PositiveFloat
    """How fast the base grows with the text."""

    title = "dynamic NTK"
    paper = Paper("YaRN: Efficient Context Window Extension of Large Language Models", "arXiv:2309.00071")
    example = """
inputs: {x: "float[batch, time, 32]"}
graph:
  y:
    type: attention
    heads: 4
    positions: {type: rotary, max_position_embeddings: 128, scaling: {type: dynamic_scaling, factor: 4}}
    in: x
"""

    def takes_longest(self) -> bool:
        return True

    def check_fit(self, pairs: int, theta: float, longest: int | None) -> None:
        if longest is None:
            raise BlockError(
                "the length up to which nothing is scaled is not known",
                hint="set `max_position_embeddings` of the rotary embedding",
            )
        if pairs < 2:
            raise BlockError("a single pair of channels has no base", hint="rotate 4 channels or more")

    def length_class(self, length: int, longest: int | None) -> int:
        return max(length, longest or 0)

    def fact(self) -> str:
        return f"dynamic NTK {self.factor:g} ×"

    def scale(self: Any, frequencies: torch.Tensor, theta: float, longest: Any, position_ids: torch.Tensor) -> torch.Tensor:
        length = text_length(position_ids).clamp(min=longest)  # [1, 1] or [B, 1, 1]
        growth = self.factor * length / longest - (self.factor - 1)
        pairs = frequencies.shape[-1]
        index = torch.arange(pairs, dtype=torch.float32, device=frequencies.device)
        slower: torch.Tensor = growth ** (-index / (pairs - 1))
        return frequencies * slower


def text_length(position_ids: torch.Tensor) -> torch.Tensor:
    """Return the greatest position of each row plus 1, [1, 1] or [B, 1, 1]; 1 for a row without any."""
    return F.pad(position_ids, (1, 0)).amax(-1, keepdim=True)[..., None] + 1
