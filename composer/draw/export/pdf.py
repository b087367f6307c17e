"""Marks as a page of PDF with its fonts in it."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

from reportlab.lib.colors import HexColor
from reportlab.pdfbase.pdfmetrics import registerFont, stringWidth
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from composer.draw.export.marks import TextLine
from composer.draw.export.outlines import FlatMark, OutlinedShape
from composer.printable import printable

REGULAR, BOLD = "Arimo-Regular", "Arimo-Bold"
"""As wide as Helvetica, letter by letter."""


def pdf(width: float, height: float, pages: Iterable[Iterable[FlatMark]], scale: float = 1.0, title: str = "") -> bytes:
    """Return pages of `width` × `height` points, times `scale`; the same marks give the same bytes."""
    for name in (REGULAR, BOLD):
        registerFont(TTFont(name, str(Path(__file__).parent / "fonts" / f"{name}.ttf")))
    written = BytesIO()
    page = Canvas(written, (width * scale, height * scale), invariant=True, initialFontName=REGULAR)
    page.setTitle(printable(title))
    page.setCreator("arco draw")
    for marks in pages:
        page.scale(scale, scale)
        for mark in marks:
            match mark:
                case TextLine():
                    _words(page, mark, height)
                case OutlinedShape():
                    _shape(page, mark, height)
        page.showPage()
    page.save()
    return written.getvalue()


def _words(page: Canvas, words: TextLine, height: float) -> None:
    font = BOLD if words.font.bold else REGULAR
    page.setFont(font, words.font.size)
    page.setFillColor(HexColor(words.ink.color), alpha=words.ink.cover)
    text = printable(words.text)
    shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[words.anchor] * stringWidth(text, font, words.font.size)
    page.drawString(words.x - shift, height - words.y, text)


def _shape(page: Canvas, shape: OutlinedShape, height: float) -> None:
    if shape.fill is not None:
        page.setFillColor(HexColor(shape.fill.color), alpha=shape.fill.cover)
    if shape.stroke is not None:
        page.setStrokeColor(HexColor(shape.stroke.ink.color), alpha=shape.stroke.ink.cover)
    page.setLineWidth(shape.stroke.width if shape.stroke else 1)
    page.setDash(list(shape.stroke.dash) if shape.stroke else [])
    page.setLineJoin(1)
    drawn = page.beginPath()
    for curve in shape.outlines:
        places = [(x, height - y) for x, y in curve.points]
        drawn.moveTo(*places[0])
        for start in range(1, len(places) - 1, 3):
            one, two, end = places[start : start + 3]
            if one == places[start - 1] and two == end:
                drawn.lineTo(*end)
            else:
                drawn.curveTo(*one, *two, *end)
        if curve.closed:
            drawn.close()
    page.drawPath(drawn, stroke=int(shape.stroke is not None), fill=int(shape.fill is not None))
