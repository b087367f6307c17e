"""From scores to the next token."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from composer.decode.errors import DecodeError


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How a token is drawn: first the temperature, then `top_k`, then `top_p` over what is left, then the draw."""

    temperature: float = 1.0
    """Divides the scores. At 0 the best token is certain, at infinity all that are kept are equally likely."""
    top_k: int | None = None
    """Keep this many of the best; all, when left out."""
    top_p: float = 1.0
    """Keep the fewest best tokens whose probabilities add up to at least this, one at the least."""

    def __post_init__(self) -> None:
        if not self.temperature >= 0:
            raise DecodeError(f"the temperature is {self.temperature}; it must be 0 or more")
        if self.top_k is not None and self.top_k < 1:
            raise DecodeError(f"top-k is {self.top_k}; it must keep at least 1 token")
        if not 0 <= self.top_p <= 1:
            raise DecodeError(f"top-p is {self.top_p}; it must be a probability, from 0 to 1")


GREEDY = Sampling(temperature=0)
"""Always the best token; the first of equals."""


def draw(logits: Tensor, sampling: Sampling, generator: torch.Generator) -> Tensor:
    """One token [B] for each row of `logits` [B, V], drawn where the generator lives."""
    chances = probabilities(logits.to(generator.device), sampling)
    return torch.multinomial(chances, 1, generator=generator)[:, 0]


def probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """The distribution [..., V] that a token is drawn from; of equal scores the lower token counts as better."""
    scores, tokens = logits.double().sort(dim=-1, descending=True, stable=True)
    if not torch.isfinite(scores[..., 0]).all():  # the sort puts NaN first
        raise DecodeError("the model's logits are not finite")
    weights = tempered(scores, sampling.temperature)
    if sampling.top_k is not None:
        weights[..., sampling.top_k :] = 0
    weights /= weights.sum(-1, keepdim=True)
    if sampling.top_p < 1:
        better = weights.cumsum(-1).roll(1, -1)  # mass of the tokens before each
        better[..., 0] = -math.inf  # the best is kept, whatever its mass
        weights = weights.where(better < sampling.top_p, 0)
        weights /= weights.sum(-1, keepdim=True)
    return torch.zeros_like(weights).scatter(-1, tokens, weights)


def tempered(scores: Tensor, temperature: float) -> Tensor:
    """Weights of scores that fall from left to right, the first 1: exp(score / temperature), and its two limits."""
    if temperature == 0:
        return torch.zeros_like(scores).index_fill(-1, torch.tensor(0, device=scores.device), 1)
    if math.isinf(temperature):
        return (scores > -math.inf).double()  # what is forbidden stays so
    return ((scores - scores[..., :1]) / temperature).exp()  # at most exp(0): nothing overflows
