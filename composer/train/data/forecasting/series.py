"""Series: the rows of a table in the order of time, as numbers, where no value and no row may be missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from composer.train.data.tables import Table
from composer.train.errors import TrainingError

GAP = "fill the gap, or cut the table there: each file is a series of its own"
CONSTANT = 1e-13
"""The deviation of a column, relative to its largest number, below which it is rounding alone."""

Numbers = npt.NDArray[np.float64]
Scales = Mapping[str, Sequence[float]]
"""The mean and the deviation of each column."""


@dataclass(frozen=True, eq=False)
class ForecastSeries:
    """What is forecast, in the units of the data.

    Examples:
        >>> import numpy as np
        >>> from composer.train import ForecastSeries
        >>> series = ForecastSeries(("load",), np.arange(9.0)[:, None], context=3, horizon=2, scales={"load": (4.0, 2.0)})
        >>> series.rows(np.array([0, 4])).tolist()
        [[3, 4], [7, 8]]
        >>> series.in_units(np.array([[0.0, 0.5]])).tolist()
        [[[4.0], [5.0]]]
    """

    columns: tuple[str, ...]
    """The names of the columns."""
    values: Numbers
    """Their numbers, [N, S], with a row for each time."""
    context: int
    """How many rows a model reads."""
    horizon: int
    """How many rows behind these it tells."""
    scales: Mapping[str, tuple[float, float]]
    """The mean and the deviation of each column that the model reads or tells, of the rows that are trained on."""

    def rows(self, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the numbers of the rows, [B, H], that are told in windows.

        Args:
            starts: The first row of each window, [B].
        """
        return starts[:, None] + np.arange(self.context, self.context + self.horizon)

    def in_units(self, told: npt.NDArray[Any]) -> Numbers:
        """Return what a model tells in the units of the data, [B, H, S].

        Args:
            told: The standardized numbers, [B, H, S], or [B, H] of one column.
        """
        mean, deviation = np.array([self.scales[column] for column in self.columns]).T
        found: Numbers = told.reshape(len(told), self.horizon, -1).astype(np.float64) * deviation + mean
        return found


def columns_with_numbers(table: Table, columns: Sequence[str]) -> dict[str, Numbers]:
    """Return the numbers of columns by name, [N] each; an array with several numbers in each row is several columns.

    Raises:
        TrainingError: A cell is empty or no finite number.
    """
    found: dict[str, Numbers] = {}
    for column in columns:
        numbers = _numbers(table, column)
        if numbers.ndim == 1:
            found[column] = numbers
        else:
            found |= {f"{column}[{place}]": numbers[:, place] for place in range(numbers.shape[1])}
    return found


def _numbers(table: Table, column: str) -> Numbers:
    cells = table.columns[column]
    if isinstance(cells, np.ndarray) and cells.dtype.kind not in "U":
        if cells.dtype.kind not in "iuf" or cells.ndim > 2:
            what = f"{cells.dtype} with the shape {list(cells.shape)}"
            raise TrainingError(f"the column `{column}` of {table.name} is an array of {what}, no series of numbers")
        wide: Numbers = cells.astype(np.float64)
        whole = np.isfinite(wide).reshape(len(wide), -1).all(1)
        if not whole.all():
            row = int(np.argmin(whole))
            raise TrainingError(f"{table.place(row)}: the column `{column}` is {cells[row]}, no finite number", hint=GAP)
        return wide
    found = np.empty(len(cells))
    for row, cell in enumerate(cells):
        found[row] = _number(table, column, row, cell)
    return found


def _number(table: Table, column: str, row: int, cell: object) -> float:
    if isinstance(cell, str | int | float) and not isinstance(cell, bool):
        try:
            number = float(cell)
        except (ValueError, OverflowError):
            number = np.nan
        if np.isfinite(number):
            return number
    shown = "is empty" if cell is None or not str(cell).strip() else f"is no finite number: {cell!r:.40}"
    raise TrainingError(f"{table.place(row)}: the column `{column}` {shown}", hint=GAP)


def scales_of(numbers: Mapping[str, Numbers], rows: npt.NDArray[np.bool_]) -> dict[str, tuple[float, float]]:
    """Return the mean and the deviation of each column over some of its rows; a constant column has the deviation 1."""
    found = {}
    for name, column in numbers.items():
        seen = column[rows]
        mean, deviation = float(seen.mean()), float(seen.std())
        found[name] = (mean, deviation if deviation > CONSTANT * float(np.abs(seen).max()) else 1.0)
    return found


def spans_of(table: Table) -> list[tuple[int, int]]:
    """Return where each series begins and ends in a table: one for each of the tables that are one below the other."""
    return list(pairwise((0, *(table.ends or (len(table),)))))


def check_times(table: Table, column: str) -> None:
    """Raise `TrainingError` unless the times of each series ascend in equal steps: of seconds, months, or numbers.

    Args:
        table: The table.
        column: The column of times: numbers, or dates and times as ISO 8601 writes them.
    """
    cells = table.columns[column]
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        cells = cells.astype("datetime64[us]").tolist()
    times = [_time(table, column, row, cell) for row, cell in enumerate(cells)]
    for start, stop in spans_of(table):
        _check_steps(table, column, times[start:stop], start)


def _check_steps(table: Table, column: str, times: Sequence[float | datetime], start: int) -> None:
    try:
        steps = [_step(one, other) for one, other in pairwise(times)]
    except TypeError:
        message = f"the column `{column}` of {table.name} mixes numbers, times with a zone, and times without one"
        raise TrainingError(message, hint="write all times in one way") from None
    months = [_months(one, other) for one, other in pairwise(times)]
    found: Sequence[float | None] = months if None not in months and len({*steps}) > 1 else steps
    if not found:
        return
    usual = Counter(found).most_common(1)[0][0]
    assert usual is not None
    for row, step in enumerate(found, start + 1):
        if step is None or step <= 0 or not np.isclose(step, usual, rtol=1e-6, atol=0):
            before, here = (table.columns[column][each] for each in (row - 1, row))
            unit = " months" if found is months else "" if isinstance(times[0], float) else " (days, hours, minutes, seconds)"
            shown = usual if found is months or isinstance(times[0], float) else str(timedelta(seconds=usual))
            raise TrainingError(
                f"{table.place(row)}: the column `{column}` goes from {before} to {here}, and most steps are {shown}{unit}",
                hint=f"times ascend in equal steps; {GAP}",
            )


def _step(one: float | datetime, other: float | datetime) -> float:
    step: Any = other - one  # type: ignore[operator]  # of two kinds, which the caller turns into an error
    return step.total_seconds() if isinstance(step, timedelta) else float(step)


def _months(one: float | datetime, other: float | datetime) -> float | None:
    """Return how many months lie between two times; None if the rest of them differs, and for numbers."""
    if not isinstance(one, datetime) or not isinstance(other, datetime):
        return None
    if one.replace(year=2000, month=1) != other.replace(year=2000, month=1):
        return None
    return (other.year - one.year) * 12 + other.month - one.month


def _time(table: Table, column: str, row: int, cell: object) -> float | datetime:
    if isinstance(cell, datetime):
        return cell
    if isinstance(cell, date):
        return datetime.combine(cell, time())
    text = "" if isinstance(cell, bool) else str(cell).strip()
    for read in (float, datetime.fromisoformat, lambda month: datetime.fromisoformat(f"{month}-01")):
        try:
            found = read(text)
        except (ValueError, OverflowError):
            continue
        if not isinstance(found, float) or np.isfinite(found):
            return found
    raise TrainingError(
        f"{table.place(row)}: the column `{column}` is no time: {text!r:.40}",
        hint="times are numbers, or dates as 2024-05-17, with a time of day as 2024-05-17 13:00 (ISO 8601)",
    )
