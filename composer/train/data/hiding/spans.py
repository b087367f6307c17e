"""Corruption by words and spans: whole words, the spans of SpanBERT, the infilling and the permuted sentences of BART."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from composer.train.data.hiding.corruption import SHARE
from composer.train.data.hiding.words import sentences_in, words_in
from composer.train.data.marks import END, MASK, START
from composer.train.data.tokenizers import MarkedTokenizer
from composer.train.losses import IGNORED, Batch

STOP, LONGEST = 0.2, 10
"""The probability that a span ends after each word, and its largest number of words: Joshi et al. 2020, section 3.1."""
INFILLED, MEAN = 0.3, 3
"""The share of tokens in the spans of text infilling, and the mean of their lengths: Lewis et al. 2019, sections 2.2 and 5.1."""


def hide_whole_words(tokenizer: MarkedTokenizer, windows: Tensor, generator: torch.Generator) -> Batch:
    """Return a batch for masked_lm in which words are masked with all of their tokens (Devlin et al., "whole word masking").

    Of the masked tokens, 80 % become the mask, 10 % a random token, and 10 % stay the same, each by itself.
    """
    dice = torch.rand(windows.shape, generator=generator)
    chosen = [_words(words, windows.shape[1], generator) for words in words_in(windows, tokenizer)]
    return _hidden(tokenizer, windows, chosen, dice, generator)


def hide_spans(tokenizer: MarkedTokenizer, windows: Tensor, generator: torch.Generator) -> Batch:
    """Return a batch for masked_lm in which spans of words are masked, whose lengths are geometric (SpanBERT, Joshi et al. 2020).

    All tokens of a span become the mask, random tokens, or stay the same together, in 80, 10 and 10 % of the spans.
    """
    dice = torch.empty(windows.shape)
    chosen: list[list[int]] = []
    for row, words in enumerate(words_in(windows, tokenizer)):
        spans = _spans(words, windows.shape[1], generator)
        for span in spans:
            dice[row, span] = torch.rand(1, generator=generator)
        chosen.append([place for span in spans for place in span])
    return _hidden(tokenizer, windows, chosen, dice, generator)


def _budget(length: int) -> int:
    """Return how many tokens of a text are masked at most."""
    return max(1, round(SHARE * length))


def _words(words: Sequence[Sequence[int]], length: int, generator: torch.Generator) -> list[int]:
    """Return the places of words that are drawn one after the other as long as they fit; at least one word."""
    chosen: list[int] = []
    for index in torch.randperm(len(words), generator=generator).tolist():
        if not chosen or len(chosen) + len(words[index]) <= _budget(length):
            chosen += words[index]
    return chosen


def _spans(words: Sequence[Sequence[int]], length: int, generator: torch.Generator) -> list[list[int]]:
    """Return the places of spans of whole words, drawn until the budget is used up; the last word may be cut."""
    chances = STOP * (1 - STOP) ** torch.arange(LONGEST)
    free, left = [True] * len(words), _budget(length)
    spans: list[list[int]] = []
    while left > 0 and any(free):
        wanted = 1 + int(torch.multinomial(chances, 1, generator=generator))
        starts = [index for index, is_free in enumerate(free) if is_free]
        first = starts[int(torch.randint(len(starts), (1,), generator=generator))]
        span: list[int] = []
        for index in range(first, min(first + wanted, len(words))):
            if not free[index] or len(span) >= left:
                break
            free[index] = False
            span += words[index][: left - len(span)]
        spans.append(span)
        left -= len(span)
    return spans


def _hidden(
    tokenizer: MarkedTokenizer, windows: Tensor, chosen: Sequence[Sequence[int]], dice: Tensor, generator: torch.Generator
) -> Batch:
    """Return windows whose chosen places are masked, by dice that say how, with the original tokens as targets."""
    asked = torch.zeros_like(windows, dtype=torch.bool)
    for row, places in enumerate(chosen):
        asked[row, list(places)] = True
    others = torch.randint(tokenizer.text.size, windows.shape, generator=generator)
    shown = torch.where(dice < 0.8, tokenizer.mark(MASK), torch.where(dice < 0.9, others, windows))
    return {"tokens": torch.where(asked, shown, windows), "labels": windows.masked_fill(~asked, IGNORED)}


def infill(tokenizer: MarkedTokenizer, windows: Tensor, generator: torch.Generator) -> Batch:
    """Return a batch for denoising by text infilling: each span of a source is one mask, and the target is the whole text."""
    return _denoised(tokenizer, windows, [_infilled(window, tokenizer.mark(MASK), generator) for window in windows.tolist()])


def permute_sentences(tokenizer: MarkedTokenizer, windows: Tensor, generator: torch.Generator) -> Batch:
    """Return a batch for denoising whose sources have their sentences in random order."""
    return _denoised(tokenizer, windows, [_permuted(tokenizer, window, generator) for window in windows])


def permute_and_infill(tokenizer: MarkedTokenizer, windows: Tensor, generator: torch.Generator) -> Batch:
    """Return a batch for denoising with the corruption that BART was trained with: permuted sentences, then text infilling."""
    mask = tokenizer.mark(MASK)
    sources = [_infilled(_permuted(tokenizer, window, generator), mask, generator) for window in windows]
    return _denoised(tokenizer, windows, sources)


def _permuted(tokenizer: MarkedTokenizer, window: Tensor, generator: torch.Generator) -> list[int]:
    sentences = sentences_in(window, tokenizer)
    order = torch.randperm(len(sentences), generator=generator).tolist()
    return [token for index in order for token in sentences[index]]


def _infilled(tokens: Sequence[int], mask: int, generator: torch.Generator) -> list[int]:
    """Return a text with a mask in place of each span; their lengths are Poisson, and a span without tokens adds a mask."""
    left = round(INFILLED * len(tokens))
    lengths: list[int] = []
    while left > 0:
        drawn = min(int(torch.poisson(torch.tensor(float(MEAN)), generator=generator)), left)
        if drawn or len(lengths) < sum(lengths):  # with more added masks, the source might be longer than the text
            lengths.append(drawn)
            left -= drawn
    # The kept tokens and the spans in random order: no span overlaps another, and every order is equally likely.
    kept = len(tokens) - sum(lengths)
    places = torch.randperm(kept + len(lengths), generator=generator)[: len(lengths)].sort().values.tolist()
    found: list[int] = []
    at, spans = 0, iter(lengths)
    for place in range(kept + len(lengths)):
        if places and place == places[0]:
            places.pop(0)
            at += next(spans)
            found.append(mask)
        else:
            found.append(tokens[at])
            at += 1
    return found


def _denoised(tokenizer: MarkedTokenizer, windows: Tensor, sources: Sequence[Sequence[int]]) -> Batch:
    """Return sources of unequal lengths, each with an end token, and the whole texts as targets."""
    end = tokenizer.mark(END)
    longest = 1 + max(map(len, sources))
    source = torch.full((len(sources), longest), end)
    for row, tokens in enumerate(sources):
        source[row, : len(tokens)] = torch.tensor(tokens, dtype=torch.int64)
    lengths = torch.tensor([len(tokens) + 1 for tokens in sources])
    before, after = (torch.full((len(windows), 1), mark) for mark in (tokenizer.mark(START), end))
    return {
        "source": source,
        "source_valid": torch.arange(longest) < lengths[:, None],
        "target": torch.cat([before, windows], 1),
        "targets": torch.cat([windows, after], 1),
    }
