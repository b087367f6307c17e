"""The curves of an experiment as an SVG figure: the mean validation loss of each variant, and a band of its spread."""

from __future__ import annotations

from statistics import fmean, stdev

from composer.compare.results import ExperimentResult, VariantResult
from composer.cost.units import short
from composer.draw.export.curves import Chart, CurvePoint, svg_of_charts


def points_of(variant: VariantResult) -> list[CurvePoint]:
    """Return mean and spread of the losses of a variant by tokens, at the validations that all its runs have."""
    curves = [dict(run.curve) for run in variant.runs]
    shared = sorted(set(curves[0]).intersection(*curves[1:]))
    losses = {tokens: [curve[tokens] for curve in curves] for tokens in shared}
    return [CurvePoint(tokens, fmean(each), stdev(each) if len(each) > 1 else 0.0) for tokens, each in losses.items()]


def svg_of(result: ExperimentResult) -> str:
    """Return the text of an SVG file."""
    chart = Chart(
        title=result.name,
        x_title="tokens trained on",
        y_title="validation loss, nats per token",
        curves=[(variant.name, points_of(variant)) for variant in result.variants],
        x_text=lambda tokens: short(round(tokens)),
        y_text=lambda loss: f"{loss:.10g}",
    )
    return svg_of_charts([chart], f"Validation loss of {', '.join(each.name for each in result.variants)} by tokens")
