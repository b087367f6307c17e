"""Brackets of YAML that do not match, and values between them that hold a comma or a bracket of their own."""

from __future__ import annotations

import re

from composer.diagnostics import Diagnostic, Label, Span
from composer.language.yaml.error_context import ErrorContext
from composer.language.yaml.flow_style import cut_value
from composer.language.yaml.nodes import YamlScalar


def cut_in_flow(trouble: ErrorContext) -> Diagnostic | None:
    """A value inside brackets that holds a comma, a colon or a bracket of its own."""
    stop = trouble.stop
    if not stop.bracket:
        return None
    ends_here = (
        stop.last and stop.last.plain and not stop.is_key and trouble.touches_last and trouble.character in {"[", "{", ":"}
    )
    if ends_here and stop.last and stop.last.span.line == trouble.line + 1:
        start = stop.last.span.column - 1
        value = _whole_value(trouble.text[start:])
        if value:
            return cut_value(YamlScalar(value, trouble.stretch(start, start + len(value))))
    if stop.cut and stop.cut.span.line == trouble.line + 1:
        return cut_value(stop.cut)
    return None


def _whole_value(text: str) -> str:
    """The text up to the comma or bracket that ends a value, those in its own brackets left out; nothing if those never close."""
    depth = 0
    for place, character in enumerate(text):
        if depth == 0 and character in ",]}":
            return text[:place].rstrip()
        depth += (character in "[{(") - (character in "]})")
    return "" if depth else text.rstrip()


def brackets(trouble: ErrorContext) -> Diagnostic | None:
    """A bracket without its partner, or something that does not belong between two."""
    opened = trouble.stop.bracket
    if not opened:
        if trouble.character in {"]", "}"}:
            return trouble.diagnose("unopened-bracket", "this closing bracket has no opening one")
        return None
    sign = opened.source.lines[opened.line - 1][opened.column - 1]
    if trouble.at_end or _outdented(trouble, opened) or not _closes(trouble, opened):
        labels = () if trouble.at_end else (Label(trouble.place, "parsing stopped here"),)
        return trouble.diagnose("unclosed-bracket", f"this `{sign}` is never closed", place=opened, labels=labels)
    here = (Label(opened, "opened here"),)
    if trouble.character in {"]", "}"} and (sign + trouble.character) not in {"[]", "{}"}:
        return trouble.diagnose("unclosed-bracket", f"`{sign}` is closed by `{trouble.character}`", labels=here)
    if "node content" in trouble.problem and trouble.character == ":":
        return trouble.diagnose("empty-key", "a key is missing before this colon")
    if "node content" in trouble.problem:
        return trouble.diagnose("empty-value", f"a value is missing before `{trouble.character}`")
    if trouble.character == ":" and not trouble.text[trouble.column + 1 : trouble.column + 2].isspace():
        return trouble.diagnose("empty-value", "a space and a value are missing after this colon")
    return trouble.diagnose("missing-comma", "a comma or a closing bracket is missing before this", labels=here)


def _outdented(trouble: ErrorContext, opened: Span) -> bool:
    """Whether reading stopped on a later line that stands no deeper than the one with the bracket."""
    line = opened.source.lines[opened.line - 1]
    return trouble.line + 1 > opened.line and trouble.indent <= len(line) - len(line.lstrip())


QUOTED_OR_COMMENT = re.compile(r"""'(?:[^']|'')*'|"(?:[^"\\]|\\.)*"|(?:^|(?<=\s))\#[^\n]*""", re.MULTILINE)


def _closes(trouble: ErrorContext, opened: Span) -> bool:
    """Whether a bracket has a partner somewhere below."""
    lines = opened.source.lines[opened.line - 1 :]
    text = QUOTED_OR_COMMENT.sub("", "\n".join([lines[0][opened.column - 1 :], *lines[1:]]))
    depth = 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if depth == 0:
            return True
    return False
