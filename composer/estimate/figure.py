"""Memory and time of several estimates as an SVG figure, over the length of an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from composer.cost.units import short
from composer.draw.export.curves import Chart, CurvePoint, svg_of_charts
from composer.estimate.devices import EstimateError
from composer.estimate.estimates import Estimate


def svg_of(found: Sequence[Estimate], axis: str) -> str:
    """Return the text of an SVG file with the peak of training steps, and on a device with their time.

    Args:
        found: The estimates, at several lengths of the axis.
        axis: The axis.

    Raises:
        EstimateError: No model has a training step.
    """
    trained = [each for each in found if each.training is not None and axis in each.lengths]
    if not trained:
        raise EstimateError("there is no training step to draw", hint="a recipe needs a task with a loss, or losses")
    where = "" if trained[0].device is None else f" on {trained[0].device.name}"
    charts = [_chart(trained, axis, f"Memory of a training step{where}", "GiB", lambda each: _peak(each) / 2**30)]
    if all(each.step is not None for each in trained):
        least = "" if trained[0].device is None or trained[0].device.measured else ", at least"
        charts.append(_chart(trained, axis, f"Time of a training step{where}{least}", "seconds", _seconds))
    names = ", ".join(dict.fromkeys(each.name for each in trained))
    return svg_of_charts(charts, f"Memory and time of {names} by {axis}" if len(charts) > 1 else f"Memory of {names} by {axis}")


def _peak(one: Estimate) -> int:
    assert one.training is not None
    return one.training.peak


def _seconds(one: Estimate) -> float:
    assert one.step is not None
    return one.step.seconds


def _chart(found: Sequence[Estimate], axis: str, title: str, unit: str, value: Callable[[Estimate], float]) -> Chart:
    """Return a chart with a curve for each model, and for each combination of its other lengths."""
    curves: dict[str, list[CurvePoint]] = {}
    others = {each for one in found for each in one.lengths.items() if each[0] != axis}
    vary = {name for name, _ in others if len({length for other, length in others if other == name}) > 1}
    for one in found:
        rest = ", ".join(f"{name} {length:,}" for name, length in one.lengths.items() if name in vary)
        curves.setdefault(f"{one.name}, {rest}" if rest else one.name, []).append(CurvePoint(one.lengths[axis], value(one)))
    return Chart(
        title=title,
        x_title=axis,
        y_title=unit,
        curves=[(name, sorted(points, key=lambda point: point.x)) for name, points in curves.items()],
        x_text=lambda length: short(round(length)) if length >= 10_000 else f"{length:,.4g}",
        y_text=lambda height: f"{height:.10g}",
        from_zero=True,
    )
