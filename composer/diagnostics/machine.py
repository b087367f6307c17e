"""Diagnostics for programs: JSON for editors and scripts, and GitHub's workflow commands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from composer.diagnostics.diagnostic import Diagnostic
from composer.diagnostics.source import Span
from composer.printable import json_text, printable

PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})
MESSAGE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})


def as_json(diagnostics: Iterable[Diagnostic]) -> str:
    """Return a list of objects; lines and columns count from 1 in characters, and the end column is exclusive."""
    return json_text([_plain(each) for each in diagnostics], indent=2)


def _plain(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        **_place(diagnostic.span),
        "severity": diagnostic.severity,
        "code": diagnostic.code,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
        "labels": [{**_place(label.span), "message": label.text} for label in diagnostic.labels],
    }


def _place(span: Span) -> dict[str, str | int]:
    lines = {"line": span.line, "column": span.column, "end_line": span.end_line, "end_column": span.end_column}
    return {"path": span.source.name, **lines}


def as_github(diagnostic: Diagnostic) -> str:
    """Return a workflow command: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands."""
    span = diagnostic.span
    last = span.end_column - 1 if span.end_line == span.line else span.end_column  # GitHub's end column is inclusive
    places = {"file": span.source.name, "line": span.line, "col": span.column, "endLine": span.end_line, "endColumn": last}
    properties = {**places, "title": diagnostic.code}
    told = ",".join(f"{name}={printable(str(value)).translate(PROPERTY)}" for name, value in properties.items())
    hint = f"\n{diagnostic.hint}" if diagnostic.hint else ""
    message = printable(diagnostic.message + hint, keep="\n").translate(MESSAGE)
    return f"::{diagnostic.severity} {told}::{message}"
