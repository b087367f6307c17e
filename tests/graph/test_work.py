"""What a check costs: functions that are entered, on any machine."""

from __future__ import annotations

import pytest

import composer
from composer.package_data import zoo
from tests.operations import at_most

LAYER = """
recipe: layers
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 61, dim: 32}
  layers:
    repeat: COUNT
    graph:
      attn:
        type: residual
        norm: rmsnorm
        body: {type: attention, heads: 4, mask: causal and window(layer + 1)}
        dropout: DROPOUT
      ffn: {type: residual, norm: rmsnorm, body: {type: gated_ffn, hidden: 64 + 4 * layer}}
  norm: rmsnorm
  head: {type: linear, out: 61}
outputs: {logits: head}
"""


def layers(count: int, dropout: str = "0.1") -> str:
    """Return a recipe with some layers that all differ."""
    return LAYER.lstrip().replace("COUNT", str(count)).replace("DROPOUT", dropout)


@pytest.mark.parametrize(("name", "calls"), [("gpt2", 32_000), ("llama3", 66_000)])
def test_a_recipe_that_is_edited_is_checked_in_few_calls(name: str, calls: int) -> None:
    """From its text on, with the values of its `config` and the rules for published weights."""
    text = (zoo() / f"{name}.yaml").read_text(encoding="utf-8")
    assert composer.load(text).check() == []
    edited = composer.load(f"{text}\n# edited\n")
    with at_most(calls):
        assert edited.check() == []


@pytest.mark.parametrize("dropout", ["0.1", "0.01 * layer"])
def test_layers_that_all_differ_cost_each_the_same(dropout: str) -> None:
    """However many there are: nothing is compared with, or looked for in, all others."""
    composer.load(layers(3, dropout)).draw().svg()
    recipe = composer.load(layers(40, dropout))
    with at_most(40 * 9_000):
        assert recipe.check() == []
    with at_most(40 * 6_000):
        assert recipe.summary().costs.parameters
    with at_most(40 * 46_000):
        assert recipe.draw().svg()


def test_a_repeat_with_too_many_different_passes_is_refused_where_its_passes_are_counted() -> None:
    """And not in what it consists of, with the param that says how many."""
    text = layers(1).replace("inputs:", "params: {depth: 2}\ninputs:").replace("repeat: 1", "repeat: depth")
    (found,) = composer.load(text, {"depth": 2_000}).check()
    assert found.code == "too-many-nodes"
    line = text.splitlines()[found.span.line - 1]
    assert line[found.span.column - 1 : found.span.end_column - 1] == "depth"
    assert [label.text for label in found.labels] == ["set here"]
