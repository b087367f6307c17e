"""Generation with a compiled model's cache."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

import composer
from composer.decode import GREEDY, DecodeError, Refuse, Request, Sampling, Search, Slide, beam_search, cached, generate
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


TRANSLATOR = """
recipe: translator
task: seq2seq_lm
inputs: {source: "int[batch, source_time]", target: "int[batch, time]", source_valid: "bool[batch, source_time]?"}
graph:
  encoder:
    in: source
    graph:
      embed: {type: embedding, vocab: 23, dim: 16}
      places: sinusoidal_positions
      layers:
        repeat: 2
        graph:
          attn: {type: residual, norm: layernorm, body: {type: attention, heads: 2, mask: valid(source_valid)}}
          ffn: {type: residual, norm: layernorm, body: ffn}
  embed: {type: embedding, vocab: 23, dim: 16, in: target}
  layers:
    repeat: 2
    graph:
      attn: {type: residual, norm: layernorm, body: {type: attention, heads: 2, mask: causal, positions: rotary}}
      cross:
        type: residual
        norm: layernorm
        body: {type: cross_attention, heads: 2, mask: valid(source_valid), in: {memory: encoder}}
      ffn: {type: residual, norm: layernorm, body: ffn}
  head: {type: linear, out: 23}
outputs: {logits: head}
init: {"*weight": {normal: 0.5}}
"""


@pytest.fixture
def translator():
    """A model that reads one text and writes another."""
    return composer.load(TRANSLATOR).compile(seed=0).double().eval()


@pytest.fixture
def sources():
    """Three rows, two of them padded."""
    source = torch.randint(23, (3, 5), generator=torch.Generator().manual_seed(1))
    return {"source": source, "source_valid": torch.arange(5) < torch.tensor([[5], [2], [3]])}


@pytest.mark.parametrize("limit", [None, Refuse(40), Slide(16)])
def test_what_a_cache_writes_is_what_reading_everything_again_writes(limit):
    """Prompts of unequal length, sampled, across the places where the context slides."""
    model = composer.load("gpt_mini", {"d_model": 24, "n_layers": 2}).compile(seed=3)
    request = Request(max_new_tokens=30, sampling=Sampling(temperature=0.7, top_k=9), limit=limit)
    prompts = [[1, 2, 3], [4], [5, 9, 2]]
    assert generate(model, prompts, request, seed=1, reading=cached) == generate(model, prompts, request, seed=1)


LAST = """
recipe: last
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 23, dim: 8}
  attn: {type: attention, heads: 2, mask: causal}
  norm: layernorm
  mix: {type: conv1d, out: 8, kernel_size: 3, causal: true}
  side: {type: linear, out: 8}
  act: relu
  bias: {type: parameter, shape: [8]}
  add: {type: add, in: [act, bias]}
  head: {type: linear, out: 23}
  capped: {compute: 5 * tanh(head / 5)}
outputs: {logits: capped%s}
"""


@pytest.mark.parametrize(
    ("outputs", "rows"),
    [("", {"mix": 5, "side": 1, "head": 1}), (", side: side", {"side": 5, "head": 1}), (", other: head", {"side": 5, "head": 5})],
)
def test_only_the_last_position_passes_through_the_head(outputs, rows):
    """From the first node on that works on each position alone, up to what something else reads."""
    model = composer.load(LAST % outputs).compile(seed=0).eval()
    seen = {}
    for name in rows:
        module = model.get_submodule(name)
        module.register_forward_hook(lambda _, given, __, name=name: seen.update({name: given[0].shape[1]}))
    tokens = torch.randint(23, (2, 5))
    whole = model(tokens=tokens)
    with session(model, last_only=True):
        found = model(tokens=tokens)
    assert seen == rows
    torch.testing.assert_close(found.logits, whole.logits[:, -1:])
    assert model(tokens=tokens).logits.shape == (2, 5, 23)  # and all is as it was


@torch.no_grad()
def test_a_node_that_reads_more_is_not_where_positions_are_left_out():
    """Its values are brought to one shape before it is called; what follows has the last position alone."""
    text = (LAST % "").replace("{type: add, in: [act, bias]}", "{type: weighted_sum, in: [act, bias]}")
    model = composer.load(text).compile(seed=0)
    tokens = torch.randint(23, (2, 5))
    whole = model.eval()(tokens=tokens).logits
    with session(model, last_only=True):
        torch.testing.assert_close(model(tokens=tokens).logits, whole[:, -1:])
    early = text.replace("  act: relu\n", "  act: {type: add, in: [side, embed]}\n")  # so that the sum comes first in the chain
    model = composer.load(early).compile(seed=0).eval()
    whole = model(tokens=tokens).logits
    with session(model, last_only=True):
        torch.testing.assert_close(model(tokens=tokens).logits, whole[:, -1:])


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


@torch.no_grad()
def test_what_the_text_does_not_reach_is_computed_once(translator, sources):
    """The encoder, and keys and values of what it gives; all the rest at each call, also after `truncate(0)`."""
    counts = Counter()
    for name, module in translator.named_modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_hook(lambda *_, name=name: counts.update([name]))
    target = torch.arange(12).view(3, 4)
    with session(translator) as writing:
        for token in target.split(1, dim=1):
            translator(target=token, **sources)
        once = {name for name, count in counts.items() if count == 1}
        assert once == {name for name in counts if name.startswith("encoder.") or name.endswith(("cross.body.k", "cross.body.v"))}
        assert {counts[name] for name in counts.keys() - once} == {4}
        writing.truncate(0)
        other = {**sources, "source": sources["source"].flip(0)}
        after = translator(target=target, **other).logits
    torch.testing.assert_close(after, translator(target=target, **other).logits)


SHARED = """
recipe: shared_memory
task: seq2seq_lm
inputs: {source: "int[batch, source_time]", target: "int[batch, time]"}
graph:
  read: {type: embedding, vocab: 23, dim: 16, in: source}
  embed: {type: embedding, vocab: 23, dim: 16, in: target}
  self: {type: attention, heads: 2, mask: causal}
  one: {type: cross_attention, heads: 2, qk_norm: rmsnorm, positions: rotary, in: {x: self, memory: read}}
  again:
    repeat: 2
    in: {x: one, keys: one.k, values: one.v}
    graph:
      two: {type: attention, heads: 2, in: {x: x, k: keys, v: values}}
    outputs: {x: two}
  three: {type: cross_attention, heads: 2, in: {x: again, memory: read, k: one.k}}
  wide: {type: linear, out: 8, in: one.v}
  four: {type: scaled_dot_product, heads: 2, in: {q: three, k: read, v: read}}
  head: {type: linear, out: 23}
outputs: {logits: head, wide: wide}
init: {"*weight": {normal: 0.5}}
"""


@torch.no_grad()
@pytest.mark.parametrize("step", [1, 3, 7])
def test_keys_of_a_memory_may_be_read_again(step):
    """They do not depend on the text, though the block that computes them reads it too, so a session computes them once."""
    recipe = composer.load(SHARED)
    assert [found for found in recipe.check() if found.severity == "error"] == []
    model = recipe.compile(seed=0).double().eval()
    source, target = torch.arange(15).view(3, 5), torch.arange(21).view(3, 7)
    counts = Counter()
    for name in ("one.k", "one.v"):
        model.get_submodule(name).register_forward_hook(lambda *_, name=name: counts.update([name]))
    with session(model):
        pieces = [model(source, piece) for piece in target.split(step, dim=1)]
    assert set(counts.values()) == {1}
    whole = model(source, target)
    torch.testing.assert_close(torch.cat([piece.logits for piece in pieces], dim=1), whole.logits)
    torch.testing.assert_close(pieces[-1].wide, whole.wide)


AHEAD = """
recipe: ahead
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 11, dim: 8}
  own: {type: residual, norm: rmsnorm, body: {type: attention, heads: 1, mask: causal}}
  head: {type: linear, out: 11, in: own.norm}
  mean: {type: mean, axis: time, in: own}
  sum: {type: add, in: [own, mean]}
  aside: {type: residual, norm: rmsnorm, body: BODY}
outputs: {logits: head, SEEN}
"""


@torch.no_grad()
@pytest.mark.parametrize(
    "body",
    [
        "{type: linear, out: 8}",
        "{graph: {a: {type: linear, out: 8}, b: {type: linear, out: 8}}}",
        "{repeat: 3, graph: {a: {type: linear, out: 8}}}",
        "{scan: time, graph: {a: {type: linear, out: 8}}}",
        "{type: residual, norm: layernorm, body: {scan: time, graph: {a: {type: linear, out: 8}}}}",
    ],
    ids=["block", "group", "repeat", "scan", "scan in a residual"],
)
@pytest.mark.parametrize(
    "read",
    ["seen: aside.norm}", "}\nlosses: {seen: {type: mse, in: aside.norm, target: embed}}"],
    ids=["output", "loss"],
)
def test_what_nothing_reads_of_a_block_is_not_computed_while_a_text_is_generated(body, read):
    """Of a block that is read inside, its own value may be of no use, and made of what a session does not compute."""
    model = composer.load(AHEAD.replace("BODY", body).replace("SEEN}", read)).compile(seed=0).double().eval()
    called = []
    for name, module in model.named_modules():
        module.register_forward_hook(lambda *_, name=name: called.append(name))
    tokens = torch.arange(14).view(2, 7) % 11
    whole = model(tokens).logits
    assert any(name.startswith("aside.body") for name in called)
    called.clear()
    with session(model):
        pieces = [model(piece).logits for piece in tokens.split(2, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole)
    assert {name for name in called if name.startswith("aside")} == set()


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=0.9)])
def test_a_translation_is_written_with_a_cache_and_without(translator, sources, sampling):
    """From prompts of unequal length, each of which has its own source; padding of a source changes nothing."""
    request, prompts = Request(max_new_tokens=12, sampling=sampling), [[1], [1, 4], [1]]
    plain = generate(translator, prompts, request, encoder_inputs=sources, seed=3)
    assert generate(translator, prompts, request, encoder_inputs=sources, seed=3, reading=cached) == plain
    alone = {name: value[1:2, :2] for name, value in sources.items()}
    if sampling is GREEDY:
        assert generate(translator, prompts[1:2], request, encoder_inputs=alone, reading=cached) == plain[1:2]
        assert len({tuple(answer) for answer in plain}) > 1


def test_beams_take_their_sources_with_them(translator, sources):
    """Cached, uncached, and each prompt by itself."""
    search, prompts = Search(num_beams=3, max_new_tokens=9, stop=frozenset({2, 5})), [[1], [1, 4], [1]]
    plain = beam_search(translator, prompts, search, encoder_inputs=sources)
    rows = [{name: value[row : row + 1] for name, value in sources.items()} for row in range(3)]
    alone = [
        beam_search(translator, [prompt], search, encoder_inputs=row, reading=cached)[0]
        for prompt, row in zip(prompts, rows, strict=True)
    ]
    for found in (beam_search(translator, prompts, search, encoder_inputs=sources, reading=cached), alone):
        assert [[text.tokens for text in each] for each in found] == [[text.tokens for text in each] for each in plain]


def test_only_a_model_that_writes_has_sessions():
    """Another would answer each token by itself."""
    recipe = "recipe: r\ntask: encoder\ninputs: {x: 'float[batch, 4]'}\ngraph: {a: {type: linear, out: 3}}\n"
    with (
        pytest.raises(DecodeError, match=r"a session needs a generative task .*; this recipe has encoder"),
        session(composer.load(recipe).compile()),
    ):
        pass
