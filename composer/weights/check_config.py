"""`config:` of a model type held against its recipe, without a `config.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from blocks.core import Library
from composer.diagnostics import Diagnostic, Label, Span
from composer.graph.passes import compile_graph
from composer.graph.passes.expand.expand import expand
from composer.language.composition.locator import Locator
from composer.language.composition.merge import merge
from composer.language.composition.override import OverrideError
from composer.language.expressions.ast import Expression, If, RefPath
from composer.language.expressions.errors import ExpressionError
from composer.language.expressions.evaluator import as_bool, as_int, evaluate
from composer.language.expressions.parser import parse_expression
from composer.language.recipe.free_names import identifiers
from composer.language.suggestions import did_you_mean, suggest
from composer.language.wording import BOOLEANS
from composer.language.yaml.nodes import Document, YamlEntry, YamlList, YamlMapping, YamlNode, YamlScalar
from composer.memo import IdentityKey, Memo
from composer.weights.config import text_at
from composer.weights.config_syntax import Config, ConfigReader, Constant, Setting, computes
from composer.weights.fit import first_of_each

INDEX = "layer"
"""The name that counts the items of a list in a constant."""
OPEN = frozenset({"missing-field", "each-items", "no-such-item"})
"""Errors that another key of the file may take away: of a block, the fields are set one by one; of lists, the lengths agree."""


def config_mistakes(
    checkpoints: YamlMapping, document: Document, library: Library, params: Mapping[str, Any]
) -> list[Diagnostic]:
    """Return what `config:` of each model type names and the recipe does not have, and values that the recipe never takes.

    Args:
        checkpoints: The value of `checkpoints:` in the recipe.
        document: The recipe, which has no errors.
        library: The blocks that it may name.
        params: The values of its params.
    """
    found: list[Diagnostic] = []
    for entry in checkpoints:
        node = entry.value.get("config") if isinstance(entry.value, YamlMapping) else None
        reader = ConfigReader()
        config = reader.config(node)
        if node is not None and document.root is not None and not reader.diagnostics:
            paths = _Paths(document, document.root, library, params)
            found += paths.mistakes(config.settings)
            found += _said_twice(config, params)
            for constant in config.constants:
                found += _constant(constant, params)
    return first_of_each(found)


class _Paths:
    """The params of a `config`, each a path into the recipe."""

    def __init__(self, document: Document, root: YamlMapping, library: Library, params: Mapping[str, Any]) -> None:
        self.document, self.root, self.library, self.params = document, root, library, params
        self.locator = Locator(root, library)
        self.with_block: Memo[IdentityKey[YamlNode], Locator | None] = Memo()

    def mistakes(self, settings: Sequence[Setting]) -> Iterator[Diagnostic]:
        """Yield an error for each path that leads nowhere, for two to one place, and for each value that is not taken there."""
        places: dict[tuple[str, ...], Setting] = {}
        sound: list[Setting] = []
        for setting in settings:
            wrong = self._leads_nowhere(setting, settings)
            if wrong is not None:
                yield wrong
                continue
            sound.append(setting)
            if (place := self._place(setting)) and (first := places.setdefault(place, setting)) is not setting:
                also = (Label(first.path.span, "and here"),)
                message = f"{setting.path.text} is set twice"
                yield Diagnostic("checkpoints-ambiguous", message, setting.path.span, labels=also)
        for values in zip_longest(*([(setting, value) for value in self._ours(setting)] for setting in sound)):
            others = [each for each in values if each is not None and not self._is_own(*each)]
            if others:  # of its own values, the recipe has no errors
                yield from self._refused(others)

    def _is_own(self, setting: Setting, value: YamlNode) -> bool:
        """Return whether a value is the one that a param of the recipe has, as it is written."""
        params = self.root.get("params")
        own = params.get(setting.path.text) if isinstance(params, YamlMapping) else None
        own = own.get("default") if isinstance(own, YamlMapping) else own
        if not isinstance(own, YamlScalar) or not isinstance(value, YamlScalar):
            return False
        return (own.text, own.plain) == (value.text, value.plain)

    def _leads_nowhere(self, setting: Setting, settings: Sequence[Setting]) -> Diagnostic | None:
        """Return the error in the path or in a value of a setting; a path may lead into a block that another one sets."""
        values: Sequence[YamlNode] = self._ours(setting) or [YamlMapping((), setting.path.span)]
        wrong = next((found for value in self._ours(setting) if (found := self._of_another_type(setting, value))), None)
        if wrong is None and isinstance(self.params.get(setting.path.text), tuple) and (setting.counted or setting.formula):
            message = f"{setting.path.text} is a list, and this is a single number"
            wrong = Diagnostic("not-a-list", message, setting.path.span, hint=f"{setting.path.text}: KEY reads a list")
        if setting.times is not None and not isinstance(self.params.get(setting.path.text, ()), tuple):
            message = f"{setting.path.text} is not a list, in which a value could stand {setting.times} times"
            wrong = Diagnostic("checkpoints-form", message, setting.path.span, hint=f"{setting.path.text}: KEY reads one value")
        if wrong is not None:
            return wrong
        for locator in (self.locator, *self._with_blocks(setting, settings)):
            try:
                for value in values:
                    locator.change(setting.steps, value)
                return None
            except OverrideError as error:
                wrong = error.diagnostic
        return wrong

    def _ours(self, setting: Setting) -> list[YamlNode]:
        """Return the values of ours that are written for a setting; one of an item is a list of as many as the param has."""
        own = self.params.get(setting.path.text)
        values: list[YamlNode] = [ours for _, ours in setting.values]
        if isinstance(own, tuple):
            values = [YamlList((ours,) * max(1, len(own)), ours.span) for ours in values]
        return [*values, *([] if setting.default is None else [setting.default])]

    def _of_another_type(self, setting: Setting, value: YamlNode) -> Diagnostic | None:
        """Return the error in a word for a param that is a number or a boolean, or a list of such."""
        own = self.params.get(setting.path.text)
        if isinstance(own, tuple) and isinstance(value, YamlList) and own and value.items:
            own, value = own[0], value.items[0]
        if not isinstance(value, YamlScalar):
            return None
        word = value.text
        if isinstance(own, int | float) and word.isidentifier() and word not in self.params and word not in BOOLEANS:
            code, kind = ("not-a-boolean", "boolean") if isinstance(own, bool) else ("not-a-number", "number")
            offered = suggest(word, [*self.params, *(BOOLEANS if isinstance(own, bool) else ())])
            message = f"{setting.path.text} must be a {kind}, not `{word}`"
            return Diagnostic(code, message, value.span, hint=did_you_mean(offered) if offered else "")
        return None

    def _with_blocks(self, setting: Setting, settings: Sequence[Setting]) -> Iterator[Locator]:
        """Yield the recipe with each block that another setting may put where a path leads through."""
        for other in settings:
            if setting.path.text.startswith(f"{other.path.text}."):
                for value in self._ours(other):
                    found = self.with_block.get(IdentityKey(value), lambda: self._with_block(other, value))  # noqa: B023
                    if found is not None:
                        yield found

    def _with_block(self, other: Setting, value: YamlNode) -> Locator | None:
        """Return the recipe with a block that a setting may put into it; None if it has no place."""
        try:
            change = self.locator.change(other.steps, value)
        except OverrideError:
            return None
        return Locator(merge(self.root, change, self.library)[0], self.library)

    def _place(self, setting: Setting) -> tuple[str, ...]:
        """Return the whole path of a setting; nothing for one into a block that another one sets."""
        try:
            node = self.locator.change(setting.steps, YamlMapping((), setting.path.span))
        except OverrideError:
            return ()
        steps = []
        while node.entries:
            (*_, entry) = node.entries
            steps.append(entry.key.text)
            assert isinstance(entry.value, YamlMapping)
            node = entry.value
        return tuple(steps[:2] if steps[0] == "params" and steps[2:] == ["default"] else steps)

    def _refused(self, values: Sequence[tuple[Setting, YamlNode]]) -> Iterator[Diagnostic]:
        """Yield the errors that the recipe has with some values at the place of these."""
        root = self.root
        for setting, value in values:
            try:
                root, _ = merge(root, Locator(root, self.library).change(setting.steps, value), self.library)
            except OverrideError:  # of a block that is not set here
                continue
        changed = Document(self.document.source, _reading(root, self.root), (), self.document.ambiguous_blocks)
        for wrong in compile_graph(changed, self.library, expand).diagnostics:
            if wrong.severity == "error" and wrong.code not in OPEN and not _bounded_by_another(wrong):
                if any(_inside(wrong.span, value.span) for _, value in values):
                    yield wrong
                elif causes := [value.span for _, value in values if any(_inside(one.span, value.span) for one in wrong.labels)]:
                    yield replace(wrong, span=causes[0], labels=(Label(wrong.span, "needed here"),))


def _reading(root: YamlMapping, before: YamlMapping) -> YamlMapping:
    """Return a changed recipe with no other nodes than those that read what has changed, where only params have: no mistake in
    another node can be in a value. What is published is no part of the graph either.
    """
    root = YamlMapping(tuple(entry for entry in root.entries if entry.key.text != "checkpoints"), root.span)
    if any(entry.key.text != "params" and before.get(entry.key.text) is not entry.value for entry in root):
        return root
    graph, params, blocks = root.get("graph"), root.get("params"), root.get("blocks")
    old = before.get("params")
    if not isinstance(graph, YamlMapping) or not isinstance(params, YamlMapping) or not isinstance(old, YamlMapping):
        return root
    changed = {entry.key.text for entry in params if old.get(entry.key.text) is not entry.value}
    named = {
        entry.key.text: identifiers([entry.value]) for part in (params, blocks) if isinstance(part, YamlMapping) for entry in part
    }
    while more := {name for name, read in named.items() if name not in changed and not read.isdisjoint(changed)}:
        changed |= more
    kept = _nodes_reading(graph, changed)
    entries = (YamlEntry(entry.key, kept) if entry.value is graph else entry for entry in root)
    return YamlMapping(tuple(entries), root.span)


def _nodes_reading(graph: YamlMapping, names: Set[str]) -> YamlMapping:
    """Return a graph with the nodes that may read one of some names, in repeats too; with its first one where none does."""
    kept = []
    for entry in graph:
        node = entry.value
        if identifiers([node]).isdisjoint(names):
            continue
        if isinstance(node, YamlMapping) and "repeat" in node and "each" not in node:
            inner = node.get("graph")
            if isinstance(inner, YamlMapping):
                inside = (YamlEntry(one.key, _nodes_reading(inner, names)) if one.value is inner else one for one in node)
                node = YamlMapping(tuple(inside), node.span)
        kept.append(YamlEntry(entry.key, node))
    return YamlMapping(tuple(kept) or graph.entries[:1], graph.span)


def _inside(span: Span, outer: Span) -> bool:
    first, last = (span.line, span.column), (span.end_line, span.end_column)
    return span.source == outer.source and (outer.line, outer.column) <= first and last <= (outer.end_line, outer.end_column)


def _bounded_by_another(wrong: Diagnostic) -> bool:
    """Return whether a value is out of a range that a param gives, which the file may set too."""
    if wrong.code != "out-of-range" or not wrong.labels:
        return False
    return any(letter.isalpha() for letter in text_at(wrong.labels[0].span))


def _said_twice(config: Config, params: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """Yield an error for each key that is ignored although it is mapped, and for each that sets a param and has one value."""
    read = {key: setting for setting in config.settings if not setting.counted for key in setting.keys}
    for constant in config.constants:
        setting = read.get(constant.key)
        if setting is not None and len(constant.words) == 1 and constant.count is None and not constant.reads(params):
            message = f"{setting.path.text} is set from {constant.key}, which can only be {text_at(constant.words[0].span)}"
            also = (Label(setting.path.span, "set from it here"),)
            yield Diagnostic("checkpoints-ambiguous", message, constant.span, labels=also,
                             hint=f"a param may be limited to some values, `{constant.key}: [A, B]`")  # fmt: skip
    for key in config.ignore:
        if key.text in config.mapped:
            yield Diagnostic("checkpoints-ambiguous", f"{key.text} is ignored, but it is a param or a constant too", key.span)


def _constant(constant: Constant, params: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """Yield the errors in what a key must be: a name that is no param, a condition or a count without a value."""
    scope = dict(params) if constant.count is None else {**params, INDEX: 0}
    if constant.count is not None:
        try:
            count = as_int(evaluate(parse_expression(constant.count), params), constant.count.span)
            if count < 0:
                yield Diagnostic("out-of-range", f"the count is {count}; it must be at least 0", constant.count.span)
        except ExpressionError as no:
            yield no.diagnostic
    for word in constant.scalars:
        try:
            expression = parse_expression(word)
        except ExpressionError:  # a word that is no expression
            continue
        yield from _expression(expression, word, scope)


def _expression(expression: Expression, word: YamlScalar, scope: Mapping[str, Any]) -> Iterator[Diagnostic]:
    match expression:
        case If(condition=condition, then=then, otherwise=otherwise):
            try:
                as_bool(evaluate(condition, scope), condition.span)
            except ExpressionError as no:
                yield no.diagnostic
            yield from _expression(then, word, scope)
            yield from _expression(otherwise, word, scope)
        case RefPath(text=text) if text not in scope:
            if word.plain and (offered := suggest(text, scope)):
                message = f"`{text}` is no param, so it is a word"
                hint = f"{did_you_mean(offered)} In quotes, a word is meant"
                yield Diagnostic("unknown-name", message, expression.span, "warning", hint=hint)
        case _ if computes(expression, scope):
            try:
                evaluate(expression, scope)
            except ExpressionError as no:
                yield no.diagnostic
