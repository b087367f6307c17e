"""A drawing as a file: which formats there are, and what makes each."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from composer.draw.programs import Missing, graphviz

if TYPE_CHECKING:
    from composer.draw.figure import Figure

Format: TypeAlias = Literal["svg", "html", "png", "pdf", "dot", "mermaid"]
SUFFIXES: dict[str, Format] = {
    ".svg": "svg",
    ".html": "html",
    ".png": "png",
    ".pdf": "pdf",
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
}
BINARY: tuple[Format, ...] = ("png", "pdf")
"""What is no text."""
POINTS = {"px": 0.75, "pt": 1.0, "pc": 12.0, "mm": 72 / 25.4, "cm": 720 / 25.4, "in": 72.0, "em": 12.0, "": 0.75}
"""Of a unit of length."""
DENSITY = 192
"""Pixels of a PNG for each inch: two for one of the page."""


def written(figure: Figure, format: Format) -> bytes:
    """The bytes of a file.

    Raises:
        Missing: where a program or a package is needed that is not there.
    """
    return MAKERS[format](figure)


def _svg(figure: Figure) -> bytes:
    return figure.svg().encode()


def _html(figure: Figure) -> bytes:
    return figure.html().encode()


def _mermaid(figure: Figure) -> bytes:
    from composer.draw.mermaid import mermaid

    return mermaid(figure.scene, figure.theme).encode()


def _dot(figure: Figure) -> bytes:
    from composer.draw.dot import dot

    return dot(figure.scene, figure.theme).encode()


def _png(figure: Figure) -> bytes:
    return _drawn(figure, "png", f"-Gdpi={DENSITY}")


def _drawn(figure: Figure, format: str, *options: str, program: str | None = None) -> bytes:
    from composer.draw.marks import marks
    from composer.draw.xdot import xdot

    width, height, found = marks(figure.svg())
    return graphviz(xdot(width, height, found, scale(figure)), format, "-Kneato", "-n2", *options, program=program)


def _pdf(figure: Figure) -> bytes:
    if importlib.util.find_spec("reportlab") is None:
        if (program := shutil.which("dot")) is None:
            raise Missing("a PDF needs reportlab or Graphviz's dot", 'pip install "arco-composer[pdf]"')
        return _drawn(figure, "pdf", program=program)
    from composer.draw.marks import marks
    from composer.draw.pdf import pdf

    return pdf(*marks(figure.svg()), scale(figure), figure.scene.name)


MAKERS: dict[Format, Callable[[Figure], bytes]] = {
    "svg": _svg,
    "html": _html,
    "png": _png,
    "pdf": _pdf,
    "dot": _dot,
    "mermaid": _mermaid,
}


def scale(figure: Figure) -> float:
    """Points of paper for each pixel of the page."""
    wanted = re.fullmatch(r"([\d.]+)([a-z]*)", figure.width)
    return float(wanted[1]) * POINTS[wanted[2]] / figure.scene.width if wanted else POINTS["px"]


def save(path: Path, content: bytes) -> None:
    """Writes a file that is there whole or not at all."""
    aside = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    try:
        aside.write_bytes(content)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
