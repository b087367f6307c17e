"""Graphviz as a program: what is installed of it, and how it is called."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

from composer.errors import ComposerError
from composer.printable import printable

INCH = 72
"""Points."""
PURE, INSTALL = "graphviz-pure", "pip install graphviz-pure"


class Missing(ComposerError, RuntimeError):
    """A program or a package that a file needs; `hint` is how it is installed."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


def pure() -> str | None:
    """Return the program that comes with our own dependencies, also where the environment is not activated."""
    return shutil.which(PURE, path=sysconfig.get_path("scripts")) or shutil.which(PURE)


def graphviz(text: str, format: str, *options: str, program: str | None = None) -> bytes:
    """Return what Graphviz makes of a DOT text; the one that draws the same on every machine is preferred.

    Raises:
        Missing: if Graphviz is not installed, or the one that is cannot draw this.
    """
    program = program or pure() or shutil.which("dot")
    if program is None:
        raise Missing("Graphviz is not installed", INSTALL)
    run = subprocess.run([program, f"-T{format}", *options], input=text.encode(), capture_output=True)
    if run.returncode:
        errors = run.stderr.decode(errors="replace").strip().splitlines() or [f"exit status {run.returncode}"]
        raise Missing(f"{Path(program).name} failed: {errors[-1][:200]}", INSTALL)
    return run.stdout


def quoted(text: str) -> str:
    """Return a text in which Graphviz finds no escapes of its own."""
    from graphviz import escape  # not before a graph is written: most commands write none

    return str(escape(printable(text)))
