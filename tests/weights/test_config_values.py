"""Values that a `config` sets: a mistake in one is found wherever the param is read."""

from __future__ import annotations

import pytest

import composer

RECIPE = """
recipe: example
params:
  kind: {type: block, default: relu}
MORE
inputs: {x: "float[batch, time, 8]"}
graph:
  before: {type: linear, out: 8}
NODES
  after: {type: linear, out: 8}
outputs: {y: after}
checkpoints:
  example:
    config:
      params:
        kind: {from: hidden_act, values: {gelu: gelu, silu: sillu, relu: relu, none: none}}
    rules: {before.*: before.*, after.*: after.*}
"""
PLACES = {
    "a node": ("", "  a: kind"),
    "a slot": ("", "  a: {type: ffn, hidden: 16, activation: kind}"),
    "a choice": ("", "  a: kind if 8 > 7 else relu"),
    "another param": ("  other: {type: block, default: kind}\n  third: {type: block, default: other}", "  a: third"),
    "a repeat": ("", "  a: {repeat: 2, graph: {b: {type: linear, out: 8}, c: kind, d: tanh}}"),
    "a repeat in a repeat": ("", "  a: {repeat: 2, graph: {b: {repeat: 2, graph: {c: tanh, d: kind}}, e: tanh}}"),
    "a value of each pass": ("", "  a: {repeat: 2, each: {one: [tanh, kind]}, graph: {b: {type: linear, out: 8}, c: one}}"),
    "a block of its own": ('blocks:\n  own: {inputs: {x: "float[..., dim]"}, graph: {b: tanh, c: kind}}', "  a: own"),
    "a block in a block": (
        'blocks:\n  own: {inputs: {x: "float[..., dim]"}, graph: {c: kind}}\n'
        '  outer: {inputs: {x: "float[..., dim]"}, graph: {b: tanh, d: own}}',
        "  a: {repeat: 2, graph: {b: outer}}",
    ),
}


@pytest.mark.parametrize(("more", "nodes"), PLACES.values(), ids=PLACES.keys())
def test_a_value_that_is_no_block_is_found_wherever_the_param_is_read(more: str, nodes: str) -> None:
    """At the value, and nowhere else; the values beside it are sound."""
    text = RECIPE.lstrip().replace("MORE\n", f"{more}\n" if more else "").replace("NODES", nodes)
    found = [each for each in composer.load(text).check() if not each.code.startswith("checkpoints")]
    assert [(each.code, each.span.source.lines[each.span.line - 1][each.span.column - 1 : each.span.end_column - 1])
            for each in found] == [("unknown-block", "sillu")]  # fmt: skip
