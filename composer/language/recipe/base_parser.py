"""The basic parsers: of a scalar, an expression, a name, the keys of a mapping; mistakes are collected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set

from composer.diagnostics import MAX_ERRORS, Diagnostic, Label, Span
from composer.language.expressions.ast import Expression, If, RefPath
from composer.language.expressions.parser import ExpressionError, parse_expression
from composer.language.recipe.ast import ExpressionValue
from composer.language.recipe.keys import WORDS
from composer.language.recipe.schema_fragments import NAME_PATTERN
from composer.language.suggestions import suggest
from composer.language.unknown_names import quoted, unknown
from composer.language.yaml.events import UNREADABLE
from composer.language.yaml.nodes import YamlEntry, YamlList, YamlMapping, YamlNode, YamlScalar

NAME = re.compile(NAME_PATTERN, re.ASCII)
LETTERS = "use at most 64 letters, digits and underscores, beginning with a letter"


class BaseParser:
    """Reads nodes of a document; what cannot be read is None."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        self.diagnostics = diagnostics
        self.unreadable = [found.span for found in diagnostics]
        """Places that are not valid YAML, so that what they should hold is not reported as missing too."""

    def scalar(self, node: YamlNode | None, expectation: str) -> YamlScalar | None:
        """Parse one word or number; `expectation` is a sentence that says what the place takes."""
        if node is None or isinstance(node, YamlScalar):
            return node
        self.error("value-form", node.span, f"{expectation}, not a {_form(node)}")
        return None

    def text(self, node: YamlNode | None) -> str:
        """Return a description, on one line."""
        scalar = self.scalar(node, "a string is expected here")
        return " ".join(scalar.text.split()) if scalar else ""

    def expression(self, node: YamlNode | None, name: str = "") -> ExpressionValue | None:
        """Return an expression, which stands under the key `name`."""
        scalar = self.scalar(node, f"`{name}` takes a single value" if name else "a single value is expected here")
        if scalar is None:
            return None
        try:
            return ExpressionValue(parse_expression(scalar), scalar.span)
        except ExpressionError as error:
            self.diagnostics.append(error.diagnostic)
            return None

    def references(self, node: YamlNode) -> tuple[Expression, ...] | None:
        """Parse one reference, or a list of them."""
        items = node.items if isinstance(node, YamlList) else (node,)
        found = [reference for item in items if (reference := self.reference(item, "in"))]
        return tuple(found) if len(found) == len(items) else None

    def reference(self, node: YamlNode, name: str) -> Expression | None:
        """Return what names a node or an input, or chooses between such names."""
        written = self.expression(node, name)
        return written.expression if written is not None and self._is_reference(written.expression) else None

    def _is_reference(self, expression: Expression) -> bool:
        match expression:
            case RefPath():
                return True
            case If(then=then, otherwise=otherwise):
                return self._is_reference(then) and self._is_reference(otherwise)
        hint = "compute with a node of its own, such as {type: add, in: [a, b]}"
        self.error("bad-reference", expression.span, "an edge must name a node or an input", hint=hint)
        return False

    # -- mappings

    def entries(self, node: YamlNode | None, key: str) -> Sequence[YamlEntry]:
        """Return the entries under a key that holds names; none if it is missing."""
        if node is None:
            return ()
        if isinstance(node, YamlMapping):
            return node.entries
        self.error("value-form", node.span, f"`{key}` must be a mapping", hint=f"{key}: with one name on each line below it")
        return ()

    def keys(self, entries: Iterable[YamlEntry], known: Sequence[str], what: str, also: Sequence[str] = ()) -> None:
        """Report unknown keys; `also` are those that a misspelled one may have meant."""
        for entry in entries:
            if entry.key.text not in known:
                offered = known if not suggest(entry.key.text, also) else (*known, *also)
                self.unknown("unknown-key", entry.key.span, "key", entry.key.text, offered, of=what)

    def declares(self, key: YamlScalar, what: str, reserved: Set[str] = WORDS) -> bool:
        """Return whether a key can be the name of something new; why it cannot is reported."""
        if UNREADABLE in key.text:
            return False
        if not NAME.fullmatch(key.text):
            self.error("bad-name", key.span, f"{quoted(key.text)} cannot be the name of {what}", hint=LETTERS)
            return False
        if key.text in reserved:
            self.error("reserved-name", key.span, f"`{key.text}` is reserved and cannot be the name of {what}")
            return False
        if key.text == "training" and what in ("a node", "a loss"):
            self.error("reserved-name", key.span, "`training` is an attribute of every torch module")
            return False
        return True

    def holds_unreadable(self, node: YamlMapping) -> bool:
        """Return whether a key or a value of a mapping could not be read, which has been reported."""
        span = node.span
        start, end = (span.line, span.column), (span.end_line, span.end_column)
        return any(start <= (each.line, each.column) < end for each in self.unreadable if each.source is span.source)

    # -- what is wrong

    def unknown(self, code: str, span: Span, what: str, name: str, known: Iterable[str], *, of: str = "") -> None:
        """Report a name that does not exist, unless it could not be read."""
        if UNREADABLE not in name:
            self.diagnostics.append(unknown(code, span, what, name, self.offered(known), of=of))

    def offered(self, known: Iterable[str]) -> Iterable[str]:
        """Return the names that a mistake may offer: none beside more mistakes than are reported."""
        return known if len(self.diagnostics) < MAX_ERRORS else ()

    def error(self, code: str, span: Span, message: str, *, hint: str = "", labels: tuple[Label, ...] = ()) -> None:
        """Report a mistake."""
        self.diagnostics.append(Diagnostic(code, message, span, hint=hint, labels=labels))


def first_key(node: YamlMapping) -> Span:
    """Return the first key of a mapping: the place at which a missing key is reported."""
    return node.entries[0].key.span if node.entries else node.span


def names_under(node: YamlNode | None) -> frozenset[str]:
    """Return the keys of a mapping; none of anything else."""
    return frozenset(entry.key.text for entry in node) if isinstance(node, YamlMapping) else frozenset()


def _form(node: YamlList | YamlMapping) -> str:
    return "list" if isinstance(node, YamlList) else "mapping"
