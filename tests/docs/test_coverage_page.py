"""docs/coverage.md is current, for the version of transformers that it names."""

from __future__ import annotations

import pytest
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

import composer
from composer.recipe import zoo_names
from tests.docs.coverage_page import PAGE, page, version

pytestmark = pytest.mark.skipif(transformers.__version__ != version(), reason="the page is of another version of transformers")


@pytest.mark.exhaustive
def test_the_page_is_current() -> None:
    """After a change of what recipes read: `python -m tests.docs.coverage_page`."""
    assert page() == PAGE.read_text(encoding="utf-8")


def test_every_type_that_a_recipe_reads_has_a_row() -> None:
    """In some task, whether its default configuration is read or refused; a type of a new recipe has none before the page is
    written again.
    """
    kinds = {entry.key.text for name in zoo_names() for entry in composer.load(name).checkpoints or ()}
    text = PAGE.read_text(encoding="utf-8")
    assert {kind for kind in kinds & {*CONFIG_MAPPING_NAMES} if f"| `{kind}` | [" not in text} == set()
