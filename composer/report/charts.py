"""The charts of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from composer.draw.export.curves import Chart, CurvePoint
from composer.report.record import RunRecord
from composer.train.following.loss_curve import loss_chart, smoothed, thinned

MOST_CURVES = 8
"""Curves in one chart; of more layers, so many are shown, evenly spaced."""
MOST_LOADS = 4
"""Layers of experts that are shown, evenly spaced."""


def charts_of(record: RunRecord, *, unit: str) -> Iterator[Chart]:
    """Yield the charts that a run has numbers for, the loss first."""
    training = list(smoothed(record.series("loss")))
    yield loss_chart(training, points(record.series("validation_loss")), unit=unit)
    parts = {name: list(smoothed(record.series(f"loss/{name}"))) for name in record.names("loss/")}
    if parts:
        yield chart("Terms of the loss", "smoothed", {name: curve for name, curve in parts.items() if curve})
    if accuracy := record.series("validation_accuracy"):
        yield chart("Accuracy", "share of held-out targets", {"validation": points(accuracy)}, percent)
    yield from measured(record, "gradient_norm", "Gradient norm", "of all gradients together, before clipping; logarithmic")
    yield from by_layer(record, "gradient_norm/", "Gradient norm by layer", "before clipping; logarithmic")
    yield from by_layer(record, "activation/", "Activations by layer", "root mean square; logarithmic")
    yield from loads(record)
    if rate := record.series("learning_rate"):
        yield chart("Learning rate", "", {"learning rate": points(rate)}, lambda value: f"{value:.2g}")
    if speed := record.series("tokens_per_second"):
        yield chart("Speed", "targets per second", {"speed": points(speed)}, lambda value: f"{value:,.0f}", from_zero=True)
    if used := record.series("mfu"):
        yield chart("Model FLOPs utilization", "share of the peak", {"MFU": points(used)}, percent, from_zero=True)
    if memory := record.series("memory"):
        in_mib = points([(step, value / 2**20) for step, value in memory])
        yield chart("Memory", "most in use so far, MiB", {"memory": in_mib}, lambda value: f"{value:,.0f}", from_zero=True)


def measured(record: RunRecord, name: str, title: str, what: str) -> Iterator[Chart]:
    """Yield the chart of one positive number on a logarithmic axis."""
    if found := logarithms(record.series(name)):
        yield chart(title, what, {title.lower(): found}, power)


def by_layer(record: RunRecord, start: str, title: str, what: str) -> Iterator[Chart]:
    """Yield the chart of a positive number of each layer on a logarithmic axis."""
    curves = {name: logarithms(record.series(f"{start}{name}")) for name in record.names(start)}
    curves = {name: curve for name, curve in curves.items() if curve}
    if curves:
        shown = evenly([*curves], MOST_CURVES)
        some = f", {len(shown)} of {len(curves)}" if len(shown) < len(curves) else ""
        yield chart(f"{title}{some}", what, {name: curves[name] for name in shown}, power)


def loads(record: RunRecord) -> Iterator[Chart]:
    """Yield a chart of the load of the experts for some layers: of each expert, or of the busiest and the idlest of many."""
    by_name: dict[str, dict[str, list[CurvePoint]]] = {}
    for name in record.names("load/"):
        layer, _, expert = name.rpartition("/")
        by_name.setdefault(layer, {})[expert] = points(record.series(f"load/{name}"))
    for layer in evenly([*by_name], MOST_LOADS):
        experts = {f"expert {expert}": curve for expert, curve in by_name[layer].items() if curve}
        if len(experts) > MOST_CURVES:
            steps: dict[float, list[float]] = {}
            for curve in experts.values():
                for point in curve:
                    steps.setdefault(point.x, []).append(point.y)
            experts = {
                "busiest": [CurvePoint(step, max(shares)) for step, shares in steps.items()],
                "mean": [CurvePoint(step, sum(shares) / len(shares)) for step, shares in steps.items()],
                "idlest": [CurvePoint(step, min(shares)) for step, shares in steps.items()],
            }
        yield chart(f"Load of experts, {layer}", "share of positions that select it", experts, percent, from_zero=True)


def chart(
    title: str,
    what: str,
    curves: Mapping[str, Sequence[CurvePoint]],
    y_text: Callable[[float], str] = lambda value: f"{value:.10g}",
    *,
    from_zero: bool = False,
) -> Chart:
    """Return a chart by step."""
    found = [(name, thinned(list(curve))) for name, curve in curves.items()]
    return Chart(title, "step", what, found, lambda step: f"{round(step):,}", y_text, from_zero=from_zero)


def points(series: Sequence[tuple[float, float]]) -> list[CurvePoint]:
    """Return a series as the points of a curve."""
    return [CurvePoint(*each) for each in series]


def logarithms(series: Sequence[tuple[float, float]]) -> list[CurvePoint]:
    """Return the points of a curve on a logarithmic axis; what is not positive has none."""
    return [CurvePoint(x, math.log10(y)) for x, y in series if y > 0]


def evenly(names: Sequence[str], most: int) -> Sequence[str]:
    """Return at most so many of the names, evenly spaced, with the first and the last."""
    if len(names) <= most:
        return names
    return [names[round(index * (len(names) - 1) / (most - 1))] for index in range(most)]


def power(exponent: float) -> str:
    """Return the number that has a logarithm."""
    return f"{10**exponent:.2g}"


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{100 * share:.4g}%"
