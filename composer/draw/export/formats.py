"""A drawing as a file: which formats there are, and what makes each."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from composer.atomic_files import save
from composer.draw.export.marks import tenth
from composer.draw.export.outlines import Printed, printed
from composer.draw.export.paint import painted
from composer.draw.graphviz_programs import Missing, graphviz
from composer.draw.scene import Scene
from composer.errors import ComposerError

ThemeName: TypeAlias = Literal["light", "dark", "auto", "slide"]
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
PRINTED: tuple[Format, ...] = ("svg", "html", "png", "pdf")
"""What two models side by side can be; DOT and Mermaid are graphs, and hold one."""
POINTS = {"px": 0.75, "pt": 1.0, "pc": 12.0, "mm": 72 / 25.4, "cm": 720 / 25.4, "in": 72.0, "em": 12.0, "": 0.75}
"""Of a unit of length."""
DENSITY = 192
"""Pixels of a PNG for each inch: two for one of the page."""


class NotDrawn(ComposerError, ValueError):
    """What was asked of a drawing cannot be: a sentence, and what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


class Page(Protocol):
    """What a file is made of: the drawing of a model, or of two compared."""

    @property
    def scene(self) -> Scene:
        """What is on it."""

    @property
    def theme(self) -> ThemeName:
        """How it looks."""

    @property
    def width(self) -> str:
        """As it was asked for, with a unit; nothing for its natural size."""

    @property
    def highlight(self) -> tuple[str, ...]:
        """Paths of what stays bright while everything else fades."""

    @property
    def formats(self) -> tuple[Format, ...]:
        """What it can be."""

    def svg(self) -> str:
        """The text of an SVG file."""

    def html(self) -> str:
        """The text of a page for a browser."""


def written(page: Page, format: Format) -> bytes:
    """The bytes of a file.

    Raises:
        Missing: where a program or a package is needed that is not there.
    """
    return MAKERS[format](page)


def write(page: Page, path: Path, format: Format | None = None) -> None:
    """Writes a file; its format is that of the name's ending.

    Raises:
        Missing: where a program or a package is needed that is not there; then an SVG stands beside the name.
        NotDrawn: where the ending is that of no format which the drawing can be.
    """
    format = format or SUFFIXES.get(path.suffix.lower())
    if format not in page.formats:
        endings = [ending for ending, one in SUFFIXES.items() if one in page.formats]
        raise NotDrawn(f"{path.name} is no drawing's name", f"let it end in {', '.join(endings)}")
    try:
        save(path, written(page, format))
    except Missing as missing:
        instead = path.with_suffix(".svg")
        save(instead, written(page, "svg"))
        raise Missing(f"{missing.message}; {instead} is written instead", missing.hint) from None


def _svg(page: Page) -> bytes:
    return page.svg().encode()


def _html(page: Page) -> bytes:
    return page.html().encode()


def _mermaid(page: Page) -> bytes:
    from composer.draw.export.mermaid import mermaid

    return mermaid(page.scene, page.theme).encode()


def _dot(page: Page) -> bytes:
    from composer.draw.export.dot import dot

    return dot(page.scene, page.theme).encode()


def _png(page: Page) -> bytes:
    return _drawn(page, "png", f"-Gdpi={DENSITY}")


def _drawn(page: Page, format: str, *options: str, program: str | None = None) -> bytes:
    from composer.draw.export.graphviz_picture import xdot

    wide, high = tenth(page.scene.width), tenth(page.scene.height)
    return graphviz(xdot(wide, high, _printed(page), scale(page)), format, "-Kneato", "-n2", *options, program=program)


def _pdf(page: Page) -> bytes:
    if importlib.util.find_spec("reportlab") is None:
        if (program := shutil.which("dot")) is None:
            raise Missing("a PDF needs reportlab or Graphviz's dot", 'pip install "arco-composer[pdf]"')
        return _drawn(page, "pdf", program=program)
    from composer.draw.export.pdf import pdf

    return pdf(tenth(page.scene.width), tenth(page.scene.height), _printed(page), scale(page), page.scene.name)


def _printed(page: Page) -> Iterator[Printed]:
    return printed(painted(page.scene, page.theme, page.highlight))


MAKERS: dict[Format, Callable[[Page], bytes]] = {
    "svg": _svg,
    "html": _html,
    "png": _png,
    "pdf": _pdf,
    "dot": _dot,
    "mermaid": _mermaid,
}


def scale(page: Page) -> float:
    """Points of paper for each pixel of the page."""
    relative = not page.width or page.width.endswith("%")
    return POINTS["px"] if relative else points(page.width) / page.scene.width


def points(width: str) -> float:
    """A length in points."""
    number = width.rstrip("abcdefghijklmnopqrstuvwxyz")
    return float(number) * POINTS[width.removeprefix(number)]
