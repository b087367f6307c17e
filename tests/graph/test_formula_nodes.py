"""Formulas in recipes: names, overrides, extension, differences, drawings, and what other tools are told of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
import yaml
from jsonschema import Draft202012Validator

import composer
from composer.json_schema import schema
from composer.language.recipe.writer import write

GATED = {
    "recipe": "gated",
    "params": {"half": "0.5"},
    "inputs": {"x": "float[batch, time, 8]"},
    "graph": {
        "gate": {"type": "linear", "out": "8"},
        "other": {"type": "linear", "out": "8", "in": "x"},
        "open": {"compute": "half * x * sigmoid(gate) + other"},
    },
}


def recipe(**changes: Any) -> composer.Recipe:
    return composer.load(write({**GATED, **changes}))


def test_an_override_changes_the_formula() -> None:
    changed = recipe().with_overrides(["graph.open.compute=x * tanh(gate) * other"])
    assert not [found for found in changed.check() if found.severity == "error" and found.code != "unused-param"]
    assert "tanh" in recipe(params={}).with_overrides(["graph.open.compute=x * tanh(gate) * other"]).export()


def test_a_changed_formula_is_one_change() -> None:
    other = recipe().with_overrides(["graph.open.compute=half * x * tanh(gate) + other"])
    text = str(recipe().diff(other))
    assert "half * x" not in text
    assert "formula 0.5 * x * sigmoid(gate) + other → 0.5 * x * tanh(gate) + other" in text
    assert len(recipe().diff(other).changes) == 1


def test_a_changed_number_is_one_change() -> None:
    """And no other class of the code: numbers are arguments of it."""
    other = recipe().with_overrides(["half=0.25"])
    assert len(recipe().diff(other).changes) == 1
    graph = {"layers": {"repeat": "3", "each": {"rate": ["0.5", "0.25", "1"]}, "graph": {"n": {"compute": "tanh(input) * rate"}}}}
    source = recipe(params={}, graph=graph).export()
    assert source.count("class GatedLayers") == 1
    assert "self._n_number_0" in source


def test_an_extension_rewires_without_writing_the_formula_again(tmp_path: Any) -> None:
    (tmp_path / "base.yaml").write_text(write(GATED), encoding="utf-8")
    change = {"recipe": "changed", "extends": "base.yaml", "graph": {"open": {"in": {"gate": "other"}}, "gate": "null"}}
    (tmp_path / "changed.yaml").write_text(write(change).replace('"null"', "null"), encoding="utf-8")
    changed = composer.load(tmp_path / "changed.yaml")
    assert [str(found) for found in changed.check()] == []
    assert "x * torch.sigmoid" in changed.export()


def test_a_formula_takes_the_place_of_a_block_and_a_block_that_of_a_formula(tmp_path: Any) -> None:
    (tmp_path / "base.yaml").write_text(
        write({**GATED, "params": {}, "graph": {**GATED["graph"], "open": {"compute": "x * gate * other"}}}), encoding="utf-8"
    )  # type: ignore[dict-item]  # a graph
    for node, word in (({"type": "add", "in": ["x", "gate", "other"]}, "+"), ({"compute": "x - gate - other"}, "-")):
        text = write({"recipe": "changed", "extends": "base.yaml", "graph": {"open": node}})
        (tmp_path / "changed.yaml").write_text(text, encoding="utf-8")
        changed = composer.load(tmp_path / "changed.yaml")
        assert [str(found) for found in changed.check()] == []
        assert f"x {word} " in changed.export()


def test_a_formula_is_left_out_by_when() -> None:
    graph = {
        "gate": {"type": "linear", "out": "8"},
        "twice": {"compute": "gate * 2", "when": "on"},
        "last": {"type": "linear", "out": "4"},
    }
    text = write({"recipe": "r", "params": {"on": "false"}, "inputs": {"x": "float[batch, time, 8]"}, "graph": graph})
    assert "* 2" not in composer.load(text).export()
    assert "* 2" in composer.load(text, overrides={"on": True}).export()


def test_what_a_formula_reads_is_wired_and_drawn() -> None:
    view = recipe().to_networkx()
    assert {(source, view.edges[edge]["port"]) for edge in view.edges for source, target, _ in [edge] if target == "open"} == {
        ("x", "xs"), ("gate", "xs"), ("other", "xs"),
    }  # fmt: skip
    svg = recipe().draw().svg()
    assert "half · x · σ(gate) + other" in svg
    assert "0.5 * x * sigmoid(gate) + other" in svg  # in its description, with the number that it has
    long = "half * x * sigmoid(gate) + other * other * other * other"
    drawn = recipe().with_overrides([f"graph.open.compute={long}"]).draw().svg()
    assert f">{long}<" not in drawn
    assert "other * other * other * other" in drawn
    assert "compute: formula 0.5 * x * sigmoid(gate) + other" in " ".join(str(recipe().summary()).split())


def test_a_formula_is_written_out_with_paths() -> None:
    graph = {
        "layers": {"repeat": "2", "graph": {"up": {"type": "linear", "out": "8"}, "down": {"compute": "up * (layer + 1) / 3"}}},
        "other": {"type": "linear", "out": "8"},
        "last": {"compute": "where(a > layers(0).up, other, layers(-2).up + half)", "in": {"a": "layers"}},
    }
    whole = recipe(graph=graph)
    text = whole.expand()
    assert "formula: where(layers > layers_0_up, other, layers_2_up + 0.5)" in text
    assert "in: {layers_0_up: layers(0).up, layers_2_up: layers(0).up}" in text  # two names stay two
    again = composer.load(text)
    assert [str(found) for found in again.check()] == []
    assert whole.diff(again).equal


def test_a_name_that_would_be_a_number_stays_under_in() -> None:
    """Where the expanded recipe has a param or an index of the name."""
    graph = {
        "width": {"type": "linear", "out": "8"},
        "layers": {
            "repeat": "2",
            "as": "i",
            "graph": {"layer": {"type": "linear", "out": "8"}, "n": {"compute": "layer * 2 + w", "in": {"w": "width"}}},
        },
    }
    whole = recipe(params={"width_": "8"}, inputs={"x": "float[batch, time, width_]"}, graph=graph)
    again = composer.load(whole.expand())
    assert [str(found) for found in again.check()] == []
    assert whole.diff(again).equal


@pytest.mark.parametrize(
    ("node", "sound"),
    [
        ({"compute": "x * 2"}, True),
        ({"compute": "x * 2", "axes": {"x": "b t d"}, "in": {"x": "y"}, "when": True}, True),
        ({"type": "compute", "formula": "x * 2"}, True),
        ({"compute": "x * 2", "trainable": False}, False),
        ({"compute": ["x"]}, False),
        ({"type": "add", "in": ["x", "x"], "axes": ["b t d", "b t d"]}, True),
        ({"type": "compute"}, False),
    ],
)  # fmt: skip
def test_the_schema_knows_formulas(node: Any, sound: bool) -> None:
    rules = Draft202012Validator(schema(recipe().library))
    text = {"recipe": "r", "inputs": {"x": "float[batch, time, 8]"}, "graph": {"n": node}}
    assert rules.is_valid(json.loads(json.dumps(yaml.safe_load(json.dumps(text))))) == sound


def test_numbers_may_be_the_lengths_of_axes() -> None:
    """Those of the block around, known with the types."""
    text = """recipe: r
blocks:
  scaled:
    inputs: {x: "float[batch, time, dim]"}
    graph: {y: {compute: x * dim ** -0.5 / (2 * dim)}}
inputs: {x: "float[batch, time, 16]"}
graph: {a: scaled}
"""
    x = torch.randn(1, 2, 16)
    assert torch.equal(composer.load(text).compile()(x).a, x * 16**-0.5 / 32)
    assert composer.load(text).diff(composer.load(composer.load(text).expand())).equal


def test_a_formula_is_causal() -> None:
    """It depends on what its values depend on most."""
    text = """recipe: r
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 11, dim: 16}
  attn: {type: attention, heads: 1, mask: MASK}
  y: {compute: embed + tanh(attn)}
  logits: {type: linear, out: 11}
outputs: {logits: logits}
"""
    assert [found.code for found in composer.load(text.replace("MASK", "causal")).check()] == []
    assert [found.code for found in composer.load(text.replace("MASK", "full")).check()] == ["not-causal"]


@pytest.mark.parametrize("formula", ["stop_gradient((norm)) + x", "float32(norm) * x"])
def test_a_block_in_a_function_is_no_number(formula: str) -> None:
    """Also in one that would give back what it is given."""
    text = 'recipe: one\nparams: {norm: {type: block, default: rmsnorm}}\ninputs: {x: "float[batch, 4]"}\n'
    found = composer.load(f'{text}graph: {{y: {{compute: "{formula}"}}}}\n').check()
    assert [(each.code, each.message) for each in found] == [("not-a-number", "`norm` is a block, not a number")]


def computed(**recipe: Any) -> list[float]:
    """Return what a recipe gives for x = 1, 1."""
    model = composer.load(write({"recipe": "waves", "inputs": {"x": "float[batch, 2]"}, **recipe})).compile(seed=0).double()
    y = model(torch.ones(1, 2, dtype=torch.float64))[0]
    return [round(each, 9) for each in y.flatten().tolist()]


def test_pi_is_a_number_of_formulas_and_fields() -> None:
    """Of params, of fields, of formulas of nodes and of those over axes."""
    assert computed(graph={"y": {"compute": "cos(pi * x)"}}) == [-1, -1]
    assert computed(params={"turn": "2 * pi"}, graph={"y": {"type": "scale", "by": "turn / pi"}}) == [2, 2]
    over = {"type": "constant", "over": {"i": "2"}, "value": "cos(pi * i)"}
    assert computed(graph={"wave": over, "y": {"compute": "x * wave"}}) == [1, -1]


@pytest.mark.parametrize(
    "recipe",
    [
        {"params": {"pi": "3"}, "graph": {"y": {"compute": "pi * x"}}},
        {"params": {"pi": "3"}, "graph": {"y": {"type": "scale", "by": "pi"}}},
        {"graph": {"pi": {"type": "scale", "by": "3"}, "y": {"compute": "pi * x"}}},
        {"graph": {"layers": {"repeat": "1", "each": {"pi": "3"}, "graph": {"y": {"compute": "input * pi"}}}}},
    ],
)
def test_what_a_recipe_calls_pi_is_that(recipe: dict[str, Any]) -> None:
    """A param, a node and a value of a pass."""
    assert computed(**recipe) == [3, 3]


def test_an_axis_that_is_called_pi_is_that() -> None:
    """In a formula over axes; and a node of that name is no number of a field."""
    over = {"type": "constant", "over": {"pi": "2"}, "value": "pi + 0.5"}
    assert computed(graph={"places": over, "y": {"compute": "x * places"}}) == [0.5, 1.5]
    graph = {"pi": {"type": "linear", "out": "2"}, "y": {"type": "scale", "by": "2 * pi"}}
    found = composer.load(write({"recipe": "waves", "inputs": {"x": "float[batch, 2]"}, "graph": graph})).check()
    assert [each.code for each in found] == ["unknown-name"]
