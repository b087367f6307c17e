"""Two models never give one drawing."""

from __future__ import annotations

import re
from random import Random

import pytest

import composer
from composer.draw.build.levels import Level
from tests.conformance.generator import generated
from tests.diff.mutations import mutations
from tests.draw.cases import FORMS
from tests.zoo import NAMED, REPRESENTATIVES, UNNAMED

SAMPLE, MANY = 6, 200
"""Changes of a recipe that are drawn, and where tests are exhaustive; `python -m tests.draw.test_distinct` draws all of them."""
RECIPES = [*REPRESENTATIVES, *map(str, FORMS), *(generated(seed) for seed in range(0, 200, 8))]
CASES = [
    *(
        pytest.param(number, SAMPLE, marks=pytest.mark.exhaustive if recipe in UNNAMED or number % 8 else pytest.mark.slow)
        for number, recipe in enumerate(RECIPES)
    ),
    *(
        pytest.param(number, MANY, marks=pytest.mark.exhaustive)
        for number, recipe in enumerate(RECIPES)
        if recipe in NAMED or recipe not in REPRESENTATIVES
    ),
]
"""Of recipes that others are much like, a sample has to do."""


def picture(recipe: composer.Recipe, level: Level) -> str:
    """Return the drawing without the numbers of lines, which another recipe of the same model may well have."""
    return re.sub(r' data-lines="[\d-]*"', "", recipe.draw(level).svg())


def unseen(recipe: composer.Recipe, text: str) -> bool:
    """Return whether a changed recipe is another model and is drawn as this one in full detail."""
    other = composer.load(text)
    if any(found.severity == "error" for found in other.check()) or recipe.diff(other).equal:
        return False
    return picture(recipe, "full") == picture(other, "full")


@pytest.mark.parametrize(("number", "count"), CASES)
def test_what_makes_another_model_makes_another_drawing(number: int, count: int) -> None:
    """In full detail: fields, blocks, edges, masks, ties, initial values, what is trained; a sample of all places."""
    recipe = composer.load(RECIPES[number])
    known = list(mutations(recipe.text))
    for what, text in Random(number).sample(known, min(count, len(known))):
        assert not unseen(recipe, text), f"{recipe.name}: {what}"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("llama3", {"rms": "{type: rmsnorm, eps: 2e-5}"}),
        ("llama3", {"layers.attn.trainable": "false"}),
        ("gpt2", {"layers.ffn.body.bias": "false"}),
        ("gpt2", {"layers.attn.body.dropout": "0.2"}),
    ],
)
def test_what_a_reader_asks_for_is_seen_at_the_level_of_blocks(name: str, change: dict[str, str]) -> None:
    """Also there."""
    assert picture(composer.load(name), "block") != picture(composer.load(name, overrides=change), "block")


def test_frozen_parameters_are_marked() -> None:
    """At what holds them, and in the count of those that are trained."""
    svg = composer.load("captioner", overrides={"encoder.trainable": "false"}).draw().svg()
    assert "85.8 M frozen" in svg
    assert "trained" in svg
    assert "frozen" not in composer.load("captioner").draw().svg()


if __name__ == "__main__":
    for place in RECIPES:
        base = composer.load(place)
        for said, changed in mutations(base.text):
            if unseen(base, changed):
                print(base.name, said, flush=True)


def test_a_value_that_is_added_twice_is_told() -> None:
    """One wire leads to the sum in either case."""
    text = 'recipe: twice\ninputs: {x: "float[batch, 8]"}\ngraph: {y: relu, sum: {type: add, in: [x, y, x]}}\n'
    assert not unseen(composer.load(text), text.replace("[x, y, x]", "[x, y]"))
