"""Letters tell which entries of values meet in a formula, where each of two has an axis that the other one lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

import composer
from tests.draw.read_back import Model, read
from tests.draw.read_marks import unmarked
from tests.draw.test_idioms import checked

PAPERS = Path(__file__).parent / "papers"
TEXT = """recipe: letters
inputs: {{p: "float[batch, {p}]", q: "float[batch, {q}]", r: "float[batch, {r}]"}}
graph: {{y: {{compute: "{formula}", axes: {axes}}}}}
outputs: {{y: y}}
"""


def title(formula: str, axes: str, *shapes: str) -> str:
    """Return what a formula says of values of such shapes."""
    p, q, r = (*shapes, "rows, columns, 8")[:3]
    scene = checked(TEXT.format(formula=formula, axes=axes, p=p, q=q, r=r))
    return next((box.texts[0].text for box in scene.boxes if box.about.path == "y"), "")


@pytest.mark.parametrize(
    ("formula", "axes", "shapes", "said"),
    [
        ("p + q + r", "{p: b i k, q: b j k, r: b i j k}", ("rows, 8", "columns, 8"), "p[i] + q[j] + r[i, j]"),
        (
            "tanh(p - q) * r",
            "{p: b j k, q: b i k, r: b i j k, ->: b i j k}",
            ("columns, 8", "rows, 8"),
            "tanh(p[j] − q[i]) · r[i, j]",
        ),
        ("p - q", "{p: b i j, q: b j k, ->: b i j k}", ("rows, columns", "columns, 8"), "p[i, j] − q[j, k]"),
        ("p * q + r", "{p: b i, q: b j, r: b i j k}", ("rows", "columns"), "p ⊗ q + r"),
        ("p + q + r", "{p: b i k, q: b k, r: b i j k}", ("rows, 8", "8"), ""),
        ("where(p > q, r, 0)", "{p: b i, q: b j, r: b i j k}", ("rows", "columns"), "where(p[i] > q[j], r[i, j, k], 0)"),
    ],
)
def test_letters_tell_which_entries_meet(formula: str, axes: str, shapes: tuple[str, ...], said: str) -> None:
    """But for axes that all have at one place; none where each value has all axes of another, or where a sign tells it."""
    found = title(formula, axes, *shapes)
    assert found == said if said else "[" not in found


@pytest.mark.parametrize(
    ("there", "planted"),
    [("left[i] + right[j]", "left[j] + right[i]"), ("left[i] + right[j]", "left + right"), ("far[i, j]", "far[j]")],
)
def test_a_planted_fault_is_found(there: str, planted: str) -> None:
    """Other letters, none, and too few."""
    recipe = composer.load(PAPERS / "evoformer.yaml")
    svg, model = recipe.draw().svg(), Model(recipe.program)
    assert there in svg and not [*unmarked(svg, read(svg), model, recipe.program)]
    changed = svg.replace(there, planted)
    assert [*unmarked(changed, read(changed), model, recipe.program)]
