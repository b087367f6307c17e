"""Overrides of a recipe from a published `config.json`, and the keys and values that the recipe does not support."""

from __future__ import annotations

import json
import math
from collections import abc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from composer.diagnostics import Diagnostic, Label, RecipeError, Source, Span
from composer.language.composition.override import Override, read_override, to_text
from composer.language.expressions.ast import Expression, If, RefPath
from composer.language.expressions.errors import ExpressionError
from composer.language.expressions.evaluator import as_bool, evaluate, evaluate_word
from composer.language.expressions.parser import parse_expression
from composer.language.recipe.ast import Param
from composer.language.suggestions import did_you_mean, suggest
from composer.language.wording import counted, format_value
from composer.language.yaml.nodes import YamlList, YamlMapping, YamlScalar
from composer.weights.config_syntax import (
    ABOUT_THE_FILE,
    CLASSES,
    OLD,
    OLD_CONSTANTS,
    REFUSED,
    Config,
    ConfigReader,
    Constant,
    Setting,
    computes,
    scalars,
)
from composer.weights.json_places import JsonPlace, places, repeated
from composer.weights.mapping import entry_of

ABSENT: Any = object()
UNMAPPED = "list them under `config` of the recipe's `checkpoints`: params, constants, or ignore"
DEEPEST = 16
"""Maximum nesting of objects and lists."""
MAX_ITEMS = 10_000
"""Maximum number of items of a list that a single value stands for."""


@dataclass(frozen=True)
class Applied:
    """What a recipe is with some overrides."""

    params: abc.Mapping[str, Any] | None
    """The values of its params; None if these have errors."""
    words: abc.Collection[str]
    """The params that are words or lists of words, also where others have errors."""
    errors: Sequence[Diagnostic]


def params_of_words(declared: Sequence[Param], values: abc.Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the params that are words or lists of words, by their types or else by their values."""
    found = {param.name: values.get(param.name) for param in declared if param.type is None}
    by_value = {name for name, value in found.items() if all(isinstance(item, str) for item in _items(value))}
    return frozenset(by_value | {param.name for param in declared if param.type in ("str", "choice")})


def _items(value: Any) -> abc.Iterable[Any]:
    return value if isinstance(value, tuple | list) else (value,)


@dataclass(frozen=True)
class ConfigReading:
    """What a `config.json` sets in a recipe."""

    overrides: tuple[Override, ...]
    wrong: tuple[Diagnostic, ...]
    """The keys and values that the recipe does not support, and what these make wrong in it."""
    passed_over: tuple[str, ...]
    """The keys that only older files have, and that change nothing."""


def reading(
    checkpoints: YamlMapping,
    source: Source,
    applied: Callable[[Sequence[Override]], Applied],
    by_hand: abc.Collection[str] = (),
) -> ConfigReading:
    """Return what a `config.json` sets, and what of it the recipe does not support.

    Args:
        checkpoints: The value of `checkpoints:` in the recipe.
        source: The text of the file.
        applied: Returns what the recipe is with some overrides.
        by_hand: Paths that are set by hand, whatever the file has for them.

    Raises:
        RecipeError: It is no `config.json`, or one for another type of model, whole or in a part.
    """
    published = parsed(source)
    file = ConfigFile(source, published, places(source))
    kind = model_type_of(published)
    entry = entry_of(checkpoints, kind, file.places["model_type"].value if kind is not None else None)
    value = entry.value.entry("config") if isinstance(entry.value, YamlMapping) else None
    if value is None:
        message = f"there is no `config` beside the rules of {entry.key.text}"
        raise RecipeError([Diagnostic("config-unknown", message, entry.key.span, hint="config: {params: {OURS: KEY, …}}")])
    reader = ConfigReader()
    config = reader.config(value.value)
    if reader.diagnostics:
        raise RecipeError(reader.diagnostics)
    if another := [*_other_types(config, file)]:
        raise RecipeError(another)
    wrong: list[Diagnostic] = []
    own = applied(()) if any(_depends_on_type(setting, published) for setting in config.settings) else None
    found: dict[Source, tuple[Override, Setting]] = {}
    failed: set[str] = set()
    for setting in config.settings:
        if setting.path.text in by_hand:
            continue
        before = len(wrong)
        text = _value(setting, file, own, wrong)
        if text is not None:
            override = read_override(f"{setting.path.text}={text}")
            found[override.source] = override, setting
        elif len(wrong) > before:
            failed.add(setting.path.text.partition(".")[0])
    result = applied([override for override, _ in found.values()])
    wrong += _unknown(config, file, value.key.span)
    wrong += _old(config, file)
    if result.params is not None:
        wrong += _broken(config, file, result.params, failed)
    if not failed:
        settings = {source: setting for source, (_, setting) in found.items()}
        wrong += (_in_file(each, file, settings) for each in result.errors)
    passed_over = tuple(key for key in (*OLD, *OLD_CONSTANTS) if key in published and config.leaves_open(key))
    return ConfigReading(tuple(override for override, _ in found.values()), tuple(wrong or result.errors), passed_over)


@dataclass(frozen=True)
class ConfigFile:
    """A published `config.json`."""

    source: Source
    values: abc.Mapping[str, Any]
    places: abc.Mapping[str, JsonPlace]

    def place(self, key: str) -> Span:
        """Return where a key stands."""
        found = self.places.get(key)
        return Span(self.source, 1, 1, 1, 1) if found is None else found.key


def parsed(source: Source) -> dict[str, Any]:
    """Return the object of a JSON text.

    Raises:
        RecipeError: The text is not a JSON object.
    """
    try:
        value = json.loads(source.text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        place = Span(source, error.lineno, error.colno, error.lineno, error.colno + 1)
        raise RecipeError([Diagnostic("unreadable-file", f"this is not JSON: {error.msg.lower()}", place)]) from None
    except _Twice as error:
        raise RecipeError([Diagnostic("unreadable-file", str(error), repeated(source) or Span(source, 1, 1, 1, 1))]) from None
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


NO_JSON = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
"""Numbers that JSON lacks, by the words that transformers writes for them, as `{"__float__": "Infinity"}`."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any] | float:
    """Return the object of key-value pairs, or the number that it stands for; raise `ValueError` if a key occurs twice."""
    found = dict(pairs)
    if len(pairs) == 1 and isinstance(word := found.get("__float__"), str) and word in NO_JSON:
        return NO_JSON[word]
    if len(found) < len(pairs):
        key = next(key for place, (key, _) in enumerate(pairs) if key in dict(pairs[:place]))
        raise _Twice(f"the key {json.dumps(key)} occurs twice")
    return found


class _Twice(ValueError):
    """A key occurs twice in one object."""


def model_type_of(published: abc.Mapping[str, Any]) -> str | None:
    """Return the `model_type` of a `config.json`, or None without one."""
    value = published.get("model_type")
    return value if isinstance(value, str) else None


def leaves(published: abc.Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value with its key, `a.b` for nested ones."""
    for key, value in published.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def at(published: abc.Mapping[str, Any], key: str) -> Any:
    """Return the value of a key, `a.b` for a nested one, or `ABSENT` if it is missing or empty."""
    value: Any = published
    for name in key.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return ABSENT if empty(value) else value


def is_null(published: abc.Mapping[str, Any], key: str) -> bool:
    """Return whether a key, `a.b` for a nested one, is there and null."""
    value: Any = published
    for name in key.split("."):
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return value is None


def empty(value: Any) -> bool:
    """Return whether a value is null or an empty list or object."""
    return value is None or value == [] or value == {}


def shown(value: Any) -> str:
    """Return a value as JSON, strings without quotes."""
    return value if isinstance(value, str) else json.dumps(value)


def _in_file(wrong: Diagnostic, file: ConfigFile, settings: abc.Mapping[Source, Setting]) -> Diagnostic:
    """Return an error of the recipe with what is in an override moved to the key that the override is taken from."""
    labels = tuple(replace(each, span=_origin(each.span, file, settings)) for each in wrong.labels)
    if (setting := settings.get(wrong.span.source)) is not None:
        labels = (Label(setting.path.span, f"{setting.path.text} is taken from it"),)
    return replace(wrong, span=_origin(wrong.span, file, settings), labels=labels)


def _origin(span: Span, file: ConfigFile, settings: abc.Mapping[Source, Setting]) -> Span:
    """Return where the value of an override is written: at a key of the file, or at the default that is used without it."""
    setting = settings.get(span.source)
    if setting is None:
        return span
    key = next((key for key in setting.keys if at(file.values, key) is not ABSENT), None)
    if key is not None:
        return file.place(key)
    return span if setting.default is None else setting.default.span


def _unknown(config: Config, file: ConfigFile, span: Span) -> Iterator[Diagnostic]:
    """Yield an error for the keys that the recipe does not map."""
    found = [key for key, value in leaves(file.values) if not (empty(value) and config.speaks_within(key))]
    extra = [key for key in found if not config.speaks_of(key) and not _is_about_a_part(key, file.values)]
    if extra:
        missing = [key for key in config.mapped if at(file.values, key) is ABSENT]
        offered = [near for key in extra for near in suggest(key, missing, 1)]
        message = f"the recipe does not map {counted(len(extra), 'key')} of this file: {', '.join(extra)}"
        reasons = [f"{key}: {reason}" for key, reason in REFUSED.items() if any(f"{one}.".startswith(f"{key}.") for one in extra)]
        hint = "; ".join(reasons) or (did_you_mean(offered) if offered else UNMAPPED)
        others = tuple(Label(file.place(key), "nor this one") for key in extra[1:] if key in file.places)
        labels = (Label(span, "not here"), *others)
        yield Diagnostic("config-unknown", message, file.place(extra[0]), labels=labels, hint=hint)


def _is_about_a_part(key: str, published: abc.Mapping[str, Any]) -> bool:
    """Return whether a key of a part with a `model_type` of its own, such as `encoder.num_beams`, does not affect what it
    computes; the type itself does.
    """
    part, _, inner = key.partition(".")
    of_part = published.get(part)
    if not isinstance(of_part, dict) or model_type_of(of_part) is None or inner == "model_type":
        return False
    first = inner.partition(".")[0]
    return first in (*ABOUT_THE_FILE, *OLD) or (first in OLD_CONSTANTS and empty(of_part.get(first)))


def _old(config: Config, file: ConfigFile) -> Iterator[Diagnostic]:
    """Yield an error for each key of older files with a value that changes what the model computes."""
    for key, needed in OLD_CONSTANTS.items():
        value = at(file.values, key)
        if value is not ABSENT and shown(value) != needed and config.leaves_open(key):
            message = f"{key} is {shown(value)}; this recipe needs {needed or 'none'}"
            yield Diagnostic("config-value", message, file.place(key))


def _depends_on_type(setting: Setting, published: abc.Mapping[str, Any]) -> bool:
    """Return whether the type of a param decides if it takes what a file has for it."""
    return any(isinstance(at(published, key), list | str) for key in setting.keys) and not setting.by_word


def _value(setting: Setting, file: ConfigFile, own: Applied | None, wrong: list[Diagnostic]) -> str | None:
    """Return the value of an override of the recipe as it is by its `own` values; None if these are kept, or after an error."""
    path, default = setting.path, setting.default
    there = [(key, sole(key, value)) for key in setting.keys if (value := at(file.values, key)) is not ABSENT]
    if not there and setting.of_null is not None and any(is_null(file.values, key) for key in setting.keys):
        return setting.of_null.text
    if not there or (setting.formula is not None and len(there) < len(setting.keys)):
        if default is None and not setting.optional:
            missing = " and no ".join(key for key in setting.keys if not any(key == one for one, _ in there))
            message = f"{file.source.name} has no {missing}, which {path.text} is taken from"
            wrong.append(Diagnostic("config-missing", message, path.span, hint="`default:` gives the value to use without it"))
        return None if default is None else _as_text(default)
    key, value = there[0]
    span, labels = file.place(key), (Label(path.span, f"{path.text} is taken from it"),)
    if setting.formula is not None:
        try:
            held = {name: tuple(one) if isinstance(one, list) else one for name, one in there}
            return format_value(evaluate(setting.formula, held)).strip("`")
        except ExpressionError as error:
            wrong.append(Diagnostic("config-value", error.diagnostic.message, span, labels=labels, hint=error.diagnostic.hint))
            return None
    if any(other != value for _, other in there):
        values = ", ".join(f"{name} is {shown(other)}" for name, other in there)
        wrong.append(Diagnostic("config-value", f"{values}: these must be equal", span, labels=labels))
        return None
    if setting.counted:
        if isinstance(entries := at(file.values, key), list | dict):
            return str(len(entries))
        message = f"{key} is {json.dumps(value)}, which has no entries that {path.text} could count"
        hint = f"`{path.text}: {key}` reads the value itself"
        wrong.append(Diagnostic("config-value", message, span, labels=labels, hint=hint))
        return None
    if setting.times is not None and not isinstance(value, list):
        count = at(file.values, setting.times)
        if not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= MAX_ITEMS:
            what = f"is {shown(count)}" if count is not ABSENT else "is missing"
            message = f"{setting.times} {what}, but counts how often {key} stands in a list, 1 to {MAX_ITEMS:,} times"
            wrong.append(Diagnostic("config-value", message, span, labels=labels))
            return None
        value = [value] * count
    items = _items(value)
    if known := setting.by_word:
        if strange := next((item for item in items if shown(item) not in known), None):
            what = f"{key} has {shown(strange)}" if isinstance(value, list) else f"{key} is {shown(value)}"
            message = f"{what}, but this recipe supports {', '.join(known)}"
            wrong.append(Diagnostic("config-value", message, span, labels=labels))
            return None
        return to_text([known[shown(item)] for item in value]) if isinstance(value, list) else known[shown(value)]
    params = own.params if own is not None else None
    before = (params or {}).get(path.text)
    listed = isinstance(value, list) and (before is None or isinstance(before, tuple))
    words = own is not None and path.text in own.words
    # A string is used as a word alone, never as a piece of a recipe, such as the name of a block or a param.
    fits = (isinstance(item, str) and item.isidentifier() and item not in (params or {}) if words else _is_number(item)
            for item in items)  # fmt: skip
    if (isinstance(value, list) and not listed) or not all(fits):
        kind = ("word" if words else "number") + "s" * listed
        what = f"a list of {kind}" if listed else f"a {kind}"
        wrong.append(Diagnostic("config-value", f"{key} is {json.dumps(value)}, which is not {what}", span, labels=labels))
        return None
    return to_text(value) if words else shown(value)


def sole(key: str, value: Any) -> Any:
    """Return the value of a key; of the list of classes, the one class."""
    return value[0] if key == CLASSES and isinstance(value, list) and len(value) == 1 else value


def _is_number(item: Any) -> bool:
    """Return whether a value is a number or a boolean."""
    return item is not None and not isinstance(item, str | list | dict)


def _as_text(default: YamlScalar | YamlList) -> str:
    """Return a default as it is written after `PATH=`."""
    if isinstance(default, YamlScalar):
        return default.text
    return to_text([item.text for item in default.items if isinstance(item, YamlScalar)])


def _broken(config: Config, file: ConfigFile, params: abc.Mapping[str, Any], unknown: set[str]) -> Iterator[Diagnostic]:
    """Yield an error for each constant with another value; a missing key counts as correct, and so does a constant that is
    computed from an unknown param."""
    for constant in config.constants:
        value = at(file.values, constant.key)
        if value is not ABSENT and not constant.reads(unknown) and not _holds(value, constant, params):
            yield _other_value(constant, file)


def _other_value(constant: Constant, file: ConfigFile) -> Diagnostic:
    needed = " or ".join(_as_json(word) for word in constant.words)
    if constant.count is not None:
        needed = f"{needed}, for each layer below {constant.count.text}"
    message = f"{constant.key} is {shown(at(file.values, constant.key))}; this recipe needs {needed}"
    labels = (Label(constant.words[0].span, "needed here"),)
    return Diagnostic("config-value", message, file.place(constant.key), labels=labels)


def _as_json(word: YamlScalar | YamlList) -> str:
    return word.text if isinstance(word, YamlScalar) else f"[{', '.join(item.text for item in scalars(word))}]"


def _other_types(config: Config, file: ConfigFile) -> Iterator[Diagnostic]:
    """Yield an error for each part, such as `decoder`, that is of another type: its other keys mean something else there."""
    for constant in config.constants:
        value = at(file.values, constant.key)
        if constant.key.endswith(".model_type") and value is not ABSENT and not _holds(value, constant, {}):
            yield _other_value(constant, file)


def _holds(value: Any, constant: Constant, params: abc.Mapping[str, Any]) -> bool:
    if constant.count is None:
        return any(_same(value, word, params) for word in constant.words)
    try:
        count = evaluate(parse_expression(constant.count), params)
    except ExpressionError:  # an error of the recipe, which its check reports
        return True
    if not isinstance(value, list) or len(value) != count:
        return False
    return all(_same(item, constant.words[0], {**params, "layer": layer}) for layer, item in enumerate(value))


def chosen(expression: Expression, scope: abc.Mapping[str, Any]) -> Expression:
    """Return the branch of `then if condition else otherwise` that is taken.

    Raises:
        ExpressionError: A condition has no value.
    """
    while isinstance(expression, If):
        taken = as_bool(evaluate(expression.condition, scope), expression.condition.span)
        expression = expression.then if taken else expression.otherwise
    return expression


def text_at(span: Span) -> str:
    """Return what is written at a place in one line."""
    return span.source.lines[span.line - 1][span.column - 1 : span.end_column - 1]


def _same(value: Any, word: YamlScalar | YamlList, params: abc.Mapping[str, Any]) -> bool:
    if isinstance(word, YamlList):
        items = [*scalars(word)]
        there = isinstance(value, list) and len(value) == len(items)
        return there and all(_same(one, item, params) for one, item in zip(value, items, strict=True))
    if shown(value) == word.text:
        return True
    try:
        expression = chosen(parse_expression(word), params)
        if value == text_at(expression.span) and not isinstance(expression, RefPath) and not computes(expression, params):
            return True  # a word that is no name, such as `full-attention`
        if isinstance(value, str):
            return evaluate_word(expression, params, [value]) == value
        wanted = evaluate(expression, params)
    except ExpressionError:  # not an expression that can be evaluated
        return False
    if isinstance(wanted, tuple):
        return isinstance(value, list) and value == list(wanted)
    if isinstance(wanted, Fraction) and isinstance(value, float):
        wanted = float(wanted)  # a file has the nearest float of 4 / 3
    return isinstance(value, bool) == isinstance(wanted, bool) and bool(value == wanted)
