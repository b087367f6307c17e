"""YAML as a stream of events: nothing is composed, so no text can make it recurse or expand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import yaml

from composer.diagnostics import Diagnostic, Source, Span

Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser in C, where PyYAML has it; the one in Python reports the same events."""

INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls but tab and line ends
    "\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi marks and the zero-width space
    "\u2028\u2029\u2060-\u2064\ufeff\ufff9-\ufffb\ud800-\udfff"  # rarer line ends, fillers, halves of characters
    "\ufdd0-\ufdef\ufffe\uffff]"  # what Unicode says is no character
    "|\r(?!\n)"
)
PROLOGUE = re.compile(r"(?:[ \t]*+(?:[#%][^\n]*+)?+\r?\n)*+")
"""Blank lines, comments and directives, which stand before all else."""
SEPARATING_TABS = re.compile(r"(?<=[^ \t\n])[ \t]*\t[ \t]*")
UNREADABLE = "\ufdd0"
"""What replaces invisible characters: one that no text contains, since it is replaced itself, and YAML parsers take."""
MAX_REPORTED = 20
"""Invisible characters that are reported one by one."""


def events(text: str) -> Iterator[yaml.Event]:
    """Yield the events of a text that `readable` has made readable.

    Raises:
        yaml.YAMLError: where it is no YAML; from the Python parser also ValueError and OverflowError.
    """
    loader = Loader(text)
    try:
        while (event := loader.get_event()) is not None:  # type: ignore[no-untyped-call]  # the stubs leave it out
            yield event
    finally:
        loader.dispose()


def readable(source: Source) -> tuple[str, list[Diagnostic]]:
    """Return the text with every character in its place that a YAML parser takes, and what had to be replaced."""
    found = [_invisible(source, match) for match in islice(_first_of_each_line(source.text), MAX_REPORTED)]
    text = INVISIBLE.sub(UNREADABLE, source.text)
    prologue = PROLOGUE.match(text)
    before = prologue.group() if prologue else ""
    if directive := re.search("^%", before, re.MULTILINE):
        place = _character(source, directive.start())
        found.append(
            Diagnostic("directive", "recipes do not support directives", place, hint="remove the lines that begin with `%`")
        )
        text = re.sub("^%", "#", before, flags=re.MULTILINE) + text[len(before) :]
    # The C parser takes a tab for a space between words and the other one does not; at the start of a line neither does.
    return SEPARATING_TABS.sub(lambda match: " " * len(match.group()), text), found


def _first_of_each_line(text: str) -> Iterator[re.Match[str]]:
    place = 0
    while match := INVISIBLE.search(text, place):
        yield match
        place = text.find("\n", match.end())
        if place < 0:
            return


def _invisible(source: Source, match: re.Match[str]) -> Diagnostic:
    message = f"{character_name(match.group())} is not allowed in a recipe"
    return Diagnostic("invisible-character", message, _character(source, match.start()), hint="delete it")


def character_name(character: str) -> str:
    """Return an invisible character by its number."""
    return f"the invisible character U+{ord(character):04X}"


def _character(source: Source, place: int) -> Span:
    """Return the span of the character with this index."""
    line = source.text.count("\n", 0, place) + 1
    column = place - source.text.rfind("\n", 0, place)
    return Span(source, line, column, line, column + 1)
