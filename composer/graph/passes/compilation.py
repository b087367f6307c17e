"""A recipe on its way through the passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from blocks.core import Library
from composer.diagnostics import MAX_ERRORS, Diagnostic
from composer.graph.ir import Program
from composer.graph.passes.error_report import UNUSED_PARAM, TextPlace, place, text_of
from composer.graph.passes.expand.expansion import Expansion
from composer.graph.typed import TypedProgram
from composer.language.recipe.ast import ParsedRecipe
from composer.language.suggestions import suggest
from composer.language.yaml.nodes import Document

TOO_MANY = "too-many-errors"


@dataclass(frozen=True, slots=True)
class Compilation:
    """What the passes so far have made of a recipe, and what they found wrong with it."""

    document: Document
    library: Library
    parsed: ParsedRecipe | None = None
    expansion: Expansion | None = None
    program: Program | None = None
    typed: TypedProgram | None = None
    found: tuple[Diagnostic, ...] = ()
    """Mistakes, and warnings about what is written."""
    warnings: tuple[Diagnostic, ...] = ()
    """Warnings about the whole model, which are reported if it has no mistakes."""
    stopped: bool = False
    """Whether mistakes leave nothing for the next pass."""

    def __post_init__(self) -> None:
        if self.typed is not None:
            assert not any(each.severity == "error" for each in (*self.found, *self.warnings)), "a typed program with mistakes"

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything that is reported."""
        return tuple(once(self.found if self.typed is None else [*self.found, *self.warnings]))

    def stop(self, found: Iterable[Diagnostic] = ()) -> Compilation:
        """Return the same with what was found, where nothing can follow."""
        return replace(self, typed=None, found=(*self.found, *found), stopped=True)

    def reported(self, *, stopped: bool = False) -> Compilation:
        """Return the same with what has been reported while the recipe was expanded."""
        assert self.parsed is not None
        assert self.expansion is not None
        found = (*self.parsed.diagnostics, *self.expansion.report.diagnostics)
        return replace(self, found=found, stopped=stopped)


def once(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield one diagnostic for each place, its first error or else its first warning: passes of a repeat make the same
    mistake, and a second mistake in a place follows from the first. That a param is not used follows from a misspelled name.
    """
    chosen: dict[tuple[TextPlace, bool], Diagnostic] = {}
    found = list(diagnostics)
    misspelled = {text_of(each.span) for each in found if each.code.startswith("unknown-")}
    for diagnostic in found:
        if diagnostic.code == UNUSED_PARAM and any(suggest(word, [text_of(diagnostic.span)]) for word in misspelled):
            continue
        at = place(diagnostic.span), diagnostic.code == TOO_MANY
        if chosen.setdefault(at, diagnostic).severity == "warning" and diagnostic.severity == "error":
            chosen[at] = diagnostic
    errors = 0
    for diagnostic in chosen.values():
        yield diagnostic
        errors += diagnostic.severity == "error"
        if errors == MAX_ERRORS:
            yield Diagnostic(TOO_MANY, "too many errors to continue", diagnostic.span)
            return


GraphPass: TypeAlias = Callable[[Compilation], Compilation]
