"""Where keys and values stand in a JSON text."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from composer.diagnostics import Source, Span

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},:]|[^][{},:\s"]+')


class JsonPlace(NamedTuple):
    """Where a key and its value stand."""

    key: Span
    value: Span


def places(source: Source) -> Mapping[str, JsonPlace]:
    """Return the place of each key of a JSON text, `a.b` for a nested one; keys in lists have none.

    Args:
        source: The text, which is valid and of bounded depth.
    """
    reader = _Reader(source)
    reader.value("")
    return reader.found


def repeated(source: Source) -> Span | None:
    """Return where the first key stands that its object has already; None without one, or if that is in a list.

    Args:
        source: The text, which need not be valid behind such a key.
    """
    reader = _Reader(source)
    with suppress(StopIteration, ValueError, RecursionError):  # what comes later need not be JSON
        reader.value("")
    return reader.again


class _Reader:
    """Follows the tokens of a valid JSON text."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = TOKEN.finditer(source.text)
        self.lines = [0, *(end.end() for end in re.finditer("\n", source.text))]
        self.found: dict[str, JsonPlace] = {}
        self.again: Span | None = None

    def value(self, prefix: str | None) -> Span:
        """Read a value and return its span; record the keys below it with this prefix, unless it is None."""
        first = next(self.tokens)
        return self._from(first, prefix)

    def _from(self, first: re.Match[str], prefix: str | None) -> Span:
        last = first
        if first.group() == "{":
            while (last := next(self.tokens)).group() != "}":
                if last.group() != ",":
                    self._entry(last, prefix)
        elif first.group() == "[":
            while (last := next(self.tokens)).group() != "]":
                if last.group() != ",":
                    self._from(last, None)
        return self._span(first.start(), last.end())

    def _entry(self, key: re.Match[str], prefix: str | None) -> None:
        next(self.tokens)  # the colon
        name = None if prefix is None else prefix + json.loads(key.group())
        span = self.value(None if name is None else f"{name}.")
        if name is not None:
            if name in self.found and self.again is None:
                self.again = self._span(key.start(), key.end())
            self.found.setdefault(name, JsonPlace(self._span(key.start(), key.end()), span))

    def _span(self, start: int, end: int) -> Span:
        first, last = bisect_right(self.lines, start), bisect_right(self.lines, end - 1)
        return Span(self.source, first, start - self.lines[first - 1] + 1, last, end - self.lines[last - 1] + 1)
