"""The example of each block in the reference is sound, and its declarations are true."""

from __future__ import annotations

from contextlib import suppress

import pytest

import composer
from blocks.core import standard
from composer.block_reference import example
from composer.graph.typed import TypedBlock
from composer.verify.alone import alone, in_language_model
from composer.verify.declarations import TESTS, BlockAlone
from composer.verify.subject import NotTried, Subject

EXAMPLES = [kind for kind in standard() if standard()[kind].example]
ALONG_AXES = [kind for kind in standard() if standard()[kind].__module__.startswith("blocks.along_axes.")]


def test_every_block_along_an_axis_has_an_example() -> None:
    """Which the reference shows."""
    assert ALONG_AXES and [kind for kind in ALONG_AXES if kind not in EXAMPLES] == []


@pytest.mark.parametrize("kind", EXAMPLES)
def test_an_example_has_every_property_of_a_sound_recipe(kind: str) -> None:
    """It uses the block, nothing is reported, and `arco verify` finds nothing, in the model and in each block alone."""
    recipe = composer.load(example(standard()[kind]))
    assert recipe.check() == []
    assert kind in {node.part.kind for node in recipe.program.root.nodes if isinstance(node, TypedBlock)}
    found = recipe.verify()
    assert found.ok, str(found)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_declarations_of_a_block_are_true(kind: str) -> None:
    """Of each block of the example, alone and in a small language model."""
    recipe = composer.load(example(standard()[kind]))
    for block in recipe.program.root.nodes:
        assert isinstance(block, TypedBlock)
        apart, language_model = alone(block, recipe), in_language_model(block, recipe)
        assert apart is not None
        subject = BlockAlone(block, Subject(apart), Subject(language_model) if language_model is not None else None)
        for test in TESTS:
            with suppress(NotTried):
                assert list(test.try_(subject)) == [], test.name
