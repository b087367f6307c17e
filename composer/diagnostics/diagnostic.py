"""A user's mistake as data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from composer.diagnostics.source import Span
from composer.errors import ComposerError

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Label:
    """A second place that explains the first, with a few words: `set here`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake or one doubt: a stable code, the narrowest place, what is wrong, and what would be right."""

    code: str
    message: str
    span: Span
    severity: Severity = "error"
    note: str = ""
    """A few words under the caret, such as the value that an expression came to."""
    labels: tuple[Label, ...] = ()
    hint: str = ""


class RecipeError(ComposerError, ValueError):
    """A recipe that cannot be used; carries every diagnostic of the run, and makes its text when shown."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        from composer.diagnostics.render import with_hint

        return "\n".join(map(with_hint, self.diagnostics))
