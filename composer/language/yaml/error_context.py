"""The context of a YAML error: the text around it, and what had been read before it."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from composer.diagnostics import Diagnostic, Label, Source, Span
from composer.language.yaml.nodes import YamlScalar


@dataclass(frozen=True, slots=True)
class ParseStop:
    """What had been read when parsing stopped."""

    bracket: Span | None
    """The `{` or `[` that encloses the place, if one does."""
    last: YamlScalar | None
    """The last key or value read."""
    is_key: bool
    """Whether that was a key, whose value is still to come."""
    cut: YamlScalar | None
    """A value of the same brackets whose round brackets do not match."""


class ErrorContext:
    """A YAML error with the text around it."""

    def __init__(self, source: Source, error: yaml.MarkedYAMLError, stop: ParseStop) -> None:
        self.source = source
        self.stop = stop
        self.during, self.problem = error.context or "", error.problem or ""
        mark = error.problem_mark or error.context_mark
        self.line, self.column = (mark.line, mark.column) if mark else (0, 0)
        self.at_end = (
            self.line >= len(source.lines) or not "".join([source.lines[self.line][self.column :], *self.below()]).strip()
        )
        if self.at_end:  # the parsers disagree on where the end is: it is behind the last word
            lines = source.text.rstrip().split("\n")
            self.line, self.column = len(lines) - 1, len(lines[-1])
        self.text = source.lines[self.line]
        """The line where reading stopped."""
        self.character = self.text[self.column : self.column + 1]
        start = error.context_mark
        self.start = Span(source, start.line + 1, start.column + 1, start.line + 1, start.column + 2) if start else self.place
        """Where what could not be read began."""

    def below(self) -> list[str]:
        return self.source.lines[self.line + 1 :]

    @property
    def place(self) -> Span:
        return self.stretch(self.column, self.column + 1)

    def stretch(self, start: int, end: int) -> Span:
        """Return a part of the line where reading stopped."""
        return Span(self.source, self.line + 1, start + 1, self.line + 1, end + 1)

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip())

    @property
    def touches_last(self) -> bool:
        """Whether the last value ends right where reading stopped."""
        last = self.stop.last
        return last is not None and (last.span.end_line, last.span.end_column) == (self.line + 1, self.column + 1)

    def diagnose(
        self, code: str, message: str, hint: str = "", *, place: Span | None = None, labels: tuple[Label, ...] = ()
    ) -> Diagnostic:
        return Diagnostic(code, message, place or self.place, hint=hint, labels=labels)
