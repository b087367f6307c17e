"""The loss of a run so far, smoothed, as a curve for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from composer.draw.export.curves import Chart, CurvePoint, svg_of_charts
from composer.draw.export.terminal import terminal_chart

SMOOTHING = 0.95
"""The weight of the past in the moving average of losses."""
MOST = 512
"""Points that a curve keeps at most; beyond, every second one is dropped."""


class Smooth:
    """A moving average with exponential weights, and the deviation from it; of a few values, it is nearly their mean.

    >>> average = Smooth(0.5)
    >>> [average.add(value)[0] for value in (4.0, 1.0)]
    [4.0, 2.0]
    """

    def __init__(self, weight: float = SMOOTHING) -> None:
        self._weight, self._total, self._mean, self._square = weight, 0.0, 0.0, 0.0

    def add(self, value: float) -> tuple[float, float]:
        """Return mean and deviation after a further value."""
        self._total = self._weight * self._total + 1  # the weights of all values together
        share = 1 / self._total
        self._mean += share * (value - self._mean)
        self._square += share * (value * value - self._square)
        return self._mean, max(self._square - self._mean**2, 0.0) ** 0.5


def smoothed(points: Sequence[tuple[float, float]]) -> Iterator[CurvePoint]:
    """Yield the moving average of a whole curve, with the deviation from it: over a twentieth of its points, at most 100."""
    span = min(max(len(points) / 20, 1.0), 100.0)
    average = Smooth(1 - 1 / span)
    for x, y in points:
        yield CurvePoint(x, *average.add(y))


def thinned(points: list[CurvePoint]) -> list[CurvePoint]:
    """Return at most `MOST` of the points, evenly, with the last one."""
    every = -(-len(points) // MOST)
    return points[:: -every or None][::-1] if every > 1 else points


class LossCurve:
    """Collects the losses of a run."""

    def __init__(self) -> None:
        self._average = Smooth()
        self._every = 1
        self._count = 0
        self.training: list[CurvePoint] = []
        """The smoothed loss by step."""
        self.validations: list[CurvePoint] = []

    def add(self, step: int, loss: float) -> None:
        """Add the loss of a step."""
        point = CurvePoint(step, *self._average.add(loss))
        self._count += 1
        if (self._count - 1) % self._every:
            return
        self.training.append(point)
        if len(self.training) > MOST:
            self.training, self._every = self.training[::2], self._every * 2

    def validated(self, step: int, loss: float) -> None:
        """Add the loss of a validation."""
        self.validations.append(CurvePoint(step, loss))

    def text(self, *, width: int, height: int) -> str:
        """Return the curve as lines of text, with a cross for each validation; nothing before two steps."""
        if len(self.training) < 2:
            return ""
        points, marks = ([(each.x, each.y) for each in part] for part in (self.training, self.validations))
        return "\n".join(terminal_chart(points, width=width, height=height, marks=marks))

    def svg(self) -> str:
        """Return the curves as the text of an SVG file; nothing before the first step."""
        return svg_of_charts([loss_chart(self.training, self.validations)], "Loss by step") if self.training else ""


def loss_chart(training: list[CurvePoint], validations: list[CurvePoint], *, unit: str = "nats per token") -> Chart:
    """Return the chart of the losses by step."""
    curves = [("training", training), ("validation", validations)]
    return Chart(
        title="Loss",
        x_title="step",
        y_title=f"{unit}; training smoothed, with its spread",
        curves=[(name, thinned(curve)) for name, curve in curves if curve],
        x_text=lambda step: f"{round(step):,}",
        y_text=lambda loss: f"{loss:.10g}",
    )
