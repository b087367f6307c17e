"""Beam search against looking at every text there is, and against transformers."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import composer
from composer.decode import DecodeError, Search, beam_search, cached
from composer.weights import load_published
from tests.parity.reference import gpt2, perturbed, published

STOP, WORDS, LONGEST = 2, 5, 4


class Table(nn.Module):
    """What follows depends on the two tokens before, by a table of random scores."""

    def __init__(self):
        super().__init__()
        self.recipe = SimpleNamespace(task="causal_lm")
        self.scores = nn.Parameter(2 * torch.randn(WORDS, WORDS, WORDS, generator=torch.Generator().manual_seed(3)))

    def forward(self, tokens):
        before = torch.cat([tokens[:, :1], tokens[:, :-1]], dim=1)
        return SimpleNamespace(logits=self.scores[before, tokens])


def every_text(model, prompt, penalty):
    """Return each text that ends with the stop token, or is as long as it may be, with its score."""
    found = {}
    for length in range(1, LONGEST + 1):
        for text in itertools.product(range(WORDS), repeat=length):
            ends = text[-1] == STOP
            if STOP in text[:-1] or not (ends or length == LONGEST):
                continue
            read = torch.tensor([[*prompt, *text]])
            chances = model(read).logits.double().log_softmax(-1)[0, len(prompt) - 1 : -1]
            total = sum(float(chances[place, token]) for place, token in enumerate(text))
            found[text[:-1] if ends else text] = total / length**penalty
    return sorted(found.items(), key=lambda item: -item[1])


@torch.no_grad()
@pytest.mark.parametrize("penalty", [-1.0, 0.0, 0.7, 2.0])
def test_a_wide_search_finds_the_best_of_all_texts(penalty):
    """Wide enough to follow every text, for prompts of unequal length; in order, with their scores."""
    model, prompts = Table(), [[0, 1], [3], [4, 4], [1, 3]]
    search = Search(num_beams=WORDS**LONGEST, length_penalty=penalty, max_new_tokens=LONGEST, stop=frozenset({STOP}))
    for prompt, found in zip(prompts, beam_search(model, prompts, search), strict=True):
        expected = every_text(model, prompt, penalty)
        assert [each.score for each in found] == pytest.approx([score for _, score in expected])  # texts may be equally good
        assert {tuple(each.tokens): each.score for each in found} == pytest.approx(dict(expected))


@pytest.mark.slow
@torch.no_grad()
@pytest.mark.parametrize("penalty", [0.0, 1.0, 1.8])
@pytest.mark.parametrize("stop", [frozenset(), frozenset({7}), frozenset({7, 11, 30})])
def test_a_narrow_search_finds_what_transformers_finds(stop, penalty):
    """All beams of each row, with a cache, which follows the texts where they change places."""
    sizes = {"vocab": 37, "context": 32, "d_model": 24, "n_layers": 2, "n_heads": 2}
    torch.manual_seed(0)
    reference = perturbed(gpt2(sizes))
    model = composer.load("gpt2", overrides=sizes).compile(seed=0)
    load_published(model, published(reference))
    prompts = torch.randint(37, (5, 4), generator=torch.Generator().manual_seed(1))
    search = Search(num_beams=3, length_penalty=penalty, max_new_tokens=9, stop=stop)
    theirs = reference.generate(
        prompts, attention_mask=torch.ones_like(prompts), num_beams=3,
        num_return_sequences=3, length_penalty=penalty, max_new_tokens=9, do_sample=False,
        eos_token_id=sorted(stop) or None, pad_token_id=0, early_stopping="never", return_dict_in_generate=True,
        output_scores=True,
    )  # fmt: skip
    expected = [until(row[4:].tolist(), stop) for row in theirs.sequences]
    for reading in ({}, {"reading": cached}):
        ours = [found for each in beam_search(model, prompts.tolist(), search, **reading) for found in each]
        assert [found.tokens for found in ours] == expected
        assert [found.score for found in ours] == pytest.approx(theirs.sequences_scores.tolist(), abs=1e-4)


def until(tokens, stop):
    """Return the tokens before the first that ends them."""
    return list(itertools.takewhile(lambda token: token not in stop, tokens))


def test_what_cannot_be_searched_is_refused():
    """With the numbers in it."""
    with pytest.raises(DecodeError, match="`num_beams` is 0"):
        Search(num_beams=0)
    with pytest.raises(DecodeError, match="`length_penalty` is nan"):
        Search(length_penalty=float("nan"))
    with pytest.raises(DecodeError, match="prompt is empty"):
        beam_search(Table(), [[]], Search())
