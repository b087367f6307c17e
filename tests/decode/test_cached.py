"""Generation with a compiled model's cache."""

from __future__ import annotations

import pytest
import torch

import composer
from composer.decode import Refuse, Request, Sampling, Slide, cached, generate
from composer.decode.session import session

GIVEN = """
recipe: given
task: causal_lm
inputs: {tokens: "int[batch, time]", columns: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 11, dim: 8}
  bias: {type: alibi, heads: 2}
  attn: {type: attention, heads: 2, mask: causal and window(3), in: {x: embed, bias: bias}}
  head: {type: linear, out: 11}
outputs: {logits: head}
positions: {time: columns}
"""


@pytest.mark.parametrize("limit", [None, Refuse(40), Slide(16)])
def test_what_a_cache_writes_is_what_reading_everything_again_writes(limit):
    """Prompts of unequal length, sampled, across the places where the context slides."""
    model = composer.load("gpt_mini", {"d_model": 24, "n_layers": 2}).compile(seed=3)
    request = Request(max_new_tokens=30, sampling=Sampling(temperature=0.7, top_k=9), limit=limit)
    prompts = [[1, 2, 3], [4], [5, 9, 2]]
    assert generate(model, prompts, request, seed=1, reading=cached) == generate(model, prompts, request, seed=1)


@torch.no_grad()
def test_rows_take_their_positions_with_them():
    """Where each row has positions of its own, those of a mask's keys and of a bias change places with the rows."""
    model = composer.load(GIVEN).compile(seed=0).double()
    tokens, columns = (
        torch.arange(21).view(3, 7) % 11,
        torch.tensor([[0, 2, 3, 4, 5, 6, 7], [4, 5, 6, 7, 8, 9, 10], [1, 2, 3, 7, 8, 9, 10]]),
    )
    rows = torch.tensor([2, 0, 0])
    with session(model) as writing:
        model(tokens[:, :4], columns[:, :4])
        writing.reorder(rows)
        after = model(tokens[rows, 4:], columns[rows, 4:]).logits
    torch.testing.assert_close(after, model(tokens[rows], columns[rows]).logits[:, 4:])
