"""Rules of `checkpoints` written out: their sizes are numbers, as the params of the recipe are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blocks.core import number
from composer.language.expressions.evaluator import as_float, evaluate
from composer.language.expressions.parser import parse_expression
from composer.language.recipe.keys import TABLE
from composer.language.recipe.writer import YamlData, data_of
from composer.language.yaml.nodes import YamlList, YamlMapping, YamlNode

SIZES = frozenset(key.name for key in TABLE if key.content == "size")
"""What is a number in a rule of `checkpoints`."""


def published(rules: YamlNode, params: Mapping[str, Any]) -> YamlData:
    """Return the rules of one model type, with the values of params; its `config` sets those, of which none is left."""
    if not isinstance(rules, YamlMapping):
        return data_of(rules)
    texts = {entry.key.text: data_of(entry.value) for entry in rules if entry.key.text != "config"}
    if isinstance(own := rules.get("rules"), YamlMapping):
        return texts | {"rules": {entry.key.text: _operations(entry.value, params) for entry in own}}
    return texts


def _operations(rule: YamlNode, params: Mapping[str, Any]) -> YamlData:
    """Return what one rule does, or a part of it: sizes are expressions."""
    if not isinstance(rule, YamlMapping):
        return data_of(rule)
    return {entry.key.text: _sizes(entry.value, params) if entry.key.text in SIZES else data_of(entry.value) for entry in rule}


def _sizes(node: YamlNode, params: Mapping[str, Any]) -> YamlData:
    match node:
        case YamlMapping():
            return _operations(node, params)
        case YamlList(items=items):
            return [_sizes(item, params) for item in items]
    return number(as_float(evaluate(parse_expression(node), params), node.span))
