"""Two texts of one model differ in nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

import composer
from tests.conformance.cases import TINY
from tests.conformance.generator import generated
from tests.diff.rewritings import Unfit, renamed, shuffled, unrolled
from tests.zoo import NAMED, OTHERS, REPRESENTATIVES, REST

REWRITINGS: dict[str, Callable[[composer.Recipe], str]] = {
    "itself": lambda recipe: recipe.text,
    "expanded": lambda recipe: recipe.expand(),
    "renamed": lambda recipe: renamed(recipe, Random(recipe.name)),
    "shuffled": lambda recipe: shuffled(recipe, Random(recipe.name)),
    "unrolled": unrolled,
}
UNROLLED = {"gpt2", "llama3", "gemma3", "gpt_mini"}
"""Recipes of plain layers; elsewhere groups hold the repeats, or other nodes read their passes."""
HEAD = 'recipe: small\ninputs:\n  x: "float[batch, time, 8]"\n  valid: "bool[batch, time]?"\ngraph:\n'
PAIRS = {
    "residual and a sum": (
        "  a: {type: residual, norm: rmsnorm, body: {type: ffn, hidden: 12}}",
        "  n: {type: rmsnorm, in: x}\n  f: {type: ffn, hidden: 12, in: n}\n  s: {type: add, in: [f, x]}",
    ),
    "a repeat and two layers": (
        "  a: {repeat: 2, as: i, graph: {up: {type: linear, out: 8 * (i + 1)}, down: {type: linear, out: 8}}}",
        "  one: {graph: {p: {type: linear, out: 8}, q: {type: linear, out: 8}}}\n"
        "  two: {type: linear, out: 16}\n  three: {type: linear, out: 8}",
    ),
    "one set of weights and passes that are tied": (
        "  a: {repeat: 3, share: true, graph: {f: {type: linear, out: 8}}}",
        "  a: {repeat: 3, graph: {f: {type: linear, out: 8, tie: none if layer == 0 else a(0).f}}}",
    ),
    "a value that is carried by its name or as the first": (
        "  z: {type: zeros, shape: [8]}\n"
        "  a: {scan: time, in: {h: z, s: x}, graph: {c: {type: rnn_cell, hidden: 8, in: {x: s, h: h}}}}",
        "  z: {type: zeros, shape: [8]}\n"
        "  a: {scan: time, in: {s: x, h: z}, graph: {c: {type: rnn_cell, hidden: 8, in: {x: s, h: h}}}, outputs: {h: c}}",
    ),
    "a default and the same written": ("  a: rmsnorm", "  a: {type: rmsnorm, eps: 1e-6}"),
    "a width computed and written": ("  a: {type: ffn, hidden: 4 * dim}", "  a: {type: ffn, hidden: 32}"),
    "what follows from the width, and written": (
        "  a: {type: attention, heads: 2}",
        "  a: {type: attention, heads: 2, kv_heads: 2, head_dim: 4, scale: 0.5}",
    ),
    "a boolean for all and one by one": (
        "  a: {type: attention, heads: 2, bias: true}",
        "  a: {type: attention, heads: 2, bias: {q: true, k: true, v: true, out: true}}",
    ),
    "a mask in another order": (
        "  a: {type: attention, heads: 2, mask: causal and valid(valid) and (window(2) or global_first(1))}",
        "  a: {type: attention, heads: 2, mask: (global_first(1) or local(1)) and (valid(valid) and causal)}",
    ),
    "a dropped node": ("  a: {type: silu, when: false}\n  b: tanh", "  b: tanh"),
    "a slot by name and with its default": (
        "  a: {type: ffn, activation: silu}",
        "  a: {type: ffn, activation: {type: silu}}",
    ),
    "an axis by its place and by its name": ("  a: {type: mean, axis: last}", "  a: {type: mean, axis: 8}"),
    "several axes in another order": ("  a: {type: mean, axis: [time, last]}", "  a: {type: mean, axis: [8, -2]}"),
    "a list of one axis": ("  a: {type: mean, axis: [time]}", "  a: {type: mean, axis: time}"),
    "axes by their names and by their places": (
        "  a: {type: roll, by: {time: 2, last: 1}}\n  b: {type: normal, axes: [batch, last], in: a}\n"
        "  c: {compute: a + b, axes: {a: r t d, b: r d}}",
        "  a: {type: roll, by: {last: 1, -2: 2}}\n  b: {type: normal, axes: [first, 8], in: a}\n"
        "  c: {compute: a + b, axes: {a: x y z, b: x z}}",
    ),
    "axes of length 1 that stand in either place": (
        "  p: {type: parameter, shape: [1]}\n  q: {type: parameter, shape: [1, 1]}\n"
        "  r: {compute: p * q, axes: {p: h, q: h w}}\n  a: {compute: x + r, axes: {x: b t d, r: t d}}",
        "  p: {type: parameter, shape: [1]}\n  q: {type: parameter, shape: [1, 1]}\n"
        "  r: {compute: p * q, axes: {p: w, q: h w}}\n  a: {compute: x + r, axes: {x: b t d, r: t d}}",
    ),
    "the length of an axis by its name and as a number": (
        "  r: {type: rearrange, pattern: b t d -> t b d}\n"
        "  t: {type: constant, over: {i: d}, value: (i >= d - 2) * 1.5, in: {like: r}}\n"
        "  a: {type: add, in: [r, t], axes: [t b d, d]}",
        "  r: {type: rearrange, pattern: b t d -> t b d}\n"
        "  t: {type: constant, over: {i: 8}, value: (i >= 6) * 1.5, in: {like: r}}\n"
        "  a: {type: add, in: [r, t], axes: [t b d, d]}",
    ),
    "a pattern with other names": (
        "  a: {type: rearrange, pattern: batch time (heads dim) -> batch heads time dim, sizes: [2]}",
        "  a: {type: rearrange, pattern: b  t (h d)->b h t d, sizes: [2]}",
    ),
    "lengths by other names in another order": (
        "  a: {type: rearrange, pattern: b t (h d e) -> b h t (d e), lengths: {h: 2, d: 2}}",
        "  a: {type: rearrange, pattern: b t (p q r) -> b p t (q r), lengths: {q: 2, p: 2}}",
    ),
    "pieces of other names": (
        "  a: {type: split, into: [left, right]}\n  b: {type: add, in: [a.left, a.right]}",
        "  a: {type: split, into: [p, q]}\n  b: {type: add, in: [a.p, a.q]}",
    ),
    "tied from either side": (
        "  a: {type: linear, out: 8}\n  b: {type: linear, out: 8, tie: a}",
        "  a: {type: linear, out: 8}\n  b: {type: linear, out: 8, tie: {weight: a.weight, bias: a.bias}}",
    ),
    "passes that share their weights and tied layers": (
        "  a: {repeat: 2, share: true, graph: {p: {type: linear, out: 8}}}",
        "  p: {type: linear, out: 8}\n  q: {type: linear, out: 8, tie: p}",
    ),
    "a scan whose values have other names": (
        "  h: {type: select, axis: time, index: 0}\n  s: {scan: time, in: {x: x, h: h}, "
        "graph: {m: {type: add, in: [x, h]}, t: tanh}, outputs: {y: t, h: t}}",
        "  first: {type: select, axis: time, index: 0}\n  walk: {scan: time, in: {one: x, kept: first}, "
        "graph: {sum: {type: add, in: [kept, one]}, curve: tanh}, outputs: {out: curve, kept: curve}}",
    ),
    "two branches whose names change places": (
        "  a: {type: linear, out: 8, in: x}\n  b: {type: linear, out: 8, in: x}\n  c: {type: silu, in: a}\n"
        "  d: {type: multiply, in: [c, b]}",
        "  b: {type: linear, out: 8, in: x}\n  a: {type: linear, out: 8, in: x}\n  c: {type: silu, in: b}\n"
        "  d: {type: multiply, in: [c, a]}",
    ),
    "initial values by pattern and by name": (
        '  a: {type: linear, out: 8}\ninit: {"*": {normal: 0.5}, "*.bias": {constant: 0}}',
        '  b: {type: linear, out: 8}\ninit: {b.bias: {constant: 0}, b.weight: {normal: 0.5}}',
    ),
}  # fmt: skip


def small(graph: str) -> composer.Recipe:
    """Return a graph on the stream `x`, its last node returned as `y`; `valid` is there where it is read."""
    head = HEAD if "(valid)" in graph else HEAD.replace('  valid: "bool[batch, time]?"\n', "")
    nodes, _, init = graph.partition("\ninit:")
    last = nodes.splitlines()[-1].split(":")[0].strip()
    return composer.load(f"{head}{nodes}\noutputs: {{y: {last}}}\n" + (f"init:{init}\n" if init else ""))


def assert_same(one: composer.Recipe, other: composer.Recipe) -> None:
    """Assert that nothing differs, in either direction."""
    for difference in (one.diff(other), other.diff(one)):
        assert str(difference).splitlines()[0].endswith(": the same model"), difference
        costs = (replace(each, lengths={}) for each in (difference.costs_before, difference.costs_after))
        assert len({str(each) for each in costs}) == 1  # the axes have other names


UNWRITTEN = {
    ("transformer_xl", "renamed"),
    ("show_attend_tell", "renamed"),
    ("perceiver", "renamed"),
    ("linformer", "unrolled"),
}
"""What rewriting by whole words cannot write: a parameter or a port that is called like a node, an axis of a block's own,
and a tie under a condition to a pass that is written out.
"""
REWRITTEN = [
    *(
        pytest.param(name, way, marks=pytest.mark.slow if name in NAMED else pytest.mark.exhaustive)
        for name in REPRESENTATIVES
        for way in REWRITINGS
        if (name, way) not in UNWRITTEN
    ),
    *(
        pytest.param(name, way, marks=pytest.mark.slow if name in OTHERS and way == "expanded" else pytest.mark.exhaustive)
        for name in REST
        for way in REWRITINGS
        if (name, way) not in UNWRITTEN
    ),
]


@pytest.mark.parametrize(("name", "way"), REWRITTEN)
def test_the_zoo_written_otherwise_is_the_same_model(name: str, way: str) -> None:
    """Without shorthands, under other names, in another order, layer by layer."""
    recipe = composer.load(name, overrides=TINY.get(name, {}))
    try:
        assert_same(recipe, composer.load(REWRITINGS[way](recipe)))
    except Unfit:
        assert way == "unrolled" and name not in UNROLLED


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [*range(4), *(pytest.param(chunk, marks=pytest.mark.exhaustive) for chunk in range(4, 10))])
def test_generated_recipes_written_otherwise_are_the_same_model(chunk: int) -> None:
    """Two hundred of them, each rewritten in all ways that there are for it."""
    done = 0
    for seed in range(chunk, 200, 10):
        recipe = composer.load(generated(seed))
        for rewrite in list(REWRITINGS.values())[1:]:
            try:
                other = composer.load(rewrite(recipe))
            except Unfit:
                continue
            if not any(found.severity == "error" for found in other.check()):
                assert_same(recipe, other)
                done += 1
    assert done > 40


@pytest.mark.parametrize("pair", PAIRS)
def test_two_ways_to_write_a_model_are_one(pair: str) -> None:
    """Shorthands and their expansions, defaults and values, names and places."""
    one, other = map(small, PAIRS[pair])
    assert [found for found in (*one.check(), *other.check()) if found.severity == "error"] == []
    assert_same(one, other)


def test_a_default_is_its_value() -> None:
    """However it is written."""
    text = 'recipe: small\ninputs: {x: "float[batch, time, 8]", n: {type: "int[batch, time]", default: 1.0}}\n'
    text += "graph: {e: {type: embedding, vocab: 2, dim: 8, in: n}, s: {type: add, in: [x, e]}}\n"
    one, two = composer.load(text), composer.load(text.replace("1.0", "3 // 2"))
    assert one.diff(two).equal and not one.diff(composer.load(text.replace("1.0", "0"))).equal
