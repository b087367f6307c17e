"""Pieces of JSON Schema that say what may stand under a key of a recipe.

A schema sees YAML as an editor reads it, which gives numbers and booleans types of their own: so what a recipe reads as one text
may be any of several types here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]

NAME_PATTERN = "[A-Za-z][A-Za-z0-9_]{0,63}"
"""What can be the name of a recipe, a node, a param …"""
STRING: Schema = {"type": "string"}
TEXT: Schema = {"type": ["string", "number", "boolean"]}
TEXTS: Schema = {"type": "array", "items": TEXT}
TEXT_OR_LIST: Schema = {"anyOf": [TEXT, TEXTS]}
BOOLEAN: Schema = {"type": "boolean"}
EXPRESSION: Schema = TEXT
"""A number, a boolean, a string or an expression."""
PUBLISHED_VALUE: Schema = {"type": ["string", "number", "boolean", "null"]}
"""What a published `config.json` has under a key."""
STRINGS: Schema = {"type": "array", "items": STRING}
STRING_OR_LIST: Schema = {"anyOf": [STRING, STRINGS]}
OBJECT: Schema = {"type": "object"}
NAME: Schema = {"type": ["string", "boolean"], "pattern": f"^{NAME_PATTERN}$"}
"""A name; an editor takes `true` for a boolean."""


def ref(definition: str) -> Schema:
    """Return a reference to one of the schema's definitions."""
    return {"$ref": f"#/$defs/{definition}"}


def one_of(words: Iterable[object]) -> Schema:
    """Return what is one of some words."""
    return {"enum": list(words)}


def list_of(item: Schema) -> Schema:
    """Return a list of items of one kind."""
    return {"type": "array", "items": item}


def one_item(item: Schema) -> Schema:
    """Return a list of exactly one item."""
    return {"type": "array", "items": item, "minItems": 1, "maxItems": 1}


def mapping(value: Schema) -> Schema:
    """Return a mapping from names of the author's own choice to values of one kind."""
    return {"type": "object", "additionalProperties": value}


def names_to(value: Schema) -> Schema:
    """Return a mapping to references, which no `if` chooses: that is for blocks."""
    return {**mapping(value), "not": {"required": ["if", "then"]}}


def either(*ways: Schema) -> Schema:
    """Return what may be written in one of several ways."""
    return {"anyOf": list(ways)}


EDGES: Schema = either(STRING, STRINGS, names_to(STRING_OR_LIST))
"""One reference for the first port, a list, or a mapping from port to reference."""
INITIALIZER: Schema = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("normal", "constant", "formula", "when"), EXPRESSION),
        "uniform": either(EXPRESSION, {"type": "array", "items": EXPRESSION, "minItems": 2, "maxItems": 2}),
    },
    "additionalProperties": False,
    "oneOf": [
        {"required": ["normal"]},
        {"required": ["uniform"]},
        {"required": ["constant"], "not": {"required": ["formula"]}},
        {"required": ["formula"], "not": {"anyOf": [{"required": [how]} for how in ("normal", "uniform", "constant")]}},
    ],
}
SIZE: Schema = TEXT
"""A number, or an expression of the recipe's params."""
