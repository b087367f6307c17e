"""The errors of the YAML parser in plain words, at the place of the mistake rather than where parsing stopped."""

from __future__ import annotations

import re

import yaml

from composer.diagnostics import Diagnostic, Label, Source, Span
from composer.language.wording import BLOCK_IN_EXPRESSION, CHOICE_OF_BLOCKS, is_choice_of_blocks
from composer.language.yaml.brackets import brackets, cut_in_flow
from composer.language.yaml.error_context import ErrorContext, ParseStop


def explain(error: Exception, source: Source, stop: ParseStop) -> Diagnostic:
    """Diagnose the mistake at which the parser stopped; the first rule that applies decides."""
    if not isinstance(error, yaml.MarkedYAMLError):  # the Python parser, at a number that it cannot make a character of
        return _no_character(source, stop)
    context = ErrorContext(source, error, stop)
    found = (rule(context) for rule in RULES)
    return next(
        (diagnostic for diagnostic in found if diagnostic), context.diagnose("yaml-syntax", "this cannot be read as YAML")
    )


NO_CHARACTER = "this is not an escape sequence"
SINGLE_QUOTES = "single quotes keep a `\\` as it is"
TOO_LARGE_ESCAPE = re.compile(r"\\U(?!000|0010)")


def _no_character(source: Source, stop: ParseStop) -> Diagnostic:
    line = stop.last.span.line if stop.last else 1
    for number, text in enumerate(source.lines[line - 1 :], start=line):
        if escape := TOO_LARGE_ESCAPE.search(text):
            line, column = number, escape.start() + 1
            break
    else:
        column = 1
    return Diagnostic("unknown-escape", NO_CHARACTER, Span(source, line, column, line, column + 2), hint=SINGLE_QUOTES)


def property_of_node(context: ErrorContext) -> Diagnostic | None:
    """Diagnose `*` of a pattern, `&`, `!` or `%` where they begin a value."""
    for word in ("alias", "anchor", "tag", "directive"):
        if word in context.during or f"{word} handle" in context.problem:
            return refused_property(word, context.start)
    return None


def refused_property(word: str, place: Span) -> Diagnostic:
    """Return the diagnostic of an alias, an anchor, a tag or a directive."""
    sign = {"alias": "*", "anchor": "&", "tag": "!", "directive": "%"}[word]
    article = "an" if word[0] == "a" else "a"
    message = f"`{sign}` makes this {article} {word}, which recipes do not support"
    return Diagnostic(word, message, place, hint=f"quote a key or a value that begins with `{sign}`")


def quotes(context: ErrorContext) -> Diagnostic | None:
    """Diagnose a quote that is never closed, or an unknown escape sequence."""
    if "quoted scalar" not in context.during:
        return None
    if "end of stream" in context.problem or "document" in context.problem:
        return context.diagnose("unclosed-quote", "this quote is never closed", place=context.start)
    start = max(0, context.text.rfind("\\", 0, context.column + 1))
    place = context.stretch(start, start + 2)
    return context.diagnose("unknown-escape", NO_CHARACTER, SINGLE_QUOTES, place=place)


def tab(context: ErrorContext) -> Diagnostic | None:
    """Diagnose a tab among the spaces before a line."""
    tabbed = "\t" in context.text[: context.indent] and context.column <= context.indent
    if not tabbed and "tab character" not in context.problem:
        return None
    start = context.text.find("\t")
    place = context.stretch(start, start + 1) if start >= 0 else context.place
    return context.diagnose("tab-indentation", "a tab cannot indent a line", "indent with spaces", place=place)


def reserved(context: ErrorContext) -> Diagnostic | None:
    """Diagnose `@`, a backquote, `%` or, outside brackets, a comma at the start of a value."""
    comma = context.character == "," and not context.stop.bracket and "node content" in context.problem
    if not comma and "cannot start any token" not in context.problem:
        return None
    sign = "a backquote" if context.character == "`" else f"`{context.character}`"
    return context.diagnose("reserved-character", f"a value cannot begin with {sign}", "quote the value")


def colon(context: ErrorContext) -> Diagnostic | None:
    """Diagnose a second colon on a line, or a key below a value."""
    if "mapping values" not in context.problem:
        return None
    last = context.stop.last
    if not (context.touches_last and last):
        return context.diagnose("unquoted-value", "this `:` makes a second key on the line", "quote the value that it belongs to")
    if last.span.line == context.line + 1:
        text = re.split(r"\s#", context.text, maxsplit=1)[0].rstrip()
        start, end = last.span.column - 1, max(len(text), context.column + 1)
        value = context.text[start:end]
        place = context.stretch(start, end)
        if is_choice_of_blocks(value):
            return context.diagnose("unquoted-value", BLOCK_IN_EXPRESSION, CHOICE_OF_BLOCKS, place=place)
        hint = f'write "{value}"' if '"' not in value else ""
        return context.diagnose("unquoted-value", "quote this value: a colon followed by a space ends a key", hint, place=place)
    if context.stop.is_key or last.span.column == context.indent + 1:
        return _colon_missing(context, last.span)
    labels = (
        Label(Span(context.source, last.span.line, last.span.column, last.span.line, last.span.column + 1), "the value above"),
    )
    place = context.stretch(context.indent, context.column)
    message = "this line is indented deeper than the one above it, which already has a value"
    return context.diagnose("bad-indentation", message, "align it with the key above", place=place, labels=labels)


def missing_colon(context: ErrorContext) -> Diagnostic | None:
    """Diagnose a line among keys that is not a key."""
    return _colon_missing(context, context.start) if "expected ':'" in context.problem else None


def _colon_missing(context: ErrorContext, start: Span) -> Diagnostic:
    line = context.source.lines[start.line - 1]
    place = Span(context.source, start.line, start.column, start.line, max(start.column, len(line.rstrip())) + 1)
    return context.diagnose("missing-colon", "a colon is missing: this line is not `key: value`", place=place)


def listing(context: ErrorContext) -> Diagnostic | None:
    """Diagnose a list on the line of its key, or a line among items that is not an item."""
    if "sequence entries" in context.problem:
        return context.diagnose(
            "misplaced-list", "a list must begin on a line of its own", "write the items below the key, or in `[ ]`"
        )
    if "block collection" not in context.during:
        return None
    return context.diagnose(
        "bad-indentation", "this line is between list items and is not one", "begin it with `- `, or at the key's column"
    )


def indentation(context: ErrorContext) -> Diagnostic | None:
    """Diagnose a line that is aligned with no other, or text after a complete value."""
    if "block mapping" not in context.during:
        return None
    if context.character == ":":
        return context.diagnose("empty-key", "a key is missing before this colon")
    if (last := context.stop.last) and not last.plain and last.span.line < last.span.end_line:
        place = Span(last.span.source, last.span.line, last.span.column, last.span.line, last.span.column + 1)
        return context.diagnose("unclosed-quote", f"this quote is closed only on line {last.span.end_line}", place=place)
    if context.column > context.indent:
        hint = CHOICE_OF_BLOCKS if is_choice_of_blocks(context.text) else "quote the whole value, or start a new line"
        return context.diagnose("trailing-text", "the value before this is complete", hint)
    return context.diagnose("bad-indentation", "this line is not aligned with any key above it", "indent it like its neighbors")


def block_text(context: ErrorContext) -> Diagnostic | None:
    """Diagnose words behind the `|` or `>` that begins a text of several lines."""
    if "block scalar" not in context.during:
        return None
    return context.diagnose("block-text", "text after `|` or `>` must begin on the next line, indented", place=context.start)


def after_the_end(context: ErrorContext) -> Diagnostic | None:
    """Diagnose something behind `...`, or beside a top value that is complete."""
    if "document start" not in context.problem:
        return None
    if any(line.startswith("...") for line in context.source.lines[: context.line]):
        return context.diagnose("several-documents", "the recipe already ended at `...`, above this line")
    message = "this line is indented less than the first key"
    return context.diagnose("bad-indentation", message, "all keys of the top level begin in the same column")


RULES = (
    property_of_node,
    quotes,
    tab,
    reserved,
    cut_in_flow,
    brackets,
    colon,
    missing_colon,
    listing,
    indentation,
    block_text,
    after_the_end,
)
