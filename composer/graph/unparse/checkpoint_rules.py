"""Rules of `checkpoints` written out: their sizes are numbers, as the params of the recipe are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blocks.core import number
from composer.language.expressions.evaluator import as_float, evaluate
from composer.language.expressions.parser import parse_expression
from composer.language.recipe.keys import TABLE
from composer.language.recipe.writer import YamlData, data_of
from composer.language.yaml.nodes import YamlList, YamlMapping, YamlNode, YamlScalar

SIZES = frozenset(key.name for key in TABLE if key.content == "size")
"""The keys of a rule of `checkpoints` that hold numbers."""


def published(rules: YamlNode, params: Mapping[str, Any]) -> YamlData:
    """Return the rules of one model type, with the values of params; its `config` sets those, of which none is left."""
    if not isinstance(rules, YamlMapping):
        return data_of(rules)
    texts = {entry.key.text: data_of(entry.value) for entry in rules if entry.key.text != "config"}
    if isinstance(own := rules.get("rules"), YamlMapping):
        written = {entry.key.text: _applying(entry.value, params) for entry in own}
        return texts | {"rules": {name: each for name, each in written.items() if each != []}}
    return texts


def _applying(rule: YamlNode, params: Mapping[str, Any]) -> YamlData:
    """Return a rule without its condition; of a list, those that apply, and an empty list if none does."""
    alternatives = rule.items if isinstance(rule, YamlList) else (rule,)
    kept = [_operations(each, params) for each in alternatives if _applies(each, params)]
    return kept[0] if len(kept) == 1 else kept


def _applies(rule: YamlNode, params: Mapping[str, Any]) -> bool:
    condition = rule.get("when") if isinstance(rule, YamlMapping) else None
    return not isinstance(condition, YamlScalar) or bool(evaluate(parse_expression(condition), params))


def _operations(rule: YamlNode, params: Mapping[str, Any]) -> YamlData:
    """Return what one rule does, or a part of it: sizes are expressions."""
    if not isinstance(rule, YamlMapping):
        return data_of(rule)
    return {
        entry.key.text: _sizes(entry.value, params) if entry.key.text in SIZES else data_of(entry.value)
        for entry in rule
        if entry.key.text != "when"
    }


def _sizes(node: YamlNode, params: Mapping[str, Any]) -> YamlData:
    match node:
        case YamlMapping():
            return _operations(node, params)
        case YamlList(items=items):
            return [_sizes(item, params) for item in items]
    return number(as_float(evaluate(parse_expression(node), params), node.span))
