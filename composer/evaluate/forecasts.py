"""How far forecasts are from what came, beside two that need no model: the last value, and the value one season before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from composer.train.data.examples import ExampleData
from composer.train.errors import TrainingError

MODEL, LAST_VALUE, SEASON = "model", "last value", "one season before"


@dataclass(frozen=True)
class ForecastError:
    """How far forecasts of a column are from what came, in its own units.

    Examples:
        >>> from composer.evaluate import ForecastError
        >>> ForecastError(mae=1.5, rmse=2.0)
        ForecastError(mae=1.5, rmse=2.0)
    """

    mae: float
    """Mean of the absolute differences."""
    rmse: float
    """Root of the mean of the squared differences."""


@dataclass(frozen=True)
class Forecasts:
    """The errors of forecasts of some rows ahead.

    Examples:
        >>> from composer.evaluate import ForecastError, Forecasts
        >>> print(Forecasts(2, None, {"load": {"model": ForecastError(1.5, 2.0), "last value": ForecastError(2.5, 3.25)}}))
        load, 2 rows ahead        MAE      RMSE
        model                     1.5         2
        last value                2.5      3.25
    """

    horizon: int
    """How many rows are told in each window."""
    season: int | None
    """The number of rows after which values are taken to repeat; None if none was given."""
    columns: Mapping[str, Mapping[str, ForecastError]]
    """For each column, the errors of the `model`, of the `last value`, and with a season of the value `one season before`."""

    def to_json(self) -> dict[str, object]:
        """Return the numbers by name."""
        errors = {
            column: {name.replace(" ", "_"): asdict(error) for name, error in each.items()}
            for column, each in self.columns.items()
        }
        return {"horizon": self.horizon, **({} if self.season is None else {"season": self.season}), "columns": errors}

    def __str__(self) -> str:
        ahead = f"{self.horizon} row{'s' if self.horizon > 1 else ''} ahead"
        lines = []
        for column, errors in self.columns.items():
            lines.append(f"{f'{column}, {ahead}':<20} {'MAE':>9} {'RMSE':>9}")
            lines += (f"{name:<20} {error.mae:>9.4g} {error.rmse:>9.4g}" for name, error in errors.items())
        return "\n".join(lines)


class ForecastMeter:
    """The errors of a model and of both forecasts without one, over batches of held-out windows.

    Args:
        data: The windows.
        season: The number of rows after which values are taken to repeat, at most those that the model reads; None for none.

    Raises:
        TrainingError: The data is no series, or its windows have less than a season.
    """

    def __init__(self, data: ExampleData, season: int | None) -> None:
        if data.series is None:
            raise TrainingError("a season is for models that forecast series", hint="leave out the season")
        if season is not None and not 1 <= season <= data.series.context:
            raise TrainingError(
                f"the season has {season} rows, and a window {data.series.context}",
                hint="a season is at least 1 and at most what the model reads, so that both forecast from the same rows",
            )
        self.series, self.starts, self.season = data.series, data.validation, season
        self.sums: dict[str, npt.NDArray[np.float64]] = {}
        self.done = 0

    def add(self, told: npt.NDArray[np.float32]) -> None:
        """Add what the model tells of the next windows.

        Args:
            told: The standardized numbers, [B, H, S] or [B, H].
        """
        starts = self.starts[self.done : self.done + len(told)]
        self.done += len(starts)
        values, rows = self.series.values, self.series.rows(starts)
        came = values[rows]
        forecasts = {MODEL: self.series.in_units(told), LAST_VALUE: values[rows[:, :1] - 1]}
        if self.season is not None:
            forecasts[SEASON] = values[rows - self.season * (np.arange(self.series.horizon) // self.season + 1)]
        for name, forecast in forecasts.items():
            missed = forecast - came
            sums = np.stack([np.abs(missed).sum((0, 1)), np.square(missed).sum((0, 1))])
            self.sums[name] = self.sums[name] + sums if name in self.sums else sums

    def found(self) -> Forecasts:
        """Return the errors over all windows so far."""
        count = self.done * self.series.horizon
        columns = {
            column: {
                name: ForecastError(float(absolute[place]) / count, float(np.sqrt(squared[place] / count)))
                for name, (absolute, squared) in self.sums.items()
            }
            for place, column in enumerate(self.series.columns)
        }
        return Forecasts(self.series.horizon, self.season, columns)


def meter_of(data: ExampleData, season: int | None) -> ForecastMeter | None:
    """Return what measures forecasts; None where there are none.

    Raises:
        TrainingError: A season is given for what is no series, or is longer than a window.
    """
    return None if data.series is None and season is None else ForecastMeter(data, season)
