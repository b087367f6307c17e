"""The exception that carries diagnostics."""

from __future__ import annotations

from collections.abc import Iterable

from composer.diagnostics.diagnostic import Diagnostic
from composer.diagnostics.render import with_hint
from composer.errors import ComposerError


class RecipeError(ComposerError, ValueError):
    """A recipe that cannot be used; carries every diagnostic of the run, and makes its text when shown."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n".join(with_hint(diagnostic) for diagnostic in self.diagnostics)
