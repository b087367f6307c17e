"""A slice of the campaigns that `make fuzz` runs, and the tools that it runs them with."""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzz.campaign import mutant, run
from tests.fuzz.documents import Document, at, document, places, text_of
from tests.fuzz.judge import ALL, judge
from tests.fuzz.minimize import reduced
from tests.fuzz.mutations import MUTATIONS, mutated
from tests.fuzz.seeds import drawn, seed

SLICE = 300
"""Mutants of each campaign."""


@pytest.mark.parametrize(
    ("campaign", "count"),
    [(12, SLICE // 3), *(pytest.param(seed, SLICE, marks=pytest.mark.exhaustive) for seed in (12, 13, 14, 15))],
)
def test_mutants_are_refused_at_a_place_or_have_every_property(campaign: int, count: int) -> None:
    """Nothing raises, hangs or passes the checks and fails a property; and both outcomes are common."""
    seen = run(campaign, count, jobs=1)
    assert not seen.found, [(each.number, each.failure) for each in seen.found.values()]
    assert seen.mutants == count
    assert min(seen.sound, sum(seen.refused.values())) > count // 10


def test_a_mutant_is_found_again_by_its_number() -> None:
    """Equal seeds and numbers give equal recipes, other numbers others."""
    texts = [text_of(mutant(3, number).document) for number in (7, 7, 8)]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize("function", [function for _, function in MUTATIONS], ids=lambda function: function.__name__)
def test_every_mutation_changes_something(function: object) -> None:
    """For some seed and some other; and it leaves text that can be read."""
    assert callable(function)
    for number in range(200):
        random = Random(f"{function.__name__} {number}")  # type: ignore[attr-defined]  # a function
        whole = document(text_of(seed("zoo gpt_mini" if number % 2 else "zoo t5")))
        assert whole is not None
        before = text_of(whole)
        try:
            function(whole, random, seed("zoo rnn_lm"))
        except (IndexError, KeyError, TypeError, AttributeError, ValueError):
            continue
        if text_of(whole) != before:
            assert document(text_of(whole)) == whole
            return
    raise AssertionError("200 tries changed nothing")


def test_seeds_are_never_changed() -> None:
    """Mutants are copies."""
    random = Random(0)
    for _ in range(20):
        name = drawn(random)
        before = text_of(seed(name))
        mutated(seed(name), random, seed(name))
        assert text_of(seed(name)) == before


def test_a_failure_becomes_its_smallest_recipe() -> None:
    """Everything that a failure does not need is deleted, at any depth."""

    def fails(tried: Document) -> bool:
        return any(value == "gated_ffn" for _, value in places(tried))

    whole = {
        "recipe": "r",
        "params": {"a": "1"},
        "graph": {"x": {"repeat": "2", "graph": {"y": {"type": "gated_ffn", "hidden": "8"}}}},
    }
    small = reduced(whole, fails, deadline=float("inf"))
    assert [value for _, value in places(small) if isinstance(value, str)] == ["gated_ffn"]
    assert at(whole, ("graph", "x", "repeat")) == "2"


def test_every_property_is_tried_on_some_seed() -> None:
    """A property that asks for what no seed has would be held by every mutant."""
    judged = [judge(text_of(seed(name)), everything=True) for name in ("zoo gpt_mini", "packed gpt_mini")]
    assert [found.failures for found in judged] == [[], []]
    assert {name for found in judged for name in found.tried} == {each.name for each in ALL}


def test_what_is_wrong_with_a_text_is_seen() -> None:
    """The judge itself, which must be able to say no: an exception, and a recipe that is refused."""
    assert judge("recipe: r\ngraph: {a: no_such_block}\n", everything=True).refused
    sound = judge(text_of(seed("zoo rnn_lm")), everything=True)
    assert not sound.failures and not sound.refused and len(sound.tried) > 10
