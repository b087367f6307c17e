"""Axes keep their names through blocks, also where their lengths are computed or are numbers."""

from __future__ import annotations

import pytest
import torch

import composer
from composer.graph.types import TensorType
from composer.graph.unparse.expanded_recipe import unparse

PATCHES = "recipe: named\nparams: {patches: 12, width: 8}\ninputs: {x: 'float[batch, patches, width]'}\ngraph:\n"


def axes(text: str, name: str = "y") -> list[str]:
    """Return the names of a node's output."""
    node = composer.load(text).program.root[name]
    type_ = next(iter(node.outputs.values()))
    assert isinstance(type_, TensorType)
    return [axis.name for axis in type_.axes]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("prepend_token", ["batch", "patches", "width"]),
        ("{type: linear, out: 5}", ["batch", "patches", "width"]),
        ("{type: conv1d, out: 5, kernel_size: 3, stride: 2}", ["batch", "patches", "width"]),
        ("{type: attention, heads: 2}", ["batch", "patches", "width"]),
        ("{type: attention, heads: 2, out: none}", ["batch", "patches", "width"]),
        ("{type: gru, hidden: 5, bidirectional: true}", ["batch", "patches", "width"]),
        ("{type: moe, experts: 2, expert: ffn}", ["batch", "patches", "width"]),
        ("{type: residual, norm: rmsnorm, body: ffn}", ["batch", "patches", "width"]),
        ("layernorm", ["batch", "patches", "width"]),
        ("{type: pool, mode: mean}", ["batch", "width"]),
        ("{type: rearrange, pattern: b t (h d) -> b h t d, sizes: [2]}", ["b", "h", "t", "d"]),
    ],
    ids=str,
)
def test_blocks_keep_the_names_of_axes(node: str, expected: list[str]) -> None:
    """Those of computed lengths too; a pattern names its own."""
    assert axes(f"{PATCHES}  y: {node}\n") == expected


def test_an_axis_is_found_after_its_length_was_computed() -> None:
    """By its name; in a scan too, and under the names of the recipe, not of the blocks between."""
    text = f"""{PATCHES}
  first: prepend_token
  conv: {{type: conv1d, out: 6, kernel_size: 3, stride: 2}}
  walk:
    scan: patches
    in: {{x: conv}}
    graph: {{step: {{type: linear, out: 4, in: x}}}}
  up: {{type: linear, out: 8}}
  y: {{type: mean, axis: patches}}
"""
    recipe = composer.load(text)
    assert not [each for each in recipe.check() if each.severity == "error"]
    assert recipe.program.root["walk"].axis.size == 7  # type: ignore[union-attr]  # a scan
    assert axes(text) == ["batch", "width"]
    (wrong,) = composer.load(text.replace("axis: patches", "axis: time")).check()
    assert wrong.message == "[batch, patches: 7, width: 8] has no axis `time`"


def test_a_new_axis_never_takes_a_name_that_is_there() -> None:
    """Scores have an axis of queries and one of keys, both of which come from one axis."""
    text = f"{PATCHES}  bias: {{type: alibi, heads: 2, in: {{x: x, memory: x}}}}\n  y: {{type: scale, by: 2}}\n"
    found = axes(text)
    assert len({*found}) == len(found)
    assert "patches" in found


OWN = """recipe: own
params: {length: 6, by: 2}
blocks:
  summary:
    inputs: {x: "float[batch, steps, dim]"}
    graph:
      longer: prepend_token
      shares: {type: softmax, axis: steps}
      walk:
        scan: steps
        in: {x: shares}
        graph: {step: {type: linear, out: dim, in: x}}
      both: {type: concat, axis: steps, in: [walk, x]}
inputs: {x: "float[batch, TIME, 6]"}
graph:
  b: {type: linear, out: by * length}
  c: {type: linear, out: 6}
  a: summary
  y: {type: mean, axis: TIME}
"""


@pytest.mark.parametrize("time", ["time", "length"])
def test_a_block_knows_the_names_of_its_own_inputs(time: str) -> None:
    """Inside they are those of its declaration, outside those of the recipe; expanded, both are what they are outside."""
    text = OWN.replace("TIME", time)
    assert axes(text, "a") == ["batch", time, "out"]
    recipe = composer.load(text)
    expanded = composer.load(recipe.expand())
    assert "the same model" in str(recipe.diff(expanded))
    assert "steps" not in recipe.expand()
    (wrong,) = composer.load(text.replace(f"mean, axis: {time}", "mean, axis: steps")).check()
    assert (wrong.code, wrong.span.line) == ("rejected", 19)


def test_an_axis_may_be_called_by_its_place() -> None:
    """Counted from the end, where two axes have one length and no names."""
    text = "recipe: places\ninputs: {x: 'float[batch, 6, 6]'}\ngraph: {y: {type: mean, axis: PLACE}}\n"
    assert axes(text.replace("PLACE", "-3")) == ["", ""]
    assert axes(text.replace("PLACE", "-2")) == axes(text.replace("PLACE", "last")) == ["batch", ""]
    for place in ("6", "-4", "0"):
        assert [each.code for each in composer.load(text.replace("PLACE", place)).check()] == ["rejected"]


AXES_INSIDE = """
recipe: inside
inputs: {x: "float[batch, time, 8]"}
blocks:
  own:
    inputs: {x: "float[n, k, m]"}
    graph:
      r: {type: roll, by: {k: 1, m: 2}}
      g: {type: slice, axis: k, start: 1}
      p: {type: pad, axis: k, before: 1}
      d: {type: constant, over: {i: k, j: 8}, value: 0.5 * i - j + k, in: {like: p}}
      q: {type: slice, axis: k, in: {x: p, like: g}}
      z: {type: pad, axis: k, after: 1}
      y: {type: add, in: [z, p, d], axes: [a b c, a b c, b c]}
graph: {o: {type: own}}
"""


def test_axes_in_maps_and_formulas_of_a_defined_block_are_written_as_they_are_outside() -> None:
    """Where the graph of the block is written out, its own names of axes are gone."""
    recipe = composer.load(AXES_INSIDE)
    text = unparse(recipe.program)
    for written in ('by: {"-2": 1, "-1": 2}', "over: {i: time, j: 8}", "value: 0.5 * i - j + time"):
        assert written in text
    x = torch.rand(2, 5, 8)
    assert torch.equal(composer.load(text).compile()(x)[0], recipe.compile()(x)[0])


NAMED_INSIDE = """
recipe: inside
inputs: {x: "float[batch, TIME, 8]", w: "float[batch, ROWS, 8]", v: "float[batch, TIME, 8]"}
blocks:
  own:
    inputs: {x: "float[n, k, m]", w: "float[n, r, m]", v: "float[n, k, m]"}
    graph:
GRAPH
graph: {o: {type: own, in: {x: x, w: w, v: v}}}
"""
MADE_INSIDE = {
    "a name from outside": ["{type: new_axis, name: TIME, size: 3, before: k, in: x}"],
    "a name of the block": ["{type: new_axis, name: r, before: k, in: {x: x, like: w}}"],
    "a name that is gone": ["{type: mean, axis: m, in: x}", "{type: new_axis, name: m, in: {x: a, like: w}}"],
    "a name that is named": ["{type: new_axis, name: r, before: k, in: {x: x, like: w}}", "{type: softmax, axis: r}"],
    "a name instead of one": [
        "{type: new_axis, name: time, size: 3, before: k, in: x}", "{type: sum, axis: k}", "{type: softmax, axis: time}"
    ],
    "another length": ["{type: new_axis, name: c, length_of: r, before: k, in: {x: x, like: w}}"],
    "a slice of another rank": [
        "{type: mean, axis: m, in: v}", "{type: pad, axis: k, before: 3, in: x}", "{type: slice, axis: k, in: {x: b, like: a}}"
    ],
    "a constant": [
        "{type: constant, over: {k: k, q: 8}, value: 0.5 * k - q, in: {like: x}}",
        "{type: add, in: [x, a], axes: [a b c, b c]}",
    ],
    "a constant over a name from outside": [
        "{type: constant, over: {time: r, q: 8}, value: 0.5 * time - q + r, in: {like: w}}",
        "{type: add, in: [w, a], axes: [a b c, b c]}",
    ],
    "a sum by names": ["{type: mean, axis: r, in: w}", "{type: add, in: [x, a]}"],
    "a sum by other names": [
        "{type: einsum, pattern: 'b k m, b r m -> b k r', in: [x, w]}",
        "{type: constant, over: {r: r}, value: r / 3, in: {like: w}}",
        "{type: add, in: [a, b], axes: [a b c, c]}",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("time", "rows"), [("time", "rows"), ("time", "time"), ("5", "4")])
@pytest.mark.parametrize("made", MADE_INSIDE)
def test_axes_that_a_defined_block_makes_are_written_as_they_are_outside(made: str, time: str, rows: str) -> None:
    """Expanded it is the same model, whichever names of the block an axis outside has, and whether lengths are known."""
    nodes = MADE_INSIDE[made]
    graph = "\n".join(f"      {'abc'[place]}: {node}" for place, node in enumerate(nodes))
    text = NAMED_INSIDE.replace("GRAPH", graph).replace("TIME", time).replace("ROWS", rows)
    text = text.replace("name: 5", "name: time")
    recipe = composer.load(text)
    assert not [found for found in recipe.check() if found.severity == "error"]
    expanded = composer.load(recipe.expand())
    assert not [found for found in expanded.check() if found.severity == "error"]
    assert "the same model" in str(recipe.diff(expanded))
    given = {"x": torch.rand(2, 5, 8), "w": torch.rand(2, 5 if time == rows else 4, 8), "v": torch.rand(2, 5, 8)}
    assert torch.equal(expanded.compile()(**given)[0], recipe.compile()(**given)[0])


def test_another_length_is_another_model() -> None:
    """The axis of `like` that tells it is compared, by its place; without `like` there is none."""
    text = 'recipe: r\ninputs: {x: "float[batch, time, 8]", w: "float[batch, rows, cols]"}\n'
    text += "graph: {y: {type: new_axis, name: c, length_of: rows, in: {x: x, like: w}}}\n"
    recipe = composer.load(text)
    assert "the same model" in str(recipe.diff(composer.load(text.replace("of: rows", 'of: "-2"'))))
    assert "the same model" not in str(recipe.diff(composer.load(text.replace("of: rows", "of: cols"))))
    (wrong,) = composer.load(text.replace("{x: x, like: w}", "x").replace(', w: "float[batch, rows, cols]"', "")).check()
    assert wrong.message == "`length_of` is an axis of `like`, to which nothing is wired"
