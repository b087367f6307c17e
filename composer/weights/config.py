"""What a published `config.json` sets in a recipe, and what in it does not go with the recipe."""

from __future__ import annotations

import json
import re
from collections import abc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from composer.diagnostics import Diagnostic, Label, RecipeError, Source, Span
from composer.language.composition.override import Override, read_override
from composer.language.expressions.errors import ExpressionError
from composer.language.expressions.evaluator import evaluate, evaluate_word
from composer.language.expressions.parser import parse_expression
from composer.language.yaml.nodes import YamlMapping, YamlScalar
from composer.weights.config_syntax import Config, ConfigReader, Constant, Setting
from composer.weights.mapping import counted, entry_of

ABSENT: Any = object()
DEEPEST = 16
"""Objects and lists inside one another."""


def overrides(
    checkpoints: YamlMapping, source: Source, params: Callable[[Sequence[Override]], abc.Mapping[str, Any]]
) -> tuple[Override, ...]:
    """Return what a `config.json` sets; `params` gives the values that the recipe's params then have.

    Raises:
        RecipeError: where it is for another model, or says what no one here knows.
    """
    published = parsed(source)
    entry = entry_of(checkpoints, model_type_of(published))
    value = entry.value.entry("config") if isinstance(entry.value, YamlMapping) else None
    if value is None:
        message = f"there is no `config` beside the rules of {entry.key.text}"
        raise RecipeError([Diagnostic("config-unknown", message, entry.key.span, hint="config: {params: {OURS: KEY, …}}")])
    reader = ConfigReader()
    config = reader.config(value.value)
    if reader.diagnostics:
        raise RecipeError(reader.diagnostics)
    wrong: list[Diagnostic] = list(_unknown(config, published, source, value.key.span))
    values = ((one.path, _value(one, published, source, wrong)) for one in config.settings)
    found = tuple(read_override(f"{path}={value}") for path, value in values if value is not None)
    if wrong:
        raise RecipeError(wrong)
    if wrong := list(_broken(config, published, source, params(found))):
        raise RecipeError(wrong)
    return found


def parsed(source: Source) -> dict[str, Any]:
    """Return the object that a JSON text holds.

    Raises:
        RecipeError: where it holds none.
    """
    try:
        value = json.loads(source.text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise RecipeError([Diagnostic("unreadable-file", f"this is not JSON: {error}", Span(source, 1, 1, 1, 1))]) from None
    if not isinstance(value, dict):
        raise RecipeError([Diagnostic("unreadable-file", "this JSON is not an object", Span(source, 1, 1, 1, 1))])
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        below = (each for one in level for each in (one.values() if isinstance(one, dict) else one))
        level = [each for each in below if isinstance(each, dict | list)]
    if level:
        raise RecipeError([Diagnostic("unreadable-file", f"this JSON is nested deeper than {DEEPEST}", Span(source, 1, 1, 1, 1))])
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of some pairs, each key once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def model_type_of(published: abc.Mapping[str, Any]) -> str | None:
    """Return what kind of model a `config.json` says it is for."""
    value = published.get("model_type")
    return value if isinstance(value, str) else None


def leaves(published: abc.Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value with its key, `a.b` for what lies inside."""
    for key, value in published.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def at(published: abc.Mapping[str, Any], key: str) -> Any:
    """Return the value of a key, `a.b` for what lies inside; one that says nothing is as good as none."""
    value: Any = published
    for name in key.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return ABSENT if empty(value) else value


def empty(value: Any) -> bool:
    """Return whether a value says nothing."""
    return value is None or value == [] or value == {}


def place(source: Source, key: str) -> Span:
    """Return where a key stands in the JSON: its last name, after those around it."""
    end = 0
    for name in key.split("."):
        match = re.compile(re.escape(json.dumps(name)) + r"\s*:").search(source.text, end)
        if match is None:
            return Span(source, 1, 1, 1, 1)
        start, end = match.start(), match.start() + len(json.dumps(name))
    line, before = source.text.count("\n", 0, start) + 1, source.text.rfind("\n", 0, start)
    return Span(source, line, start - before, line, end - before)


def shown(value: Any) -> str:
    """Return a value as JSON has it, words without quotes."""
    return value if isinstance(value, str) else json.dumps(value)


def _unknown(config: Config, published: abc.Mapping[str, Any], source: Source, span: Span) -> Iterator[Diagnostic]:
    """Yield the keys that nothing speaks of."""
    extra = [
        key for key, value in leaves(published) if not config.speaks_of(key) and not (empty(value) and config.speaks_within(key))
    ]
    if extra:
        message = (
            f"the recipe does not say what {counted(extra, 'key')} of this file mean{'s' * (len(extra) == 1)}: {', '.join(extra)}"
        )
        hint = "name them under `config` of the recipe's `checkpoints`: params, constants, or ignore"
        yield Diagnostic("config-unknown", message, place(source, extra[0]), labels=(Label(span, "not here"),), hint=hint)


def _value(setting: Setting, published: abc.Mapping[str, Any], source: Source, wrong: list[Diagnostic]) -> str | None:
    """Return what is written after `PATH=`; None where the recipe's own value holds, or something is wrong."""
    there = [(key, value) for key in setting.keys if (value := at(published, key)) is not ABSENT]
    if not there:
        if setting.default is None and not setting.optional:
            message = f"{source.name} has no {' and no '.join(setting.keys)}, which {setting.path} is taken from"
            wrong.append(Diagnostic("config-missing", message, setting.span, hint="`default:` gives the value to use without it"))
        return setting.default
    key, value = there[0]
    span, labels = place(source, key), (Label(setting.span, f"{setting.path} is taken from it"),)
    if any(other != value for _, other in there):
        said = ", ".join(f"{name} is {shown(other)}" for name, other in there)
        wrong.append(Diagnostic("config-value", f"{said}: they are one value here", span, labels=labels))
        return None
    if setting.counted:
        return str(len(value)) if isinstance(value, list | dict) else "1"
    if setting.values:
        known = dict(setting.values)
        if shown(value) not in known:
            message = f"{key} is {shown(value)}, and this recipe supports {', '.join(known)}"
            wrong.append(Diagnostic("config-value", message, span, labels=labels))
        return known.get(shown(value))
    if isinstance(value, str | list | dict):  # a word means what `values` says, and never a piece of a recipe
        wrong.append(Diagnostic("config-value", f"{key} is {json.dumps(value)}, which is not a number", span, labels=labels))
        return None
    return shown(value)


def _broken(
    config: Config, published: abc.Mapping[str, Any], source: Source, params: abc.Mapping[str, Any]
) -> Iterator[Diagnostic]:
    """Yield the constants that do not hold; a key that is not there has its usual value."""
    for constant in config.constants:
        value = at(published, constant.key)
        if value is not ABSENT and not _holds(value, constant, params):
            needed = " or ".join(word.text for word in constant.words)
            if constant.count is not None:
                needed = f"{needed}, for each layer below {constant.count.text}"
            message = f"{constant.key} is {shown(value)}; this recipe needs {needed}"
            labels = (Label(constant.words[0].span, "needed here"),)
            yield Diagnostic("config-value", message, place(source, constant.key), labels=labels)


def _holds(value: Any, constant: Constant, params: abc.Mapping[str, Any]) -> bool:
    if constant.count is None:
        return any(_same(value, word, params) for word in constant.words)
    try:
        count = evaluate(parse_expression(constant.count), params)
    except ExpressionError as no:
        raise RecipeError([no.diagnostic]) from None
    if not isinstance(value, list) or len(value) != count:
        return False
    return all(_same(item, constant.words[0], {**params, "layer": layer}) for layer, item in enumerate(value))


def _same(value: Any, word: YamlScalar, params: abc.Mapping[str, Any]) -> bool:
    if shown(value) == word.text:
        return True
    try:
        expression = parse_expression(word)
        if isinstance(value, str):
            return evaluate_word(expression, params, [value]) == value
        wanted = evaluate(expression, params)
    except ExpressionError:  # another word
        return False
    return isinstance(value, bool) == isinstance(wanted, bool) and bool(value == wanted)
