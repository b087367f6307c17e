"""Corruption of texts: masked tokens as in BERT, removed spans as in T5."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from composer.train.losses import IGNORED

SHARE = 0.15
"""Share of the tokens that are masked or removed, as in Devlin et al. 2018 and Raffel et al. 2019."""
MEAN = 3
"""Mean number of tokens in a removed span: Raffel et al. 2019, section 3.3.4."""


def gaps(length: int) -> tuple[int, int]:
    """Return how many tokens are removed from a text of at least two tokens, and in how many spans."""
    taken = min(max(round(SHARE * length), 1), length - 1)
    return taken, min(max(round(taken / MEAN), 1), length - taken)


def with_gaps(tokens: Sequence[int], marks: Sequence[int], generator: torch.Generator) -> tuple[list[int], list[int]]:
    """Return the text with a mark in place of each removed span, and the spans, each after its mark: T5's span corruption.

    A text starts with a kept span and ends with a removed one, as in the authors' code, so its length determines those of both
    results.
    """
    taken, count = gaps(len(tokens))
    kept_runs = segments(len(tokens) - taken, count, generator)
    taken_runs = segments(taken, count, generator)
    source: list[int] = []
    target: list[int] = []
    at = 0
    for mark, kept, gone in zip(marks, kept_runs, taken_runs, strict=False):
        source += [*tokens[at : at + kept], mark]
        target += [mark, *tokens[at + kept : at + kept + gone]]
        at += kept + gone
    return source, target


def segments(items: int, count: int, generator: torch.Generator) -> list[int]:
    """Return the lengths of `count` nonempty runs that divide the items, drawn uniformly from all divisions."""
    cuts = torch.randperm(items - 1, generator=generator)[: count - 1].sort().values + 1
    return [stop - start for start, stop in pairwise([0, *cuts.tolist(), items])]


def hidden(tokens: Tensor, mask: int, words: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return texts [B, T] with masked tokens, and the original tokens as targets, `IGNORED` elsewhere: BERT's masking.

    Of the tokens to predict, 80 % become the mask, 10 % a random one of the `words`, and 10 % stay the same.
    """
    count = max(1, round(SHARE * tokens.shape[1]))
    places = torch.rand(tokens.shape, generator=generator).argsort(1)[:, :count]
    asked = torch.zeros_like(tokens, dtype=torch.bool).scatter(1, places, True)
    dice = torch.rand(tokens.shape, generator=generator)
    others = torch.randint(words, tokens.shape, generator=generator)
    shown = torch.where(dice < 0.8, mask, torch.where(dice < 0.9, others, tokens))
    return torch.where(asked, shown, tokens), tokens.masked_fill(~asked, IGNORED)
