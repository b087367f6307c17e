"""Mistakes taken down while a recipe is worked out, each once and where its author can mend it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from composer.diagnostics import Declaration, Diagnostic, Label, Span
from composer.graph.ir import Origins
from composer.graph.passes.expand.builders import GraphBuilder
from composer.language.expressions.parser import ExpressionError

T = TypeVar("T")
MOST = 100
"""Mistakes that are reported of one recipe."""


class StopExpansion(Exception):
    """Something is wrong and has been reported; what depends on it cannot go on."""


class TooMuch(Exception):
    """The recipe comes to more than can be worked out, which has been reported."""


class ErrorReport:
    """The mistakes of one run."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.inside: GraphBuilder | None = None
        """The graph that is being written or wired."""

    def attempt(self, work: Callable[[], T]) -> T | None:
        """Return what the work gives; None where it ends in a mistake, which is taken down."""
        try:
            return work()
        except (ExpressionError, StopExpansion) as error:
            self.take(error)
            return None

    def take(self, error: Exception) -> None:
        """Record the mistake that ended something, if it has not been."""
        if isinstance(error, ExpressionError):
            self.diagnostics.append(replace(error.diagnostic, span=self._own(error.diagnostic.span)))

    def error(self, code: str, span: Span, message: str, *, hint: str = "", labels: tuple[Label, ...] = ()) -> None:
        """Record a mistake."""
        self.diagnostics.append(Diagnostic(code, message, self._own(span), hint=hint, labels=labels))

    def _own(self, span: Span) -> Span:
        """Return a span in what the author wrote: for a mistake inside a block's own expansion, that of the block."""
        holder = self.inside.holder if self.inside is not None else None
        while isinstance(span.source, Declaration) and holder is not None:
            span, holder = holder.name_span, holder.home.holder
        return span


def once(diagnostics: Iterable[Diagnostic]) -> Iterable[Diagnostic]:
    """Return one diagnostic for each place: passes of a repeat make the same mistake, and a second mistake in a place
    is the first one's doing.
    """
    seen = set()
    for diagnostic in diagnostics:
        span = diagnostic.span
        key = (span.source.name, span.source.text, span.line, span.column, span.end_line, span.end_column)
        if key not in seen:
            seen.add(key)
            yield diagnostic
        if len(seen) == MOST:
            yield Diagnostic("too-many-errors", "too many errors to continue", span)
            return


def labels(origins: Origins, used: Span) -> tuple[Label, ...]:
    """Return `set here` at every other line that a value came from."""
    return tuple(
        Label(span, "set here")
        for _, span in origins
        if (span.source, span.line, span.column) != (used.source, used.line, used.column)
    )
