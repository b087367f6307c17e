"""Formulas that give one value with the gradient of another say so."""

from __future__ import annotations

import pytest

import composer
from tests.draw.read_back import Model, read
from tests.draw.read_marks import unmarked
from tests.draw.test_read_back import wrong

TEXT = """recipe: straight
inputs: {{x: "float[batch, 8]"}}
graph:
  a: {{type: linear, out: 8, in: x}}
  wide: {{type: linear, out: 16, in: x}}
  parts: {{type: split, into: [b, c]}}
  b: {{compute: floor(a)}}
  y: {{compute: "{formula}"}}
outputs: {{y: y, b: b, left: parts.b, right: parts.c}}
"""


def said(formula: str) -> str:
    """Return what the box of a formula says below it, which is true."""
    recipe = composer.load(TEXT.format(formula=formula))
    assert wrong(recipe, "block") == []
    (box,) = (one for one in recipe.draw().scene.boxes if one.about.path == "y")
    return " ".join(one.text for one in box.texts if one.role == "detail")


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("a + stop_gradient(b - a)", "= b, with the gradient of a"),
        ("stop_gradient(b - a) + a", "= b, with the gradient of a"),
        ("a - stop_gradient(a - b)", "= b, with the gradient of a"),
        ("stop_gradient(b) - (stop_gradient(a) - a)", "= b, with the gradient of a"),
        ("parts.b + stop_gradient(parts.c - parts.b)", "= c, with the gradient of b"),
        ("b + stop_gradient(parts.b - b)", "= parts.b, with the gradient of b"),
    ],
)
def test_a_value_with_the_gradient_of_another_is_told(formula: str, words: str) -> None:
    """However it is written, and by full names where their ends are the same."""
    assert said(formula).endswith(words)


@pytest.mark.parametrize(
    "formula",
    [
        "a + stop_gradient(a - b)",
        "a + b - stop_gradient(a)",
        "a + stop_gradient(b)",
        "a - stop_gradient(a) + b - stop_gradient(b)",
        "-a - stop_gradient(b - a)",
        "2 * a + stop_gradient(b - 2 * a)",
        "a + stop_gradient(2 * b - a)",
        "stop_gradient(b)",
        "a - b",
    ],
)
def test_others_are_not(formula: str) -> None:
    """Twice a value, its opposite, a gradient of both, none, or nothing that stops one."""
    assert "gradient of" not in said(formula)


def test_a_planted_fault_is_found() -> None:
    """The two values the other way round."""
    recipe = composer.load(TEXT.format(formula="a + stop_gradient(b - a)"))
    svg, model = recipe.draw().svg(), Model(recipe.program)
    assert [*unmarked(svg, read(svg), model, recipe.program)] == []
    planted = svg.replace("= b, with the gradient of a", "= a, with the gradient of b")
    assert [*unmarked(planted, read(planted), model, recipe.program)]
