"""What a caller of sessions and of generation does wrong is told in one line."""

from __future__ import annotations

import pytest
import torch

import composer
from composer.decode import DecodeError, Request, Search, beam_search, generate, session, stream

SMALL = {"n_layers": 1, "d_model": 16, "n_heads": 2, "vocab": 23, "context": 16}
PADDED = """
recipe: padded
task: causal_lm
inputs: {tokens: "int[batch, time]", valid: "bool[batch, time]?"}
graph:
  embed: {type: embedding, vocab: 23, dim: 8}
  attn: {type: attention, heads: 2, mask: causal and valid(valid)}
  head: {type: linear, out: 23}
outputs: {logits: head}
"""
TRANSLATOR = """
recipe: translator
task: seq2seq_lm
inputs: {source: "int[batch, source_time]", target: "int[batch, time]"}
graph:
  encoder: {type: embedding, vocab: 23, dim: 8, in: source}
  embed: {type: embedding, vocab: 23, dim: 8, in: target}
  cross: {type: cross_attention, heads: 2, in: {memory: encoder}}
  head: {type: linear, out: 23}
outputs: {logits: head}
"""
CLASSIFIER = """
recipe: classifier
inputs: {x: "float[batch, 8]"}
graph:
  head: {type: linear, out: 2}
"""
IDS = torch.arange(12).view(2, 6)


@pytest.fixture
def model():
    """A model that writes."""
    return composer.load("gpt2", SMALL).compile(seed=0).eval()


def test_a_session_is_for_a_compiled_model_that_writes(model):
    """Any other is refused before anything is changed."""
    with pytest.raises(DecodeError, match="a session needs a compiled recipe, not a Linear"):
        session(torch.nn.Linear(2, 2))  # type: ignore[arg-type]
    with pytest.raises(DecodeError, match="this recipe has no task"), session(composer.load(CLASSIFIER).compile()):
        pass
    with pytest.raises(DecodeError, match="is 0; it must be at least 1 token"):
        session(model, 0)
    with session(model), pytest.raises(DecodeError, match="already has an open session"), session(model):
        pass


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (torch.tensor([0, 2]), "there is no row 2; the last call had 2, counted from 0"),
        (torch.tensor([-1]), "there is no row -1"),
        (torch.tensor([True, False]), "a tensor of integers with one axis, not torch.bool"),
        (torch.tensor(0), "a tensor of integers with one axis"),
    ],
)
def test_rows_are_indices_of_rows(model, rows, message):
    """What is no row of the last call is refused, and the session goes on as it was."""
    with session(model) as past:
        model(IDS)
        with pytest.raises(DecodeError, match=message):
            past.reorder(rows)
        assert past.length == 6


def test_calls_of_a_session_go_together(model):
    """The same rows in each, and the same optional inputs."""
    with session(model) as past:
        model(IDS)
        with pytest.raises(DecodeError, match="this one has 3, the one before 2"):
            model(torch.zeros(3, 1, dtype=torch.int64))
        past.reorder(torch.tensor([0, 0, 1]))
        assert model(torch.zeros(3, 1, dtype=torch.int64)).logits.shape[0] == 3
    padded, valid = composer.load(PADDED).compile(seed=0).eval(), torch.ones(2, 6, dtype=torch.bool)
    with session(padded):
        padded(IDS, valid)
        with pytest.raises(DecodeError, match="was with `valid`, and this one is without it"):
            padded(tokens=IDS[:, :1])
    with session(padded) as past:
        padded(IDS)
        with pytest.raises(DecodeError, match="was without `valid`, and this one is with it"):
            padded(IDS, valid=valid)
        past.truncate(0)
        padded(IDS, valid)


def test_a_session_keeps_no_negative_length(model):
    """A longer one than there is keeps all."""
    with session(model) as past:
        model(IDS)
        with pytest.raises(DecodeError, match="the length is -1"):
            past.truncate(-1)
        past.truncate(99)
        assert past.length == 6


@pytest.mark.parametrize(
    ("encoder_inputs", "message"),
    [
        ({}, "the model also reads `source`, which is not in `encoder_inputs`"),
        ({"sourc": IDS}, "the model has no input `sourc` besides `target`"),
        ({"source": IDS, "target": IDS}, "the model has no input `target` besides `target`"),
        ({"source": IDS[:1]}, "`source` has 1 row for 2 prompts"),
    ],
)
def test_what_stands_beside_the_text_is_what_the_model_reads(encoder_inputs, message):
    """A row for each prompt, and nothing else."""
    translator = composer.load(TRANSLATOR).compile(seed=0).eval()
    with pytest.raises(DecodeError, match=message):
        generate(translator, [[1], [2]], Request(max_new_tokens=2), encoder_inputs=encoder_inputs)
    with pytest.raises(DecodeError, match=message):
        beam_search(translator, [[1], [2]], Search(max_new_tokens=2), encoder_inputs=encoder_inputs)


def test_only_a_model_that_writes_generates():
    """Others are named with their task."""
    with pytest.raises(DecodeError, match=r"generation needs a generative task .*; this recipe has no task"):
        generate(composer.load(CLASSIFIER).compile(), [[1]], Request())
    with pytest.raises(DecodeError, match=r"generation needs a compiled recipe, not a Linear"):
        list(stream(torch.nn.Linear(2, 2), [1], Request()))
