"""The JSON Schema of recipes: it takes all that `check` takes, and of the rest not what has a wrong form."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from copy import deepcopy
from itertools import islice
from random import Random
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

import composer
from blocks.core import standard
from composer.draw.figure_sheet import KEYS as SHEET_KEYS
from composer.json_schema import schema
from composer.language.recipe.writer import write
from composer.package_data import zoo
from tests.cases.case import FILES, Case, cases, diagnose
from tests.conformance.generator import COUNT, generated
from tests.diff.mutations import data
from tests.docs.pages import PAGES, examples
from tests.docs.test_language import recipe_text
from tests.draw.cases import FORMS
from tests.zoo import NAMED

EVERY_CASE = [case for file in FILES for case in cases(file) if not case.settings]
OF_FORM = {
    "empty-recipe", "init-form", "language-version", "missing-type", "node-form", "not-a-mapping", "unknown-field",
    "unknown-init", "unknown-param-type", "unknown-task", "value-form",
}  # fmt: skip
"""Mistakes that a schema sees wherever they stand, where the text is YAML at all."""
HIDDEN = {"each", "params"}
"""Keys below which a block may stand whose place elsewhere decides what it must be."""


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    """Of the standard library."""
    return Draft202012Validator(schema(standard()))


def plain(text: str) -> Any:
    """Return a recipe as an editor reads it; None where it is no YAML."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def codes(text: str) -> set[str]:
    """Return the errors that `check` finds."""
    return {found.code for found in composer.load(text).check() if found.severity == "error"}


def written(recipe: Any) -> str:
    """Return a recipe as a text; JSON is YAML."""
    return json.dumps(recipe) + "\n"


@pytest.mark.slow
def test_it_is_a_schema() -> None:
    """As its draft has it."""
    Draft202012Validator.check_schema(schema(standard()))


def zoo_texts(names: Collection[str] = ()) -> list[str]:
    """Return the recipes that come with the package, or those of some names."""
    files = (file for file in sorted(zoo().glob("*.yaml")) if not names or file.stem in names)
    return [file.read_text(encoding="utf-8") for file in files]


def page_texts() -> list[str]:
    """Return the recipes on pages; those of the errors are cases."""
    pages = [page for page in PAGES if page.stem != "errors"]
    return [recipe_text(example) for page in pages for example in examples(page) if example.language == "yaml"]


def right(texts: Iterable[str]) -> list[str]:
    """Return those of some recipes in which `check` finds no errors."""
    return [text for text in texts if not codes(text)]


@pytest.mark.slow
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_what_is_right_is_valid(every: int, validator: Draft202012Validator) -> None:
    """The zoo, the forms that pictures are tried on, the recipes on pages, and those of cases that only warn."""
    warned = [case.text for case in EVERY_CASE if not any(found.severity == "error" for found in diagnose(case))]
    forms = [file.read_text(encoding="utf-8") for file in FORMS]
    some = [*zoo_texts()[::every], *forms]
    known, shown = right(some), right(page_texts())
    assert len(known) == len(some) and len(shown) > 30 and len(warned) > 15
    for text in [*known, *shown, *warned]:
        validator.validate(plain(text))


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(60, COUNT), marks=pytest.mark.exhaustive)], ids=str)
def test_what_is_generated_is_valid(seeds: range, validator: Draft202012Validator) -> None:
    """Recipes that say all that can be said."""
    for seed in seeds:
        validator.validate(plain(generated(seed)))


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in EVERY_CASE if case.code in OF_FORM], ids=str)
def test_mistakes_of_form_are_not(case: Case, validator: Draft202012Validator) -> None:
    """A wrong key, field, block or form of a value."""
    read = plain(case.text)
    assert (read is None and "empty" not in case.code) or not validator.is_valid(read)


def malformed(text: str, random: Random) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield places of a recipe, in any order and each with the recipe after something else was put there: a key more or less, a
    value of another kind.
    """
    whole = data(text)
    found = [(path, new) for path, value in below(whole, ()) for new in instead(value) if path or isinstance(new, dict)]
    random.shuffle(found)
    for path, new in found:
        other: Any = {"whole": deepcopy(whole)}
        place = other
        for step in ("whole", *path)[:-1]:
            place = place[step]
        place[("whole", *path)[-1]] = new
        yield path, write(other["whole"])


def below(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield every value with its path."""
    yield path, value
    steps: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield from below(inner, (*path, step))


def instead(value: Any) -> list[Any]:
    """Return what is put in the place of a value."""
    match value:
        case dict():
            less = [{name: inner for name, inner in value.items() if name != key} for key in value]
            return [{**value, "strange": "1"}, *less, "7", "relu", [value], {}]
        case list():
            return ["7", {"strange": "1"}, []]
    return [[value], {"strange": value}, "7", "true", "strange"]


@pytest.mark.slow
@pytest.mark.parametrize("most", [6, pytest.param(200, marks=pytest.mark.exhaustive)])
def test_a_strange_form_is_valid_only_if_check_takes_it(most: int, validator: Draft202012Validator) -> None:
    """What has nothing wrong stays valid, and what a schema can see of the rest is not."""
    judged: Counter[tuple[bool, bool]] = Counter()
    for text in [*zoo_texts(NAMED), *map(generated, range(20))]:
        alone = not {"extends", "uses", "blocks"} & data(text).keys()
        for path, changed in islice(malformed(text, Random(f"{most} {text}")), most):
            found, valid = codes(changed), validator.is_valid(plain(changed))
            seen = alone and found & OF_FORM and not HIDDEN & {*path}
            assert valid or found, f"{path} is taken by `check` alone in\n{changed}"
            assert not (valid and seen), f"{path} is taken by the schema, not by `check`: {found} in\n{changed}"
            judged[valid, bool(found)] += 1
    assert all(judged[one] > most for one in ((True, False), (True, True), (False, True)))


def test_an_unknown_field_is_named(validator: Draft202012Validator) -> None:
    """The place that an editor marks is the node."""
    wrong = {"recipe": "r", "inputs": {"x": "float[batch, 8]"}, "graph": {"a": {"type": "linear", "out": 3, "bais": True}}}
    (error,) = validator.iter_errors(wrong)
    assert list(error.absolute_path) == ["graph", "a"]


NORM = {"a": "rmsnorm"}


@pytest.mark.parametrize(
    "change",
    [
        {"strange": 1},
        {"inputs": None},
        {"inputs": {"x": {"default": 0}}},
        {"inputs": {"x": {"type": "float[batch, 8]", "strange": 1}}},
        {"graph": {"a": 7}},
        {"graph": {"a": {"out": 8}}},
        {"graph": {"a": {"type": "linear"}}},
        {"graph": {"a": {"type": "linear", "out": [8]}}},
        {"graph": {"a": {"type": "strange"}}},
        {"graph": {"a": {"repeat": 2}}},
        {"graph": {"a": {"repeat": 2, "graph": NORM, "strange": 1}}},
        {"graph": {"2a": "rmsnorm"}},
        {"params": {"n": {"type": "int"}}},
        {"params": {"n": {"default": 1, "strange": 1}}},
        {"params": {"n": {"default": 1, "type": "strange"}}},
        {"losses": {"l": {"type": "cross_entropy", "target": "x"}}},
        {"losses": {"l": {"type": "rmsnorm", "in": "a"}}},
        {"losses": {"l": {"in": "a", "strange": 1}}},
        {"init": {"*": {"strange": 1}}},
        {"checkpoints": {"m": {"ignore": []}}},
        {"checkpoints": {"m": {"rules": {"a.weight": {"transpose": True}}}}},
        {"blocks": {"b": {"inputs": {"x": "float[...]"}}}},
        {"figure": {"hid": ["a"]}},
        {"figure": {"level": "blok"}},
        {"figure": {"legend": "perhaps"}},
        {"figure": {"labels": ["a"]}},
        {"figure": {"merge": {"A": {"a": "b"}}}},
        {"figure": ["a"]},
        {"task": "strange"},
        {"language": 2},
        {"recipe": "a b"},
    ],
    ids=str,
)
def test_a_wrong_form_is_not_valid(change: dict[str, Any], validator: Draft202012Validator) -> None:
    """Here as for `check`."""
    sound = {"recipe": "r", "inputs": {"x": "float[batch, 8]"}, "graph": NORM}
    assert validator.is_valid(sound) and not codes(written(sound))
    wrong = {key: value for key, value in {**sound, **change}.items() if value is not None}
    found = codes(written(wrong)) if "checkpoints" not in change else {"checkpoints-form"}  # which are read where they are used
    assert found and not validator.is_valid(wrong)


@pytest.mark.parametrize(
    "change",
    [
        "graph: {layers: {graph: {attn: {norm: rmsnorm}}}, norm: {eps: 1e-6}}",
        "inputs: {tokens: {doc: token ids}}",
        "params: {context: {max: 4096}, n_layers: 6}",
        "{doc: null, paper: null, checkpoints: null, init: null}",
        "init: {'*.bias': {constant: 1}}",
        "figure: {title: Ours, hide: norm, labels: {layers: Block}}",
    ],
)
def test_a_recipe_over_another_says_only_what_changes(change: str, validator: Draft202012Validator) -> None:
    """Neither inputs nor types; `null` takes a key away."""
    over = {"recipe": "over", "extends": "gpt2", **yaml.safe_load(change)}
    assert not codes(written(over))
    validator.validate(over)
    assert not validator.is_valid({**over, "strange": 1})


def test_a_file_of_blocks_needs_no_graph(validator: Draft202012Validator) -> None:
    """Since others use it."""
    blocks = {"twice": {"inputs": {"x": "float[...]"}, "graph": {"a": "relu", "b": "relu"}}}
    validator.validate({"recipe": "parts", "blocks": blocks})
    assert not validator.is_valid({"recipe": "parts"})


def test_the_keys_of_a_figure_are_completed(validator: Draft202012Validator) -> None:
    """Each with its meaning and its values, in a recipe and in one over another, where a wrong one is marked too."""
    figure = schema(standard())["$defs"]["figure"]["properties"]
    assert [*figure] == [*SHEET_KEYS] and all(form["description"].endswith(".") for form in figure.values())
    assert figure["level"]["enum"] == ["overview", "block", "full"]
    for wrong in ({"hid": "norm"}, {"level": "blok"}):
        (error,) = validator.iter_errors({"recipe": "over", "extends": "gpt2", "figure": wrong})
        assert list(error.absolute_path) == ["figure"]
