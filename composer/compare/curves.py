"""The curves of an experiment as an SVG figure: the mean validation loss of each variant, and a band of its spread."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from blocks.core.look import Hue
from composer.compare.results import ExperimentResult, VariantResult
from composer.cost.units import short
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
class LossPoint:
    """Mean and spread of the losses after so many tokens."""

    tokens: int
    mean: float
    spread: float


def points_of(variant: VariantResult) -> list[LossPoint]:
    """Return the curve of a variant over its seeds, at the validations that all its runs have."""
    curves = [dict(run.curve) for run in variant.runs]
    shared = sorted(set(curves[0]).intersection(*curves[1:]))
    losses = {tokens: [curve[tokens] for curve in curves] for tokens in shared}
    return [LossPoint(tokens, fmean(each), stdev(each) if len(each) > 1 else 0.0) for tokens, each in losses.items()]


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


def svg_of(result: ExperimentResult) -> str:
    """Return the text of an SVG file, which follows the theme of the reader's screen."""
    curves = [points_of(variant) for variant in result.variants]
    names = [variant.name for variant in result.variants]
    room = 34 + max(text_width(name, TEXT, bold=True) for name in names)
    x, y = scales(curves, WIDTH - room)
    return "\n".join(_lines(result, curves, names, x, y)) + "\n"


def scales(curves: Sequence[Sequence[LossPoint]], right: float) -> tuple[AxisScale, AxisScale]:
    """Return the axes that hold all curves with their bands."""
    every = [point for curve in curves for point in curve]
    low, high = min(each.mean - each.spread for each in every), max(each.mean + each.spread for each in every)
    margin = 0.04 * (high - low) or 0.05
    most = max(each.tokens for each in every)
    return AxisScale(0, most, LEFT, right), AxisScale(low - margin, high + margin, HEIGHT - BOTTOM, TOP)


def _lines(
    result: ExperimentResult, curves: Sequence[Sequence[LossPoint]], names: Sequence[str], x: AxisScale, y: AxisScale
) -> Iterator[str]:
    label = f"Validation loss of {', '.join(names)} by tokens"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="{FAMILY}" role="img" aria-label="{markup(label)}">'
    )
    dark = f"@media (prefers-color-scheme:dark){{{_rules(DARK)}}}"
    yield f"<style>{_rules(LIGHT)}{dark}</style>"
    yield f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>'
    yield _text(result.name, 16, 26, 15, kind="t", bold=True)
    for value in y.ticks:
        yield f'<path class="grid" d="M{n(x.start)} {n(y(value))}H{n(x.end)}"/>'
        yield _text(f"{value:.10g}", x.start - 7, y(value) + 3.5, SMALL, kind="u", anchor="end")
    for value in x.ticks:
        yield _text(short(round(value)), x(value), y.start + 16, SMALL, kind="u", anchor="middle")
    yield f'<path class="axis" d="M{n(x.start)} {n(y.start)}H{n(x.end)}"/>'
    yield _text("tokens trained on", x.end, y.start + 34, TEXT, kind="u", anchor="end")
    yield _text("validation loss, nats per token", x.start, TOP - 8, TEXT, kind="u")
    for index, (name, curve) in enumerate(zip(names, curves, strict=True)):
        yield f"<g><title>{markup(name)}</title>"
        if any(point.spread for point in curve):
            upper = [f"{n(x(point.tokens))},{n(y(point.mean + point.spread))}" for point in curve]
            lower = [f"{n(x(point.tokens))},{n(y(point.mean - point.spread))}" for point in reversed(curve)]
            yield f'<polygon class="b{index % len(HUES)}" points="{" ".join(upper + lower)}"/>'
        line = " ".join(f"{n(x(point.tokens))},{n(y(point.mean))}" for point in curve)
        dash = f' stroke-dasharray="{DASHES[index % len(DASHES)]}"' if DASHES[index % len(DASHES)] else ""
        yield f'<polyline class="c{index % len(HUES)}" points="{line}"{dash}/>'
        place = f'cx="{n(x(curve[-1].tokens))}" cy="{n(y(curve[-1].mean))}"'
        yield f'<circle class="n{index % len(HUES)}" {place} r="2.5"/></g>'
    for index, height in labels(curves, y):
        end = x(curves[index][-1].tokens)
        yield f'<path class="lead" d="M{n(end + 3)} {n(y(curves[index][-1].mean))}L{n(x.end + 16)} {n(height)}"/>'
        yield _text(names[index], x.end + 20, height + 4, TEXT, kind=f"n{index % len(HUES)}", bold=True)
    yield "</svg>"


def labels(curves: Sequence[Sequence[LossPoint]], y: AxisScale, apart: float = 15) -> list[tuple[int, float]]:
    """Return the height of each name beside the end of its curve, such that none lies on another and all are on the page."""
    order = sorted(range(len(curves)), key=lambda index: y(curves[index][-1].mean))
    places: list[float] = []
    for index in order:
        wanted = y(curves[index][-1].mean)
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
