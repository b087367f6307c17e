"""The padding token of a recipe: the params that name it, and the token of a tokenizer that they follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from composer.language.yaml.nodes import YamlList, YamlMapping, YamlNode, YamlScalar
from composer.train.data.marks import PADDING
from composer.train.data.tokenizers import MarkedTokenizer, PiecesTokenizer, Tokenizer

if TYPE_CHECKING:
    from composer.recipe import Recipe

FIELD = "padding_idx"
"""The field of an embedding whose value is the padding token."""


def padding_params(recipe: Recipe) -> tuple[str, ...]:
    """Return the params of a recipe that are the padding token of an embedding, without those that an override sets.

    Their defaults are ids of the published tokenizer. With another one, such an id is an ordinary token, whose embedding would be
    zero and, in RoBERTa, have no position; or it is none at all.

    Args:
        recipe: The recipe.
    """
    params = recipe.program.untyped.params
    found = dict.fromkeys(_written(recipe.document.root))
    return tuple(name for name in found if name in params and not recipe.overridden(name))


def _written(node: YamlNode | None) -> Iterator[str]:
    """Yield how the padding token of each embedding is written."""
    if isinstance(node, YamlList):
        for item in node.items:
            yield from _written(item)
    elif isinstance(node, YamlMapping):
        for entry in node:
            if entry.key.text == FIELD and isinstance(entry.value, YamlScalar):
                yield entry.value.text
            yield from _written(entry.value)


def padding_of(tokenizer: Tokenizer) -> int | None:
    """Return the id of a tokenizer's padding token; None if it has none.

    Args:
        tokenizer: The tokenizer.
    """
    if isinstance(tokenizer, MarkedTokenizer):
        return tokenizer.mark(PADDING) if PADDING in tokenizer.marks else padding_of(tokenizer.text)
    if not isinstance(tokenizer, PiecesTokenizer) or "pad_token" not in tokenizer.words:
        return None
    return tokenizer.pieces.token_to_id(tokenizer.words["pad_token"])


def with_padding(tokenizer: Tokenizer, *recipes: Recipe) -> Tokenizer:
    """Return a tokenizer that has a padding token if one of some recipes has a param for it.

    Args:
        tokenizer: The tokenizer, with the special tokens of the task.
        recipes: The recipes.
    """
    if padding_of(tokenizer) is not None or not any(map(padding_params, recipes)):
        return tokenizer
    if isinstance(tokenizer, MarkedTokenizer):
        return MarkedTokenizer(tokenizer.text, (*tokenizer.marks, PADDING))
    return MarkedTokenizer(tokenizer, (PADDING,))


def padding_values(recipe: Recipe, tokenizer: Tokenizer) -> dict[str, int]:
    """Return the values of the params of a recipe that are its padding token, as overrides: the tokenizer's, where they differ.

    Args:
        recipe: The recipe.
        tokenizer: The tokenizer, with a padding token.
    """
    params, token = recipe.program.untyped.params, padding_of(tokenizer)
    return {} if token is None else {name: token for name in padding_params(recipe) if params[name] != token}
