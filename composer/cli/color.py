"""Color in terminals: when there is any, and the codes for it."""

from __future__ import annotations

import os
from typing import TextIO

from composer.diagnostics.render import Painter, TextRole, plain

CODES: dict[TextRole, str] = {
    "error": "1;31", "warning": "1;33", "added": "32", "removed": "31", "strong": "1", "accent": "36", "dim": "2",
}  # fmt: skip


def painter(stream: TextIO) -> Painter:
    """Return what colors the text that is written to a stream, or leaves it alone."""
    return ansi if has_color(stream) else plain


def ansi(text: str, role: TextRole) -> str:
    """Return the text between ANSI codes."""
    return f"\x1b[{CODES[role]}m{text}\x1b[0m" if text else ""


def has_color(stream: TextIO) -> bool:
    """Return whether a stream takes color: it is a terminal that knows how, unless the environment decides otherwise.

    `NO_COLOR` (https://no-color.org) comes first, then `FORCE_COLOR` and `CLICOLOR_FORCE`; set to nothing, none of them counts.
    """
    variables = os.environ
    if variables.get("NO_COLOR"):
        return False
    if any(variables.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    if variables.get("TERM") == "dumb" or variables.get("CLICOLOR") == "0":
        return False
    if os.name == "nt" and not {"WT_SESSION", "TERM"} & variables.keys():  # the old console prints the codes
        return False
    return stream.isatty()
