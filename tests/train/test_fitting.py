"""The padding token of a recipe is that of the tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest

import composer
from composer.compare import Budget, Experiment, Variant, plan
from composer.train import ByteTokenizer, MarkedTokenizer, Tokenizer, characters_of, make_tokenizer, marked
from composer.train.data.fitting import padding_of, padding_params, padding_values, with_padding

TEXT = "to be or not to be\n" * 20
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
