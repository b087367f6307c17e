"""docs/coverage.md is current, for the version of transformers that it names."""

from __future__ import annotations

import pytest
import transformers

import composer
from composer.recipe import zoo_names
from tests.docs.coverage_page import PAGE, TASKS, classes, page, version

pytestmark = pytest.mark.skipif(transformers.__version__ != version(), reason="the page is of another version of transformers")


@pytest.mark.exhaustive
def test_the_page_is_current() -> None:
    """After a change of what recipes read: `python -m tests.docs.coverage_page`."""
    assert page() == PAGE.read_text(encoding="utf-8")


def test_every_type_that_a_recipe_reads_has_a_row() -> None:
    """In some task that has a class for it, whether its default configuration is read or refused, or that it is read for another
    task only; a type of a new recipe has none before the page is written again.
    """
    kinds = {entry.key.text for name in zoo_names() for entry in composer.load(name).checkpoints or ()}
    text = PAGE.read_text(encoding="utf-8")
    elsewhere = " ".join(part.partition("\n\n")[0] for part in text.split("Read for another task only:")[1:])
    there = {kind for task in TASKS for kind in classes(task)}
    assert {kind for kind in kinds & there if f"| `{kind}` | [" not in text and f"`{kind}`" not in elsewhere} == set()
