"""A drawing as a file: which formats there are, and what makes each."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from composer.atomic_files import save
from composer.draw.export.marks import tenth
from composer.draw.export.outlines import FlatMark, flatten_marks
from composer.draw.export.paint import paint_scene
from composer.draw.export.svg import svg
from composer.draw.graphviz_programs import Missing, graphviz
from composer.draw.scene import Scene
from composer.draw.style.themes import ThemeName
from composer.errors import ComposerError

POINTS = {"px": 0.75, "pt": 1.0, "pc": 12.0, "mm": 72 / 25.4, "cm": 720 / 25.4, "in": 72.0, "em": 12.0, "": 0.75}
"""Of a unit of length."""
DENSITY = 192
"""Pixels of a PNG for each inch: two for one of the page."""


class NotDrawn(ComposerError, ValueError):
    """A drawing that cannot be made as requested; `hint` says what to do about it."""

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
    def formats(self) -> tuple[str, ...]:
        """What it can be."""

    def html(self) -> str:
        """Return the text of a page for a browser."""


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file that a drawing can be."""

    make: Callable[[Page], bytes]
    """What makes its content."""
    endings: tuple[str, ...]
    """Of the names of its files, the usual one first."""
    binary: bool = False
    """Whether it is no text."""
    source: bool = False
    """Whether it is a text that people read and paste, so that a terminal shows it; it describes a graph, and holds one model,
    never two side by side."""


def written(page: Page, format: str) -> bytes:
    """Return the bytes of a file.

    Raises:
        Missing: if a program or a package is needed that is not installed.
    """
    return FORMATS[format].make(page)


def format_of(name: str) -> str | None:
    """Return the format that the ending of a file's name says, if it says one."""
    ending = Path(name).suffix.lower()
    return next((format for format, row in FORMATS.items() if ending in row.endings), None)


def figure_formats() -> tuple[str, ...]:
    """Return the formats that two models side by side can be."""
    return tuple(format for format, row in FORMATS.items() if not row.source)


def write(page: Page, path: Path, format: str | None = None) -> None:
    """Write a file; its format is by default that of the name's ending.

    Raises:
        Missing: if a program or a package is needed that is not installed; an SVG is then written instead.
        NotDrawn: if the ending is not that of a format in which the drawing can be written, or of another than is asked for.
    """
    ending = format_of(path.name)
    if format and ending and ending != format:
        raise NotDrawn(f"{path.name} ends like a file of {ending}, but the format is {format}", "give only one of them")
    format = format or ending
    if format not in page.formats:
        endings = [ending for one in page.formats for ending in FORMATS[one].endings]
        raise NotDrawn(f"{path.name} does not end in a supported format", f"use one of {', '.join(endings)}")
    try:
        save(path, written(page, format))
    except Missing as missing:
        instead = path.with_suffix(".svg")
        save(instead, written(page, "svg"))
        raise Missing(f"{missing.message}; wrote {instead} instead", missing.hint) from None


def _svg(page: Page) -> bytes:
    return svg(page.scene, page.theme, width=page.width, highlight=page.highlight, layers=True).encode()


def _html(page: Page) -> bytes:
    return page.html().encode()


def _mermaid(page: Page) -> bytes:
    from composer.draw.export.mermaid import mermaid

    return mermaid(page.scene, page.theme).encode()


def _dot(page: Page) -> bytes:
    from composer.draw.export.dot import dot

    return dot(page.scene, page.theme).encode()


def _tikz(page: Page) -> bytes:
    from composer.draw.export.tikz import tikz

    wide, high = tenth(page.scene.width), tenth(page.scene.height)
    return tikz(wide, high, paint_scene(page.scene, page.theme, page.highlight), scale(page)).encode()


def _png(page: Page) -> bytes:
    return _drawn(page, "png", f"-Gdpi={DENSITY}")


def _drawn(page: Page, format: str, *options: str, program: str | None = None) -> bytes:
    from composer.draw.export.graphviz_picture import xdot

    wide, high = tenth(page.scene.width), tenth(page.scene.height)
    return graphviz(xdot(wide, high, _flat_marks(page), scale(page)), format, "-Kneato", "-n2", *options, program=program)


def _pdf(page: Page) -> bytes:
    if importlib.util.find_spec("reportlab") is None:
        if (program := shutil.which("dot")) is None:
            raise Missing("a PDF needs reportlab or Graphviz's dot", 'pip install "arco-composer[pdf]"')
        return _drawn(page, "pdf", program=program)
    return pdf_of_pages([page])


def pdf_of_pages(pages: Sequence[Page]) -> bytes:
    """Return a PDF with a page for each of some drawings of one size.

    Raises:
        Missing: if reportlab is not installed.
    """
    if importlib.util.find_spec("reportlab") is None:
        raise Missing("a PDF of several pages needs reportlab", 'pip install "arco-composer[pdf]"')
    from composer.draw.export.pdf import pdf

    first = pages[0]
    wide, high = tenth(first.scene.width), tenth(first.scene.height)
    return pdf(wide, high, map(_flat_marks, pages), scale(first), first.scene.name)


def _flat_marks(page: Page) -> Iterator[FlatMark]:
    return flatten_marks(paint_scene(page.scene, page.theme, page.highlight))


FORMATS: dict[str, Format] = {
    "svg": Format(_svg, (".svg",)),
    "html": Format(_html, (".html",)),
    "png": Format(_png, (".png",), binary=True),
    "pdf": Format(_pdf, (".pdf",), binary=True),
    "tikz": Format(_tikz, (".tex", ".tikz")),
    "dot": Format(_dot, (".dot", ".gv"), source=True),
    "mermaid": Format(_mermaid, (".mmd", ".mermaid"), source=True),
}


def scale(page: Page) -> float:
    """Return the points of paper for each pixel of the page."""
    relative = not page.width or page.width.endswith("%")
    return POINTS["px"] if relative else points(page.width) / page.scene.width


def points(width: str) -> float:
    """Return a length in points."""
    number = width.rstrip("abcdefghijklmnopqrstuvwxyz")
    return float(number) * POINTS[width.removeprefix(number)]
