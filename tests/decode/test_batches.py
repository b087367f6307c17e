"""Prompts of different lengths in one batch: each is continued as if it were alone."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

import composer
from composer.decode import GREEDY, DecodeError, Refuse, Request, Sampling, Slide, cached, generate, uncached
from composer.decode.batches import batches

TEXT = """
recipe: written
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 13, dim: 8}
  attn: {type: residual, body: {type: attention, heads: 2, mask: "MASK", positions: rotary}}
  states: {type: residual, body: {type: gru, hidden: 8}}
  mix: {type: residual, body: {type: conv1d, out: 8, kernel_size: 3, causal: true}}
  head: {type: linear, out: 13}
outputs: {logits: head}
init: {"*weight": {normal: 0.7}}
"""
PROMPTS = [[1, 2, 3, 4, 5, 6, 7], [8], [9, 10, 11], [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8], [2, 7], [12]]


def written(mask="causal and window(4)"):
    """A model with a window, a state and a kernel."""
    return composer.load(TEXT.replace("MASK", mask)).compile(seed=0).double().eval()


SAMPLINGS = [GREEDY, Sampling(temperature=1.5, top_k=9), Sampling(repetition_penalty=1.3, no_repeat_ngram=2)]


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "sampled", "without repetition"])
@pytest.mark.parametrize(
    ("reading", "limit"), [(cached, None), (cached, Slide(9)), (uncached, Slide(9))], ids=["free", "sliding", "uncached"]
)
def test_each_prompt_is_continued_as_if_it_were_alone(reading, limit, sampling):
    """Whatever the others are, with its own random seed; up to a stop token, and across the places where the context slides."""
    model = written()
    request = Request(max_new_tokens=10, sampling=sampling, limit=limit, stop=frozenset({3, 12}))
    found = generate(model, PROMPTS, request, seed=3, reading=reading)
    alone = [generate(model, [prompt], request, seed=3 + row, reading=reading)[0] for row, prompt in enumerate(PROMPTS)]
    assert found == alone
    assert generate(model, PROMPTS, request, seed=3, reading=reading, batch_size=2) == alone
    assert len({len(answer) for answer in found}) > 1


def test_prompts_whose_prefix_sees_itself_wait_for_their_own_length():
    """Such a prefix has to be read in one call."""
    model = written("causal or prefix(2)")
    request = Request(max_new_tokens=10, sampling=GREEDY)
    prompts = [prompt for prompt in PROMPTS if len(prompt) > 1]
    assert generate(model, prompts, request, reading=cached) == generate(model, prompts, request, reading=uncached)


def test_prompts_are_together_where_that_takes_fewer_steps():
    """Up to a maximum, and never across a length where the context has slid."""
    lengths = [7, 1, 3, 30, 2, 1]
    assert batches(lengths, new=5, aligned=None, most=None) == [[1, 5, 4, 2, 0], [3]]
    assert batches(lengths, new=4, aligned=None, most=None) == [[1, 5, 4, 2], [0], [3]]
    assert batches(lengths, new=5, aligned=None, most=2) == [[1, 5], [4, 2], [0], [3]]
    assert batches(lengths, new=5, aligned=2, most=None) == [[1, 5, 4], [2], [0], [3]]
    assert batches(lengths, new=0, aligned=None, most=None) == [[1, 5], [4], [2], [0], [3]]
    assert batches([], new=5, aligned=None, most=None) == []


class Counting(nn.Module):
    """Predicts the next number, and counts its calls."""

    def __init__(self):
        super().__init__()
        self.recipe = SimpleNamespace(task="causal_lm")
        self.sharpness, self.calls = nn.Parameter(torch.tensor(9.0)), 0

    def forward(self, tokens):
        self.calls += 1
        return SimpleNamespace(logits=self.sharpness * nn.functional.one_hot((tokens + 1) % 10, 10))


def test_a_batch_ends_with_its_last_prompt():
    """Eight calls for prompts of one and of four tokens, five for each alone; all are checked before the first is read."""
    model = Counting()
    request = Request(max_new_tokens=5, sampling=GREEDY, limit=Refuse(9))
    assert generate(model, [[1], [1, 1, 1, 5]], request) == [[2, 3, 4, 5, 6], [6, 7, 8, 9, 0]]
    assert model.calls == 8
    with pytest.raises(DecodeError, match="the prompt has 5 tokens and 5 new ones are requested"):
        generate(model, [[1], [1] * 5], request)
    with pytest.raises(DecodeError, match="the prompt is empty"):
        generate(model, [[1], []], request)
    with pytest.raises(DecodeError, match="the batch size is 0"):
        generate(model, [[1]], request, batch_size=0)
    assert model.calls == 8
