"""Every example of docs/language.md is checked, compiled and run; those that must fail give the error that the page names."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

import composer
from blocks.core import standard
from blocks.formulas.functions import TABLE
from blocks.masks.mask import Mask
from composer.diagnostics import Source, Span
from composer.language.expressions.evaluator import evaluate
from composer.language.expressions.functions import FUNCTIONS
from composer.language.expressions.parser import parse_expression
from composer.language.recipe.keys import KEYS
from composer.language.yaml.nodes import YamlScalar
from composer.weights.mapping import mapping, shapes_of
from tests.docs.pages import ROOT, Example, examples

PAGE = ROOT / "docs" / "language.md"
ALL = examples(PAGE)
RECIPES = [example for example in ALL if example.language == "yaml"]
PARAMS = {"n_layers": 4}
INPUTS = {
    "valid": "bool[batch, time]?",
    "documents": "int[batch, time]?",
    "important": "bool[batch, time]",
    "pairs": '"bool[batch, time, time]"',
}
LENGTHS = {"frames": 6, "batch": 2, "time": 5, "source_time": 4}


def recipe_text(example: Example) -> str:
    """Return the example as a whole recipe; a graph is given the stream `x`, and what it names of the usual inputs and params."""
    return example.text if "graph" not in example.words else graph_text(example.text)


def graph_text(graph: str) -> str:
    """Return a graph as a whole recipe."""
    named = set(re.findall(r"\w+", graph))
    params = [f"  {name}: {value}" for name, value in PARAMS.items() if name in named]
    inputs = ["  x: float[batch, time, 32]", *(f"  {name}: {type_}" for name, type_ in INPUTS.items() if name in named)]
    body = [f"  {line}" for line in graph.splitlines()]
    return "\n".join(["recipe: example", *(["params:", *params] if params else []), "inputs:", *inputs, "graph:", *body, ""])


def run(text: str) -> None:
    """Compile a recipe, call it with random inputs and compare the shapes that were inferred with those that came."""
    recipe = composer.load(text)
    assert [str(mistake) for mistake in recipe.check()] == []
    typed = recipe.program
    model = recipe.compile(seed=0).eval()
    found = model(**{name: value(type_) for name, type_ in typed.inputs.items() if not type_.optional})
    assert len(found) == len(typed.root.outputs) + 1  # the last field is `losses`
    for came, type_ in zip(found, typed.root.outputs.values(), strict=False):
        assert list(came.shape) == lengths(type_)
    for entry in recipe.checkpoints or ():
        published = mapping(recipe.checkpoints, entry.key.text, shapes_of(model.state_dict()), typed.untyped.params)
        assert set(published.load(published.save(model.state_dict()))) == set(model.state_dict())


def lengths(type_: Any) -> list[int]:
    """Return the shape of a type, with the lengths of the model's own axes filled in."""
    return [LENGTHS.get(str(axis.size), axis.size) for axis in type_.axes]


def value(type_: Any) -> torch.Tensor:
    """Return a tensor of a type."""
    shape = lengths(type_)
    return (
        torch.randn(shape)
        if type_.dtype == "float"
        else torch.ones(shape, dtype=torch.int64 if type_.dtype == "int" else torch.bool)
    )


TABLE_HEAD = "| | meaning |\n|---|---|\n"


def with_functions(text: str) -> str:
    """Return the page with the table of the functions of formulas as the code has it."""
    before, _, after = text.partition(TABLE_HEAD)
    rows = [f"| `{row.usage}` | {row.doc} |\n" for row in TABLE]
    return before + TABLE_HEAD + "".join(rows) + "\n" + after.partition("\n\n")[2]


def test_the_table_of_functions_is_that_of_the_code() -> None:
    """`python -m tests.docs.renew docs/language.md` writes it."""
    text = PAGE.read_text(encoding="utf-8")
    assert text.count(TABLE_HEAD) == 1
    assert with_functions(text) == text


@pytest.mark.parametrize("example", RECIPES, ids=str)
def test_recipes_run_or_fail_as_they_should(example: Example) -> None:
    """Whole recipes and graphs."""
    if code := example.option("error"):
        assert {mistake.code for mistake in composer.load(recipe_text(example)).check()} == {code}
    else:
        run(recipe_text(example))


@pytest.mark.parametrize("line", [line for each in ALL if "masks" in each.words for line in each.text.splitlines()])
def test_masks_run(line: str) -> None:
    """Each line of the page's list of masks, in an attention."""
    run(graph_text(f'attn: {{type: attention, heads: 4, mask: "{line}"}}'))


@pytest.mark.parametrize("line", [line for each in ALL if "values" in each.words for line in each.text.splitlines()])
def test_numbers_have_the_values_that_are_shown(line: str) -> None:
    """Each line of the page's list of expressions."""
    expression, _, shown = line.rpartition("=")
    text = expression.strip()
    names = {"d_model": 768, "n_heads": 12, "n_layers": 12}
    assert evaluate(
        parse_expression(YamlScalar(text, Span(Source("page", text), 1, 1, 1, 1 + len(text)))), names
    ) == pytest.approx(float(shown))


def section(title: str) -> str:
    """Return the text below a heading."""
    return PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def first_column(text: str) -> list[str]:
    """Return the cells on the left of a table, below its head."""
    return [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("|")][2:]


def code_words(text: str) -> list[str]:
    """Return the words between backquotes, without their arguments."""
    return re.findall(r"`(\w+)(?:\([^)]*\))?`", text)


def test_lists_of_the_page_are_complete() -> None:
    """Top-level keys, masks, and the functions of expressions."""
    assert sorted(code_words(" ".join(first_column(section("Top level"))))) == sorted([*KEYS["recipe"], *KEYS["composition"]])
    assert sorted(code_words(" ".join(first_column(section("Masks"))))) == sorted(standard().of(Mask))
    shown = re.search(r"the functions are `([^`]*)`", section("Values"))
    assert shown is not None
    assert set(shown[1].split()) == FUNCTIONS.keys()
