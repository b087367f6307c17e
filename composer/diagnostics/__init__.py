"""Mistakes in recipes as data, and how they are shown."""

from composer.diagnostics.diagnostic import MAX_ERRORS, Diagnostic, Label, Severity
from composer.diagnostics.errors import RecipeError
from composer.diagnostics.machine import as_github, as_json
from composer.diagnostics.render import concise, full, report
from composer.diagnostics.source import Declaration, Source, Span

__all__ = [
    "MAX_ERRORS",
    "Declaration",
    "Diagnostic",
    "Label",
    "RecipeError",
    "Severity",
    "Source",
    "Span",
    "as_github",
    "as_json",
    "concise",
    "full",
    "report",
]
