"""What a caller of sessions and of generation does wrong is told in one line."""

from __future__ import annotations

import pytest
import torch

import composer
from composer.decode import DecodeError, Request, Search, beam_search, cached, generate, session, stream, uncached

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
    with session(model):
        with pytest.raises(DecodeError, match="already has an open session"), session(model):
            pass
        assert model.in_session  # the first is still open


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


ALONG = """
recipe: along
task: TASK
inputs: {INPUTS, extra: "EXTRA"}
graph:
  embed: {type: embedding, vocab: 23, dim: 8, in: TEXT}
  NODE
  head: {type: linear, out: 23}
outputs: {logits: head}
"""
SOURCES = {
    "causal_lm": ('tokens: "int[batch, time]"', "tokens", "attn: {type: attention, heads: 2, mask: causal}"),
    "seq2seq_lm": ('source: "int[batch, s]", target: "int[batch, time]"', "target", "MEMORY"),
    "denoising": ('source: "int[batch, s]", target: "int[batch, time]"', "target", "MEMORY"),
    "image_to_text": ('image: "float[batch, 3, 4, 4]", tokens: "int[batch, time]"', "tokens", "MEMORY"),
    "speech_to_text": ('features: "float[batch, 8, 5]", tokens: "int[batch, time]"', "tokens", "MEMORY"),
}
MEMORY = """seen: {type: embedding, vocab: 23, dim: 8, in: source}
  cross: {type: cross_attention, heads: 2, in: {x: embed, memory: seen}}"""
SEEN = """seen: {type: rearrange, pattern: "b c h w -> b c (h w)", in: image}
  cross: {type: cross_attention, heads: 2, in: {x: embed, memory: seen}}"""
HEARD = """heard: {type: rearrange, pattern: b c f -> b f c, in: features}
  cross: {type: cross_attention, heads: 2, in: {x: embed, memory: heard}}"""
LOOKS = {"image_to_text": SEEN, "speech_to_text": HEARD}
READ = {"image_to_text": "image", "speech_to_text": "features"}
GIVEN = {"source": torch.arange(12).view(2, 6), "image": torch.zeros(2, 3, 4, 4), "features": torch.zeros(2, 8, 5)}
WAYS = {
    "generate": lambda model, prompts, given, reading: generate(
        model, prompts, Request(max_new_tokens=2), encoder_inputs=given, reading=reading
    ),
    "stream": lambda model, prompts, given, reading: list(
        stream(model, prompts[0], Request(max_new_tokens=2), encoder_inputs=given, reading=reading)
    ),
    "beam search": lambda model, prompts, given, reading: beam_search(
        model, prompts, Search(num_beams=2, max_new_tokens=2), encoder_inputs=given, reading=reading
    ),
}


def reader(task, extra="", node=""):
    """Return a model of a task, with one more input if there is a type for it."""
    inputs, text, inner = SOURCES[task]
    inner = inner.replace("MEMORY", LOOKS.get(task, MEMORY)) + (f"\n  {node}" if node else "")
    recipe = ALONG.replace("TASK", task).replace("INPUTS", inputs).replace("TEXT", text).replace("NODE", inner)
    recipe = recipe.replace("EXTRA", extra) if extra else recipe.replace(', extra: "EXTRA"', "")
    return composer.load(recipe).compile(seed=0).eval()


@pytest.mark.parametrize("reading", [cached, uncached])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("task", ["seq2seq_lm", "denoising", "image_to_text", "speech_to_text"])
def test_sources_that_do_not_fit_are_refused_for_every_task(task, way, reading):
    """None, too few, one of another form or dtype, one that is no tensor; and those that fit are taken."""
    model = reader(task)
    name = READ.get(task, "source")
    rows = 1 if way == "stream" else 2
    right = GIVEN[name][:rows]
    wrong = {
        f"the model also reads `{name}`, which is not in `encoder_inputs`: ": None,
        f"`{name}` has 0 rows for {'1 prompt' if rows == 1 else '2 prompts'}": right[:0],
        f"`{name}` is a list, and the model reads tensors": right.tolist(),
        f"`{name}` is .*, and the model reads ": right[0],
        f"`{name}` is bool": right.bool(),
    }
    for message, value in wrong.items():
        with pytest.raises(DecodeError, match=message):
            WAYS[way](model, [[1, 2]] * rows, None if value is None else {name: value}, reading)
    assert WAYS[way](model, [[1, 2]] * rows, {name: right}, reading)


@pytest.mark.slow
@pytest.mark.parametrize("reading", [cached, uncached])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("task", SOURCES)
def test_values_for_each_token_are_for_a_session(task, way, reading):
    """Required or given; an optional one may be left out."""
    node = "sum: {type: add, in: [LAST, extra]}".replace("LAST", "attn" if task == "causal_lm" else "cross")
    model = reader(task, "float[batch, time, 8]", node)
    given = {name: value[:1] for name, value in GIVEN.items() if name in SOURCES[task][0]}
    refused = r"the model reads `extra`, float\[batch, time, 8\]: a value for each token, .* call the model in a `session`"
    for more in ({}, {"extra": torch.zeros(1, 2, 8)}):
        with pytest.raises(DecodeError, match=refused):
            WAYS[way](model, [[1, 2]], {**given, **more}, reading)
    optional = reader(task, "bool[batch, time]?", "own: {type: attention, heads: 2, mask: causal and valid(extra)}")
    assert WAYS[way](optional, [[1, 2]], given, reading)
    with pytest.raises(DecodeError, match=refused.replace(r"float\[batch, time, 8", r"bool\[batch, time")):
        WAYS[way](optional, [[1, 2]], {**given, "extra": torch.ones(1, 2, dtype=torch.bool)}, reading)


def test_a_session_takes_values_for_each_token():
    """As the message says."""
    model = reader("causal_lm", "float[batch, time, 8]", "sum: {type: add, in: [attn, extra]}")
    extra = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(0))
    with session(model):
        pieces = [model(tokens=IDS[:, at : at + 2], extra=extra[:, at : at + 2]).logits for at in (0, 2, 4)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(tokens=IDS, extra=extra).logits)


@pytest.mark.parametrize("way", WAYS)
def test_what_has_no_rows_is_the_same_for_all_texts(way):
    """A temperature, a table: it is neither counted nor selected."""
    model = reader("causal_lm", "float[]", "sum: {type: multiply, in: [attn, extra]}")
    for extra in (torch.tensor(2.0), torch.tensor(0.5)):
        assert WAYS[way](model, [[1, 2], [3], [4, 5]], {"extra": extra}, uncached)


def test_lengths_of_one_axis_are_one():
    """A source of six and flags of five."""
    text = TRANSLATOR.replace('"int[batch, source_time]"', '"int[batch, s]", seen: "bool[batch, s]?"')
    text = text.replace("heads: 2, in:", "heads: 2, mask: valid(seen), in:")
    model = composer.load(text).compile(seed=0).eval()
    with pytest.raises(DecodeError, match="`seen` has 5 for `s`, and `source` has 6"):
        generate(model, [[1], [2]], Request(), encoder_inputs={"source": IDS, "seen": torch.ones(2, 5, dtype=torch.bool)})


def test_a_session_that_is_called_says_what_to_call(model):
    """The model; the session goes on."""
    with session(model) as past:
        for call in (lambda: past(IDS), lambda: past(tokens=IDS), past):
            with pytest.raises(DecodeError, match="call the model with the next tokens"):
                call()
        model(IDS)
        assert past.length == 6


@pytest.mark.parametrize("count", [-1, 2.5, "a", True])
def test_a_number_of_new_tokens_that_is_none_is_refused(count):
    """Before anything is read: a negative one never came to its end."""
    for request in (Request, Search):
        with pytest.raises(DecodeError, match=f"`max_new_tokens` is {count}; it must be a whole number, 0 or more"):
            request(max_new_tokens=count)
