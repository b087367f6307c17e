"""Sampling of the next token from logits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from composer.decode.errors import DecodeError


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How a token is drawn: the temperature is applied first, then `top_k`, then `top_p` to the remaining tokens.

    Examples:
        >>> from composer.decode import Sampling
        >>> Sampling(temperature=0.8, top_k=50).top_p
        1.0
    """

    temperature: float = 1.0
    """Divisor of the logits: 0 takes the most probable token, infinity makes all remaining tokens equally likely."""
    top_k: int | None = None
    """Keep only this many of the most probable tokens; by default, all."""
    top_p: float = 1.0
    """Keep the fewest most probable tokens whose probabilities sum to at least this, and at least one (nucleus sampling)."""

    def __post_init__(self) -> None:
        if not self.temperature >= 0:
            raise DecodeError(f"`temperature` is {self.temperature}; it must be 0 or more")
        if self.top_k is not None and self.top_k < 1:
            raise DecodeError(f"`top_k` is {self.top_k}; it must keep at least 1 token")
        if not 0 <= self.top_p <= 1:
            raise DecodeError(f"`top_p` is {self.top_p}; it must be a probability, from 0 to 1")


GREEDY = Sampling(temperature=0)
"""Take the most probable token, and of equally probable ones the lowest id."""


def draw(logits: Tensor, sampling: Sampling, generator: torch.Generator) -> Tensor:
    """Return a random token for each row of logits.

    Args:
        logits: The logits, [B, V].
        sampling: Temperature, top-k and top-p.
        generator: The random generator; tokens are drawn on its device.

    Returns:
        Tokens, [B].

    Examples:
        >>> import torch
        >>> from composer.decode import GREEDY, draw
        >>> draw(torch.tensor([[0.0, 2.0, 1.0]]), GREEDY, torch.Generator())
        tensor([1])
    """
    chances = probabilities(logits.to(generator.device), sampling)
    return torch.multinomial(chances, 1, generator=generator)[:, 0]


def probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """Return the distribution that a token is drawn from; of equal logits, the lower id counts as more probable.

    Args:
        logits: The logits, [..., V].
        sampling: Temperature, top-k and top-p, applied in this order.

    Returns:
        Probabilities, [..., V] in float64.

    Raises:
        DecodeError: The logits are not finite.

    Examples:
        >>> import torch
        >>> from composer.decode import Sampling, probabilities
        >>> probabilities(torch.tensor([0.0, 2.0, 2.0]), Sampling(top_k=2)).tolist()
        [0.0, 0.5, 0.5]
    """
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
    """Return `exp(score / temperature)`, scaled so that the first is 1, for scores in descending order; also in both limits."""
    if temperature == 0:
        return torch.zeros_like(scores).index_fill(-1, torch.tensor(0, device=scores.device), 1)
    if math.isinf(temperature):
        return (scores > -math.inf).double()  # tokens with score −∞ stay excluded
    return ((scores - scores[..., :1]) / temperature).exp()  # at most exp(0): nothing overflows
