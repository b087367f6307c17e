"""A user's mistake as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from composer.diagnostics.source import Span

Severity = Literal["error", "warning"]
MAX_ERRORS = 100
"""Errors that are reported of one recipe."""


@dataclass(frozen=True, slots=True)
class Label:
    """A second place that explains the first, with a few words: `set here`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning: a stable code, the narrowest place, what is wrong, and how to correct it."""

    code: str
    message: str
    span: Span
    severity: Severity = "error"
    note: str = ""
    """A few words under the caret, such as the value that an expression came to."""
    labels: tuple[Label, ...] = ()
    hint: str = ""
