"""The mistakes found while a recipe is expanded, each once and at a place that its author wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn, TypeAlias, TypeVar

from composer.diagnostics import MAX_ERRORS, Declaration, Diagnostic, Label, Span
from composer.graph.ir import Origins
from composer.graph.passes.expand.builders import GraphBuilder, NodeBuilder
from composer.language.expressions.parser import ExpressionError

T = TypeVar("T")
TextPlace: TypeAlias = tuple[object, ...]
UNUSED_PARAM = "unused-param"
"""The code of a mistake that is not reported beside a name that may mean the param."""
TOO_MANY = "too-many-nodes"
FIXED = ("unknown-", "ambiguous", "not-a-number", "not-a-boolean", TOO_MANY)
"""How the codes of mistakes begin that a node has whether or not it is left out: of names, of a boolean for a number, and of what
cannot be expanded.
"""


class StopExpansion(Exception):
    """Something is wrong and has been reported; what depends on it cannot go on."""


class TooMuch(Exception):
    """The recipe expands to more than is supported, which has been reported."""


class TooManyMistakes(TooMuch):
    """As many mistakes have been found as are reported."""


class ErrorReport:
    """The mistakes of one run, each reported from the graph that is being written or wired."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.places: set[TextPlace] = set()
        """Where mistakes are that are reported in any case."""

    def add(self, *found: Diagnostic) -> None:
        """Record diagnostics.

        Raises:
            TooManyMistakes: where there are as many as are reported, so that what follows need not be looked for.
        """
        self.diagnostics += found
        self.places |= set(_places(found))
        if len(self.places) >= MAX_ERRORS:
            raise TooManyMistakes

    def once(self, *found: Diagnostic) -> None:
        """Record the mistakes in a value that is read only once, wherever it stands: a node that is left out may have been the
        first to ask for it, and keeps its mistakes to itself.
        """
        self.add(*(each for each in found if each not in self.diagnostics))

    def attempt(self, graph: GraphBuilder, work: Callable[[], T]) -> T | None:
        """Return what the work gives; None where it ends in a mistake, which is recorded."""
        try:
            return work()
        except (ExpressionError, StopExpansion) as error:
            self.take(graph, error)
            return None

    def inside(self, node: NodeBuilder, work: Callable[[], None]) -> None:
        """Run what writes or wires the inside of a node. Of one that is left out, only names and kinds of values are checked: a
        number in it may well be wrong, which is perhaps why it is left out.
        """
        if not node.absent:
            work()
            return
        before = len(self.diagnostics)
        with suppress(TooManyMistakes):  # most of which may not count
            self.attempt(node.home, work)
        found = self.diagnostics[before:]
        self.diagnostics[before:] = kept = [each for each in found if each.code.startswith(FIXED)]
        if len(kept) < len(found):
            self.places = set(_places(self.diagnostics))
        self.add()

    def take(self, graph: GraphBuilder, error: Exception) -> None:
        """Record the mistake that ended something, if it has not been."""
        if isinstance(error, ExpressionError):
            self.add(replace(error.diagnostic, span=_own(graph, error.diagnostic.span)))

    def error(
        self, code: str, graph: GraphBuilder, span: Span, message: str, *, hint: str = "", labels: tuple[Label, ...] = ()
    ) -> None:
        """Record a mistake."""
        self.add(Diagnostic(code, message, _own(graph, span), hint=hint, labels=labels))

    def too_much(
        self, graph: GraphBuilder, span: Span, message: str, *, hint: str = "", labels: tuple[Label, ...] = ()
    ) -> NoReturn:
        """Record that there is more than is supported.

        Raises:
            TooMuch: always.
        """
        self.error(TOO_MANY, graph, span, message, hint=hint, labels=labels)
        raise TooMuch


def _own(graph: GraphBuilder, span: Span) -> Span:
    """Return a span in what the author wrote: for a mistake inside a block's own expansion, that of the block."""
    holder = graph.holder
    while isinstance(span.source, Declaration) and holder is not None:
        span, holder = holder.name_span, holder.home.holder
    return span


def place(span: Span) -> TextPlace:
    """Return what tells a place from all others."""
    return span.source.name, span.source.text, span.line, span.column, span.end_line, span.end_column


def _places(found: Iterable[Diagnostic]) -> Iterator[TextPlace]:
    """Yield where mistakes are that are reported in any case."""
    return (place(each.span) for each in found if each.severity == "error" and each.code != UNUSED_PARAM)


def text_of(span: Span) -> str:
    """Return what is written at a span, its first line alone."""
    line = span.source.lines[span.line - 1] if span.line <= len(span.source.lines) else ""
    return line[span.column - 1 : span.end_column - 1 if span.end_line == span.line else None]


class labeled:
    """A context that adds labels to the diagnostic of an expression without a value: where the values that it reads were set."""

    __slots__ = ("origins",)

    def __init__(self, origins: Origins) -> None:
        self.origins = origins

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ExpressionError):
            found = error.diagnostic
            raise ExpressionError(replace(found, labels=labels(self.origins, found.span))) from None


def labels(origins: Origins, used: Span) -> tuple[Label, ...]:
    """Return `set here` at every other line that a value came from."""
    return tuple(
        Label(span, "set here")
        for _, span in origins
        if (span.source, span.line, span.column) != (used.source, used.line, used.column)
    )
