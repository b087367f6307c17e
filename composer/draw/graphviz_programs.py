"""Graphviz as a program: what is installed of it, and how it is called."""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from functools import lru_cache
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


@lru_cache(maxsize=256)
def node_places(text: str) -> Mapping[str, tuple[float, float]]:
    """Return where our own Graphviz puts each node of a DOT text, to the right and upwards. A page is laid out again until all
    fits, most of it as before, and a program takes as long to start as to answer: so no question is asked twice.

    Raises:
        Missing: as `graphviz`.
    """
    answer = json.loads(graphviz(text, "json", program=pure()))
    x_and_y = {one["name"]: one["pos"].split(",") for one in answer["objects"] if "pos" in one}
    return {name: (float(x), float(y)) for name, (x, y) in x_and_y.items()}


def quoted(text: str) -> str:
    """Return a text in which Graphviz finds no escapes of its own."""
    from graphviz import escape  # not before a graph is written: most commands write none

    return str(escape(printable(text)))
