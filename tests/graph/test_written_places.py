"""Equal nodes in several places: what is said of each names its own place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import composer
from composer import memo
from composer.diagnostics import Declaration, Diagnostic
from composer.graph.typed import TypedRepeat
from composer.graph.visit import every_pass, walk

HEAD = 'recipe: example\ninputs: {x: "float[batch, time, 32]"}\n'
TWICE = {
    "slot": "{type: residual, norm: layernorm, body: {type: attention, heads: 4}}",
    "slot-in-slot": "{type: residual, body: {type: residual, body: {type: attention, heads: 4}}}",
    "norm": "{type: residual, norm: {type: groupnorm, groups: 4}, body: relu}",
    "group": "{graph: {m: {type: attention, heads: 4}}}",
    "group-in-group": "{graph: {inner: {graph: {m: {type: attention, heads: 4}}}}}",
    "group-in-slot": "{type: residual, body: {graph: {m: {type: attention, heads: 4}}}}",
    "repeat": "{repeat: 2, graph: {m: {type: attention, heads: 4}}}",
    "scan": "{scan: time, graph: {m: {type: residual, norm: {type: groupnorm, groups: 4}, body: relu}}}",
}
DEFINED = """recipe: example
inputs: {x: "float[batch, time, 32]"}
blocks:
  mix: {params: {heads: 2}, inputs: {x: "float[..., time, dim]"}, graph: {m: {type: attention, heads: heads}}}
graph:
  a: {type: mix, heads: 4}
  up: {type: linear, out: 30}
  b: {type: mix, heads: 4}
"""
LANGUAGE_MODEL = """recipe: example
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 64, dim: 32}
  side: {graph: {m: {type: attention, heads: 4}}, in: embed}
  main: {graph: {m: {type: attention, heads: 4}}, in: embed}
  head: {type: linear, out: 64, in: main}
outputs: {logits: head}
losses:
  near: {type: mse, in: side, target: embed}
"""
PASSES = """recipe: example
params: {dim: 32}
inputs: {x: "float[batch, time, dim]"}
graph:
  layers:
    repeat: 3
    each:
      mixer:
        - {graph: {m: {type: attention, heads: 4}}}
        - {type: linear, out: WIDTH}
        - {graph: {m: {type: attention, heads: 4}}}
    graph: {mix: mixer}
"""


def found(text: str) -> list[Diagnostic]:
    """Return everything that is wrong with a recipe; without memos, it is the same."""
    said = list(composer.load(text).check())
    with memo.off():
        again = list(composer.load(text).check())
    assert [(str(each.span), each.code) for each in again] == [(str(each.span), each.code) for each in said]
    return said


@pytest.mark.parametrize("node", TWICE.values(), ids=TWICE)
def test_a_mistake_in_the_second_of_equal_nodes_is_told_of_there(node: str) -> None:
    """Only the second has a width that its heads or groups do not divide."""
    text = f"{HEAD}graph:\n  a: {node}\n  up: {{type: linear, out: WIDTH}}\n  b: {node}\n"
    assert found(text.replace("WIDTH", "32")) == []
    assert [(each.span.line, each.code) for each in found(text.replace("WIDTH", "30"))] == [(6, "indivisible")]


@pytest.mark.parametrize("node", TWICE.values(), ids=TWICE)
def test_all_that_is_in_a_node_is_written_where_the_node_is(node: str) -> None:
    """Of three equal nodes, each has its own lines, and so has what is in it."""
    written = "".join(f"  {name}: {node}\n" for name in "abc")
    recipe = composer.load(f"{HEAD}graph:\n{written}")
    assert recipe.check() == []
    inside = [visit for visit in walk(recipe.program.root, every_pass) if "." in visit.path]
    assert inside
    for visit in inside:
        place = visit.node.node.name_span
        assert isinstance(place.source, Declaration) or place.line == 4 + "abc".index(visit.path[0]), visit.path


def test_a_label_names_the_value_of_the_use_that_is_wrong() -> None:
    """The mistake is in the block that the recipe defines, and what is wrong was set by its second use."""
    (only,) = found(DEFINED)
    assert (only.span.line, only.code) == (4, "indivisible")
    assert [label.span.line for label in only.labels] == [8]


def test_a_look_ahead_is_told_of_where_the_text_is_generated() -> None:
    """What only a loss reads may look ahead, and is equal to what may not."""
    assert [(each.span.line, each.code) for each in found(LANGUAGE_MODEL)] == [(7, "not-causal")]


def test_a_mistake_in_the_later_of_equal_passes_is_told_of_there() -> None:
    """Passes that are equal but for their places are written in a list."""
    assert [(each.span.line, each.code) for each in found(PASSES.replace("WIDTH", "30"))] == [(11, "indivisible")]


def test_equal_passes_are_one_wherever_they_are_written() -> None:
    """Once all is said of them: a model has one kind of pass for them, and one module where the weights are shared."""
    text = PASSES.replace("WIDTH", "32")
    other = text.replace("{type: linear, out: 32}", "{graph: {m: {type: attention, heads: 2}}}")
    shared = other.replace("repeat: 3", "repeat: 3\n    share: true")
    for recipe in map(composer.load, (text, other, shared)):
        (layers,) = recipe.program.root.nodes
        assert isinstance(layers, TypedRepeat)
        first, second, third = layers.passes
        assert first is third
        assert first is not second
        assert [one.graph for one in layers.node.passes] == [one.graph for one in layers.passes]


@pytest.mark.parametrize("node", [TWICE["slot"], TWICE["slot-in-slot"], TWICE["group"]], ids=["slot", "slot-in-slot", "group"])
def test_a_line_of_the_exported_file_names_its_own_place(node: str, tmp_path: Path) -> None:
    """The lines of a second equal node name where that is written."""
    file = tmp_path / "example.yaml"
    file.write_text(f"{HEAD}graph:\n  a: {node}\n  up: {{type: linear, out: 32}}\n  b: {node}\n", encoding="utf-8")
    code = composer.load(file).export().splitlines()
    places = {name: {int(line.rpartition(":")[2]) for line in code if re.search(rf"\b{name}_?[.(].*  # ", line)} for name in "ab"}
    assert places == {"a": {4}, "b": {6}}
