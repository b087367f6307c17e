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
    """Return a random token for each row of logits.

    Args:
        logits: The model's scores, [B, V].
        sampling: Temperature, top-k and top-p.
        generator: Decides the draw; its device is where the tokens are drawn.

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
    """Return the distribution that a token is drawn from; of equal scores, the lower token counts as better.

    Args:
        logits: The model's scores, [..., V].
        sampling: Temperature, top-k and top-p, applied in this order.

    Returns:
        Probabilities, [..., V] in float64.

    Raises:
        DecodeError: The scores are not finite.

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
    """Return weights of scores that fall from left to right, the first 1: exp(score / temperature), and its two limits."""
    if temperature == 0:
        return torch.zeros_like(scores).index_fill(-1, torch.tensor(0, device=scores.device), 1)
    if math.isinf(temperature):
        return (scores > -math.inf).double()  # what is forbidden stays so
    return ((scores - scores[..., :1]) / temperature).exp()  # at most exp(0): nothing overflows
