"""What is told of the difference of two models."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import get_args

import pytest

import composer
from composer.diagnostics import full
from composer.diff.changes import Added, Altered, Change, LearnedChange, Removed, Replaced, Stated, Tied
from composer.diff.edge_changes import changed_edges
from composer.diff.render import WORDS
from tests.conformance.cases import TINY
from tests.diff.test_same import small
from tests.zoo import REPRESENTATIVES, REST, each_representative

SIZES = {"vocab": 11, "d_model": 16, "n_layers": 4, "n_heads": 2}


def changes(settings: dict[str, object], name: str = "gpt_mini") -> tuple[Change, ...]:
    """Return what some settings change in a small model."""
    return composer.load(name, overrides=SIZES).diff(composer.load(name, overrides={**SIZES, **settings})).changes


def between(before: str, after: str) -> list[tuple[str, ...]]:
    """Return what differs between two small graphs: the kind of each change, and the nodes."""
    found = small(before).diff(small(after)).changes
    return [
        (type(each).__name__, *(getattr(each, side).name for side in ("before", "after") if _is_nodes(each, side)))
        for each in found
    ]


def _is_nodes(change: Change, side: str) -> bool:
    return dataclasses.is_dataclass(getattr(change, side, None))


def test_a_field_is_told_once_for_all_passes() -> None:
    """With its values, and every node that is meant."""
    (change,) = changes({"layers.ffn.body.bias": "true"})
    assert isinstance(change, Altered)
    assert (change.before.name, change.before.kind) == ("layers.*.ffn.body", "ffn")
    assert change.before.paths == change.after.paths == tuple(f"layers.{index}.ffn.body" for index in range(4))
    assert [(field.name, field.before, field.after) for field in change.fields] == [("bias", "false", "true")]
    assert change.before.line == 33


def test_what_changes_in_some_passes_names_them() -> None:
    """And not the others."""
    before = composer.load("gpt_mini", overrides=SIZES)
    mask = {"layers.each.near": "layer > 1", "layers.attn.body.mask": "causal and window(3) if near else causal"}
    plain = composer.load("gpt_mini", overrides={**SIZES, "layers.attn.body.mask": "causal"})
    (change,) = plain.diff(composer.load("gpt_mini", overrides={**SIZES, **mask})).changes
    assert isinstance(change, Altered)
    assert (change.before.name, change.before.paths) == (
        "layers.(2-3).attn.body",
        ("layers.2.attn.body", "layers.3.attn.body"),
    )
    assert [str(field.after) for field in change.fields] == ["causal and window(3)"]
    assert not before.diff(plain).equal


def test_layers_that_one_side_writes_one_by_one_are_told_once() -> None:
    """Under the name of the repeat on the other."""
    repeat = small("  layers: {repeat: 6, graph: {a: {type: linear, out: 8}, b: silu}}")
    written = small("\n".join(f"  a{i}: {{type: linear, out: 8, bias: false}}\n  b{i}: silu" for i in range(6)))
    (change,) = repeat.diff(written).changes
    assert isinstance(change, Altered)
    assert (change.before.name, change.after.name) == ("layers.*.a", "a0 … a5")
    assert change.after.paths == tuple(f"a{i}" for i in range(6))
    (back,) = written.diff(repeat).changes
    assert isinstance(back, Altered) and (back.before.paths, back.after.name) == (change.after.paths, "layers.*.a")


def test_more_passes_are_added_whole() -> None:
    """One entry for all of them."""
    added, learned = changes({"n_layers": 7})
    assert isinstance(added, Added) and (added.after.name, added.after.kind) == ("layers.(4-6)", "pass")
    assert isinstance(learned, LearnedChange) and learned.what == "starts"  # the deviation depends on the number of layers
    removed, _ = changes({"n_layers": 2})
    assert isinstance(removed, Removed) and removed.before.paths == ("layers.2", "layers.3")


def test_another_block_in_a_place_replaces_the_one_before() -> None:
    """With what is set in either."""
    (change,) = changes({"layers.attn.norm": "layernorm"})
    assert isinstance(change, Replaced)
    assert (change.before.kind, change.after.kind, len(change.after.paths)) == ("rmsnorm", "layernorm", 4)


def test_a_tie_that_goes_is_told() -> None:
    """By the names of the parameters."""
    (change,) = changes({"head.tie": "none"})
    assert change == Tied("embed.weight", "", ("head.weight",))


def test_initial_values_and_what_is_trained_are_told_by_parameter() -> None:
    """One entry for each pair of values."""
    started = composer.load("gpt_mini", overrides=SIZES)
    text = started.text.replace("normal: 0.06}", "normal: 0.03}", 1)
    (change,) = started.diff(composer.load(text)).changes
    assert isinstance(change, LearnedChange) and (change.what, change.before, change.after) == (
        "starts",
        "normal 0.06",
        "normal 0.03",
    )
    assert set(change.parameters) == {"embed.weight", "head.weight", "layers.*.ffn.body.up.weight"} | {
        f"layers.*.attn.body.{name}.weight" for name in "qkv"
    }
    (change,) = changes({"norm.trainable": "false"})
    assert change == LearnedChange("trained", "true", "false", ("norm.weight",))


def test_what_is_stated_of_the_whole_is_told() -> None:
    """Its task, its outputs and its inputs."""
    recipe = composer.load("gpt_mini", overrides=SIZES)
    (task,) = recipe.diff(composer.load(recipe.text.replace("task: causal_lm", "task: masked_lm"))).changes
    assert task == Stated("task", "causal_lm", "masked_lm")
    (optional,) = recipe.diff(composer.load(recipe.text.replace("batch, time]?", "batch, time]"))).changes
    assert isinstance(optional, Altered) and optional.before.kind == "input"
    assert [(field.before, field.after) for field in optional.fields] == [("bool[batch, time]?", "bool[batch, time]")]
    encoder = recipe.text.replace("task: causal_lm\n", "")
    (output,) = (
        composer.load(encoder).diff(composer.load(encoder.replace("logits: head", "logits: norm\n  more: head"))).changes[:1]
    )
    assert output == Stated("output logits", "head", "norm")


EDGES = {
    "a node between others is added, and nothing else": (
        "  a: {type: linear, out: 8}\n  b: {type: linear, out: 16}",
        "  a: {type: linear, out: 8}\n  n: silu\n  b: {type: linear, out: 16}",
        [("Added", "n")],
    ),
    "another source of an edge": (
        "  a: {type: linear, out: 8}\n  b: {type: silu, in: a}\n  c: {type: add, in: [a, b]}",
        "  a: {type: linear, out: 8}\n  b: {type: silu, in: x}\n  c: {type: add, in: [a, b]}",
        [("Rewired", "b", "b")],
    ),
    "a group that is given something else": (
        "  a: {type: linear, out: 8}\n  g: {in: a, graph: {p: silu, q: {type: add, in: [input, p]}}}\n"
        "  c: {type: add, in: [a, g]}",
        "  a: {type: linear, out: 8}\n  g: {in: x, graph: {p: silu, q: {type: add, in: [input, p]}}}\n"
        "  c: {type: add, in: [a, g]}",
        [("Rewired", "g", "g")],
    ),
    "one more term of a sum": (
        "  a: {type: linear, out: 8}\n  b: silu\n  c: {type: add, in: [a, b]}",
        "  a: {type: linear, out: 8}\n  b: silu\n  c: {type: add, in: [a, b, x]}",
        [("Rewired", "c", "c")],
    ),
    "the order of what is no sum": (
        "  a: {type: linear, out: 8}\n  c: {type: concat, in: [a, x]}",
        "  a: {type: linear, out: 8}\n  c: {type: concat, in: [x, a]}",
        [("Rewired", "c", "c"), ("Rewired", "c", "c")],
    ),
    "a change below another name": (
        "  a: {type: linear, out: 12}\n  b: tanh",
        "  first: {type: linear, out: 16}\n  second: tanh",
        [("Altered", "a", "first")],
    ),
}


@pytest.mark.parametrize("what", EDGES)
def test_edges_are_told_where_they_changed(what: str) -> None:
    """And not where a value only went through what was added."""
    before, after, found = EDGES[what]
    assert between(before, after) == found


def test_the_verdict_stands_first() -> None:
    """Names, how many changes, and what becomes of the parameters."""
    gpt2, llama3 = composer.load("gpt2"), composer.load("llama3")
    first = str(gpt2.diff(llama3)).splitlines()[0]
    assert first == f"gpt2 → llama3: {len(gpt2.diff(llama3).changes)} changes, × 64.5 parameters"
    assert str(gpt2.diff(gpt2)) == "gpt2 → gpt2: the same model"
    wider = composer.load("gpt2", overrides={"layers.ffn.body.hidden": 3080})
    assert str(gpt2.diff(wider)).splitlines()[0] == "gpt2 → gpt2: 1 change, +0.12 % parameters"


def test_json_holds_every_path_on_both_sides() -> None:
    """What a drawing needs to mark the nodes."""
    found = (
        composer.load("gpt_mini", overrides=SIZES)
        .diff(composer.load("gpt_mini", overrides={**SIZES, "layers.attn.norm": "layernorm"}))
        .to_json()
    )
    assert found["equal"] is False and len(found["changes"]) == 1
    change = found["changes"][0]
    assert change["change"] == "replaced"
    assert change["before"]["paths"] == change["after"]["paths"] == tuple(f"layers.{index}.attn.norm" for index in range(4))
    assert found["costs"]["after"]["parameters"] - found["costs"]["before"]["parameters"] == 4 * 16


def test_json_calls_changes_by_words_of_its_own() -> None:
    """Readers of the JSON depend on them, whatever the classes are called."""
    assert {type_: type_.__name__.lower() for type_ in get_args(Change)} | {LearnedChange: "learned"} == WORDS
    found = composer.load("gpt_mini", overrides=SIZES)
    changed = composer.load("gpt_mini", overrides={**SIZES, "embed.trainable": "false"})
    assert {change["change"] for change in found.diff(changed).to_json()["changes"]} == {"learned"}


@pytest.mark.slow
@each_representative
def test_any_two_models_can_be_compared(name: str) -> None:
    """Each recipe of the zoo with the next, in both directions: nodes and edges, as text and as data."""
    names = [*REPRESENTATIVES, *REST]
    following = names[(names.index(name) + 1) % len(names)]
    recipe, other = (composer.load(each, overrides=TINY.get(each, {})) for each in (name, following))
    for difference in (recipe.diff(other), other.diff(recipe)):
        assert not difference.equal
        assert str(difference).startswith(f"{difference.before} → {difference.after}: {len(difference.changes)} change")
        assert json.dumps(difference.to_json())
    for found in changed_edges(recipe.program, other.program):
        assert found.severity == "warning" and "^" in full(found)


def test_a_model_of_very_many_blocks_is_refused_before_it_is_unrolled() -> None:
    """Its number is known from the passes."""
    large = small("  outer: {repeat: 400, graph: {inner: {repeat: 400, graph: {a: silu}}}}")
    with pytest.raises(composer.RecipeError, match="small has 160,000 blocks; models of at most 100,000 are compared"):
        large.diff(large)


def test_a_wrong_recipe_is_not_compared() -> None:
    """On either side."""
    sound, wrong = composer.load("gpt_mini", overrides=SIZES), composer.load("gpt_mini", overrides={"n_heads": 7})
    for one, other in ((sound, wrong), (wrong, sound)):
        with pytest.raises(composer.RecipeError, match="indivisible"):
            one.diff(other)


def test_two_sides_that_are_written_alike_are_told_apart() -> None:
    """An axis of the same name that is another one, and costs that differ in digits that are not shown."""
    text = """
recipe: one
inputs: {x: "float[batch, time, 8]", y: "float[batch, time, 8]"}
graph:
  a: {type: linear, out: 4000, in: x}
  b: {type: linear, out: 4, in: y}
outputs: {a: a, b: b}
"""
    other = composer.load(text.replace('x: "float[batch, time, 8]"', 'x: "float[batch, places, 8]"').replace("4000", "4001"))
    found = str(composer.load(text).diff(other))
    assert "type float[batch, time, 8] → another float[batch, time, 8]" in found
    assert not [line for line in found.splitlines() if re.search(r"(?:^|\s)(\S.*) → \1(?:,|;| \(|$)", line)], found
