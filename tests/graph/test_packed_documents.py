"""Which nodes let packed documents see each other, where a mask keeps them apart."""

from __future__ import annotations

import composer

APART = """
recipe: apart
inputs: {x: "float[batch, time, 8]", ids: "int[batch, time]", marks: "bool[batch, time, time]", memory: "float[batch, source, 8]"}
graph:
  first: {type: conv1d, out: 8, kernel_size: 1, in: x}
  a: {type: residual, norm: layernorm, body: {type: attention, heads: 1, mask: documents(ids)}}
  b: {type: attention, heads: 1, mask: documents(ids) or global_first(1)}
  c: {type: attention, heads: 1, mask: pairs(marks)}
  bias: {type: alibi, heads: 1}
  cross: {type: cross_attention, heads: 1, in: {x: c, memory: memory}}
  d: {type: attention, heads: 1, mask: documents(ids), in: {x: cross, bias: bias}}
  scores: {type: einsum, pattern: "b q d, b k d -> b q k", in: [d, d]}
  weights: {type: softmax, axis: last}
  mixed: {type: einsum, pattern: "b q k, b k d -> b q d", in: [weights, d]}
  normed: {type: batchnorm}
  mean: {type: pool, mode: mean}
outputs: {mean: mean, first: first, b: b}
"""
MIXED = """
  own: {type: two, in: x}
  wide: {type: residual, norm: layernorm, body: {type: conv1d, out: 8, kernel_size: 3}}
  both: {type: lstm, hidden: 4, bidirectional: true}
  over: {type: softmax, axis: time}
  plain: {type: attention, heads: 1, mask: local(2), in: {x: over, memory: first}}
"""
BLOCKS = """
blocks:
  two: {inputs: {x: "float[batch, time, dim]"}, graph: {inner: {type: gru, hidden: dim}}}
graph:"""


def warned(text: str) -> list[str]:
    """Return the lines of which is warned, as far as the first bracket."""
    found = [each for each in composer.load(text).check() if each.severity == "error" or each.code == "mixed-documents"]
    assert {each.severity for each in found} <= {"warning"}
    return [each.span.source.lines[each.span.line - 1].partition("{")[0].strip(" :") for each in found]


def test_what_keeps_documents_apart_or_has_one_value_for_a_row_is_right() -> None:
    """So are masks of data, pairs that are masked as numbers, another stream, and convolutions of one position."""
    assert warned(APART) == []


def test_what_lets_them_see_each_other_is_named_where_it_is_written() -> None:
    """In blocks of a recipe's own, in residuals, along the axis of the mask and no other."""
    text = APART.replace("\ngraph:", BLOCKS).replace("outputs: {", f"{MIXED.strip(chr(10))}\noutputs: {{plain: plain, ")
    assert warned(text) == ["two", "wide", "both", "over", "plain"]
    elsewhere = text.replace("documents(ids)", "local(4)").replace(', ids: "int[batch, time]"', "")
    assert warned(elsewhere) == []


CHUNKS = """
recipe: chunks
inputs: {x: "float[batch, time, 8]", ids: "int[batch, time]", valid: "bool[batch, time]?"}
graph:
  place: {type: arange, axis: time, in: {x: x, valid: valid}}
  part: {compute: COUNTED // 4}
  layers:
    repeat: 2
    in: x
    graph:
      near: {type: residual, body: {type: attention, heads: 1, mask: documents(part) and valid(valid)}}
      far: {type: attention, heads: 1, mask: valid(valid)}
  sum: {compute: layers + 0 * float(ids), axes: {layers: b t d, ids: b t, ->: b t d}}
"""


def test_chunks_that_are_counted_from_the_start_of_a_row_are_no_documents() -> None:
    """Whatever their tensor is measured by; as soon as a number of an input is in them, they are."""
    assert warned(CHUNKS.replace("COUNTED", "place")) == []
    assert warned(CHUNKS.replace("COUNTED", "(place + ids)")) == ["far"]
