"""Brackets of YAML that do not match, and values between them that hold a comma or a bracket of their own."""

from __future__ import annotations

import re

from composer.diagnostics import Diagnostic, Label, Span
from composer.language.wording import CHOICE_OF_BLOCKS, is_choice_of_blocks
from composer.language.yaml.error_context import ErrorContext
from composer.language.yaml.flow_style import cut_value
from composer.language.yaml.nodes import YamlScalar


def cut_in_flow(context: ErrorContext) -> Diagnostic | None:
    """Diagnose a value inside brackets that holds a comma, a colon or a bracket of its own."""
    stop = context.stop
    if not stop.bracket:
        return None
    ends_here = (
        stop.last and stop.last.plain and not stop.is_key and context.touches_last and context.character in {"[", "{", ":"}
    )
    if ends_here and stop.last and stop.last.span.line == context.line + 1:
        start = stop.last.span.column - 1
        value = _whole_value(context.text[start:])
        if value:
            return cut_value(YamlScalar(value, context.stretch(start, start + len(value))))
    if stop.cut and stop.cut.span.line == context.line + 1:
        return cut_value(stop.cut)
    return None


def _whole_value(text: str) -> str:
    """Return the text up to the comma or bracket that ends a value, those in its own brackets left out;
    nothing if those never close.
    """
    depth = 0
    for place, character in enumerate(text):
        if depth == 0 and character in ",]}":
            return text[:place].rstrip()
        depth += (character in "[{(") - (character in "]})")
    return "" if depth else text.rstrip()


def brackets(context: ErrorContext) -> Diagnostic | None:
    """Diagnose an unmatched bracket, or a mistake between two brackets."""
    opened = context.stop.bracket
    if not opened:
        if context.character in {"]", "}"}:
            return context.diagnose("unopened-bracket", "this closing bracket has no opening one")
        return None
    sign = opened.source.lines[opened.line - 1][opened.column - 1]
    if context.at_end or _outdented(context, opened) or not _closes(context, opened):
        labels = () if context.at_end else (Label(context.place, "parsing stopped here"),)
        return context.diagnose("unclosed-bracket", f"this `{sign}` is never closed", place=opened, labels=labels)
    here = (Label(opened, "opened here"),)
    if context.character in {"]", "}"} and (sign + context.character) not in {"[]", "{}"}:
        return context.diagnose("unclosed-bracket", f"`{sign}` is closed by `{context.character}`", labels=here)
    if "node content" in context.problem and context.character == ":":
        return context.diagnose("empty-key", "a key is missing before this colon")
    if "node content" in context.problem:
        return context.diagnose("empty-value", f"a value is missing before `{context.character}`")
    if context.character == ":" and not context.text[context.column + 1 : context.column + 2].isspace():
        return context.diagnose("empty-value", "a space and a value are missing after this colon")
    hint = CHOICE_OF_BLOCKS if is_choice_of_blocks(context.text) else ""
    return context.diagnose("missing-comma", "a comma or a closing bracket is missing before this", hint, labels=here)


def _outdented(context: ErrorContext, opened: Span) -> bool:
    """Return whether reading stopped on a later line that stands no deeper than the one with the bracket."""
    line = opened.source.lines[opened.line - 1]
    return context.line + 1 > opened.line and context.indent <= len(line) - len(line.lstrip())


QUOTED_OR_COMMENT = re.compile(r"""'(?:[^']|'')*'|"(?:[^"\\]|\\.)*"|(?:^|(?<=\s))\#[^\n]*""", re.MULTILINE)


def _closes(context: ErrorContext, opened: Span) -> bool:
    """Return whether a bracket is closed somewhere below."""
    lines = opened.source.lines[opened.line - 1 :]
    text = QUOTED_OR_COMMENT.sub("", "\n".join([lines[0][opened.column - 1 :], *lines[1:]]))
    depth = 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if depth == 0:
            return True
    return False
