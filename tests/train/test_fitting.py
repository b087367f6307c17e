"""The padding token of a recipe is that of the tokenizer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import composer
from composer.compare import Budget, Experiment, Variant, plan
from composer.train import ByteTokenizer, MarkedTokenizer, Tokenizer, characters_of, fitted, make_tokenizer, marked, read_table
from composer.train.data.fitting import padding_of, padding_params, padding_values, with_padding

TEXT = "to be or not to be\n" * 20
DEFAULT = "[9, 16, 7, 15, 6, 5, 2, 42]"
"""Numbers of categories in the recipe of a table."""
SIZES = ["n_layers=1", "d_model=16", "n_heads=2", "hidden=16", "context=64"]


@pytest.mark.parametrize(("name", "task"), [("roberta", "masked_lm"), ("modernbert", "masked_lm"), ("marian", "seq2seq_lm")])
def test_a_recipe_with_a_padding_token_has_that_of_the_tokenizer(name: str, task: str) -> None:
    """Where it has none it gets one, behind all others; a recipe without the param changes no tokenizer."""
    recipe = composer.load(name)
    plain = marked(characters_of(TEXT), task)
    made = with_padding(plain, recipe)
    assert padding_of(plain) is None and padding_of(made) == plain.size == made.size - 1
    fitted = recipe.with_overrides({"vocab": made.size, **padding_values(recipe, made)})
    assert fitted.program.untyped.params["padding"] == plain.size
    assert with_padding(plain, composer.load("bert"), composer.load("resnet")) is plain
    assert padding_params(composer.load(name, {"padding": 3})) == ()


def test_a_learned_tokenizer_has_a_padding_token_already() -> None:
    """Also below the marks of a task."""
    words = make_tokenizer("words", TEXT, size=30)
    both: list[Tokenizer] = [words, MarkedTokenizer(words, ("<0>",))]
    for each in both:
        assert padding_of(each) == words.encode("[PAD]")[0] and with_padding(each, composer.load("roberta")) is each


def test_an_experiment_has_it_too() -> None:
    """Whose variants have one tokenizer."""
    variants = (Variant("one", "roberta", tuple(SIZES)), Variant("two", "bert", tuple(SIZES)))
    found = plan(
        Experiment("padding", (Path("input.txt"),), variants, (0,), Budget("steps", 1)),
        vocabulary=with_padding(ByteTokenizer(), composer.load("roberta")),
    )
    assert [each.recipe.program.untyped.params["vocab"] for each in found] == [257, 257]
    assert found[0].recipe.program.untyped.params["padding"] == 256


@pytest.mark.parametrize(
    ("animals", "coats", "sizes"),
    [
        (["cat", "dog", "horse"], ["long", "short", "long"], (3, 2)),
        ([2, 0, 2], ["long", "short", "long"], (3, 2)),  # ids are rows of the table of embeddings as they are
        ([1999, 2001, 2000], ["long", "short", "long"], (7, 7)),
        ([10**30, 0, 1], ["long", "short", "long"], (7, 7)),
        ([-1, -2, -1], ["long", "short", "long"], (7, 7)),
    ],
)
def test_the_numbers_of_categories_follow_from_a_table(
    tmp_path: Path, animals: list[object], coats: list[str], sizes: object
) -> None:
    """Of each column, unless it holds no ids, or they are set; a list of another length is told by the column's shape."""
    rows = [f"{age},{animal},{coat},{age % 2}" for age, (animal, coat) in enumerate(zip(animals, coats, strict=True))]
    (tmp_path / "animals.csv").write_text("age,animal,coat,label\n" + "".join(f"{row}\n" for row in rows))
    table, recipe = read_table([tmp_path / "animals.csv"]), composer.load("mlp_table")
    recipe = recipe.with_overrides({"hidden": [4]}) if sizes == (3, 2) else composer.load(recipe.text.replace(DEFAULT, "[7, 7]"))
    columns = ["numbers=age", "categories=animal", "categories=coat"]
    assert fitted(recipe, table, columns=columns).program.untyped.params["sizes"] == sizes
    kept = fitted(composer.load("mlp_table", {"sizes": [5, 6]}), table, columns=columns)
    assert kept.program.untyped.params["sizes"] == (5, 6)


def test_the_numbers_of_categories_follow_from_arrays(tmp_path: Path) -> None:
    """Of whole numbers, as from text."""
    names = np.array(["b", "a", "b", "a", "b"])
    np.savez(tmp_path / "rows.npz", age=np.zeros(5), first=np.array([0, 2, 2, 0, 0]), second=names, label=names)
    columns = ["numbers=age", "categories=first", "categories=second"]
    found = fitted(composer.load("mlp_table"), read_table([tmp_path / "rows.npz"]), columns=columns)
    assert found.program.untyped.params["sizes"] == (3, 2)
