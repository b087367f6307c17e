"""A recipe on its way through the passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from blocks.core import Library
from composer.diagnostics import Diagnostic
from composer.graph.ir import Program
from composer.graph.passes.error_report import once
from composer.graph.passes.expand.expansion import Expansion
from composer.graph.typed import TypedProgram
from composer.language.recipe.ast import ParsedRecipe
from composer.language.yaml.nodes import Document


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

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything that is reported."""
        return self.found if self.typed is None else (*self.found, *self.warnings)

    def stop(self, found: Iterable[Diagnostic] = ()) -> Compilation:
        """Return the same with what was found, where nothing can follow."""
        return replace(self, typed=None, found=(*self.found, *found), stopped=True)

    def reported(self, *, stopped: bool = False) -> Compilation:
        """Return the same with what has been reported while the recipe was expanded."""
        assert self.parsed is not None
        assert self.expansion is not None
        found = once([*self.parsed.diagnostics, *self.expansion.report.diagnostics])
        return replace(self, found=tuple(found), stopped=stopped)


GraphPass: TypeAlias = Callable[[Compilation], Compilation]
