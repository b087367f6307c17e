"""Sampling of the next token from logits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from composer.decode.errors import DecodeError
from composer.decode.repetition import without_repetition


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How a token is drawn: `repetition_penalty` and `no_repeat_ngram` come first, then the temperature, and then `top_k`,
    `top_p` and `min_p`, each applied to the tokens that the one before leaves.

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
    min_p: float = 0.0
    """Keep the tokens that are at least this many times as probable as the most probable one (Nguyen et al. 2024)."""
    repetition_penalty: float = 1.0
    """Divisor of the logits of tokens that the text has already, or the factor if they are negative; above 1 it makes them less
    probable."""
    no_repeat_ngram: int | None = None
    """Never draw a token that would repeat a sequence of so many tokens; by default, they may repeat."""

    def __post_init__(self) -> None:
        if not self.temperature >= 0:
            raise DecodeError(f"`temperature` is {self.temperature}; it must be 0 or more")
        if self.top_k is not None and self.top_k < 1:
            raise DecodeError(f"`top_k` is {self.top_k}; it must keep at least 1 token")
        if not 0 <= self.top_p <= 1:
            raise DecodeError(f"`top_p` is {self.top_p}; it must be a probability, from 0 to 1")
        if not 0 <= self.min_p <= 1:
            raise DecodeError(f"`min_p` is {self.min_p}; it must be a share of the largest probability, from 0 to 1")
        if not 0 < self.repetition_penalty < math.inf:
            raise DecodeError(f"`repetition_penalty` is {self.repetition_penalty}; it must be a finite number above 0")
        if self.no_repeat_ngram is not None and self.no_repeat_ngram < 1:
            raise DecodeError(f"`no_repeat_ngram` is {self.no_repeat_ngram}; it must be at least 1 token")

    @property
    def reads_text(self) -> bool:
        """Whether the token depends on which tokens the text has."""
        return self.repetition_penalty != 1 or self.no_repeat_ngram is not None


GREEDY = Sampling(temperature=0)
"""Take the most probable token, and of equally probable ones the lowest id."""


def draw(
    logits: Tensor, sampling: Sampling, generator: torch.Generator | Sequence[torch.Generator], text: Tensor | None = None
) -> Tensor:
    """Return a random token for each row of logits; at temperature 0 the most probable one, found where the logits are.

    Args:
        logits: The logits, [B, V].
        sampling: How tokens are drawn.
        generator: The random generator, or one for each row; tokens are drawn on its device.
        text: The tokens so far, [B, T], for a penalty on repetition.

    Returns:
        Tokens, [B], on the generator's device.

    Raises:
        DecodeError: The logits are not finite, or nothing but a repetition is left.

    Examples:
        >>> import torch
        >>> from composer.decode import GREEDY, draw
        >>> draw(torch.tensor([[0.0, 2.0, 1.0]]), GREEDY, torch.Generator())
        tensor([1])
    """
    logits = penalized(logits, sampling, text)
    device = generator.device if isinstance(generator, torch.Generator) else generator[0].device
    if sampling.temperature == 0:
        return most_probable(logits).to(device)
    chances, tokens = candidates(logits.to(device), sampling)
    if isinstance(generator, torch.Generator):
        drawn = torch.multinomial(chances, 1, generator=generator)
    else:
        rows = zip(torch.split(chances, 1), generator, strict=True)
        drawn = torch.cat([torch.multinomial(row, 1, generator=own) for row, own in rows])
    return (drawn if tokens is None else tokens.gather(-1, drawn))[:, 0]


def probabilities(logits: Tensor, sampling: Sampling, text: Tensor | None = None) -> Tensor:
    """Return the distribution that a token is drawn from; of equal logits, the lower id counts as more probable.

    Args:
        logits: The logits, [..., V].
        sampling: How tokens are drawn.
        text: The tokens so far, [B, T], for a penalty on repetition; the logits are then [B, V].

    Returns:
        Probabilities, [..., V] in float64.

    Raises:
        DecodeError: The logits are not finite, or nothing but a repetition is left.

    Examples:
        >>> import torch
        >>> from composer.decode import Sampling, probabilities
        >>> probabilities(torch.tensor([0.0, 2.0, 2.0]), Sampling(top_k=2)).tolist()
        [0.0, 0.5, 0.5]
    """
    logits = penalized(logits, sampling, text)
    if sampling.temperature == 0:
        return torch.zeros_like(logits, dtype=torch.float64).scatter(-1, most_probable(logits)[..., None], 1)
    chances, tokens = candidates(logits, sampling)
    return chances if tokens is None else torch.zeros_like(logits, dtype=torch.float64).scatter(-1, tokens, chances)


def penalized(logits: Tensor, sampling: Sampling, text: Tensor | None) -> Tensor:
    """Return the logits with what the text so far changes about them."""
    if not sampling.reads_text:
        return logits
    if text is None:
        raise DecodeError("`repetition_penalty` and `no_repeat_ngram` need the text so far")
    return without_repetition(logits, text, penalty=sampling.repetition_penalty, ngram=sampling.no_repeat_ngram)


def candidates(logits: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor | None]:
    """Return the probabilities of the tokens that may be drawn, float64 [..., K], and these tokens, [..., K]; None: all, by id.

    Args:
        logits: The logits, [..., V].
        sampling: How to sample, at a temperature above 0.

    Raises:
        DecodeError: The logits are not finite.
    """
    best = logits.amax(dim=-1, keepdim=True)
    refuse_unless_finite(best)
    tokens = None
    scores = logits
    if sampling.top_k is not None and sampling.top_k < logits.shape[-1]:
        tokens = best_tokens(logits, sampling.top_k)  # [..., k]
        scores = logits.gather(-1, tokens)
    if sampling.top_p < 1:
        scores, order = scores.sort(dim=-1, descending=True, stable=True)
        tokens = order if tokens is None else tokens.gather(-1, order)
    weights = tempered(scores.double(), best.double(), sampling.temperature)
    weights /= weights.sum(-1, keepdim=True)
    if sampling.top_p < 1:
        better = weights.cumsum(-1).roll(1, -1)  # mass of the tokens before each
        better[..., 0] = -math.inf  # the best is kept, whatever its mass
        weights = weights.where(better < sampling.top_p, 0)
        weights /= weights.sum(-1, keepdim=True)
    if sampling.min_p:
        weights = weights.where(weights >= sampling.min_p * weights.amax(-1, keepdim=True), 0)
        weights /= weights.sum(-1, keepdim=True)
    return weights, tokens


def most_probable(logits: Tensor) -> Tensor:
    """Return the token with the largest logit, [...], for logits [..., V]; of equal ones, the lowest id.

    Raises:
        DecodeError: The logits are not finite.
    """
    tokens = logits.argmax(dim=-1)  # the first of equals, and any NaN is the largest
    refuse_unless_finite(logits.gather(-1, tokens[..., None]))
    return tokens


def best_tokens(scores: Tensor, count: int) -> Tensor:
    """Return the tokens with the largest scores, [..., count], by id; of equal scores, the lower ids are taken."""
    kept = scores.topk(count, dim=-1, sorted=False)
    last = kept.values.amin(dim=-1, keepdim=True)
    if (scores >= last).sum() == kept.indices.numel():  # no others are equal to the last that is kept
        return kept.indices.sort(dim=-1).values
    above, equal = scores > last, scores == last
    room = count - above.sum(dim=-1, keepdim=True)
    taken = above | (equal & (equal.cumsum(dim=-1) <= room))
    return taken.nonzero()[:, -1].reshape(*scores.shape[:-1], count)


def refuse_unless_finite(largest: Tensor) -> None:
    """Raise an error if the largest of some logits is infinite or not a number, as it is if any of them is not a number."""
    if not torch.isfinite(largest).all():
        raise DecodeError("the model's logits are not finite")


def tempered(scores: Tensor, best: Tensor, temperature: float) -> Tensor:
    """Return `exp(score / temperature)`, scaled so that the best is 1; also at infinity."""
    if math.isinf(temperature):
        return (scores > -math.inf).double()  # tokens with score −∞ stay excluded
    return ((scores - best) / temperature).exp()  # at most exp(0): nothing overflows
