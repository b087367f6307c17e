"""The tokenizer of `arco train`, and the params of the recipe that follow from it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from composer.train.data.tokenizer_kinds import TOKENIZER_KINDS

if TYPE_CHECKING:
    from composer.recipe import Recipe
    from composer.train import Tokenizer


def tokenizer_of(
    make: Callable[[str, int | None], Tokenizer], arguments: argparse.Namespace, initial: Tokenizer | None
) -> Tokenizer:
    """Return the tokenizer of `--tokenizer`, made from the text by its name and size, or that of the run to start from."""
    from composer.published import tokenizer_to_train
    from composer.train import MarkedTokenizer

    if initial is not None and arguments.tokenizer is None:
        return initial.text if isinstance(initial, MarkedTokenizer) else initial
    if arguments.tokenizer not in (None, *TOKENIZER_KINDS):
        return tokenizer_to_train(arguments.tokenizer)
    return make(arguments.tokenizer or "characters", arguments.vocab_size)


def with_marks(
    tokenizer: Tokenizer, marks: tuple[str, ...], arguments: argparse.Namespace, initial: Tokenizer | None, recipe: Recipe
) -> Tokenizer:
    """Return a tokenizer with special tokens: the one of the run to start from as it is, if it has them.

    There is a padding token if a recipe has a param for it, unless it is the recipe of a run or of a published folder, whose
    weights know the token that it has.
    """
    from composer.train import MarkedTokenizer
    from composer.train.data.fitting import with_padding

    kept = None if arguments.tokenizer is not None else initial
    if isinstance(kept, MarkedTokenizer) and {*marks} <= {*kept.marks}:
        tokenizer = kept
    elif marks:
        tokenizer = MarkedTokenizer(tokenizer, marks)
    return tokenizer if is_trained(recipe, arguments) else with_padding(tokenizer, recipe)


def is_trained(recipe: Recipe, arguments: argparse.Namespace) -> bool:
    """Return whether a recipe is that of a run or of a published folder."""
    return arguments.recipe is None or recipe.published is not None


def is_published_start(arguments: argparse.Namespace) -> bool:
    """Return whether a run starts from a published folder."""
    from composer.published.folder import is_published

    return arguments.init is not None and is_published(arguments.init)


def sized(recipe: Recipe, tokenizer: Tokenizer, *, kept: bool = False, trained: bool = False) -> Recipe:
    """Return the recipe with its param `vocab` set to the tokenizer's size, and the params of its padding token to that of the
    tokenizer, unless they were overridden.

    A larger vocabulary may be `kept`: published embeddings often have rows that no token uses. The padding token of a recipe that
    was `trained` stays what it was.
    """
    from composer.train.data.fitting import vocabulary_values

    values = vocabulary_values(recipe, tokenizer, kept=kept, trained=trained)
    whose = "its padding token" if "vocab" in values else "the padding token of the tokenizer"
    if values:
        said = [
            f"{name} is set to {value}, {'the size of the tokenizer' if name == 'vocab' else whose}"
            for name, value in values.items()
        ]
        print(", and ".join(said))
    return recipe.with_overrides(values) if values else recipe


def with_blank(recipe: Recipe, tokenizer: Tokenizer) -> Recipe:
    """Return the recipe with its param `blank` set to the tokenizer's blank, unless it was overridden."""
    from composer.train import MarkedTokenizer
    from composer.train.data.marks import BLANK

    params = recipe.program.untyped.params
    if not isinstance(tokenizer, MarkedTokenizer) or BLANK not in tokenizer.marks or "blank" not in params:
        return recipe
    if recipe.overridden("blank") or params["blank"] == tokenizer.mark(BLANK):
        return recipe
    print(f"blank is set to {tokenizer.mark(BLANK)}, the token {BLANK}")
    return recipe.with_overrides({"blank": tokenizer.mark(BLANK)})
