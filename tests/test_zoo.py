"""Every recipe of the zoo is in one tier, and the representatives leave nothing out."""

from __future__ import annotations

import pytest

import composer
from composer.recipe import zoo_names
from tests.zoo import HAVE, NAMED, OTHERS, PARAMETERS, REPRESENTATIVES, VARIANTS, has, is_variant, representatives

SMALL = """recipe: small
task: causal_lm
inputs: {tokens: "int[batch, time]"}
blocks:
  mine:
    params: {width: 8}
    inputs: {x: "float[batch, time, dim]"}
    graph: {up: {type: linear, out: width}, down: {type: linear, out: dim}}
graph:
  embed: {type: embedding, vocab: 11, dim: 8}
  attn: {type: attention, heads: 2, mask: causal}
  mine: {type: mine}
  head: {type: linear, out: 11}
outputs: {logits: head}
"""
LLAMA = "recipe: other\nextends: llama3\nparams: {n_layers: 2}\n"
OF_TWO = {"a": {"x", "y"}, "b": {"x"}, "c": {"y", "z"}, "d": {"x", "y", "z"}, "e": {"x", "y", "z"}}


def test_every_recipe_is_in_one_tier() -> None:
    """Those that are named run through everything."""
    assert sorted([*REPRESENTATIVES, *OTHERS, *VARIANTS]) == zoo_names()
    assert {*NAMED} <= {*REPRESENTATIVES}


def test_representatives_have_all_that_any_recipe_has() -> None:
    """Nothing is left that runs through the tests of no part."""
    assert set().union(*(HAVE[name] for name in REPRESENTATIVES)) == set().union(*HAVE.values())


@pytest.mark.parametrize(
    ("named", "chosen"), [((), ("d",)), (("b",), ("b", "c")), (("a", "c"), ("a", "c")), (("c", "b"), ("b", "c")), ("e", ("e",))]
)
def test_the_one_that_adds_most_is_chosen_the_first_by_name_among_equals(named: tuple[str, ...], chosen: tuple[str, ...]) -> None:
    """In whatever order they are given, and besides those that are named."""
    assert representatives(OF_TWO, named) == chosen
    assert representatives(dict(reversed(OF_TWO.items())), named) == chosen


def test_a_variant_adds_nothing() -> None:
    """Other sizes are nothing new; a graph of its own may be."""
    assert is_variant(LLAMA)
    assert has(composer.load(LLAMA)) == has(composer.load("llama3"))
    assert not is_variant(LLAMA + "graph: {norm: layernorm}\n")
    assert not is_variant(SMALL)


@pytest.mark.parametrize(
    ("old", "new", "added"),
    [
        ("mask: causal", "mask: causal and window(3)", {"part:window", "field:window.width"}),
        ("heads: 2,", "heads: 2, sinks: true,", {"field:attention.sinks"}),
        ("type: mine", "type: mine, width: 9", set()),
    ],
)
def test_parts_options_and_masks_count_but_no_blocks_of_the_recipe_itself(old: str, new: str, added: set[str]) -> None:
    """Since those are made of parts."""
    assert not any("mine" in each for each in has(composer.load(SMALL)))
    assert has(composer.load(SMALL.replace(old, new))) - has(composer.load(SMALL)) == added


def test_a_part_that_keeps_something_counts_in_each_task_that_writes() -> None:
    """Attention keeps keys and values while a text is written; an embedding keeps nothing, nor does a model that writes none."""
    causal, masked = (has(composer.load(SMALL.replace("causal_lm", task))) for task in ("causal_lm", "masked_lm"))
    assert causal - masked == {"part:attention in causal_lm"}
    assert masked <= causal and {"part:attention", "part:embedding"} <= masked


def test_every_recipe_is_counted() -> None:
    """Each has the parameters of its source, and draws no warning."""
    found = {}
    for name in zoo_names():
        recipe = composer.load(name)
        assert recipe.check() == [], name
        found[name] = recipe.summary().costs.parameters
    assert found == PARAMETERS
