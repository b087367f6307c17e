"""Parsing of `checkpoints:` into rules."""

from __future__ import annotations

import re
from collections import abc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from composer.diagnostics import Span
from composer.language.expressions.errors import ExpressionError
from composer.language.expressions.evaluator import as_bool, as_float, as_int, evaluate
from composer.language.expressions.parser import parse_expression
from composer.language.name_patterns import OPEN, NamePattern, in_pieces, only_ours, pattern
from composer.language.recipe.keys import keys_of
from composer.language.unknown_names import unknown
from composer.language.yaml.nodes import YamlEntry, YamlList, YamlMapping, YamlNode, YamlScalar
from composer.weights.config_syntax import ConfigReader
from composer.weights.fit import PIECES
from composer.weights.rule_syntax import Forms
from composer.weights.rules import Copy, Ignored, Off, Permutation, Rule, Rules

LAYOUTS = ("halves", "interleaved")


class RuleReader(Forms):
    """Parses one entry of `checkpoints:` and collects diagnostics; without the values of params, only the form is checked."""

    def __init__(self, params: abc.Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.params = params
        self.off: list[Off] = []

    def rules(self, entry: YamlEntry) -> Rules:
        """Return the rules under a model type."""
        value = entry.value
        if not isinstance(value, YamlMapping):
            self.error("checkpoints-form", value.span, "a model type has its rules below it", hint="rules: {OURS: THEIRS, …}")
            return Rules(entry.key.text, entry.key.span, (), "", (), (), ())
        self.keys(value, keys_of("checkpoint"), "model type")
        strip, rules = value.get("strip_prefix"), value.get("rules")
        config = ConfigReader()
        config.config(value.get("config"))
        self.diagnostics.extend(config.diagnostics)
        if rules is None:
            hint = "rules: {OURS: THEIRS, …}, or `like: NAME` for those of another map"
            self.error("checkpoints-form", entry.key.span, f"{entry.key.text} has no rules", hint=hint)
        return Rules(
            entry.key.text,
            entry.key.span,
            tuple(rule for each in self.entries(rules, "rules map our names to published ones") for rule in self._rules(each)),
            self._prefix(strip) if strip is not None else "",
            tuple(
                (each.key.text, self.text(each.value, "the word of newer files is"))
                for each in self.entries(
                    value.get("legacy_names"), "legacy names map words of older files to those of newer ones"
                )
            ),
            tuple(
                each
                for item in self.items(value.get("ignore"), "`ignore` must be a list of names", "[lm_head.weight]")
                if (each := self._ignored(item))
            ),
            tuple(
                Copy(each.key.text, self.text(each.value, "a published name is"), each.key.span, each.value.span)
                for each in self.entries(value.get("copies"), "copies map published names to published names")
            ),
            tuple(self.off),
        )

    def _prefix(self, node: YamlNode) -> str:
        """Return the prefix of published names, which ends where a component of a name does."""
        prefix = self.text(node, "a prefix is")
        if prefix and (prefix[-1].isalnum() or prefix[-1] == "_"):
            self.error("checkpoints-form", node.span, f"the prefix {prefix} ends inside a name", hint=f"write `{prefix}.`")
        return prefix

    def _rules(self, entry: YamlEntry) -> Iterator[Rule]:
        """Yield the rules for one pattern of our names that apply: one, or of a list those whose `when` is true."""
        alternatives: tuple[tuple[YamlNode, Span], ...] = ((entry.value, entry.key.span),)
        if isinstance(entry.value, YamlList):
            alternatives = tuple((item, item.span) for item in entry.value.items)
            bare = [each.span for each, _ in alternatives if not isinstance(each, YamlMapping) or "when" not in each]
            if bare or not alternatives:
                span = bare[0] if bare else entry.value.span
                self.error("checkpoints-form", span, "each of several rules needs its condition", hint="{from: NAME, when: …}")
                return
        for value, span in alternatives:
            applies = self._applies(value)
            reader = self if applies else RuleReader()  # of a rule that does not apply, sizes need not have a value
            rule = reader._rule(entry.key, value, span)
            if not applies:
                self.diagnostics.extend(reader.diagnostics)
                condition = value.get("when") if isinstance(value, YamlMapping) else None
                if rule is not None and isinstance(condition, YamlScalar):
                    self.off.append(Off(span, rule.theirs, condition.text))
            elif rule is not None:
                yield rule

    def _rule(self, key: YamlScalar, value: YamlNode, span: Span) -> Rule | None:
        """Return a rule; None after an error in it, which is reported."""
        before = len(self.diagnostics)
        operations = value if isinstance(value, YamlMapping) else YamlMapping((), value.span)
        source = value.get("from") if isinstance(value, YamlMapping) else value
        self.keys(operations, keys_of("rule"), "rule")
        if source is None:
            self.error("checkpoints-form", value.span, "a rule needs the published name that it reads", hint="{from: NAME, …}")
            return None
        ours, names = self._pattern(key), self._spellings(source)
        if ours is None or not names:
            return None
        theirs, spellings = names[0], names[1:]
        if sign := re.search(r"[\\-]", ours.text):
            place = ours.scalar.part(sign.start(), sign.end())
            self.error("checkpoints-pattern", place, f"`{ours.text}` is no name of ours, which consist of words", hint=OPEN)
            return None
        either = None
        if not any(key in operations for key in ("split", "concat")) and len(lone := only_ours(ours, theirs)) == 1:
            (either,) = lone
        stack, (split, concat) = self._stack(operations, ours, theirs), self._in_pieces(operations, ours, theirs)
        rule = Rule(
            span, ours, theirs, self._shape(operations), self.boolean(operations.get("transpose"), "transpose"),
            self._axis(operations), self._groups(operations), split, concat, stack, self._permutation(operations, ours),
            self._offset(operations), either, spellings,
        )  # fmt: skip
        for each in names:
            pieces = self._in_pieces(operations, ours, each) if len(self.diagnostics) == before else (split, concat)
            if len(self.diagnostics) == before:
                self._match(replace(rule, theirs=each), value.span)
            if len(self.diagnostics) == before and pieces != (split, concat):
                self.error("checkpoints-pattern", each.span, "names of one tensor need their choices in the same order")
        return rule if len(self.diagnostics) == before else None

    def _spellings(self, source: YamlNode) -> tuple[NamePattern, ...]:
        """Return the published name, or the names that different files have for it; none after an error, which is reported."""
        nodes = source.items if isinstance(source, YamlList) else (source,)
        if isinstance(source, YamlList) and len(nodes) < 2:
            message = "a list of names has what different files call a tensor"
            self.error("checkpoints-form", source.span, message, hint="from: [NAME, OLD_NAME]")
            return ()
        found = tuple(made for node in nodes if (made := self._pattern(node)) is not None)
        return found if len(found) == len(nodes) else ()

    def _match(self, rule: Rule, span: Span) -> None:
        """Report if one side of a rule does not determine the other."""
        ours, theirs = rule.ours, rule.theirs
        numbers = [len(words) for place, words in enumerate(ours.choices) if place not in (rule.split, rule.either)]
        published = [len(words) for place, words in enumerate(theirs.choices) if place != rule.concat]
        if ours.indices != theirs.indices - {rule.stack}:
            odd = sorted(ours.indices ^ (theirs.indices - {rule.stack}))[0]
            self.error("checkpoints-pattern", span, f"`<{odd}>` is on one side only")
        elif ours.rest != theirs.rest:
            self.error("checkpoints-pattern", span, "`*` is on one side only")
        elif rule.stack and rule.permute:
            self.error("checkpoints-form", span, "stacked tensors cannot be permuted")
        elif len(numbers) != len(published):
            counts = f"{len(numbers) or 'none'} of ours and {len(published) or 'none'} of theirs"
            self.error("checkpoints-pattern", span, f"choices of both sides correspond in order: there are {counts}", hint=PIECES)
        elif unlike := next(((mine, other) for mine, other in zip(numbers, published, strict=True) if mine != other), None):
            counts = f"{unlike[0]} of ours and {unlike[1]} of theirs"
            self.error("checkpoints-pattern", span, f"two choices need the same number of words: there are {counts}", hint=PIECES)

    def _applies(self, rule: YamlNode) -> bool:
        """Return whether the `when` of a rule is true, which it is without one and if the params are not known."""
        condition = rule.get("when") if isinstance(rule, YamlMapping) else None
        if condition is None:
            return True
        value = self._value(condition, "`when`")
        try:
            return value is None or as_bool(value, condition.span)
        except ExpressionError as no:
            self.diagnostics.append(no.diagnostic)
            return True

    def _ignored(self, node: YamlNode) -> Ignored | None:
        """Return published tensors that are not needed: a pattern, or one with a condition over its indices."""
        if not isinstance(node, YamlMapping):
            names = self._pattern(node, matched_only=True)
            return None if names is None else Ignored(names)
        self.keys(node, keys_of("ignored"), "published name that is ignored")
        condition, names = node.get("when"), self._pattern(node.get("from"), matched_only=True)
        if names is None or not isinstance(condition, YamlScalar):
            if node.get("from") is None or not isinstance(condition, YamlScalar):
                self.error("checkpoints-form", node.span, "what is ignored in part is a name with a condition",
                           hint="{from: model.layers.<layer>.*, when: layer >= n_layers}")  # fmt: skip
            return None
        try:
            expression = parse_expression(condition)
            if self.params is not None:
                as_bool(evaluate(expression, {**self.params, **dict.fromkeys(names.indices, 0)}), condition.span)
        except ExpressionError as no:
            self.diagnostics.append(no.diagnostic)
            return None
        return Ignored(names, expression, {} if self.params is None else self.params)

    def _in_pieces(self, operations: YamlMapping, ours: NamePattern, theirs: NamePattern) -> tuple[int | None, int | None]:
        """Return the choice of ours that is split and the choice of theirs that is concatenated."""
        present = [entry for entry in operations if entry.key.text in ("split", "concat", "stack")]
        if len(present) > 1:
            self.error("checkpoints-form", operations.span, "a rule can split, concatenate or stack, but only one of these")
            return None, None
        return self._pieces(operations, "split", ours, theirs), self._pieces(operations, "concat", theirs, ours)

    def _pieces(self, operations: YamlMapping, key: str, pieces: NamePattern, other: NamePattern) -> int | None:
        """Return the choice that names the pieces: it has as many words as there are pieces, and the other choices are those of
        the other side."""
        node = operations.get(key)
        if node is None:
            return None
        sizes = [len(words) for words in pieces.choices]
        count = int(node.text) if isinstance(node, YamlScalar) and node.text.isdecimal() and len(node.text) < 10 else 0
        fitting = in_pieces(pieces, other, count)
        if count not in sizes:
            says = f"the choice names {' or '.join(map(str, sizes))}" if sizes else "there is no choice that names them"
            self.error("checkpoints-form", node.span, f"{key} is the number of pieces, and {says}",
                        hint=f"`{key}: {sizes[0]}`" if sizes else "such as `(q|k|v)` for 3 pieces")  # fmt: skip
        elif not fitting:
            side = "the published name" if key == "split" else "our name"
            self.error("checkpoints-pattern", operations.span, f"{side} has other choices than those that name no pieces",
                        hint=f"without the choice of {count} pieces, both sides have the same choices")  # fmt: skip
        elif len(fitting) > 1:
            self.error("checkpoints-pattern", node.span, f"several choices have {count} words, and any may name the pieces",
                        hint="write a rule for each word of the other one")  # fmt: skip
        return fitting[0] if fitting else None

    def _stack(self, operations: YamlMapping, ours: NamePattern, theirs: NamePattern) -> str:
        """Return the index along which tensors are stacked; empty without `stack`."""
        node = operations.get("stack")
        if node is None:
            return ""
        name = node.text if isinstance(node, YamlScalar) else ""
        if name not in theirs.indices - ours.indices:
            self.error("checkpoints-form", node.span, "`stack` needs an index that only the published name has",
                        hint="`stack: expert` for `experts.<expert>.weight`")  # fmt: skip
        return name

    def _shape(self, operations: YamlMapping) -> tuple[int, ...] | None:
        """Return the published shape given by `reshape`; None without it."""
        node = operations.get("reshape")
        if node is None:
            return None
        if not isinstance(node, YamlList):
            self.error("checkpoints-form", node.span, "`reshape` is the published shape, a list of sizes",
                        hint="`reshape: [d_model, 3, patch, patch]`")  # fmt: skip
            return None
        return tuple(self._size(item, "a size") for item in node.items)

    def _groups(self, operations: YamlMapping) -> int:
        """Return the number of groups that contain a part of each piece."""
        node = operations.get("interleave")
        if node is None:
            return 1
        if "split" not in operations and "concat" not in operations:
            self.error("checkpoints-form", node.span, "`interleave` groups pieces, and this rule has none",
                        hint="with `split` or `concat`, such as `{from: …, split: 3, interleave: n_heads}`")  # fmt: skip
        return self._size(node, "interleave")

    def _permutation(self, operations: YamlMapping, ours: NamePattern) -> Permutation | None:
        """Return the permutation given by `permute_rotary: HEAD_DIM` or by its long form."""
        node = operations.get("permute_rotary")
        if node is None:
            return None
        if not isinstance(node, YamlMapping):
            size = self._size(node, "permute_rotary")
            return self._paired(Permutation(size, size, (), LAYOUTS[0]), node.span)
        self.keys(node, keys_of("rotary permutation"), "permutation")
        if (width := node.get("head_dim")) is None:
            self.error(
                "checkpoints-form", node.span, "a permutation needs the number of rows of a head", hint="{head_dim: 64, …}"
            )
            return None
        head_dim, rotary_dim, layout = self._size(width, "head_dim"), node.get("rotary_dim"), node.get("ours")
        words = tuple(
            self.text(item, "a word of the choice is")
            for item in self.items(node.get("of"), "the permuted pieces must be a list", "of: [q, k]")
        )
        known = [word for choice in ours.choices for word in choice]
        for word in words:
            if word not in known:
                self.diagnostics.append(unknown("checkpoints-form", node.span, "word of our choice", word, known))
        if layout is not None and not (isinstance(layout, YamlScalar) and layout.text in LAYOUTS):
            self.error("checkpoints-form", layout.span, "a rotary layout is `halves` or `interleaved`")
        made = Permutation(
            head_dim,
            head_dim if rotary_dim is None else self._size(rotary_dim, "rotary_dim"),
            words,
            layout.text if isinstance(layout, YamlScalar) else LAYOUTS[0],
        )
        return self._paired(made, node.span)

    def _paired(self, made: Permutation, span: Span) -> Permutation:
        if self.params is not None and (made.rotary_dim % 2 or made.rotary_dim > made.head_dim):
            self.error("checkpoints-form", span, f"{made.rotary_dim} of {made.head_dim} rows cannot be rotated in pairs")
        return made

    def _offset(self, operations: YamlMapping) -> float:
        """Return the number that is added to the published tensor; 0 without one."""
        node = operations.get("offset")
        value = None if node is None else self._value(node, "offset")
        if node is None or value is None:
            return 0.0
        try:
            return as_float(value, node.span)
        except ExpressionError as no:
            self.diagnostics.append(no.diagnostic)
            return 0.0

    def _size(self, node: YamlNode, what: str) -> int:
        """Return the integer of an expression over params, at least 1; report any other, and return 1."""
        value = self._value(node, what)
        try:
            size = 1 if value is None else as_int(value, node.span)
        except ExpressionError as no:
            self.diagnostics.append(no.diagnostic)
            return 1
        if size < 1:
            self.error("checkpoints-form", node.span, f"{what} is {size}; it must be at least 1")
        return max(1, size)

    def _value(self, node: YamlNode, what: str) -> Any:
        """Return the value of an expression over params, or None if these are not known or after an error, which is reported."""
        if not isinstance(node, YamlScalar):
            self.error("checkpoints-form", node.span, f"{what} must be a single value")
            return None
        try:
            expression = parse_expression(node)
            return None if self.params is None else evaluate(expression, self.params)
        except ExpressionError as no:
            self.diagnostics.append(no.diagnostic)
            return None

    def _axis(self, operations: YamlMapping) -> int:
        node = operations.get("axis")
        if node is None:
            return 0
        if not isinstance(node, YamlScalar) or node.text not in ("0", "1", "2", "3"):
            self.error("checkpoints-form", node.span, "an axis is one of ours, counted from 0")
            return 0
        if "split" not in operations and "concat" not in operations:
            self.error("checkpoints-form", node.span, "`axis` is that of the pieces, and this rule has none",
                        hint="with `split` or `concat`, such as `{from: …, concat: 2, axis: 1}`")  # fmt: skip
        return int(node.text)

    def _pattern(self, node: YamlNode | None, *, matched_only: bool = False) -> NamePattern | None:
        if not isinstance(node, YamlScalar):
            if node is not None:
                self.error("checkpoints-form", node.span, "a name or a pattern of names is expected here")
            return None
        made = pattern(node, matched_only=matched_only)
        if isinstance(made, NamePattern):
            return made
        self.diagnostics.append(made)
        return None
