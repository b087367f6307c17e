"""Charts of curves as SVG: a line for each thing that is compared, with its name at its end, and a band of its spread."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from blocks.core.look import Hue
from composer.draw.export.svg import FAMILY, n
from composer.draw.style.palette import DARK, LIGHT, Palette
from composer.draw.style.text_metrics import text_width
from composer.printable import markup

HUES: tuple[Hue, ...] = ("attn", "moe", "ffn", "pos", "embed", "rec", "norm", "loss")
DASHES = ("", "7 3", "2 2.5", "9 3 2 3")
"""Tell curves apart without colors; eight hues and four dashes give 32 looks."""
WIDTH, HEIGHT = 640, 400
LEFT, TOP, BOTTOM = 58, 66, 46
TEXT, SMALL = 11, 10
TICKS = 6


@dataclass(frozen=True)
class CurvePoint:
    """A point of a curve, with the spread of what it is a mean of."""

    x: float
    y: float
    spread: float = 0.0


@dataclass(frozen=True)
class Chart:
    """Curves over one axis."""

    title: str
    x_title: str
    y_title: str
    curves: Sequence[tuple[str, Sequence[CurvePoint]]]
    """Each with its name; none is empty."""
    x_text: Callable[[float], str]
    y_text: Callable[[float], str]
    from_zero: bool = False
    """Whether heights begin at 0, for amounts that are compared by their lengths."""


@dataclass(frozen=True)
class AxisScale:
    """The range of an axis, and where it lies on the page."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        """Round numbers in the range, about half a dozen."""
        rough = (self.high - self.low) / TICKS
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
        first = math.ceil(self.low / step - 1e-9)
        return [count * step for count in range(first, math.floor(self.high / step + 1e-9) + 1)]


def svg_of_charts(charts: Sequence[Chart], label: str) -> str:
    """Return the text of an SVG file with charts one below the other, which follows the theme of the reader's screen."""
    return "\n".join(_lines(charts, label)) + "\n"


def scales(chart: Chart, right: float) -> tuple[AxisScale, AxisScale]:
    """Return the axes that hold all curves with their bands."""
    every = [point for _, curve in chart.curves for point in curve]
    low, high = min(each.y - each.spread for each in every), max(each.y + each.spread for each in every)
    margin = 0.04 * (high - low) or 0.05 * abs(high) or 0.05
    y = AxisScale(0.0 if chart.from_zero else low - margin, high + margin, HEIGHT - BOTTOM, TOP)
    return AxisScale(0, max(each.x for each in every) or 1.0, LEFT, right), y


def _lines(charts: Sequence[Chart], label: str) -> Iterator[str]:
    height = HEIGHT * len(charts)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="{FAMILY}" role="img" aria-label="{markup(label)}">'
    )
    dark = f"@media (prefers-color-scheme:dark){{{_rules(DARK)}}}"
    yield f"<style>{_rules(LIGHT)}{dark}</style>"
    yield f'<rect class="paper" width="{WIDTH}" height="{height}"/>'
    for place, chart in enumerate(charts):
        if place:
            yield f'<g transform="translate(0 {place * HEIGHT})">'
        yield from _chart_lines(chart)
        if place:
            yield "</g>"
    yield "</svg>"


def _chart_lines(chart: Chart) -> Iterator[str]:
    names = [name for name, _ in chart.curves]
    curves = [curve for _, curve in chart.curves]
    room = 34 + max(text_width(name, TEXT, bold=True) for name in names)
    x, y = scales(chart, WIDTH - room)
    yield _text(chart.title, 16, 26, 15, kind="t", bold=True)
    for value in y.ticks:
        yield f'<path class="grid" d="M{n(x.start)} {n(y(value))}H{n(x.end)}"/>'
        yield _text(chart.y_text(value), x.start - 7, y(value) + 3.5, SMALL, kind="u", anchor="end")
    for value in x.ticks:
        yield _text(chart.x_text(value), x(value), y.start + 16, SMALL, kind="u", anchor="middle")
    yield f'<path class="axis" d="M{n(x.start)} {n(y.start)}H{n(x.end)}"/>'
    yield _text(chart.x_title, x.end, y.start + 34, TEXT, kind="u", anchor="end")
    yield _text(chart.y_title, x.start, TOP - 8, TEXT, kind="u")
    for index, (name, curve) in enumerate(zip(names, curves, strict=True)):
        yield f"<g><title>{markup(name)}</title>"
        if any(point.spread for point in curve):
            upper = [f"{n(x(point.x))},{n(y(point.y + point.spread))}" for point in curve]
            lower = [f"{n(x(point.x))},{n(y(point.y - point.spread))}" for point in reversed(curve)]
            yield f'<polygon class="b{index % len(HUES)}" points="{" ".join(upper + lower)}"/>'
        line = " ".join(f"{n(x(point.x))},{n(y(point.y))}" for point in curve)
        dash = f' stroke-dasharray="{DASHES[index % len(DASHES)]}"' if DASHES[index % len(DASHES)] else ""
        yield f'<polyline class="c{index % len(HUES)}" points="{line}"{dash}/>'
        place = f'cx="{n(x(curve[-1].x))}" cy="{n(y(curve[-1].y))}"'
        yield f'<circle class="n{index % len(HUES)}" {place} r="2.5"/></g>'
    for index, height in labels(curves, y):
        end = x(curves[index][-1].x)
        yield f'<path class="lead" d="M{n(end + 3)} {n(y(curves[index][-1].y))}L{n(x.end + 16)} {n(height)}"/>'
        yield _text(names[index], x.end + 20, height + 4, TEXT, kind=f"n{index % len(HUES)}", bold=True)


def labels(curves: Sequence[Sequence[CurvePoint]], y: AxisScale, apart: float = 15) -> list[tuple[int, float]]:
    """Return the height of each name beside the end of its curve, such that none lies on another and all are on the page."""
    order = sorted(range(len(curves)), key=lambda index: y(curves[index][-1].y))
    places: list[float] = []
    for index in order:
        wanted = y(curves[index][-1].y)
        places.append(max(wanted, places[-1] + apart) if places else wanted)
    for place in range(len(places) - 1, -1, -1):
        below = y.start if place == len(places) - 1 else places[place + 1] - apart
        places[place] = min(places[place], below)
    return list(zip(order, places, strict=True))


def _rules(palette: Palette) -> str:
    """Return the colors of a theme as rules of CSS."""
    found = [
        f".paper{{fill:{palette.paper}}}.t{{fill:{palette.title}}}.u{{fill:{palette.detail}}}",
        f".grid{{fill:none;stroke:{palette.frame.stroke};stroke-width:.5;stroke-opacity:.5}}",
        f".axis{{fill:none;stroke:{palette.wire}}}.lead{{fill:none;stroke:{palette.frame.stroke};stroke-width:.7}}",
    ]
    for index, hue in enumerate(HUES):
        color = palette.hues[hue].stroke
        found.append(f".c{index}{{fill:none;stroke:{color};stroke-width:1.8;stroke-linejoin:round}}")
        found.append(f".b{index}{{fill:{color};fill-opacity:.16}}.n{index}{{fill:{color}}}")
    return "".join(found)


def _text(text: str, x: float, y: float, size: float, *, kind: str, anchor: str = "", bold: bool = False) -> str:
    where = f' text-anchor="{anchor}"' if anchor else ""
    weight = ' font-weight="700"' if bold else ""
    return f'<text class="{kind}" x="{n(x)}" y="{n(y)}" font-size="{size:g}"{where}{weight}>{markup(text)}</text>'
