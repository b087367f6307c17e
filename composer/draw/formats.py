"""A drawing as a file: which formats there are, and what makes each."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from composer.draw.programs import Missing, graphviz
from composer.draw.scene import Scene

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


class Page(Protocol):
    """What can be printed: a drawing, or two compared."""

    @property
    def scene(self) -> Scene:
        """What is on it."""

    @property
    def width(self) -> str:
        """As it was asked for, with a unit; nothing for its natural size."""

    def svg(self) -> str:
        """The text of an SVG file."""


def written(figure: Figure, format: Format) -> bytes:
    """The bytes of a file.

    Raises:
        Missing: where a program or a package is needed that is not there.
    """
    return MAKERS[format](figure)


def _svg(figure: Page) -> bytes:
    return figure.svg().encode()


def _html(figure: Figure) -> bytes:
    return figure.html().encode()


def _mermaid(figure: Figure) -> bytes:
    from composer.draw.mermaid import mermaid

    return mermaid(figure.scene, figure.theme).encode()


def _dot(figure: Figure) -> bytes:
    from composer.draw.dot import dot

    return dot(figure.scene, figure.theme).encode()


def _png(figure: Page) -> bytes:
    return _drawn(figure, "png", f"-Gdpi={DENSITY}")


def _drawn(figure: Page, format: str, *options: str, program: str | None = None) -> bytes:
    from composer.draw.marks import marks
    from composer.draw.xdot import xdot

    width, height, found = marks(figure.svg())
    return graphviz(xdot(width, height, found, scale(figure)), format, "-Kneato", "-n2", *options, program=program)


def _pdf(figure: Page) -> bytes:
    if importlib.util.find_spec("reportlab") is None:
        if (program := shutil.which("dot")) is None:
            raise Missing("a PDF needs reportlab or Graphviz's dot", 'pip install "arco-composer[pdf]"')
        return _drawn(figure, "pdf", program=program)
    from composer.draw.marks import marks
    from composer.draw.pdf import pdf

    return pdf(*marks(figure.svg()), scale(figure), figure.scene.name)


PRINTED: dict[Format, Callable[[Page], bytes]] = {"svg": _svg, "png": _png, "pdf": _pdf}
"""What any page can be; only a drawing of one model can be all."""
MAKERS: dict[Format, Callable[[Figure], bytes]] = {
    **PRINTED,
    "html": _html,
    "dot": _dot,
    "mermaid": _mermaid,
}


def scale(figure: Page) -> float:
    """Points of paper for each pixel of the page."""
    relative = not figure.width or figure.width.endswith("%")
    return POINTS["px"] if relative else points(figure.width) / figure.scene.width


def points(width: str) -> float:
    """A length in points."""
    number = width.rstrip("abcdefghijklmnopqrstuvwxyz")
    return float(number) * POINTS[width.removeprefix(number)]
