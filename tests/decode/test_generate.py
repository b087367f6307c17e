"""Generation with small models whose answers are known."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from composer.decode import GREEDY, DecodeError, Refuse, Request, Sampling, Slide, generate, stream

WRITES = SimpleNamespace(task="causal_lm")


class Counter(nn.Module):
    """Predicts the token after the last, modulo 10, and notes how much it was given to read."""

    def __init__(self):
        super().__init__()
        self.recipe = WRITES
        self.sharpness = nn.Parameter(torch.tensor(50.0))
        self.read = []

    def forward(self, tokens):
        self.read.append(tuple(tokens.shape))
        return SimpleNamespace(logits=self.sharpness * F.one_hot((tokens + 1) % 10, 12).float())


class Recurrent(nn.Module):
    """A small recurrent net; dropout shows whether generation really turns it off."""

    def __init__(self):
        super().__init__()
        self.recipe = WRITES
        torch.manual_seed(0)
        self.embed, self.cell, self.out = nn.Embedding(7, 5), nn.GRU(5, 6, batch_first=True), nn.Linear(6, 7)

    def forward(self, tokens, memory=None):
        x, memory = self.cell(F.dropout(self.embed(tokens), 0.5, self.training), memory)
        return SimpleNamespace(logits=4 * self.out(x), memory=memory)


@contextmanager
def remembering(model, encoder_inputs, max_length):
    """Return a session that keeps the recurrent state, and holds its caller to the length it announced."""
    state = SimpleNamespace(memory=None, read=0)

    def step(tokens):
        state.read += tokens.shape[1]
        assert state.read <= max_length
        output = model(tokens, state.memory)
        state.memory = output.memory
        return output.logits[:, -1]

    yield step


def test_greedy_generation_takes_the_best_token_each_time():
    """And returns what is new, not the prompt."""
    assert generate(Counter(), [[3, 4]], Request(max_new_tokens=5, sampling=GREEDY)) == [[5, 6, 7, 8, 9]]


def test_prompts_of_any_length_get_together_what_they_get_alone():
    """In their own order; a model never sees padding."""
    model, request = Recurrent(), Request(max_new_tokens=8, sampling=GREEDY)
    prompts = [[1, 2, 3], [4], [3, 3, 5], [0, 1], [6]]
    alone = [generate(model, [prompt], request)[0] for prompt in prompts]
    assert len({tuple(answer) for answer in alone}) > 1
    assert generate(model, prompts, request) == alone


def test_a_stop_token_ends_its_own_row_and_is_left_out():
    """The other row goes on; when all have ended nothing more is computed."""
    request = Request(max_new_tokens=6, sampling=GREEDY, stop=frozenset({9}))
    model = Counter()
    assert generate(model, [[6], [1]], request) == [[7, 8], [2, 3, 4, 5, 6, 7]]
    model.read.clear()
    assert generate(model, [[7], [6]], request) == [[8], [7, 8]]
    assert len(model.read) == 3


@pytest.mark.parametrize("limit", [None, Refuse(20), Slide(6)])
def test_a_session_with_a_memory_gives_what_reading_everything_again_gives(limit):
    """Sampled with one seed, also across the places where the context slides."""
    model = Recurrent()
    request = Request(max_new_tokens=17, sampling=Sampling(temperature=0.7), limit=limit)
    plain = generate(model, [[1, 2, 3], [4, 5, 6]], request, seed=4)
    assert generate(model, [[1, 2, 3], [4, 5, 6]], request, seed=4, reading=remembering) == plain
    assert generate(model, [[1, 2, 3], [4, 5, 6]], request, seed=5) != plain


def test_a_stream_is_the_same_text_as_it_comes():
    """Token by token, with its stop."""
    model = Recurrent()
    request = Request(max_new_tokens=30, stop=frozenset({2}))
    whole = generate(model, [[1, 3]], request, seed=8)[0]
    assert 0 < len(whole) < 30
    assert list(stream(model, [1, 3], request, seed=8)) == whole


def test_a_stream_computes_no_further_than_it_is_read():
    """And leaves the model and autograd as they were."""
    model = Counter().train()
    tokens = stream(model, [1], Request(max_new_tokens=50, sampling=GREEDY))
    assert next(tokens) == 2
    assert torch.is_grad_enabled()
    tokens.close()
    assert model.read == [(1, 1)]
    assert model.training


def test_more_than_the_model_reads_is_refused_with_the_numbers():
    """Prompt and new tokens count together."""
    with pytest.raises(DecodeError, match="3 tokens and 6 new ones are requested, 9 in all; the context is 8"):
        generate(Counter(), [[1, 2, 3]], Request(max_new_tokens=6, limit=Refuse(8)))
    assert len(generate(Counter(), [[1, 2, 3]], Request(max_new_tokens=5, limit=Refuse(8)))[0]) == 5


def test_a_sliding_context_never_reads_more_than_its_length():
    """A full context is used before half of it is dropped; a prompt too long loses its beginning."""
    model = Counter()
    request = Request(max_new_tokens=10, sampling=GREEDY, limit=Slide(4))
    assert generate(model, [[1, 2]], request) == [[3, 4, 5, 6, 7, 8, 9, 0, 1, 2]]
    assert [time for _, time in model.read] == [2, 3, 4, 2, 3, 4, 2, 3, 4, 2]
    model.read.clear()
    assert generate(model, [[1, 2, 3, 4, 5, 6]], request)[0][:2] == [7, 8]
    assert max(time for _, time in model.read) == 4


def test_tokens_beyond_the_vocabulary_are_never_drawn():
    """A model padded to 12 tokens writes only the 5 its tokenizer has."""
    request = Request(max_new_tokens=300, sampling=Sampling(temperature=float("inf")), vocabulary=5)
    assert set(generate(Counter(), [[0]], request, seed=1)[0]) == {0, 1, 2, 3, 4}


def test_an_empty_prompt_is_refused():
    """There is nothing to go on from."""
    with pytest.raises(DecodeError, match="prompt is empty"):
        generate(Counter(), [[1], []], Request())


def test_nothing_wanted_is_nothing_given():
    """Without reading the prompt."""
    model = Counter()
    assert generate(model, [[1]], Request(max_new_tokens=0)) == [[]]
    assert model.read == []
