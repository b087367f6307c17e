"""A change of the model never goes unseen, and what is seen is a change."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest
import torch

import composer
from composer.recipe import zoo_names
from tests.conformance.cases import TINY
from tests.conformance.generator import generated
from tests.conformance.inputs import DRAWS, draw
from tests.diff.mutations import mutations
from tests.zoo import each_named

SAMPLE, MANY = 8, 150
"""Changes of a recipe that are looked at, and where tests are exhaustive; `python -m tests.diff.test_mutations` looks at all
of them."""


def other_model(one: composer.Recipe, two: composer.Recipe) -> str:
    """Return what tells two models apart once they are built, if anything does: found without any comparing of graphs."""
    ours, theirs = (composer.load(recipe.text).compile(seed=1) for recipe in (one, two))
    if one.task != two.task:
        return "the task"
    before, after = ours.state_dict(), theirs.state_dict()
    if before.keys() != after.keys() or any(not torch.equal(before[name], after[name]) for name in before):
        return "the initial parameters"
    if len({str({name: each.requires_grad for name, each in model.named_parameters()}) for model in (ours, theirs)}) > 1:
        return "what is trained"
    if one.export() == two.export():
        return ""
    ours, theirs = ours.double().eval(), theirs.double().eval()
    for optional in (True, False):
        given = draw(ours.program, DRAWS[0], seed=3, optional=optional, dtype=torch.float64)
        with torch.no_grad():
            mine, other = ours(**given), theirs(**given)
        if mine.losses.keys() != other.losses.keys():
            return "the losses"
        pairs = [*zip(mine[:-1], other[:-1], strict=True), *((mine.losses[name], other.losses[name]) for name in mine.losses)]
        if any(not torch.allclose(*pair, rtol=1e-9, atol=1e-9) for pair in pairs):
            return "what is computed"
    return ""


def small(name: str) -> composer.Recipe:
    """Return a small recipe of the zoo without the rules for its published weights, which a changed model does not fit."""
    text = composer.load(name, overrides=TINY.get(name, {})).text
    return composer.load(re.sub(r"(?ms)^checkpoints:.*?(?=^\w|\Z)", "", text))


def judge(recipe: composer.Recipe, what: str, text: str) -> str:
    """Return `seen`, `same` or `wrong` for one mutation of a recipe."""
    mutated = composer.load(text)
    if any(found.severity == "error" for found in mutated.check()):
        return "wrong"
    difference = recipe.diff(mutated)
    assert str(difference) and difference.to_json()
    if difference.equal:
        assert not other_model(recipe, mutated), f"{recipe.name}: {what} goes unseen"
        return "same"
    return "seen"


@pytest.mark.parametrize(
    "count", [pytest.param(SAMPLE, marks=pytest.mark.slow), pytest.param(MANY, marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("form", ["written", pytest.param("expanded", marks=pytest.mark.exhaustive)])
@each_named
def test_no_change_of_a_recipe_of_the_zoo_goes_unseen(name: str, form: str, count: int) -> None:
    """Fields, blocks, edges, masks, ties, passes, initial values, inputs and outputs, one at a time; a sample of all places, and
    more of them until enough were sound, which few are where most ports take one length alone.
    """
    recipe, random = small(name), Random(name)
    known = list(mutations(recipe.text if form == "written" else recipe.expand()))
    verdicts = [judge(recipe, what, mutated) for what, mutated in random.sample(known, min(count, len(known)))]
    more = random.sample(known, len(known))
    while verdicts.count("seen") < SAMPLE // 4:
        assert more, "hardly any change is sound"
        verdicts.append(judge(recipe, *more.pop()))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [0, *(pytest.param(chunk, marks=pytest.mark.exhaustive) for chunk in range(1, 8))])
def test_no_change_of_a_generated_recipe_goes_unseen(chunk: int) -> None:
    """Some of the changes of each of two hundred."""
    verdicts = []
    for seed in range(chunk, 200, 8):
        recipe = composer.load(generated(seed))
        known = list(mutations(generated(seed)))
        for what, mutated in Random(seed).sample(known, min(4, len(known))):
            verdicts.append(judge(recipe, f"{seed} {what}", mutated))
    assert verdicts.count("seen") > 20


def test_the_judge_tells_models_apart() -> None:
    """Other numbers, other shapes, other training: the measure itself."""
    base = composer.load("gpt_mini", overrides=TINY["gpt_mini"])
    for settings, told in (
        ({"layers.attn.body.mask": "causal"}, "what is computed"),
        ({"d_model": 8}, "the initial parameters"),
        ({"embed.trainable": "false"}, "what is trained"),
        ({"layers.ffn.body.activation": "silu"}, "what is computed"),
        ({}, ""),
    ):
        assert other_model(base, composer.load("gpt_mini", overrides={**TINY["gpt_mini"], **settings})) == told


if __name__ == "__main__":
    for name in zoo_names():
        recipe = small(name)
        for text in (recipe.text, recipe.expand()):
            found = Counter(judge(recipe, what, mutated) for what, mutated in mutations(text))
            print(name, dict(found), flush=True)
