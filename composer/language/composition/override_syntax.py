"""`PATH=VALUE`: one setting, read with the place of each of its parts, and written from a Python value."""

from __future__ import annotations

from collections.abc import Mapping as TypingMapping
from dataclasses import dataclass, replace
from typing import Any

from composer.diagnostics import Diagnostic, Source, Span
from composer.language.yaml.nodes import YamlEntry, YamlList, YamlMapping, YamlNode, YamlScalar
from composer.language.yaml.reader import read

KEY = "_: "
"""What stands before the value while it is read."""


class Unsettable(Exception):
    """A setting that changes nothing, since something in it is wrong."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic)
        self.diagnostic = diagnostic


@dataclass(frozen=True, slots=True)
class Assignment:
    """One argument: where, and what."""

    path: tuple[YamlScalar, ...]
    value: YamlNode


def read_assignment(source: Source, diagnostics: list[Diagnostic]) -> Assignment | None:
    """The path and the value of one argument, each with its place in it; None where the value cannot be read."""
    path, equals, value = source.text.partition("=")
    if not equals or not path.strip():
        whole = Span(source, 1, 1, 1, len(source.text) + 1)
        raise Unsettable(Diagnostic("assignment", "an override is written PATH=VALUE", whole, hint="such as n_layers=6"))
    if not value.strip():
        end = Span(source, 1, len(path) + 1, 1, len(path) + 2)
        raise Unsettable(
            Diagnostic("empty-value", f"a value is missing after `{path.strip()}=`", end, hint=f"{path.strip()}=null deletes it")
        )
    place, steps = 1, []
    for piece in path.split("."):
        steps.append(YamlScalar(piece.strip(), Span(source, 1, place, 1, place + len(piece))))
        place += len(piece) + 1
    document = read(Source(source.name, KEY + value))
    move = Moved(source, len(path) + 1 - len(KEY))
    diagnostics.extend(
        move.diagnostic(found) for found in document.diagnostics if found.span.column > len(KEY)
    )  # not our own key
    node = document.root.get(KEY[0]) if document.root is not None else None
    return Assignment(tuple(steps), move.node(node)) if node is not None else None


class Moved:
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


def written(value: Any) -> str:
    """A Python value as it is written after `PATH=`."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case TypingMapping():
            return "{" + ", ".join(f"{key}: {_inside(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_inside, value)) + "]"
    return str(value)


def _inside(value: Any) -> str:
    """A value in a list or a mapping, where commas and brackets need quotes."""
    if isinstance(value, str):
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{quoted}"'
    return written(value)
