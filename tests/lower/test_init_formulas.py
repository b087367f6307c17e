"""Initial values that a formula gives."""

from __future__ import annotations

import math

import torch

import composer

TEXT = """
recipe: rates
params: {scale: 0.5}
inputs: {x: "float[batch, time, 5]"}
graph:
  layers:
    repeat: 3
    graph:
      map: {type: linear, out: 5}
      more:
        repeat: 2
        as: inner
        graph:
          rate: {type: parameter, shape: [5]}
          y: {type: add, in: [input, rate]}
      same: {type: linear, out: 5}
init:
  "*.map.weight": {formula: scale * (i - 2 * j) + layer}
  "*.map.bias": {uniform: [log(0.001), log(0.1)], formula: log(exp(exp(x)) - 1)}
  "*.rate.weight": {formula: layer}
  "*.same.weight": {uniform: [0.25, 0.5]}
  "*.same.bias": {normal: 2, formula: abs(x)}
"""


def test_a_formula_gives_each_place_and_layer_its_value() -> None:
    """As a loop over the places does; the layer is that of the innermost pass."""
    state = composer.load(TEXT).compile(seed=0).state_dict()
    for layer in range(3):
        expected = [[0.5 * (i - 2 * j) + layer for j in range(5)] for i in range(5)]
        assert state[f"layers.{layer}.map.weight"].tolist() == expected
        assert [state[f"layers.{layer}.more.{inner}.rate.weight"].tolist() for inner in (0, 1)] == [[0.0] * 5, [1.0] * 5]


def test_what_is_drawn_goes_through_the_formula() -> None:
    """So steps are spread evenly on a logarithmic scale, and each place draws its own."""
    state = composer.load(TEXT).compile(seed=0).state_dict()
    steps = torch.stack([torch.nn.functional.softplus(state[f"layers.{layer}.map.bias"].double()) for layer in range(3)])
    drawn = steps.log()
    assert drawn.min() >= math.log(0.001) - 1e-4 and drawn.max() <= math.log(0.1) + 1e-4 and drawn.std() > 0.5
    assert all(state[f"layers.{layer}.same.bias"].min() > 0 for layer in range(3))


def test_a_range_bounds_what_is_drawn() -> None:
    """From its first number to its second."""
    state = composer.load(TEXT).compile(seed=0).state_dict()
    weights = torch.stack([state[f"layers.{layer}.same.weight"] for layer in range(3)])
    assert 0.25 <= weights.min() < 0.28 and 0.47 < weights.max() < 0.5


def test_an_expanded_recipe_starts_alike() -> None:
    """Bit for bit, and a diff finds no difference, but finds another formula."""
    recipe = composer.load(TEXT)
    expanded = composer.load(recipe.expand())
    one, other = recipe.compile(seed=3).state_dict(), expanded.compile(seed=3).state_dict()
    assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
    assert not recipe.diff(expanded).changes
    changed = recipe.diff(composer.load(TEXT.replace("abs(x)", "x + 1")))
    assert "normal 2, abs(x)" in str(changed) and "normal 2, x + 1" in str(changed)
