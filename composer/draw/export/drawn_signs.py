"""Signs that the fonts of pages lack, as shapes between pieces of text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from composer.draw.export.marks import Circle, Geometry, LineBy, MarkShape, MoveTo, Path, Stroke, TextLine
from composer.draw.style.text_metrics import text_width

OUTER = "⊗"
"""The sign of an outer product."""
RADIUS, MIDDLE = 0.36, 0.36
"""Of its circle, and how high the middle of that is above the baseline, in sizes of the letters."""


def with_drawn_signs(line: TextLine) -> Iterator[TextLine | MarkShape]:
    """Yield a line of text in pieces, with a shape for each sign that a font may lack; none without letters, behind which a
    renderer would draw nothing more.
    """
    if OUTER not in line.text:
        yield line
        return
    size = line.font.size

    def width(text: str) -> float:
        return text_width(text, size, bold=line.font.bold)

    x = line.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[line.anchor] * width(line.text)
    first, *others = line.text.split(OUTER)
    if first.rstrip():
        yield replace(line, x=x, text=first.rstrip(), anchor="start")
    x += width(first)
    for piece in others:
        middle = x + width(OUTER) / 2, line.y - MIDDLE * size
        for geometry in crossed_circle(*middle, RADIUS * size):
            yield MarkShape(geometry, stroke=Stroke(line.ink, size / 11))
        x += width(OUTER)
        text = piece.lstrip()
        if text:
            yield replace(line, x=x + width(piece[: len(piece) - len(text)]), text=text.rstrip(), anchor="start")
        x += width(piece)


def crossed_circle(x: float, y: float, radius: float) -> Iterator[Geometry]:
    """Yield a circle around a place and the two lines of a cross in it."""
    reach = radius * 0.5**0.5
    yield Circle(x, y, radius)
    yield Path((MoveTo(x - reach, y - reach), LineBy((2 * reach, 2 * reach))))
    yield Path((MoveTo(x - reach, y + reach), LineBy((2 * reach, -2 * reach))))
