"""The example of each block in the reference is sound, and its declarations are true."""

from __future__ import annotations

import textwrap
from contextlib import suppress

import pytest

import composer
from blocks.core import standard
from composer.block_reference import example
from composer.cli import main
from composer.graph.typed import TypedBlock
from composer.verify.alone import alone, in_language_model
from composer.verify.declarations import TESTS, BlockAlone
from composer.verify.subject import NotTried, Subject
from composer.zoo_examples import zoo_examples
from tests.conformance.features import features

KINDS = list(standard())
FEW = frozenset({"attention", "gelu", "moe", "cross_entropy", "causal", "yarn", "lstm_cell", "gather", "selective_scan"})
each_kind = pytest.mark.parametrize(
    "kind", [kind if kind in FEW else pytest.param(kind, marks=pytest.mark.exhaustive) for kind in KINDS]
)


def test_every_part_has_an_example() -> None:
    """Which the reference shows, and which uses it: nothing is reported."""
    for kind in KINDS:
        recipe = composer.load(example(standard()[kind]))
        assert recipe.check() == [], kind
        assert f"part:{kind}" in features(recipe)


@each_kind
def test_an_example_has_every_property_of_a_sound_recipe(kind: str) -> None:
    """`arco verify` finds nothing, in the model and in each block alone."""
    found = composer.load(example(standard()[kind])).verify()
    assert found.ok, str(found)


@each_kind
def test_the_declarations_of_a_block_are_true(kind: str) -> None:
    """Where the block is a node of the example: alone and in a small language model."""
    recipe = composer.load(example(standard()[kind]))
    for block in recipe.program.root.nodes:
        if not isinstance(block, TypedBlock) or block.part.kind != kind:
            continue
        apart, language_model = alone(block, recipe), in_language_model(block, recipe)
        if apart is None:
            continue
        subject = BlockAlone(block, Subject(apart), Subject(language_model) if language_model is not None else None)
        for test in TESTS:
            with suppress(NotTried):
                assert list(test.try_(subject)) == [], test.name


def test_the_zoo_shows_a_part_at_work() -> None:
    """In recipes that use it, the shortest first, and not where its name is a key or a function."""
    assert zoo_examples("selective_scan", 1) == ["mamba"]
    assert "part:quick_gelu" in features(composer.load(zoo_examples("quick_gelu")[0]))
    assert zoo_examples("min") == []


def test_the_reference_names_recipes_of_the_zoo(capsys: pytest.CaptureFixture[str]) -> None:
    """Below the example."""
    assert main(["blocks", "selective_scan"]) == 0
    assert capsys.readouterr().out.endswith("\nin the zoo\n  mamba, jamba\n")


@each_kind
def test_the_terminal_shows_every_part_with_its_example(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And says where the zoo uses it, or that no recipe does."""
    assert main(["blocks", kind]) == 0
    shown, _, used = capsys.readouterr().out.partition("\nin the zoo\n  ")
    assert textwrap.indent(example(standard()[kind]).rstrip(), "  ") in shown
    assert used.strip() == (", ".join(zoo_examples(kind)) or "no recipe uses it as it is")
