"""The table of parameters: names, shapes and ties as the compiled model has them, and ties that are wrong."""

from __future__ import annotations

import pytest

import composer
from composer.graph.parameters import parameters

TOP = 'recipe: tied\ninputs: {x: "float[batch, time, 8]"}\ngraph:\n'
TIES = {
    "a whole node": (
        "  a: {type: ffn, hidden: 6}\n  b: {type: ffn, hidden: 6, tie: a}\n",
        {"b.up.weight": "a.up.weight", "b.up.bias": "a.up.bias", "b.down.weight": "a.down.weight", "b.down.bias": "a.down.bias"},
    ),
    "a whole node, as far as it has the same": (
        "  a: {type: ffn, hidden: 6}\n  b: {type: ffn, hidden: 6, bias: false, tie: a}\n",
        {"b.up.weight": "a.up.weight", "b.down.weight": "a.down.weight"},
    ),
    "one parameter of a slot": (
        "  a: {type: residual, norm: rmsnorm, body: ffn}\n  b: {type: rmsnorm, tie: {weight: a.norm.weight}}\n",
        {"b.weight": "a.norm.weight"},
    ),
    "a node that stands later": (
        "  a: {type: linear, out: 8, tie: b}\n  b: {type: linear, out: 8}\n",
        {"b.weight": "a.weight", "b.bias": "a.bias"},
    ),
    "a chain": (
        "  a: {type: rmsnorm}\n  b: {type: rmsnorm, tie: c}\n  c: {type: rmsnorm, tie: a}\n",
        {"b.weight": "a.weight", "c.weight": "a.weight"},
    ),
    "every pass to the first": (
        "  a: {repeat: 3, graph: {f: {type: linear, out: 8, bias: false, tie: none if layer == 0 else a(0).f}}}\n",
        {"a.1.f.weight": "a.0.f.weight", "a.2.f.weight": "a.0.f.weight"},
    ),
    "every other pass to the one before": (
        "  a: {repeat: 4, graph: {f: {type: rmsnorm, tie: a(layer - 1).f if layer % 2 == 1 else none}}}\n",
        {"a.1.f.weight": "a.0.f.weight", "a.3.f.weight": "a.2.f.weight"},
    ),
    "inside a repeat": (
        "  a: {repeat: 2, graph: {f: {type: linear, out: 8}, g: {type: linear, out: 8, tie: {weight: f.weight}}}}\n",
        {"a.0.g.weight": "a.0.f.weight", "a.1.g.weight": "a.1.f.weight"},
    ),
    "a repeat to a repeat": (
        "  a: {repeat: 2, graph: {f: rmsnorm}}\n  b: {repeat: 2, graph: {f: rmsnorm}, tie: a}\n",
        {"b.0.f.weight": "a.0.f.weight", "b.1.f.weight": "a.1.f.weight"},
    ),
    "the last pass from outside": (
        "  a: {repeat: 3, graph: {f: rmsnorm}}\n  b: {type: rmsnorm, tie: a.f}\n",
        {"b.weight": "a.2.f.weight"},
    ),
    "a node of the same name around it": (
        "  a: {type: linear, out: 8, bias: false}\n  g: {graph: {a: {type: linear, out: 8, bias: false, tie: a}}}\n",
        {"g.a.weight": "a.weight"},
    ),
    "nothing": ("  a: {type: rmsnorm}\n  b: {type: rmsnorm, tie: none}\n", {}),
}
WRONG = {
    "no such node": ("  a: {type: rmsnorm, tie: c}\n", "unknown-node", (4, 27)),
    "no such parameter there": (
        "  a: rmsnorm\n  b: {type: rmsnorm, tie: {weight: a.wieght}}\n", "unknown-parameter", (5, 36),
    ),
    "no such parameter here": (
        "  a: rmsnorm\n  b: {type: rmsnorm, tie: {bias: a.weight}}\n", "unknown-parameter", (5, 28),
    ),
    "another shape": (
        "  a: {type: linear, out: 8}\n  b: {type: linear, out: 6, tie: {weight: a.weight}}\n", "tie-shape", (5, 43),
    ),
    "nothing in common": ("  a: silu\n  b: {type: rmsnorm, tie: a}\n", "tie", (5, 27)),
    "a node where a parameter is wanted": ("  a: rmsnorm\n  b: {type: rmsnorm, tie: {weight: a}}\n", "tie", (5, 36)),
    "a parameter where a node is wanted": ("  a: rmsnorm\n  b: {type: rmsnorm, tie: a.weight}\n", "tie", (5, 27)),
    "what is dropped": ("  a: {type: rmsnorm, when: false}\n  b: {type: rmsnorm, tie: a}\n", "tie", (5, 27)),
}  # fmt: skip


def assert_as_compiled(recipe: composer.Recipe) -> None:
    """Assert that the table has the names, shapes, ties and frozen tensors of the module, under the same owners."""
    table, model = parameters(recipe.program), recipe.compile(device="meta")
    named = dict(model.named_parameters(remove_duplicate=False))
    assert {entry.name: entry.parameter.shape for entry in table} == {name: tuple(each.shape) for name, each in named.items()}
    assert [entry.name for entry in table if not entry.tied_to] == list(model.state_dict())
    for entry in table:
        assert named[entry.name] is named[entry.owner]
        assert named[entry.name].requires_grad == entry.trainable
    assert len({id(each) for each in named.values()}) == sum(not entry.tied_to for entry in table)


@pytest.mark.parametrize("name", ["gpt2", "llama3", "gemma3", "gpt_mini"])
def test_the_zoos_tables_are_those_of_the_compiled_models(name: str) -> None:
    """In the order of the `state_dict`."""
    assert_as_compiled(composer.load(name, overrides={"n_layers": 3, "vocab": 61}))


@pytest.mark.parametrize(("graph", "ties"), TIES.values(), ids=TIES)
def test_ties_lead_to_the_first_in_the_file(graph: str, ties: dict[str, str]) -> None:
    """Worked out by hand, and kept by the compiled model."""
    recipe = composer.load(TOP + graph)
    assert {entry.name: entry.tied_to for entry in parameters(recipe.program) if entry.tied_to} == ties
    assert_as_compiled(recipe)


def test_one_frozen_name_freezes_the_tensor() -> None:
    """Whichever of its names it is."""
    for first, second in (("", ", trainable: false"), (", trainable: false", "")):
        recipe = composer.load(f"{TOP}  a: {{type: rmsnorm{first}}}\n  b: {{type: rmsnorm, tie: a{second}}}\n  c: rmsnorm\n")
        assert [entry.trainable for entry in parameters(recipe.program)] == [False, False, True]
        assert_as_compiled(recipe)


@pytest.mark.parametrize(("graph", "code", "place"), WRONG.values(), ids=WRONG)
def test_wrong_ties_are_located(graph: str, code: str, place: tuple[int, int]) -> None:
    """At the name that is wrong, own or other; once, in however many passes."""
    found = [each for each in composer.load(TOP + graph).check() if each.severity == "error"]
    assert [(each.code, (each.span.line, each.span.column)) for each in found] == [(code, place)]


def test_a_wrong_tie_in_a_repeat_is_reported_once() -> None:
    """Not once for each pass."""
    graph = "  a: {repeat: 5, graph: {f: {type: linear, out: 8}, g: {type: linear, out: 8, tie: {weight: f.wieght}}}}\n"
    (found,) = composer.load(TOP + graph).check()
    assert (found.code, found.hint) == ("unknown-parameter", "did you mean weight?")
