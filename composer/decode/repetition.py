"""Scores lowered for what a text contains already."""

from __future__ import annotations

import torch
from torch import Tensor

from composer.decode.errors import DecodeError


def without_repetition(logits: Tensor, seen: Tensor, *, penalty: float, ngram: int | None) -> Tensor:
    """Return logits [B, V] that count what the text `seen` [B, T] has: a penalty for its tokens, and no n-gram twice.

    A penalty divides the logits above 0 of the tokens of the text, and multiplies those below 0 (Keskar et al. 2019, CTRL).

    Raises:
        DecodeError: Every token would repeat an n-gram.
    """
    seen = seen.to(logits.device)
    if penalty != 1:
        lowered = torch.where(logits < 0, logits * penalty, logits / penalty)
        logits = lowered.where(chosen(seen, logits.shape[-1]), logits)
    if ngram is not None and seen.shape[1] >= ngram:
        grams = seen.unfold(1, ngram, 1)  # [B, T - n + 1, n]
        again = (grams[..., :-1] == seen[:, None, seen.shape[1] - ngram + 1 :]).all(-1)
        ends = grams[..., -1].masked_fill(~again, logits.shape[-1])
        kept = logits.masked_fill(chosen(ends, logits.shape[-1]), -torch.inf)
        if ((kept.amax(-1) == -torch.inf) & (logits.amax(-1) > -torch.inf)).any():
            raise DecodeError(f"every token that the model allows would repeat a sequence of {ngram} tokens")
        logits = kept
    return logits


def chosen(tokens: Tensor, size: int) -> Tensor:
    """Return which of `size` tokens are among some tokens [B, N], as booleans [B, size]; ids from `size` on are none of them."""
    found = torch.zeros(tokens.shape[0], size + 1, dtype=torch.bool, device=tokens.device)
    return found.scatter(1, tokens.clamp(max=size), True)[:, :size]
