"""The suite runs everything that there is: a new block or field that no recipe has fails here, until something draws it."""

from __future__ import annotations

from collections import Counter

import pytest

import composer
from blocks.core import standard
from tests.conformance.cases import CASES, recipes
from tests.conformance.features import features, wanted
from tests.conformance.generator import COUNT, generated, scenarios


@pytest.mark.exhaustive
def test_all_that_can_be_written_is_run() -> None:
    """Every part with its fields, ports and outputs, and all that the language can say, in some recipe of the suite."""
    drawn = Counter(feature for seed in range(COUNT) for feature in features(composer.load(generated(seed))))
    alone = Counter(f for case in CASES if case.startswith("block ") for recipe in recipes(case) for f in features(recipe))
    everything = wanted(standard())
    for feature in sorted(everything):
        print(f"{drawn[feature]:5} generated, {alone[feature]:4} alone: {feature}")
    assert not everything - drawn.keys() - alone.keys()
    by_kind = {feature for feature in everything if feature.split(":")[0] not in ("field", "port", "output", "slot")}
    assert not by_kind - drawn.keys()  # every part, and everything else, in a recipe with others


def test_generated_recipes_are_as_many_as_are_promised() -> None:
    """All different, and each scenario comes first in either kind of model."""
    assert len({generated(seed) for seed in range(COUNT)}) == COUNT >= 2 * len(scenarios())
