"""What of a generated text values depend on, and which of its rows they have, as their types say."""

from __future__ import annotations

import composer
from composer.graph.dims import as_written, capped, is_routed, names, routed, so_far, substitute, symbol
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup
from composer.graph.types import Depends, TensorType

TRANSLATOR = """
recipe: translator
task: seq2seq_lm
params: {context: 12}
inputs: {source: "int[batch, context]", target: "int[batch, context]", valid: "bool[batch, context]?"}
graph:
  read: {type: embedding, vocab: 11, dim: 8, in: source}
  encoder: {type: attention, heads: 2, in: read}
  start: {type: zeros, shape: [8], in: target_embed}
  target_embed: {type: embedding, vocab: 11, dim: 8, in: target}
  attn: {type: attention, heads: 2, mask: causal and valid(valid), in: target_embed}
  cross: {type: cross_attention, heads: 2, in: {x: attn, memory: encoder}}
  again: {type: attention, heads: 2, mask: causal, in: {x: cross, k: attn.k}}
  bias: {type: alibi, heads: 2, in: again}
  moe: {type: moe, experts: 2, expert: {type: ffn, hidden: 4}, in: again}
  biased: {type: attention, heads: 2, mask: causal, in: {x: moe, bias: bias}}
  steps: {scan: context, in: {x: biased, h: start}, graph: {a: {type: gru_cell, hidden: 8, in: {x: x, h: h}}},
    outputs: {y: a, h: a}}
  mean: {type: pool, mode: mean}
  head: {type: linear, out: 11, in: steps}
outputs: {logits: head, mean: mean, last: steps.h}
"""


def root() -> TypedGraph:
    """Return the typed graph of the translator."""
    recipe = composer.load(TRANSLATOR)
    assert [found for found in recipe.check() if found.severity == "error"] == []
    return recipe.program.root


def of(graph: TypedGraph, name: str, port: str = "") -> TensorType:
    """Return the type of an output."""
    node = graph[name]
    assert isinstance(node.outputs, dict)
    type_ = node.outputs[port or next(iter(node.outputs))]
    assert isinstance(type_, TensorType)
    return type_


def test_a_value_depends_on_what_its_block_reads() -> None:
    """An encoder on nothing of the text, a decoder on its past, a mean and a last state on all."""
    graph = root()
    expected = {
        Depends.NONE: ("read", "encoder", "start"),
        Depends.PAST: ("target_embed", "attn", "cross", "again", "bias", "moe", "biased", "steps", "head"),
        Depends.ALL: ("mean",),
    }
    assert {
        depends: tuple(name for name in names if of(graph, name).depends is depends) for depends, names in expected.items()
    } == (expected)
    assert of(graph, "steps", "h").depends is Depends.ALL
    assert of(graph, "moe", "load").depends is Depends.ALL


def test_keys_of_a_memory_depend_on_what_the_memory_does() -> None:
    """Not on the queries, nor on what norms them; keys of the sequence itself depend on it."""
    graph = root()
    assert (of(graph, "cross", "k").depends, of(graph, "cross", "v").depends) == (Depends.NONE, Depends.NONE)
    assert (of(graph, "attn", "k").depends, of(graph, "again", "v").depends) == (Depends.PAST, Depends.PAST)


def test_rows_are_those_of_a_call_or_all_so_far() -> None:
    """Keys and biases have the rows of all calls; a number is one of its own, beside the same number of the source."""
    graph = root()
    length = capped("context", 12)
    assert of(graph, "read").sizes[1] == 12
    assert of(graph, "attn").sizes[1] == length
    assert of(graph, "attn", "k").sizes[1] == so_far(length)
    assert of(graph, "cross", "k").sizes[1] == 12
    assert of(graph, "bias").sizes[-2:] == (length, so_far(length))
    assert str(of(graph, "attn", "k")) == "float[batch, context so far, 2, 4]"
    valid = graph.inputs["valid"]
    assert isinstance(valid, TensorType)
    assert valid.sizes[1] == length


def test_rows_of_experts_are_in_no_order() -> None:
    """Their number is no length of the text, and it is shown and counted as before."""
    moe = root()["moe"]
    assert isinstance(moe, TypedBlock)
    expert = moe.slots["expert"]
    assert isinstance(expert, TypedBlock)
    rows = of(TypedGraph(root().graph, {}, (expert,), {}, {"expert": expert}), "expert").sizes[1]
    assert is_routed(rows)
    assert str(rows) == "2·context"
    assert substitute(rows, {}) == 24


def test_what_nothing_reads_of_a_slot_is_not_depended_on() -> None:
    """The load of a mixture of experts inside of another is a mean over the whole text."""
    recipe = composer.load("""
recipe: mixed
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 8, dim: 8}
  moe: {type: moe, experts: 2, expert: ffn, shared: {type: moe, experts: 2, expert: ffn}}
  head: {type: linear, out: 8}
outputs: {logits: head}
""")
    assert recipe.check() == []
    assert of(recipe.program.root, "moe").depends is Depends.PAST


def test_sizes_of_a_text_are_counted_and_written_as_what_they_are() -> None:
    """Whatever rows are meant."""
    time = symbol("time")
    for size in (so_far(time), routed(time)):
        assert size != time
        assert names(size) == {"time"}
        assert substitute(size, {"time": 7}) == 7
        assert as_written(size) == time
    assert as_written(so_far(capped("", 16))) == 16
    assert names(capped("", 16)) == frozenset()
    assert (str(capped("", 16)), str(capped("context", 16))) == ("≤16", "context")
    assert composer.load(TRANSLATOR).program.written_inputs["target"].sizes[1] == 12


def test_what_a_value_depends_on_is_part_of_its_type() -> None:
    """So it is in every key under which a graph is typed: a block used before and after a mixture has two types."""
    text = """
recipe: twice
task: causal_lm
blocks:
  twin: {inputs: {x: "float[batch, time, dim]"}, graph: {a: {type: ffn, hidden: 4}}}
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 11, dim: 8}
  seen: {type: twin, in: embed}
  mixed: {type: softmax, axis: time, in: embed}
  ahead: {type: twin, in: mixed}
  head: {type: linear, out: 11, in: seen}
outputs: {logits: head, aside: ahead}
"""
    graph = composer.load(text).program.root
    seen, ahead = graph["seen"], graph["ahead"]
    assert isinstance(seen, TypedGroup)
    assert isinstance(ahead, TypedGroup)
    assert seen.graph is not ahead.graph
    assert (of(graph, "seen").depends, of(graph, "ahead").depends) == (Depends.PAST, Depends.ALL)
