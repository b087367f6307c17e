"""Parsing of `checkpoints:` into rules, each of which is used for loading and saving."""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass, replace
from typing import Any

from composer.diagnostics import Span
from composer.language.expressions.errors import ExpressionError
from composer.language.expressions.evaluator import as_float, as_int, evaluate
from composer.language.expressions.parser import parse_expression
from composer.language.recipe.keys import keys_of
from composer.language.unknown_names import unknown
from composer.language.yaml.nodes import YamlEntry, YamlList, YamlMapping, YamlNode, YamlScalar
from composer.weights import config_syntax as config_forms
from composer.weights.name_patterns import NamePattern, PatternMatch, pattern
from composer.weights.rule_syntax import Forms

LAYOUTS = ("halves", "interleaved")


@dataclass(frozen=True)
class Permutation:
    """A permutation of the rows of each head to the other rotary layout."""

    head_dim: int
    """Number of rows of a head."""
    rotary_dim: int
    """Number of rows of a head that are rotated, from the first on."""
    pieces: tuple[str, ...]
    """The words of our choice that are permuted; all if empty."""
    ours: str
    """Our layout; the published one is the other."""


@dataclass(frozen=True)
class Rule:
    """A rule between our names and published ones. If one side is in pieces, its choice names them in order; otherwise, the words
    of two choices correspond by position."""

    ours: NamePattern
    theirs: NamePattern
    reshape: tuple[int, ...]
    """The published shape, if it differs from ours but has the same elements in the same order; otherwise empty."""
    transpose: bool
    """Whether matrices are published as [in, out], with our last two axes swapped."""
    axis: int
    """The axis of our tensors along which pieces are joined."""
    interleave: int
    """Number of groups, such as heads, that contain a part of each piece; 1 if the pieces are contiguous."""
    split: bool
    """Whether our tensors are pieces of one published tensor."""
    concat: bool
    """Whether our tensor is concatenated from several published pieces."""
    stack: str
    """The index of published names that counts along our first axis; empty without one."""
    permute: Permutation | None
    offset: float
    """The number to add to the published tensor to get ours."""

    def names(self, found: PatternMatch, copies: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return our names and the published ones that correspond, given the captures in one of ours and its number of copies."""
        if self.stack:
            each = (replace(found, indices=(*found.indices, (self.stack, str(number)))) for number in range(copies))
            return (self.ours.fill(found),), tuple(self.theirs.fill(one) for one in each)
        ours = range(len(self.ours.alternatives)) if self.split else [found.choice]
        theirs = range(len(self.theirs.alternatives)) if self.concat else [found.choice]
        return tuple(self.ours.fill(found, i) for i in ours), tuple(self.theirs.fill(found, i) for i in theirs)

    def permuted(self, found: PatternMatch) -> tuple[bool, ...]:
        """Return for each of our names that correspond whether it is permuted."""
        alone = "" if found.choice is None else self.ours.alternatives[found.choice]
        words, permute = self.ours.alternatives if self.split else (alone,), self.permute
        return tuple(permute is not None and (not permute.pieces or word in permute.pieces) for word in words)


@dataclass(frozen=True)
class Rules:
    """The rules of one model type: how its published tensors are named and stored."""

    model_type: str
    span: Span
    rules: tuple[Rule, ...]
    strip_prefix: str
    """A prefix of every name in some files, which is removed if present."""
    legacy_names: tuple[tuple[str, str], ...]
    """The last words of names in older files, each with its word in the rules."""
    ignore: tuple[NamePattern, ...]
    """Published tensors that are not needed, such as masks and tables."""
    copies: tuple[tuple[str, str, Span], ...]
    """Published tensors that are copies of another, such as a tied head: they must be equal to it, and are not saved."""

    def plain(self, published: str) -> str:
        """Return the name of a published tensor in the rules."""
        home, dot, last = published.removeprefix(self.strip_prefix).rpartition(".")
        return home + dot + dict(self.legacy_names).get(last, last)

    def passes_over(self, published: str) -> bool:
        """Return whether a published tensor needs no rule."""
        return any(copy == published for copy, _, _ in self.copies) or any(each.match(published) for each in self.ignore)


class RuleReader(Forms):
    """Parses one entry of `checkpoints:` and collects diagnostics; without the values of params, only the form is checked."""

    def __init__(self, params: abc.Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.params = params

    def rules(self, entry: YamlEntry) -> Rules:
        """Return the rules under a model type."""
        value = entry.value
        if not isinstance(value, YamlMapping):
            self.error("checkpoints-form", value.span, "a model type has its rules below it", hint="rules: {OURS: THEIRS, …}")
            return Rules(entry.key.text, entry.key.span, (), "", (), (), ())
        self.keys(value, keys_of("checkpoint"), "model type")
        strip, rules = value.get("strip_prefix"), value.get("rules")
        config = config_forms.ConfigReader()
        config.config(value.get("config"))
        self.diagnostics.extend(config.diagnostics)
        if rules is None:
            self.error("checkpoints-form", entry.key.span, f"{entry.key.text} has no rules", hint="rules: {OURS: THEIRS, …}")
        return Rules(
            entry.key.text,
            entry.key.span,
            tuple(rule for each in self.entries(rules, "rules map our names to published ones") if (rule := self._rule(each))),
            self.text(strip, "a prefix is") if strip is not None else "",
            tuple(
                (each.key.text, self.text(each.value, "the word of newer files is"))
                for each in self.entries(
                    value.get("legacy_names"), "legacy names map words of older files to those of newer ones"
                )
            ),
            tuple(
                each
                for item in self.items(value.get("ignore"), "`ignore` must be a list of names", "[lm_head.weight]")
                if (each := self._pattern(item))
            ),
            tuple(
                (each.key.text, self.text(each.value, "a published name is"), each.key.span)
                for each in self.entries(value.get("copies"), "copies map published names to published names")
            ),
        )

    def _rule(self, entry: YamlEntry) -> Rule | None:
        value = entry.value
        operations, source = (
            (value, value.get("from")) if isinstance(value, YamlMapping) else (YamlMapping((), value.span), value)
        )
        self.keys(operations, keys_of("rule"), "rule")
        if source is None:
            self.error("checkpoints-form", value.span, "a rule needs the published name that it reads", hint="{from: NAME, …}")
            return None
        ours, theirs = self._pattern(entry.key), self._pattern(source)
        if ours is None or theirs is None:
            return None
        split, concat = self._count(operations, "split", ours), self._count(operations, "concat", theirs)
        stack, permute = self._stack(operations, ours, theirs), self._permutation(operations, ours)
        if stack is None:
            return None
        rule = Rule(
            ours, theirs, self._shape(operations), self.boolean(operations.get("transpose"), "transpose"),
            self._axis(operations), self._groups(operations, split or concat), split, concat, stack, permute,
            self._offset(operations),
        )  # fmt: skip
        return rule if self._fits(rule, entry) else None

    def _fits(self, rule: Rule, entry: YamlEntry) -> bool:
        """Return whether each side of a rule determines the other; report why not."""
        ours, theirs, span = rule.ours, rule.theirs, entry.value.span
        if ours.indices != theirs.indices - {rule.stack}:
            odd = sorted(ours.indices ^ (theirs.indices - {rule.stack}))[0]
            self.error("checkpoints-pattern", span, f"`<{odd}>` is on one side only")
        elif ours.rest != theirs.rest:
            self.error("checkpoints-pattern", span, "`*` is on one side only")
        elif rule.split + rule.concat + bool(rule.stack) > 1:
            self.error("checkpoints-form", span, "a rule can split, concatenate or stack, but only one of these")
        elif rule.stack and rule.permute:
            self.error("checkpoints-form", span, "stacked tensors cannot be permuted")
        elif rule.split and theirs.alternatives:
            self.error("checkpoints-pattern", span, "only a single published tensor can be split, without a choice")
        elif rule.concat and ours.alternatives:
            self.error("checkpoints-pattern", span, "pieces are concatenated to a single tensor of ours, without a choice")
        elif not rule.split and not rule.concat and len(ours.alternatives) != len(theirs.alternatives):
            counts = f"{len(ours.alternatives) or 'none'} of ours and {len(theirs.alternatives) or 'none'} of theirs"
            self.error("checkpoints-pattern", span, f"two choices need the same number of words: there are {counts}",
                        hint="if one published tensor contains all of ours, write {from: …, split: N}")  # fmt: skip
        else:
            return True
        return False

    def _count(self, operations: YamlMapping, key: str, pieces: NamePattern) -> bool:
        """Return whether an operation on pieces is present; its number must be that of the words in the choice."""
        node = operations.get(key)
        if node is None:
            return False
        count = len(pieces.alternatives)
        if not isinstance(node, YamlScalar) or not node.text.isdigit() or int(node.text[:9]) != count or count < 2:
            says = f"the choice names {count}" if count else "there is no choice that names them"
            self.error("checkpoints-form", node.span, f"{key} is the number of pieces, and {says}",
                        hint=f"`{key}: {count}`" if count else "such as `(q|k|v)` for 3 pieces")  # fmt: skip
        return True

    def _stack(self, operations: YamlMapping, ours: NamePattern, theirs: NamePattern) -> str | None:
        """Return the index along which tensors are stacked; empty without `stack`, None after an error."""
        node = operations.get("stack")
        if node is None:
            return ""
        name = node.text if isinstance(node, YamlScalar) else ""
        if name not in theirs.indices - ours.indices:
            self.error("checkpoints-form", node.span, "`stack` needs an index that only the published name has",
                        hint="`stack: expert` for `experts.<expert>.weight`")  # fmt: skip
            return None
        return name

    def _shape(self, operations: YamlMapping) -> tuple[int, ...]:
        """Return the published shape given by `reshape`; empty without it."""
        node = operations.get("reshape")
        if node is None:
            return ()
        if not isinstance(node, YamlList):
            self.error("checkpoints-form", node.span, "`reshape` is the published shape, a list of sizes",
                        hint="`reshape: [d_model, 3, patch, patch]`")  # fmt: skip
            return ()
        return tuple(self._size(item, "a size") for item in node.items)

    def _groups(self, operations: YamlMapping, pieces: bool) -> int:
        """Return the number of groups that contain a part of each piece."""
        node = operations.get("interleave")
        if node is None:
            return 1
        if not pieces:
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
        for word in words:
            if word not in ours.alternatives:
                self.diagnostics.append(unknown("checkpoints-form", node.span, "word of our choice", word, ours.alternatives))
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
        node = operations.get("offset")
        return 0.0 if node is None else as_float(value, node.span) if (value := self._value(node, "offset")) is not None else 0.0

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
            self.error("checkpoints-form", node.span, f"{what} must be a number")
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
        return int(node.text)

    def _pattern(self, node: YamlNode | None) -> NamePattern | None:
        if not isinstance(node, YamlScalar):
            if node is not None:
                self.error("checkpoints-form", node.span, "a name or a pattern of names is expected here")
            return None
        made = pattern(node)
        if isinstance(made, NamePattern):
            return made
        self.diagnostics.append(made)
        return None
