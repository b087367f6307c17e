"""Sessions of models whose positions are encoded by the length of the text."""

from __future__ import annotations

import pytest
import torch

import composer
from composer.decode import GREEDY, DecodeError, Request, Search, beam_search, cached, generate, uncached
from composer.decode.session import session

TEXT = """
recipe: by_length
task: causal_lm
inputs: {{tokens: "int[batch, time]", places: "int[batch, time]?"}}
graph:
  embed: {{type: embedding, vocab: 23, dim: 16}}
  layers:
    repeat: 2
    graph:
      attn:
        type: residual
        norm: layernorm
        body:
          type: attention
          heads: 2
          mask: causal
          positions: {{type: rotary, max_position_embeddings: 6, scaling: {scaling}}}
  head: {{type: linear, out: 23}}
outputs: {{logits: head}}
init: {{"*weight": {{normal: 0.5}}}}
"""
LONGROPE = (
    "{type: longrope, short_factor: [1, 1.5, 2, 2], long_factor: [1, 3, 8, 9], factor: 4, original_max_position_embeddings: 6}"
)
DYNAMIC = "{type: dynamic_scaling, factor: 3}"
TOKENS = torch.randint(23, (2, 12), generator=torch.Generator().manual_seed(0))


def model_of(scaling: str, places: str = "") -> composer.Model:
    return composer.load(TEXT.format(scaling=scaling) + places).compile(seed=0).double().eval()


@torch.no_grad()
@pytest.mark.parametrize(
    ("scaling", "parts", "refused"),
    [
        (LONGROPE, [4, 2], None),  # within the original length
        (LONGROPE, [7, 1, 4], None),  # beyond it from the first call on
        (LONGROPE, [4, 2, 1], 2),
        (LONGROPE, [4, 3], 1),
        (DYNAMIC, [4, 2], None),
        (DYNAMIC, [12], None),
        (DYNAMIC, [4, 2, 1], 2),
        (DYNAMIC, [7, 1], 1),  # each length beyond has frequencies of its own
    ],
)
def test_a_session_is_one_call_or_is_refused(scaling: str, parts: list[int], refused: int | None) -> None:
    """Before anything is computed, so that what is cached remains right."""
    model = model_of(scaling)
    with session(model) as opened:
        read = 0
        for index, count in enumerate(parts):
            part = TOKENS[:, read : read + count]
            assert opened.continues(count) == (index != refused)
            if index == refused:
                with pytest.raises(DecodeError, match=f"in a text of {read + count} tokens, the model encodes the positions"):
                    model(part)
                assert opened.length == read
                opened.truncate(0)
                part = TOKENS[:, : read + count]
            logits = model(part).logits
            read += count
            torch.testing.assert_close(logits, model_of(scaling)(TOKENS[:, :read]).logits[:, -part.shape[1] :], rtol=0, atol=1e-9)
        assert opened.length == read


@torch.no_grad()
def test_going_back_to_a_shorter_text_keeps_how_it_is_encoded() -> None:
    """A text that was long is encoded as a long one, and what is left of it is not the start of a short one."""
    model = model_of(LONGROPE)
    with session(model) as opened:
        model(TOKENS[:, :9])
        opened.truncate(3)
        assert not opened.continues(1) and opened.continues(4)
        ours = model(TOKENS[:, 3:8]).logits
    torch.testing.assert_close(ours, model(TOKENS[:, :8]).logits[:, 3:], rtol=0, atol=1e-9)


@pytest.mark.parametrize("scaling", [LONGROPE, DYNAMIC])
def test_a_text_is_generated_across_the_length(scaling: str) -> None:
    """The cache is filled anew where the text is encoded otherwise."""
    model, request = model_of(scaling), Request(max_new_tokens=8, sampling=GREEDY)
    prompts = [[1, 2, 3], [4, 5, 6]]
    assert generate(model, prompts, request, reading=cached) == generate(model, prompts, request)
    search = Search(max_new_tokens=8, num_beams=3)
    found, expected = (beam_search(model, prompts, search, reading=reading) for reading in (cached, uncached))
    assert [[one.tokens for one in row] for row in found] == [[one.tokens for one in row] for row in expected]


@torch.no_grad()
def test_given_positions_are_read_in_one_call() -> None:
    """Of these, a session does not know the greatest so far."""
    model = model_of(LONGROPE, "positions: {time: places}")
    places = torch.arange(12).expand(2, -1) - torch.tensor([[0], [4]])
    places = places.clamp(min=0)
    with session(model):
        whole = model(TOKENS, places).logits
        with pytest.raises(DecodeError, match="in a text of 13 tokens"):
            model(TOKENS[:, :1], places[:, :1])
    for row in range(2):
        alone = model(TOKENS[row : row + 1], places[row : row + 1]).logits
        torch.testing.assert_close(alone, whole[row : row + 1], rtol=0, atol=1e-9)


@torch.no_grad()
def test_a_scaling_without_a_length_is_never_refused() -> None:
    """Its frequencies are always the same."""
    model = model_of("{type: yarn, factor: 2, original_max_position_embeddings: 6}")
    with session(model):
        ours = torch.cat([model(part).logits for part in TOKENS.split([5, 1, 6], dim=1)], dim=1)
    torch.testing.assert_close(ours, model(TOKENS).logits, rtol=0, atol=1e-9)
