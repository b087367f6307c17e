"""Texts with something taken out, for models that learn by putting it back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from composer.train.losses import IGNORED

SHARE = 0.15
"""Of the tokens that are taken out or hidden: Devlin et al. 2018, and Raffel et al. 2019 after them."""
MEAN = 3
"""Tokens in a gap, on average: Raffel et al. 2019, section 3.3.4."""


def gaps(length: int) -> tuple[int, int]:
    """Return how many tokens are taken out of a text of two tokens or more, and in how many gaps."""
    taken = min(max(round(SHARE * length), 1), length - 1)
    return taken, min(max(round(taken / MEAN), 1), length - taken)


def with_gaps(tokens: Sequence[int], marks: Sequence[int], generator: torch.Generator) -> tuple[list[int], list[int]]:
    """Return the text with a mark in place of each gap, and what stood there, each after its mark: T5's corruption of spans.

    A text begins with what is kept and ends with a gap, as in the authors' code, so both lengths depend on the text's alone.
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
    """Return the lengths of `count` runs, none empty, that make up so many items; all ways to cut them are equally likely."""
    cuts = torch.randperm(items - 1, generator=generator)[: count - 1].sort().values + 1
    return [stop - start for start, stop in pairwise([0, *cuts.tolist(), items])]


def hidden(tokens: Tensor, mask: int, words: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return texts [B, T] in which some words are hidden, and the words asked for, `IGNORED` elsewhere: BERT's masking.

    Of those asked for, 8 in 10 become the mask, 1 in 10 any of the `words`, and 1 in 10 stays.
    """
    count = max(1, round(SHARE * tokens.shape[1]))
    places = torch.rand(tokens.shape, generator=generator).argsort(1)[:, :count]
    asked = torch.zeros_like(tokens, dtype=torch.bool).scatter(1, places, True)
    dice = torch.rand(tokens.shape, generator=generator)
    others = torch.randint(words, tokens.shape, generator=generator)
    shown = torch.where(dice < 0.8, mask, torch.where(dice < 0.9, others, tokens))
    return torch.where(asked, shown, tokens), tokens.masked_fill(~asked, IGNORED)
