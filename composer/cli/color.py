"""Color in terminals: when it is used, and its codes."""

from __future__ import annotations

import os
from typing import TextIO

from composer.diagnostics.render import Painter, TextRole, plain

CODES: dict[TextRole, str] = {
    "error": "1;31", "warning": "1;33", "added": "32", "removed": "31", "strong": "1", "accent": "36", "dim": "2",
}  # fmt: skip


def painter(stream: TextIO) -> Painter:
    """Return a function that colors text for a stream, or leaves it unchanged if the stream has no color."""
    return ansi if has_color(stream) else plain


def ansi(text: str, role: TextRole) -> str:
    """Return the text wrapped in the ANSI codes of its role."""
    return f"\x1b[{CODES[role]}m{text}\x1b[0m" if text else ""


def has_color(stream: TextIO) -> bool:
    """Return whether a stream has color: by default, if it is a terminal that supports it.

    `NO_COLOR` (https://no-color.org) takes precedence, then `FORCE_COLOR` and `CLICOLOR_FORCE`; empty ones are ignored.
    """
    variables = os.environ
    if variables.get("NO_COLOR"):
        return False
    if any(variables.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    if variables.get("TERM") == "dumb" or variables.get("CLICOLOR") == "0":
        return False
    if os.name == "nt" and not {"WT_SESSION", "TERM"} & variables.keys():  # the old console prints the codes as text
        return False
    return stream.isatty()
