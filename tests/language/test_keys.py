"""The table of keys: every column of every row leads somewhere, and a new row is known wherever keys are listed."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name
from typing import get_args

import pytest
from jsonschema import Draft202012Validator

import composer
from blocks.core import standard
from composer.graph.unparse.expanded_recipe import WRITERS
from composer.json_schema import schema
from composer.language.recipe.keys import KEYS, MULTILINE, TABLE, KeyContent, KeyPlace, KeyRow, KeyWriter
from composer.language.recipe.parser import MISSING
from composer.language.recipe.schema_fragments import TEXT

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
BASE = """
recipe: base
license: MIT
inputs: {x: "float[batch, 8]"}
graph: {a: {type: linear, out: 8}}
"""
LICENSE = KeyRow("license", ("recipe", "block"), "under which terms it may be used", "text", TEXT, "recipe.load", "verbatim")


@pytest.mark.parametrize("key", TABLE, ids=lambda key: f"{key.name} of {', '.join(key.places)}")
def test_every_column_of_every_key_leads_somewhere(key: KeyRow) -> None:
    """To a place, a merge rule, a writer, a schema, a function and words."""
    assert key.places and set(key.places) <= set(get_args(KeyPlace))
    assert key.content in get_args(KeyContent) and key.writer in get_args(KeyWriter)
    assert key.doc and key.doc[-1] not in ".:,"
    assert callable(resolve_name(f"composer.{key.parser}"))
    Draft202012Validator.check_schema(key.schema)


def test_no_key_has_two_rows_for_one_place() -> None:
    """So that a place holds all of its rows."""
    assert sum(map(len, KEYS.values())) == sum(len(key.places) for key in TABLE)


def test_rows_of_one_name_are_written_alike() -> None:
    """The writer sees mappings, and not where they will stand."""
    for key in TABLE:
        assert key.multiline == (key.name in MULTILINE)


def test_what_is_computed_has_a_writer_and_what_is_required_a_message() -> None:
    """Of the keys of a recipe."""
    assert {key.name for key in KEYS["recipe"].values() if key.writer == "computed"} == WRITERS.keys()
    assert {key.name for key in KEYS["recipe"].values() if key.required} == MISSING.keys()


def test_the_page_says_of_each_key_what_the_table_says() -> None:
    """Its own words may be links."""
    section = PAGE.read_text(encoding="utf-8").partition("\n## Top level\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", section), re.MULTILINE)
    keys = {**KEYS["recipe"], **KEYS["composition"]}
    assert dict(rows) == {name: key.doc + "; required" * key.required for name, key in keys.items()}


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A language with one more key, of a recipe and of a block in one."""
    for place in LICENSE.places:
        monkeypatch.setitem(KEYS[place], "license", LICENSE)


def codes(recipe: composer.Recipe) -> list[str]:
    """Return what is wrong with a recipe."""
    return [each.code for each in recipe.check()]


def test_a_new_key_is_unknown_before_it_is_in_the_table() -> None:
    """Which the others show to be the row's doing."""
    assert codes(composer.load(BASE)) == ["unknown-key"]


def test_a_new_key_is_read_suggested_and_written(planted: None) -> None:
    """In its own place."""
    recipe = composer.load(BASE)
    assert codes(recipe) == []
    assert recipe.expand().endswith("license: MIT\n")
    (wrong,) = composer.load(BASE.replace("license", "licence")).check()
    assert wrong.hint == "did you mean license?"


def test_a_new_key_is_set_and_merged(planted: None, tmp_path: Path) -> None:
    """From outside, and by a recipe over it."""
    assert "license: BSD" in composer.load(BASE, overrides={"license": "BSD"}).text
    (tmp_path / "base.yaml").write_text(BASE, encoding="utf-8")
    for own, kept in (("", "license: MIT"), ("license: BSD", "license: BSD"), ("license: null", "")):
        (tmp_path / "over.yaml").write_text(f"recipe: over\nextends: base.yaml\n{own}\n", encoding="utf-8")
        over = composer.load(tmp_path / "over.yaml")
        assert codes(over) == []
        assert re.findall("^license.*", over.text, re.MULTILINE) == ([kept] if kept else [])


def test_a_new_key_goes_with_a_recipe_that_is_used_as_a_block(planted: None, tmp_path: Path) -> None:
    """Since blocks may have it too."""
    (tmp_path / "base.yaml").write_text(BASE, encoding="utf-8")
    text = "recipe: user\nuses: base.yaml\ninputs: {x: 'float[batch, 8]'}\ngraph: {one: base}\n"
    (tmp_path / "user.yaml").write_text(text, encoding="utf-8")
    user = composer.load(tmp_path / "user.yaml")
    assert codes(user) == []
    assert "license: MIT" in user.text


def test_a_new_key_is_in_the_schema(planted: None) -> None:
    """With its meaning, where it may stand."""
    whole = schema(standard())
    for properties in (whole["$defs"]["recipe"]["properties"], whole["$defs"]["blocks"]["additionalProperties"]["properties"]):
        assert properties["license"] == {"description": "Under which terms it may be used.", **TEXT}
