"""YAML's own errors in a person's words, at the place where the mistake was made rather than where reading stopped."""

from __future__ import annotations

import re

import yaml

from composer.diagnostics import Diagnostic, Label, Source, Span
from composer.language.yaml.brackets import brackets, cut_in_flow
from composer.language.yaml.error_context import ErrorContext, ParseStop


def explain(error: Exception, source: Source, stop: ParseStop) -> Diagnostic:
    """What a person did wrong where the parser gave up; the first rule that knows the case decides."""
    if not isinstance(error, yaml.MarkedYAMLError):  # the Python parser, at a number that it cannot make a character of
        return _no_character(source, stop)
    trouble = ErrorContext(source, error, stop)
    found = (rule(trouble) for rule in RULES)
    return next(
        (diagnostic for diagnostic in found if diagnostic), trouble.diagnose("yaml-syntax", "this cannot be read as YAML")
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


def property_of_node(trouble: ErrorContext) -> Diagnostic | None:
    """`*` of a pattern, `&`, `!` or `%` where they begin a value."""
    for word in ("alias", "anchor", "tag", "directive"):
        if word in trouble.context or f"{word} handle" in trouble.problem:
            return refused_property(word, trouble.start)
    return None


def refused_property(word: str, place: Span) -> Diagnostic:
    """The diagnostic of an alias, an anchor, a tag or a directive."""
    sign = {"alias": "*", "anchor": "&", "tag": "!", "directive": "%"}[word]
    article = "an" if word[0] == "a" else "a"
    message = f"`{sign}` makes this {article} {word}, which recipes do not support"
    return Diagnostic(word, message, place, hint=f"quote a key or a value that begins with `{sign}`")


def quotes(trouble: ErrorContext) -> Diagnostic | None:
    """A quote that is never closed, or an escape that means nothing."""
    if "quoted scalar" not in trouble.context:
        return None
    if "end of stream" in trouble.problem or "document" in trouble.problem:
        return trouble.diagnose("unclosed-quote", "this quote is never closed", place=trouble.start)
    start = max(0, trouble.text.rfind("\\", 0, trouble.column + 1))
    place = trouble.stretch(start, start + 2)
    return trouble.diagnose("unknown-escape", NO_CHARACTER, SINGLE_QUOTES, place=place)


def tab(trouble: ErrorContext) -> Diagnostic | None:
    """A tab among the spaces before a line."""
    tabbed = "\t" in trouble.text[: trouble.indent] and trouble.column <= trouble.indent
    if not tabbed and "tab character" not in trouble.problem:
        return None
    start = trouble.text.find("\t")
    place = trouble.stretch(start, start + 1) if start >= 0 else trouble.place
    return trouble.diagnose("tab-indentation", "a tab cannot indent a line", "indent with spaces", place=place)


def reserved(trouble: ErrorContext) -> Diagnostic | None:
    """`@`, a backquote, `%` or, outside brackets, a comma at the start of a value."""
    comma = trouble.character == "," and not trouble.stop.bracket and "node content" in trouble.problem
    if not comma and "cannot start any token" not in trouble.problem:
        return None
    sign = "a backquote" if trouble.character == "`" else f"`{trouble.character}`"
    return trouble.diagnose("reserved-character", f"a value cannot begin with {sign}", "quote the value")


def colon(trouble: ErrorContext) -> Diagnostic | None:
    """A second colon on a line, or a key below a value."""
    if "mapping values" not in trouble.problem:
        return None
    last = trouble.stop.last
    if not (trouble.touches_last and last):
        return trouble.diagnose("unquoted-value", "this `:` makes a second key on the line", "quote the value that it belongs to")
    if last.span.line == trouble.line + 1:
        text = re.split(r"\s#", trouble.text, maxsplit=1)[0].rstrip()
        start, end = last.span.column - 1, max(len(text), trouble.column + 1)
        value = trouble.text[start:end]
        hint = f'write "{value}"' if '"' not in value else ""
        place = trouble.stretch(start, end)
        return trouble.diagnose("unquoted-value", "quote this value: a colon followed by a space ends a key", hint, place=place)
    if trouble.stop.is_key or last.span.column == trouble.indent + 1:
        return _colon_missing(trouble, last.span)
    labels = (
        Label(Span(trouble.source, last.span.line, last.span.column, last.span.line, last.span.column + 1), "the value above"),
    )
    place = trouble.stretch(trouble.indent, trouble.column)
    message = "this line is indented deeper than the one above it, which already has a value"
    return trouble.diagnose("bad-indentation", message, "begin it where the key above begins", place=place, labels=labels)


def missing_colon(trouble: ErrorContext) -> Diagnostic | None:
    """A line among keys that is none."""
    return _colon_missing(trouble, trouble.start) if "expected ':'" in trouble.problem else None


def _colon_missing(trouble: ErrorContext, start: Span) -> Diagnostic:
    line = trouble.source.lines[start.line - 1]
    place = Span(trouble.source, start.line, start.column, start.line, max(start.column, len(line.rstrip())) + 1)
    return trouble.diagnose("missing-colon", "a colon is missing: this line is not `key: value`", place=place)


def listing(trouble: ErrorContext) -> Diagnostic | None:
    """A list behind its key, or a line among items that is none."""
    if "sequence entries" in trouble.problem:
        return trouble.diagnose(
            "misplaced-list", "a list must begin on a line of its own", "write the items below the key, or in `[ ]`"
        )
    if "block collection" not in trouble.context:
        return None
    return trouble.diagnose(
        "bad-indentation", "this line is between list items and is not one", "begin it with `- `, or at the key's column"
    )


def indentation(trouble: ErrorContext) -> Diagnostic | None:
    """A line that is aligned with nothing, or words behind a complete value."""
    if "block mapping" not in trouble.context:
        return None
    if trouble.character == ":":
        return trouble.diagnose("empty-key", "a key is missing before this colon")
    if (last := trouble.stop.last) and not last.plain and last.span.line < last.span.end_line:
        place = Span(last.span.source, last.span.line, last.span.column, last.span.line, last.span.column + 1)
        return trouble.diagnose("unclosed-quote", f"this quote is closed only on line {last.span.end_line}", place=place)
    if trouble.column > trouble.indent:
        return trouble.diagnose("trailing-text", "the value before this is complete", "quote the whole, or begin a new line")
    return trouble.diagnose("bad-indentation", "this line is not aligned with any key above it", "indent it like its neighbors")


def block_text(trouble: ErrorContext) -> Diagnostic | None:
    """Words behind the `|` or `>` that begins a text of several lines."""
    if "block scalar" not in trouble.context:
        return None
    return trouble.diagnose("block-text", "text after `|` or `>` must begin on the next line, indented", place=trouble.start)


def after_the_end(trouble: ErrorContext) -> Diagnostic | None:
    """Something behind `...`, or beside a top value that is complete."""
    if "document start" not in trouble.problem:
        return None
    if any(line.startswith("...") for line in trouble.source.lines[: trouble.line]):
        return trouble.diagnose("several-documents", "the recipe already ended at `...`, above this line")
    message = "this line is indented less than the first key"
    return trouble.diagnose("bad-indentation", message, "all keys of the top level begin in the same column")


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
