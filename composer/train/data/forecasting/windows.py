"""Forecasting: windows of series, each with the rows that a model reads and those behind them, which it is to tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from composer.graph.anatomy import wires_of
from composer.graph.dims import names, substitute
from composer.graph.typed import TypedProgram
from composer.graph.types import TensorType
from composer.language.wording import counted
from composer.train.data.examples import ExampleData, Rows, rows_by_table
from composer.train.data.fields import axis_params, check_entries, chosen_columns, compared_inputs, mapping_of
from composer.train.data.forecasting.series import ForecastSeries, Scales, check_times, columns_with_numbers, scales_of, spans_of
from composer.train.data.tables import Table
from composer.train.data.text import held_out_from
from composer.train.errors import TrainingError

if TYPE_CHECKING:
    from composer.recipe import Recipe

FORECAST = "forecast"
"""The objective."""
TIME = "time"
"""The column that says when each row is, if there is one."""
FORM = (
    "such as inputs: {past: float[batch, context, series], future: float[batch, horizon, series]?}, with a loss `mse` whose "
    "target is future"
)


@dataclass(frozen=True)
class ForecastInputs:
    """The inputs of a model that forecasts."""

    past: str
    future: str
    """What its loss compares the forecast with."""
    past_type: TensorType
    future_type: TensorType
    output: str
    """The output of the model that is compared."""
    known: Mapping[str, TensorType] = field(default_factory=dict)
    """Further inputs of numbers: of the rows that are read, of those that are told, where these are known ahead, or of both."""


def forecast_inputs(program: TypedProgram) -> ForecastInputs:
    """Return what a model reads of the past, and what it tells.

    Raises:
        TrainingError: The model does not forecast: it needs another input, or none of its outputs is compared with one.
    """
    compared = compared_inputs(program)
    past = [
        name
        for name, type_ in program.inputs.items()
        if name not in compared and not type_.optional and name not in program.defaults
    ]
    types = [program.inputs[name] for name in (*past, *compared)]
    if not past or len(compared) != 1 or any(each.dtype != "float" or len(each.axes) not in (2, 3) for each in types):
        read = ", ".join(f"`{name}`, {type_}" for name, type_ in program.inputs.items())
        raise TrainingError(
            f"a model that forecasts reads inputs of numbers and compares its output with one; this one has {read}", hint=FORM
        )
    (future,) = compared
    if not isinstance(program.inputs[future].sizes[1], int):
        message = f"`{future}`, {program.inputs[future]}, has no fixed number of rows to tell"
        raise TrainingError(message, hint="make the horizon a param, or a number")
    output = _compared_output(program, future)
    read = _of_the_past(program, past, future)
    known = {name: program.inputs[name] for name in past if name != read}
    return ForecastInputs(read, future, program.inputs[read], program.inputs[future], output, known)


def _of_the_past(program: TypedProgram, inputs: Sequence[str], future: str) -> str:
    """Return the first of several inputs whose rows are neither those that are told nor both."""
    sizes = {name: program.inputs[name].sizes[1] for name in inputs}
    horizon = program.inputs[future].sizes[1]
    assert isinstance(horizon, int), "of the inputs"
    both = {size + horizon for size in sizes.values() if isinstance(size, int)}
    alone = [name for name, size in sizes.items() if size != horizon and size not in both and names(size) <= {str(size)}]
    return (alone or inputs)[0]


def _rows_of(name: str, asked: ForecastInputs, context: int, horizon: int) -> slice:
    """Return which rows of a window an input has.

    Raises:
        TrainingError: Its number of rows is none of these.
    """
    size, of_context = asked.known[name].sizes[1], asked.past_type.sizes[1]
    length = size if isinstance(size, int) else substitute(size, {str(each): context for each in names(of_context)})
    if size == asked.future_type.sizes[1]:
        return slice(context, context + horizon)
    if length == context:
        return slice(0, context)
    if length == context + horizon:
        return slice(0, context + horizon)
    raise TrainingError(
        f"`{name}`, {asked.known[name]}, has neither the rows that are read, {context}, nor those that are told, {horizon}, nor "
        "both",
        hint=f"such as float[batch, {context} + {horizon}, columns]",
    )


def _compared_output(program: TypedProgram, future: str) -> str:
    """Return the output of a model that a loss compares with its future."""
    outputs = {ref: name for name, ref in program.root.graph.outputs}
    for node in program.untyped.losses.values():
        read = {wire.port: wire.refs for wire in wires_of(program.root[node])}
        if any(ref.node == future for ref in read.get("target", ())):
            for ref in read.get("input", ()):
                if ref in outputs:
                    return outputs[ref]
    raise TrainingError(f"what the loss compares with `{future}` is no output of the model", hint="add it to `outputs`")


@dataclass(frozen=True)
class _Columns:
    past: tuple[str, ...]
    future: tuple[str, ...]
    time: str | None
    known: Mapping[str, tuple[str, ...]]
    """Of each further input."""


def _columns_of(table: Table, asked: ForecastInputs, columns: Sequence[str]) -> _Columns:
    """Return the columns of the past, of the future, which are those of the past unless given, and of the times."""
    given = mapping_of(columns)
    inputs = {asked.past: asked.past_type, **asked.known}
    check_entries(given, [*inputs, asked.future, TIME])
    future, times, *read = (
        chosen_columns(name, table.columns, given, source=table.name) for name in (asked.future, TIME, *inputs)
    )
    for (name, type_), chosen in zip(inputs.items(), read, strict=True):
        if not chosen:
            raise TrainingError(
                f"the model needs `{name}`, {type_}, and {table.name} has no column of that name; its columns are "
                f"{', '.join(table.columns)}",
                hint=f"name one, or several by a pattern: --column {name}={[*table.columns][-1]}",
            )
    past, *known = read
    if TIME in (*inputs, asked.future):  # the input of this name, and no time
        times = ()
    if len(times) > 1:
        raise TrainingError(f"a row has one time, and {', '.join(times)} are given", hint=f"name one: --column {TIME}={times[0]}")
    return _Columns(past, future or past, times[0] if times else None, dict(zip(asked.known, known, strict=True)))


def fitted_series(recipe: Recipe, table: Table, *, columns: Sequence[str] = ()) -> Recipe:
    """Return a recipe whose params have the numbers of columns that are read and told, where they are not overridden.

    Args:
        recipe: The recipe.
        table: The table.
        columns: `NAME=COLUMN` for the inputs of the model, and for `time`.

    Raises:
        TrainingError: A column is missing, or the model does not forecast.

    Examples:
        >>> import composer
        >>> from pathlib import Path
        >>> from composer.train import fitted_series, read_table
        >>> written = Path("two.csv").write_text("x,y\\n" + "".join(f"{n},{n % 3}\\n" for n in range(20)))
        >>> recipe = composer.load('''
        ... recipe: repeater
        ... params: {series: 1}
        ... inputs: {past: "float[batch, 3, series]", future: "float[batch, 3, series]?"}
        ... graph: {gain: {type: rmsnorm, in: past}}
        ... outputs: {forecast: gain}
        ... losses: {error: {type: mse, in: gain, target: future}}
        ... ''')
        >>> fitted_series(recipe, read_table(["two.csv"]), columns=["past=*"]).program.untyped.params["series"]
        2
    """
    asked = forecast_inputs(recipe.program)
    chosen = _columns_of(table, asked, columns)
    for name, read in ((asked.past, chosen.past), (asked.future, chosen.future), *chosen.known.items()):
        width = len(columns_with_numbers(table, read))
        (param,) = axis_params(recipe.program, name)[2:] or (None,)
        if param is not None and recipe.program.untyped.params[param] != width and not recipe.overridden(param):
            recipe = recipe.with_overrides({param: width})
    return recipe


def windows_of(
    table: Table,
    program: TypedProgram,
    *,
    columns: Sequence[str] = (),
    seq_len: int,
    scales: Scales | None = None,
    unseen: bool = False,
) -> ExampleData:
    """Return the windows of series as examples: of each series, those in the first nine tenths of its rows are trained on, and
    those that tell rows of its last tenth alone are held out.

    Numbers are standardized: of each column, the mean is 0 and the deviation 1 over the rows that are trained on.

    Args:
        table: The table, with a row for each time, in their order; of several files, each is a series of its own.
        program: The model's graph, `Recipe.program`.
        columns: `NAME=COLUMN` for the inputs of the model, and for `time`, whose steps are compared.
        seq_len: How many rows are read where the model does not fix it.
        scales: The mean and the deviation of each column, if a trained model has them; by default, those of the table.
        unseen: Whether all windows are held out, to evaluate a model on them.

    Raises:
        TrainingError: A column is missing, a value or a row is missing, a series is too short, or the columns do not fit the
            model.

    Examples:
        >>> import composer
        >>> from pathlib import Path
        >>> from composer.train import read_table, windows_of
        >>> written = Path("one.csv").write_text("past\\n" + "".join(f"{n}\\n" for n in range(30)))
        >>> recipe = composer.load('''
        ... recipe: repeater
        ... inputs: {past: "float[batch, 3]", future: "float[batch, 3]?"}
        ... graph: {gain: {type: rmsnorm, in: past}}
        ... outputs: {forecast: gain}
        ... losses: {error: {type: mse, in: gain, target: future}}
        ... ''')
        >>> data = windows_of(read_table(["one.csv"]), recipe.program, seq_len=3)
        >>> len(data.train), len(data.validation), data.series.scales["past"][0]
        (22, 1, 13.0)
    """
    asked = forecast_inputs(program)
    chosen = _columns_of(table, asked, columns)
    if chosen.time is not None:
        check_times(table, chosen.time)
    types = {asked.past: asked.past_type, asked.future: asked.future_type, **asked.known}
    read_by = {asked.past: chosen.past, asked.future: chosen.future, **chosen.known}
    numbers = {name: columns_with_numbers(table, read) for name, read in read_by.items()}
    for name, type_ in types.items():
        read = numbers[name]
        width = type_.sizes[2] if len(type_.sizes) == 3 else 1
        if isinstance(width, int) and width != len(read):
            given = f"{counted(len(read), 'column')} of {table.name} ({', '.join([*read][:4])}{', …' if len(read) > 4 else ''})"
            raise TrainingError(f"the model reads `{name}`, {type_}, and is given {given}")
    context = asked.past_type.sizes[1]
    context = context if isinstance(context, int) else seq_len
    horizon = asked.future_type.sizes[1]
    assert isinstance(horizon, int), "of the inputs"
    rows_of = {asked.past: slice(0, context), asked.future: slice(context, context + horizon)}
    rows_of |= {name: _rows_of(name, asked, context, horizon) for name in asked.known}
    train, held, trained_on = _starts(table, context, horizon, unseen=unseen)
    every = {column: each for read in numbers.values() for column, each in read.items()}
    known = scales_of(every, trained_on) if scales is None else _known(every, scales, table)
    standardized = {
        name: torch.from_numpy(np.stack([(read[each] - known[each][0]) / known[each][1] for each in read], axis=-1)).float()
        for name, read in numbers.items()
    }

    def windows(rows: Rows) -> dict[str, Tensor]:
        places = torch.from_numpy(rows)[:, None] + torch.arange(context + horizon)
        parts = {name: each[places[:, rows_of[name]]] for name, each in standardized.items()}
        return {name: part.squeeze(-1) if len(types[name].axes) == 2 else part for name, part in parts.items()}

    future = numbers[asked.future]
    first, *more = table.paths
    series = ForecastSeries(tuple(future), np.stack([*future.values()], axis=-1), context, horizon, known)
    sources = rows_by_table(table, train)
    return ExampleData(
        first, table.sha256, train, held, (windows,), {}, more_paths=tuple(more), sources=sources, series=series
    )  # fmt: skip


def _known(columns: Iterable[str], scales: Scales, table: Table) -> dict[str, tuple[float, float]]:
    """Return the scales of columns that a trained model has.

    Raises:
        TrainingError: It has none of a column.
    """
    found = {}
    for column in columns:
        if column not in scales:
            message = f"{table.name} has the column `{column}`, which the model was not trained on"
            raise TrainingError(message, hint=f"its columns are {', '.join(scales)}")
        mean, deviation = scales[column]
        found[column] = (float(mean), float(deviation))
    return found


def _starts(table: Table, context: int, horizon: int, *, unseen: bool) -> tuple[Rows, Rows, npt.NDArray[np.bool_]]:
    """Return where the windows begin that are trained on, those that are held out, and which rows are trained on."""
    train, held, trained_on = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], np.zeros(len(table), dtype=bool)
    for start, stop in spans_of(table):
        rows = stop - start
        seen = 0 if unseen else held_out_from(rows)
        where = f"the series in {table.place(start)}," if table.ends else table.name
        needed = f"a context of {context} and a horizon of {horizon}"
        if (seen or rows) < context + horizon:
            part = "" if unseen else f", of which the first {seen} are trained on"
            raise TrainingError(
                f"{where} has {counted(rows, 'row')}{part}; {needed} need {context + horizon}",
                hint="use more rows, or lower the context or the horizon",
            )
        if rows - seen < horizon:
            raise TrainingError(
                f"{where} has {counted(rows, 'row')}, of which the last {rows - seen} are held out; {needed} need {horizon}",
                hint="use more rows, or lower the horizon",
            )
        trained_on[start : start + seen] = True
        train.append(np.arange(start, start + max(seen - context - horizon + 1, 0)))
        held.append(np.arange(start + max(seen - context, 0), stop - context - horizon + 1))
    return np.concatenate(train), np.concatenate(held), trained_on
