"""A value that is set from outside of a recipe, read once, with the place of each of its parts."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as TypingMapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from composer.diagnostics import Diagnostic, Source, Span
from composer.language.wording import boolean
from composer.language.yaml.nodes import YamlEntry, YamlList, YamlMapping, YamlNode, YamlScalar
from composer.language.yaml.reader import read

ON_COMMAND_LINE = "--set"
IN_PYTHON = "overrides"
"""The name of the source in which a mistake is located."""
_KEY = "_: "
"""The key that precedes the value while it is read."""

Overrides: TypeAlias = "TypingMapping[str, Any] | Iterable[str] | str | None"
"""Overrides: a mapping from path to value, or one or several `PATH=VALUE` as on the command line."""


class OverrideError(Exception):
    """An override that cannot be applied."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic)
        self.diagnostic = diagnostic


@dataclass(frozen=True, slots=True, eq=False)
class Override:
    """A value, and the path of what it replaces."""

    source: Source
    """`PATH=VALUE`, named for where it was set; what messages quote."""
    path: tuple[YamlScalar, ...]
    value: YamlNode | None
    """None: it could not be read, which the diagnostics say."""
    diagnostics: tuple[Diagnostic, ...] = ()

    def __str__(self) -> str:
        return self.source.text


def read_overrides(overrides: Overrides) -> tuple[Override, ...]:
    """Return overrides as they are given to `composer.load`.

    >>> [str(each) for each in read_overrides({"n_layers": 6, "layers.attn.body.mask": None})]
    ['n_layers=6', 'layers.attn.body.mask=null']
    """
    if isinstance(overrides, TypingMapping):
        return tuple(read_override(f"{path}={to_text(value)}", IN_PYTHON) for path, value in overrides.items())
    return tuple(map(read_override, [overrides] if isinstance(overrides, str) else overrides or ()))


def read_override(text: str, origin: str = ON_COMMAND_LINE) -> Override:
    """Return the override that is written as `PATH=VALUE`; what is wrong with it is in its diagnostics."""
    source = Source(origin, text)
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        whole = Span(source, 1, 1, 1, len(text) + 1)
        wrong = Diagnostic("assignment", "an override is written PATH=VALUE", whole, hint="such as n_layers=6")
        return Override(source, (), None, (wrong,))
    if not value.strip():
        end, hint = Span(source, 1, len(path) + 1, 1, len(path) + 2), f"{path.strip()}=null deletes it"
        wrong = Diagnostic("empty-value", f"a value is missing after `{path.strip()}=`", end, hint=hint)
        return Override(source, (), None, (wrong,))
    place, steps = 1, []
    for piece in path.split("."):
        steps.append(YamlScalar(piece.strip(), Span(source, 1, place, 1, place + len(piece))))
        place += len(piece) + 1
    document = read(Source(origin, _KEY + value))
    move = _Moved(source, len(path) + 1 - len(_KEY))
    found = tuple(move.diagnostic(each) for each in document.diagnostics if each.span.column > len(_KEY))  # not of our own key
    node = document.root.get(_KEY[0]) if document.root is not None else None
    return Override(source, tuple(steps), move.node(node) if node is not None else None, found)


class _Moved:
    """What was read from a part of a text, moved to its place in the whole."""

    def __init__(self, source: Source, columns: int) -> None:
        self.source, self.columns = source, columns

    def span(self, span: Span) -> Span:
        first, last = (self.columns if line == 1 else 0 for line in (span.line, span.end_line))
        return Span(self.source, span.line, max(1, span.column + first), span.end_line, max(1, span.end_column + last))

    def diagnostic(self, diagnostic: Diagnostic) -> Diagnostic:
        labels = tuple(replace(label, span=self.span(label.span)) for label in diagnostic.labels)
        return replace(diagnostic, span=self.span(diagnostic.span), labels=labels)

    def node(self, node: YamlNode) -> YamlNode:
        match node:
            case YamlScalar(text=text, span=span, plain=plain):
                return YamlScalar(text, self.span(span), plain)
            case YamlList(items=items, span=span):
                return YamlList(tuple(self.node(item) for item in items), self.span(span))
            case YamlMapping(entries=entries, span=span):
                moved = (
                    YamlEntry(YamlScalar(e.key.text, self.span(e.key.span), e.key.plain), self.node(e.value)) for e in entries
                )
                return YamlMapping(tuple(moved), self.span(span))


def to_text(value: Any) -> str:
    """Return a Python value as it is written after `PATH=`."""
    match value:
        case None:
            return "null"
        case bool():
            return boolean(value)
        case TypingMapping():
            return "{" + ", ".join(f"{key}: {_inside(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_inside, value)) + "]"
    return str(value)


def _inside(value: Any) -> str:
    """Return a value in a list or a mapping, where commas and brackets need quotes."""
    if isinstance(value, str):
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{quoted}"'
    return to_text(value)
