"""Which nodes let the rows of a batch depend on each other: by their types, and by what they compute."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

import composer
from blocks.core import standard
from composer.block_reference import example
from composer.graph.row_mixing import mixing
from composer.verify.computing import rows_are_apart
from composer.verify.subject import DoesNotApply, Subject
from tests.zoo import each_representative

HEAD = """
recipe: rows
task: masked_lm
inputs: {tokens: "int[batch, time]", valid: "bool[batch, time]?"}
graph:
  embed: {type: embedding, vocab: 20, dim: 8}
"""
TAIL = """
  head: {type: linear, out: 20}
outputs: {logits: head}
"""
TURNED = """
  r: {type: rearrange, pattern: "b t d -> t b d"}
  n: NODE
  q: {type: rearrange, pattern: "t b d -> b t d"}"""
REDUCED = """
  n: NODE
  x: {type: add, in: [embed, n]}"""

MIXED = {
    "mean": REDUCED.replace("NODE", "{type: mean, axis: batch}"),
    "max": REDUCED.replace("NODE", "{type: max, axis: batch}"),
    "sum of several axes": REDUCED.replace("NODE", "{type: sum, axis: [time, first]}"),
    "select": REDUCED.replace("NODE", "{type: select, axis: batch, index: 0}"),
    "sum": REDUCED.replace("NODE", "{type: einsum, pattern: 'b t d -> t d', in: embed}").replace(
        "[embed, n]", "[embed, n], axes: [b t d, t d]"
    ),
    "product": "  n: {type: einsum, pattern: 'b t d, c t d -> b t d', in: [embed, embed]}",
    "every two": """
  n: {type: add, in: [embed, embed], axes: [b t d, c s e]}
  r: {type: rearrange, pattern: "b t d c s e -> b t d (c s e)"}
  m: {type: mean, axis: last}
  x: {type: add, in: [embed, m], axes: [b t d, b t d]}""",
    "softmax": "  n: {type: softmax, axis: batch}",
    "l2norm": "  n: {type: l2norm, axis: batch}",
    "cumulative sum": "  n: {type: cumsum, axis: batch}",
    "cumulative product": "  n: {type: cumprod, axis: batch}",
    "shift": "  n: {type: shift, axis: batch}",
    "recurrence": TURNED.replace("NODE", "{type: gru, hidden: 8}"),
    "both directions": TURNED.replace("NODE", "{type: gru, hidden: 4, bidirectional: true}"),
    "attention": TURNED.replace("NODE", "{type: attention, heads: 2, mask: full}"),
    "causal attention": TURNED.replace("NODE", "{type: attention, heads: 2, mask: causal}"),
    "convolution": TURNED.replace("NODE", "{type: conv1d, out: 8, kernel_size: 3, causal: true}"),
    "pool": """
  r: {type: rearrange, pattern: "b t d -> t b d"}
  n: {type: pool, mode: mean, in: r}
  x: {type: add, in: [embed, n], axes: [b t d, t d]}""",
    "halves": """
  w: {type: rearrange, pattern: "b t (z d) -> (b z) t d", sizes: [2]}
  n: {type: rearrange, pattern: "(z b) t d -> b t (z d)", sizes: [2]}""",
    "a loss": """
  up: {type: linear, out: 8}
  far: {type: mse, in: {input: embed, target: up}}
  n: {type: multiply, in: [embed, far]}""",
    "a loss of a layer": """
  layers:
    repeat: 2
    graph:
      y: {type: linear, out: 8}
      far: {type: mse, in: {input: y, target: input}}
      z: {type: identity, in: y}
  n: {type: multiply, in: [layers, "layers(0).far"]}""",
    "a balance": """
  moe: {type: moe, experts: 3, expert: {type: ffn, hidden: 5}}
  n: {type: multiply, in: [moe, moe.load_balancing]}""",
    "in a group": "  g: {graph: {n: {type: softmax, axis: batch}}}",
    "in a repeat": "  g: {repeat: 2, graph: {n: {type: softmax, axis: batch}}}",
}
APART = {
    "turned": TURNED.replace("NODE", "layernorm"),
    "along another axis": "  n: {type: softmax, axis: time}",
    "merged": """
  r: {type: rearrange, pattern: "b t d -> (b t) d"}
  n: {type: linear, out: 8}
  far: {type: mse, in: {input: n, target: r}}
  x: {type: linear, out: 8, in: embed}
losses: {far: {in: far}}""",
    "experts": "  n: {type: moe, experts: 3, expert: {type: ffn, hidden: 5}}",
    "attention": "  n: {type: attention, heads: 2, mask: valid(valid)}",
    "recurrence": "  n: {type: gru, hidden: 8, bidirectional: true}",
}


def loaded(graph: str) -> composer.Recipe:
    """Return a recipe without errors."""
    nodes, losses, names = graph.strip("\n").partition("\nlosses:")
    recipe = composer.load(f"{HEAD}{nodes}{TAIL}{losses.strip()}{names}")
    assert [each for each in recipe.check() if each.severity == "error"] == []
    return recipe


@pytest.mark.parametrize("name", MIXED)
def test_a_node_that_mixes_rows_is_named(name: str) -> None:
    """By the types alone; and the model does it, so that `verify` says so too."""
    recipe = loaded(MIXED[name])
    found = [each.path for each in mixing(recipe.program, training=True)]
    assert any(path.split(".")[-1] == "n" for path in found), found
    assert [each.property for each in rows_are_apart(Subject(recipe))] == ["rows"]


@pytest.mark.parametrize("name", APART)
def test_a_node_that_mixes_no_rows_is_not(name: str) -> None:
    """Neither by the types, nor by what it computes, in evaluation and in training."""
    recipe = loaded(APART[name])
    assert [*mixing(recipe.program, training=True)] == []
    assert [*rows_are_apart(Subject(recipe))] == [*rows_are_apart(Subject(recipe, training=True))] == []


ALONG = {
    kind: "by" if kind == "roll" else "axis"
    for kind in standard()
    if kind == "roll" or any("axis" in vars(each).get("__annotations__", {}) for each in standard()[kind].__mro__)
}
OTHER_INPUTS = {
    "concat": "inputs: {a: 'float[batch, 8]', b: 'float[batch, 8]'}",
    "scatter": "inputs: {x: 'float[batch, 8]', places: 'int[batch]'}",
}
"""Inputs of examples that have none to go along the batch with."""
JOINED = {"concat": "rows stay as they are", "stack": "rows stay as they are", "split": "has no lengths for an unknown number"}
"""Blocks along an axis that mix no rows on it."""


def along_the_batch(kind: str) -> composer.Recipe:
    """Return the example of a block with its axis set to the rows."""
    data: dict[str, Any] = yaml.safe_load(example(standard()[kind]))
    if kind in OTHER_INPUTS:
        data |= yaml.safe_load(OTHER_INPUTS[kind])
    node = next(each for each in data["graph"].values() if isinstance(each, dict) and each.get("type") == kind)
    node[ALONG[kind]] = {"batch": 1} if kind == "roll" else "batch"
    return composer.load(yaml.safe_dump(data, sort_keys=False))


@pytest.mark.parametrize("kind", ALONG)
def test_every_block_along_the_batch_declares_that_it_mixes_rows(kind: str) -> None:
    """Those that compute across rows, or give one value for all: none forgets it."""
    recipe = along_the_batch(kind)
    if kind == "split":
        assert [each.code for each in recipe.check()] != []
        return
    assert [each for each in recipe.check() if each.severity == "error"] == []
    found = [each.path for each in mixing(recipe.program, training=False)]
    assert bool(found) == (kind not in JOINED)
    try:
        seen = [*rows_are_apart(Subject(recipe))]
    except DoesNotApply:  # no output has rows
        return
    assert bool(seen) <= bool(found), "what computes across rows is named"
    assert seen or kind in {*JOINED, "arange"}, "what is named computes across rows, or counts them"


def test_batch_statistics_count_in_training_alone() -> None:
    """In evaluation they are those of the training."""
    recipe = loaded("  n: batchnorm")
    (found,) = mixing(recipe.program, training=True)
    assert (found.path, found.does) == ("n", "is a batchnorm, which averages over a whole batch")
    assert [*mixing(recipe.program, training=False)] == [*rows_are_apart(Subject(recipe))] == []
    assert [*rows_are_apart(Subject(recipe, training=True))] != []


@each_representative
def test_no_recipe_of_the_zoo_mixes_rows(name: str) -> None:
    """All are trained with accumulated gradients, except ResNet, which averages over a whole batch, DeepSeek-V3, of which the
    experts' biases follow their load in a batch, and those of which a loss is a mean over the batch that they take themselves.
    """
    program = composer.load(name).program
    moved = {
        "deepseek_v3": ["layers.3.moved"],
        "mae": ["decoder.paint.of_all"],
        "hierarchical_moe": ["weights", "mean", "squares"],
        "show_attend_tell": ["unevenness.mean"],
    }.get(name, [])
    assert [each.path for each in mixing(program, training=False)] == moved
    found = [*mixing(program, training=True)]
    normed = [each for each in found if "is a batchnorm2d" in each.does]
    assert [each.path for each in found if each not in normed] == moved
    assert bool(normed) == (name == "resnet")


def test_the_place_of_a_row_counts() -> None:
    """A row with a position of its own is another one in a batch of its own."""
    (found,) = mixing(loaded(TURNED.replace("NODE", "sinusoidal_positions")).program, training=True)
    assert (found.path, found.does) == ("n", "is a sinusoidal_positions, which reads the rows of a batch in their order")


def test_a_number_of_rows_is_refused() -> None:
    """What is computed across three rows cannot be told from what is computed across three channels."""
    recipe = composer.load(HEAD.replace("[batch, time]", "[3, time]") + TAIL)
    assert [each.path for each in mixing(recipe.program, training=True)] == ["tokens"]
