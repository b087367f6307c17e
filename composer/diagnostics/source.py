"""Where a piece of a recipe's text stands."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, eq=False)
class Source:
    """A named text: a recipe file, text given in Python, or one `--set` argument."""

    name: str
    """What is shown before the line number: a path as the user wrote it, `<text>`, or `--set`."""
    text: str

    @cached_property
    def lines(self) -> list[str]:
        """The text's lines, without their ends."""
        return self.text.split("\n")


class Declaration(Source):
    """A text that a block declares, such as its expansion: authors cannot change it, so no mistake is located in it."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a source, counted from 1 in characters; the end column is exclusive."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int

    def part(self, start: int, end: int) -> Span:
        """Return the characters `start` to `end` (from 0) of a span that stands on one line; the whole span if it does not."""
        if self.line != self.end_line or self.column + end > self.end_column:
            return self
        return Span(self.source, self.line, self.column + start, self.line, self.column + end)

    def __repr__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"
