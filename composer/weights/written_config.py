"""A `config.json` written from a recipe, by the rules that read one backwards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from fractions import Fraction
from typing import Any

from blocks.core import Library
from composer.diagnostics import Diagnostic, RecipeError
from composer.language.composition.locator import Locator
from composer.language.composition.override import OverrideError
from composer.language.expressions.ast import Expression, If, RefPath
from composer.language.expressions.errors import ExpressionError
from composer.language.expressions.evaluator import as_int, evaluate
from composer.language.expressions.inverse import NoInverse, key_for
from composer.language.expressions.parser import names, parse_expression
from composer.language.recipe.keys import VALUE_WORDS
from composer.language.wording import BOOLEANS
from composer.language.yaml.nodes import YamlList, YamlMapping, YamlNode, YamlScalar
from composer.weights.config import ABSENT, at, chosen, shown, sole, text_at
from composer.weights.config_syntax import CLASSES, REFUSED, Config, ConfigReader, Constant, Setting, computes, scalars

COUNTED = {"id2label": "label2id"}
"""Keys of which the entries are counted and that can be written: names of classes, each with the key that maps them back."""
INDEX = "layer"
"""The name that counts the items of a list in a constant."""


class HeldValues:
    """The values of a recipe at the paths that its `config` sets."""

    def __init__(self, root: YamlMapping, library: Library, params: Mapping[str, Any]) -> None:
        self.params = params
        self._locator = Locator(root, library)

    def of(self, setting: Setting) -> Any:
        """Return the value at the path of a setting: a number, a boolean, a word or a tuple of them; None if there is none."""
        if setting.path.text in self.params:
            return self.params[setting.path.text]
        try:
            found = self._locator.held(setting.steps)
        except OverrideError:  # a field of a block that is not chosen
            return None
        if isinstance(found, YamlScalar | YamlList | YamlMapping):
            return self._written(found)
        return found if isinstance(found, bool | int | float | str) else None

    def _written(self, node: YamlNode) -> Any:
        match node:
            case YamlMapping():
                kind = node.get("type")
                return kind.text if isinstance(kind, YamlScalar) else None
            case YamlList(items=items):
                return tuple(map(self._written, items))
            case YamlScalar(text=text):
                try:
                    return evaluate(parse_expression(node), self.params)
                except ExpressionError:  # a word
                    return text


def written_config(config: Config, held: HeldValues, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `config.json` of a recipe: each key has the value from which the recipe's own is read.

    Args:
        config: The mapping of the keys.
        held: The values of the recipe.
        known: What the file has besides; keys that the mapping sets are replaced in it.

    Raises:
        RecipeError: A value has no inverse, two params need different values of one key, or a key is counted that is not known.
    """
    writer = _Writer(config, held, known)
    for setting in sorted(config.settings, key=lambda each: each.formula is not None):
        writer.set(setting)
    for constant in config.constants:
        writer.keep(constant)
    if writer.wrong:
        raise RecipeError(writer.wrong)
    return writer.made


class _Writer:
    def __init__(self, config: Config, held: HeldValues, known: Mapping[str, Any]) -> None:
        self.config, self.held, self.known = config, held, known
        self.made: dict[str, Any] = deepcopy(dict(known))
        self.by: dict[str, tuple[Any, YamlScalar]] = {}
        self.wrong: list[Diagnostic] = []

    def set(self, setting: Setting) -> None:
        """Write the keys of a setting. Several that agree are all written: older and newer readers each know one of them."""
        value = self.held.of(setting)
        if value is None:
            if not setting.optional and setting.default is None:
                self._refuse(setting, f"the recipe has no value at {setting.path.text}, from which {setting.keys[0]} is written")
            return
        if value == () and isinstance(setting.default, YamlList) and not setting.default.items:
            return  # read, an empty list is as a missing one
        if setting.counted:
            self._count(setting, value)
        elif setting.formula is not None:
            self._solve(setting, setting.formula, value)
        elif setting.of_null is not None and _as_written(value) == setting.of_null.text:
            self._put_all(setting, None)
        elif setting.by_word:
            theirs = self._theirs(setting, value)
            if theirs is not ABSENT:
                self._put_all(setting, [theirs] if setting.keys == (CLASSES,) else theirs)
        elif isinstance(value, str) and value not in BOOLEANS and setting.path.text not in self.held.params:
            self._refuse(setting, f"{setting.path.text} is {value}, for which {setting.keys[0]} has no value")
        else:
            self._put_all(setting, _as_float(plain(value)) if _is_float(setting.default) else plain(value))

    def keep(self, constant: Constant) -> None:
        """Write a constant, unless the file has a value already, which is compared when it is read, or it names code."""
        if constant.key in self.by or at(self.known, constant.key) is not ABSENT or constant.key.partition(".")[0] in REFUSED:
            return
        if constant.count is None:
            self._put(constant.key, self._constant(constant.words[0], self.held.params))
            return
        count = as_int(evaluate(parse_expression(constant.count), self.held.params), constant.count.span)
        items = [self._constant(constant.words[0], {**self.held.params, INDEX: index}) for index in range(count)]
        self._put(constant.key, items)

    def _put_all(self, setting: Setting, value: Any) -> None:
        for key in setting.keys:
            before = self.by.get(key)
            if before is not None and before[0] != value:
                message = (
                    f"{key} cannot be both {shown(before[0])}, for {before[1].text}, and {shown(value)}, for {setting.path.text}"
                )
                self._refuse(setting, message)
                return
            self.by[key] = value, setting.path
            self._put(key, value)

    def _put(self, key: str, value: Any) -> None:
        *above, last = key.split(".")
        inside = self.made
        for name in above:
            if not isinstance(inside.get(name), dict):
                inside[name] = {}
            inside = inside[name]
        inside[last] = value

    def _count(self, setting: Setting, value: Any) -> None:
        (key,) = setting.keys
        there = at(self.known, key)
        if isinstance(there, dict | list) and len(there) == value:
            return
        if key not in COUNTED:
            self._refuse(setting, f"{setting.path.text} is {value}, and what the {value} entries of {key} are is not known")
            return
        labels = {str(index): f"LABEL_{index}" for index in range(value)}
        self._put_all(setting, labels)
        self._put(COUNTED[key], {label: int(index) for index, label in labels.items()})

    def _solve(self, setting: Setting, formula: Expression, value: Any) -> None:
        scope = {key: found for key in setting.keys if (found := at(self.made, key)) is not ABSENT and key in self.by}
        try:
            solved = key_for(formula, value, scope)
        except (NoInverse, ExpressionError) as error:
            open_keys = {key for key in setting.keys if key not in scope}
            if open_keys and open_keys <= {constant.key for constant in self.config.constants}:
                return  # a constant says what the key is
            self._refuse(setting, f"{setting.path.text} is {shown(plain(value))}, from which {error} cannot be computed back")
            return
        if solved is not None:
            self.by[solved[0]] = plain(solved[1]), setting.path
            self._put(solved[0], plain(solved[1]))

    def _theirs(self, setting: Setting, value: Any) -> Any:
        """Return the published value for one of ours, or the list of those for a list; `ABSENT` after an error."""
        known = {ours.text: _published(theirs) for theirs, ours in reversed(setting.values)}  # the first of several is meant
        there = sole(CLASSES, at(self.known, CLASSES))
        if setting.keys == (CLASSES,) and isinstance(there, str) and setting.by_word.get(there) == _as_written(value):
            return there  # a body and the same with a head are of several classes
        items = [_as_written(each) for each in (value if isinstance(value, tuple) else (value,))]
        if strange := next((each for each in items if each not in known), None):
            stands = ", ".join(dict.fromkeys(ours.text for _, ours in setting.values))
            message = f"{setting.path.text} is {strange}; {setting.keys[0]} stands for {stands}"
            self._refuse(setting, message)
            return ABSENT
        return [known[each] for each in items] if isinstance(value, tuple) else known[items[0]]

    def _constant(self, word: YamlScalar | YamlList, scope: Mapping[str, Any]) -> Any:
        """Return the value that a constant needs: a word, a number, what an expression over params gives, or a list of these."""
        if isinstance(word, YamlList):
            return [self._constant(item, scope) for item in scalars(word)]
        found = _published(word.text)
        if not isinstance(found, str):
            return found
        try:
            expression = parse_expression(word)
        except ExpressionError:  # a word that is no expression
            return word.text
        try:
            expression = chosen(expression, scope)
            if isinstance(expression, RefPath) and not names(expression) & (scope.keys() | VALUE_WORDS):
                return expression.text
            return plain(evaluate(expression, scope))
        except ExpressionError as error:
            if computes(expression, scope) or (word.plain and isinstance(expression, If)):
                self.wrong.append(error.diagnostic)
            return text_at(expression.span)  # a word, such as `full-attention`

    def _refuse(self, setting: Setting, message: str) -> None:
        hint = "a config.json cannot hold this recipe"
        if setting.formula is not None:
            hint = f"say what {' or '.join(setting.keys)} is under `constants` too: a value, or {{each: …, count: …}} for a list"
        self.wrong.append(Diagnostic("config-value", message, setting.path.span, hint=hint))


def config_in(node: YamlNode | None) -> Config:
    """Return the mapping of keys under `config`.

    Raises:
        RecipeError: It has errors.
    """
    reader = ConfigReader()
    config = reader.config(node)
    if reader.diagnostics:
        raise RecipeError(reader.diagnostics)
    return config


def changed_values(config: Config, before: HeldValues, after: HeldValues) -> Iterator[Setting]:
    """Yield the settings of which two recipes have different values."""
    return (each for each in config.settings if before.of(each) != after.of(each))


def plain(value: Any) -> Any:
    """Return a value as JSON has it: a whole quotient is an integer, any other a float."""
    match value:
        case tuple():
            return [plain(each) for each in value]
        case Fraction():
            return int(value) if value.denominator == 1 else float(value)
    return value


def _published(word: str) -> Any:
    """Return the value that is shown as a word: a string, unless it is another value in JSON, such as `0.5`, `null` or `{}`."""
    try:
        value = json.loads(word)
    except (ValueError, RecursionError):
        return word
    return word if isinstance(value, str) else value


def _is_float(default: YamlNode | None) -> bool:
    """Return whether the default of a key is written as a float."""
    return isinstance(default, YamlScalar) and isinstance(_published(default.text), float)


def _as_float(value: Any) -> Any:
    """Return a whole number, or those of a list, as floats: some readers take no integer where they expect one."""
    if isinstance(value, list):
        return [_as_float(each) for each in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _as_written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(plain(value))
