"""Diagnostics as text for people: the quoted line, the caret, the hint."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Literal, TypeAlias

from composer.diagnostics.diagnostic import Diagnostic
from composer.diagnostics.source import Span
from composer.printable import printable

MAX_COLUMNS = 140
"""Columns of a quoted line; of a longer one the part around the caret is shown."""
TAB = "    "
CUT = "…"
MAX_WORDS = 4000
"""Characters of a message or a hint; a program that reads JSON gets all of them."""
MAX_REACH = 4 * MAX_COLUMNS
"""Characters on either side of a mark that are looked at, so that a line of megabytes costs no more than another."""

TextRole: TypeAlias = Literal["error", "warning", "added", "removed", "strong", "accent", "dim"]
"""The role of a piece of text; a terminal has a color for each."""
Painter: TypeAlias = Callable[[str, TextRole], str]
"""Gives a piece of text the color of its role."""


def plain(text: str, role: TextRole) -> str:
    """Return the text as it is, for files, pipes and terminals without color."""
    return text


def concise(diagnostic: Diagnostic, paint: Painter = plain) -> str:
    """Return one line: place, code and message."""
    span = diagnostic.span
    place = _safe(f"{span.source.name}:{span.line}:{span.column}:")
    code = _safe(f"{diagnostic.severity}[{diagnostic.code}]")
    return f"{paint(place, 'strong')} {paint(code, diagnostic.severity)}: {_safe(diagnostic.message)}"


def with_hint(diagnostic: Diagnostic) -> str:
    """Return the headline and the hint below it, without the quoted lines: the text of an exception."""
    return "\n".join([concise(diagnostic), *_hint(diagnostic, "", plain)])


def full(diagnostic: Diagnostic, paint: Painter = plain) -> str:
    """Return the headline, the quoted lines with what is marked in them, and the hint."""
    marks = [(diagnostic.span, "^", diagnostic.note), *((label.span, "-", label.text) for label in diagnostic.labels)]
    digits = max(len(str(span.line)) for span, _, _ in marks)
    margin = " " * digits
    lines = [concise(diagnostic, paint)]
    bar = paint(f"{margin} |", "dim")
    source, quoted = diagnostic.span.source, 0
    for span, sign, words in marks:
        if not span.source.text or span.line > len(span.source.lines):
            continue
        if span.source is not source:
            lines.append(paint(_safe(f"{margin}--> {span.source.name}:{span.line}"), "dim"))
            source, quoted = span.source, 0
        elif len(lines) == 1:
            lines.append(bar)
        line, indent, length = _quote(span)
        if quoted != span.line:
            lines.append(paint(f"{span.line:>{digits}} |", "dim") + line)
        mark = f"{sign * length} {_safe(words)}".rstrip()
        lines.append(bar + " " * indent + paint(mark, diagnostic.severity if sign == "^" else "accent"))
        quoted = span.line
    return "\n".join([*lines, *_hint(diagnostic, margin, paint)])


def _hint(diagnostic: Diagnostic, margin: str, paint: Painter) -> list[str]:
    return [paint(f"{margin} = ", "dim") + _safe(diagnostic.hint)] if diagnostic.hint else []


def report(
    diagnostics: Iterable[Diagnostic], style: Callable[[Diagnostic, Painter], str] = full, *, paint: Painter = plain
) -> str:
    """Return all diagnostics in the order of the files, each as `style` shows it, and how many there are."""
    ordered = in_order(diagnostics)
    if not ordered:
        return ""
    errors = sum(each.severity == "error" for each in ordered)
    counts = [
        f"{count} {noun}{'s' * (count != 1)}" for count, noun in ((errors, "error"), (len(ordered) - errors, "warning")) if count
    ]
    between = "\n\n" if style is full else "\n"
    return between.join([*(style(each, paint) for each in ordered), ", ".join(counts)])


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the diagnostics in the order of file, line and column."""
    return sorted(diagnostics, key=lambda each: (each.span.source.name, each.span.line, each.span.column))


def _quote(span: Span) -> tuple[str, int, int]:
    """Return a span's first line as it is shown, the columns before the mark, and the length of the mark."""
    text = span.source.lines[span.line - 1].removesuffix("\r")
    start = min(span.column - 1, len(text))
    end = max(start, min(span.end_column - 1, len(text)) if span.end_line == span.line else len(text))
    before, after = max(0, start - MAX_REACH), max(0, len(text) - start - MAX_REACH)
    start, end, text = start - before, min(end, len(text) - after) - before, text[before : len(text) - after]
    shown = [_shown(character) for character in text]
    columns = [0, *accumulate(map(_width, shown))]
    first, last = _window(columns, start, end)
    ahead, behind = CUT * (before + first > 0), CUT * (after > 0 or last < len(text))
    indent = len(ahead) + columns[start] - columns[first]
    return ahead + "".join(shown[first:last]) + behind, indent, max(1, columns[min(end, last)] - columns[start])


def _window(columns: list[int], start: int, end: int) -> tuple[int, int]:
    """Return the characters of a line that are shown: all of a short one, else those around the mark."""
    characters = len(columns) - 1
    if columns[-1] <= MAX_COLUMNS:
        return 0, characters
    room = MAX_COLUMNS - 2  # for the two signs that say where the line is cut
    marked = min(columns[end] - columns[start], room)
    left = max(0, min(columns[start] - (room - marked) // 2, columns[-1] - room))
    first = next(place for place, column in enumerate(columns) if column >= left)
    last = next((place - 1 for place, column in enumerate(columns) if column > columns[first] + room), characters)
    return min(first, start), last


def _safe(text: str) -> str:
    """Return the text without characters that control a terminal; of one that quotes a huge value, the beginning."""
    return "".join(map(_shown, text if len(text) <= MAX_WORDS else text[: MAX_WORDS - 1] + CUT))


def _shown(character: str) -> str:
    """Return a character as it may stand in a terminal."""
    return TAB if character == "\t" else printable(character)


def _width(shown: str) -> int:
    """Return how many columns a character takes in a terminal: two for a wide character, none for a combining one."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in shown)
