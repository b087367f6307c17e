"""The error of an expression that cannot be parsed or evaluated."""

from __future__ import annotations

from typing import NoReturn

from composer.diagnostics import Diagnostic, Span


class ExpressionError(ValueError):
    """An expression that cannot be read or has no value; carries the one diagnostic that says why."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        super().__init__(diagnostic)

    def __str__(self) -> str:
        return self.diagnostic.message


def refuse(code: str, message: str, span: Span, *, hint: str = "") -> NoReturn:
    """Raise the diagnostic of one expression."""
    raise ExpressionError(Diagnostic(code, message, span, hint=hint))
