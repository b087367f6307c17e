"""Tables of numbers from 0 to 1 as SVG: a cell for each, darker for more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from composer.draw.export.svg import FAMILY, n
from composer.draw.style.palette import DARK, LIGHT, Palette
from composer.draw.style.text_metrics import text_width
from composer.printable import markup

TITLE, TEXT, SMALL = 15, 11, 10
MARGIN, TOP = 16, 62
WIDE_CELL, CELL = 44, 22
"""Width of a cell with its number, and height of every cell."""


@dataclass(frozen=True)
class HeatMap:
    """A table whose cells are shaded by their values."""

    title: str
    x_title: str
    y_title: str
    columns: Sequence[str]
    rows: Sequence[str]
    values: Sequence[Sequence[float]]
    """By row and column, from 0 to 1."""
    value_text: Callable[[float], str] | None = None
    """Writes the number into each cell; None leaves them empty."""
    upright: bool = False
    """Whether the names of the columns stand upright, for words."""


def svg_of_heat_map(table: HeatMap) -> str:
    """Return the text of an SVG file, which follows the theme of the reader's screen."""
    return "\n".join(_lines([table])) + "\n"


def svg_of_heat_maps(tables: Sequence[HeatMap]) -> str:
    """Return the text of an SVG file with tables one below the other."""
    return "\n".join(_lines(tables)) + "\n"


def _lines(tables: Sequence[HeatMap]) -> Iterator[str]:
    sizes = [_size(table) for table in tables]
    width, height = max(wide for wide, _ in sizes), sum(high for _, high in sizes)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{n(width)}" height="{n(height)}" viewBox="0 0 {n(width)} {n(height)}" '
        f'font-family="{FAMILY}" role="img" aria-label="{markup(tables[0].title)}">'
    )
    yield f"<style>{_rules(LIGHT)}@media (prefers-color-scheme:dark){{{_rules(DARK)}}}</style>"
    yield f'<rect class="paper" width="{n(width)}" height="{n(height)}"/>'
    top = 0.0
    for table, (_, high) in zip(tables, sizes, strict=True):
        yield f'<g transform="translate(0 {n(top)})">'
        yield from _table(table)
        yield "</g>"
        top += high

    yield "</svg>"


def _left(table: HeatMap) -> float:
    return MARGIN + max(text_width(row, SMALL) for row in table.rows) + 8


def _names(table: HeatMap) -> float:
    """Return the height of the names of the columns."""
    return max(text_width(name, SMALL) for name in table.columns) + 4 if table.upright else 16


def _cell(table: HeatMap) -> float:
    return CELL if table.value_text is None else WIDE_CELL


def _size(table: HeatMap) -> tuple[float, float]:
    across = _left(table) + _cell(table) * len(table.columns) + MARGIN
    title = max(text_width(table.title, TITLE, bold=True), text_width(f"{table.y_title} by {table.x_title}", TEXT))
    return max(across, title + 2 * MARGIN), TOP + CELL * len(table.rows) + _names(table) + MARGIN


def _table(table: HeatMap) -> Iterator[str]:
    left, wide = _left(table), _cell(table)
    yield f'<text class="t" x="{MARGIN}" y="26" font-size="{TITLE}" font-weight="700">{markup(table.title)}</text>'
    yield f'<text class="u" x="{MARGIN}" y="46" font-size="{TEXT}">{markup(f"{table.y_title} by {table.x_title}")}</text>'
    for row, (name, values) in enumerate(zip(table.rows, table.values, strict=True)):
        y = TOP + CELL * row
        yield f'<text class="u" x="{n(left - 6)}" y="{n(y + 15)}" font-size="{SMALL}" text-anchor="end">{markup(name)}</text>'
        for column, value in enumerate(values):
            x = left + wide * column
            shown = f"{table.rows[row]}, {table.columns[column]}: {value:.4g}"
            yield (
                f'<g><title>{markup(shown)}</title><rect class="empty" x="{n(x)}" y="{n(y)}" width="{n(wide)}" height="{CELL}"/>'
                f'<rect class="full" x="{n(x)}" y="{n(y)}" width="{n(wide)}" height="{CELL}" fill-opacity="{value:.3f}"/>'
            )
            if table.value_text is not None:
                kind = "o" if value > 0.5 else "u"
                place = f'x="{n(x + wide / 2)}" y="{n(y + 15)}"'
                number = markup(table.value_text(value))
                yield f'<text class="{kind}" {place} font-size="{SMALL}" text-anchor="middle">{number}</text>'
            yield "</g>"
    below = TOP + CELL * len(table.rows)
    for column, name in enumerate(table.columns):
        x = left + wide * column + wide / 2
        if table.upright:
            place = f'transform="translate({n(x + 3.5)} {n(below + 4)}) rotate(-90)" text-anchor="end"'
        else:
            place = f'x="{n(x)}" y="{n(below + 14)}" text-anchor="middle"'
        yield f'<text class="u" {place} font-size="{SMALL}">{markup(name)}</text>'


def _rules(palette: Palette) -> str:
    color = palette.hues["attn"].stroke
    return (
        f".paper{{fill:{palette.paper}}}.t{{fill:{palette.title}}}.u{{fill:{palette.detail}}}.o{{fill:{palette.paper}}}"
        f".empty{{fill:{palette.paper};stroke:{palette.frame.stroke};stroke-width:.5}}.full{{fill:{color}}}"
    )
