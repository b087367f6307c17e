"""Windows of series: nothing of what is told is seen, and forecasts are measured as a loop over the rows measures them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

import composer
from composer.cli import main
from composer.evaluate import evaluate
from composer.train import (
    ByteTokenizer,
    Table,
    TrainingError,
    TrainSettings,
    fitted_series,
    open_run,
    read_table,
    train,
    windows_of,
)
from tests.train.small import Quiet

FORECASTER = """
recipe: forecaster
params: {context: 7, horizon: 5, series: 2}
inputs: {past: "float[batch, context, series]", future: "float[batch, horizon, series]?"}
graph:
  turned: {type: rearrange, pattern: b t s -> b s t, in: past}
  drop: {type: dropout, p: 0.1}
  map: {type: linear, out: horizon}
  ahead: {type: rearrange, pattern: b s t -> b t s}
outputs: {forecast: ahead}
losses: {error: {type: mse, in: ahead, target: future}}
"""
COLUMNS = ("past=load", "past=wind")
HOURS = ["2024-02-28 22:00", "2024-02-28 23:00", "2024-02-29 00:00", "2024-02-29 02:00", "2024-02-29 03:00"]


def wave(count):
    """Return rows of two columns of unequal means and sizes."""
    return [(round(50 + 9 * math.sin(n) + 0.3 * n, 3), round(n % 4 * 0.01, 3)) for n in range(count)]


def table_of(path, rows, header="load,wind"):
    """Write a table and return its path."""
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def windows(*paths, columns=COLUMNS, recipe=FORECASTER, **given):
    """Return the windows in tables."""
    return windows_of(read_table(paths), composer.load(recipe).program, columns=columns, seq_len=9, **given)


def test_held_out_rows_are_neither_told_nor_measured_in_training(tmp_path):
    """Whatever they are, what is trained on and how it is standardized stays the same; and all windows behind are held out."""
    rows = wave(60)
    data = windows(table_of(tmp_path / "a.csv", rows))
    other = windows(table_of(tmp_path / "b.csv", rows[:54] + [(1e6, -1e6)] * 6))
    ours, theirs = data.batch(data.train), other.batch(other.train)
    assert all(torch.equal(ours[name], theirs[name]) for name in ("past", "future"))
    assert data.train.tolist() == list(range(60 - 6 - 12 + 1))
    assert [(start + 7, start + 12) for start in data.validation.tolist()] == [(54, 59), (55, 60)]
    seen = np.array(rows)[:54]
    whole = np.concatenate([ours["past"][:, 0], ours["future"][-1]])
    np.testing.assert_allclose(whole[:40], ((seen - seen.mean(0)) / seen.std(0))[:40], rtol=1e-5)
    np.testing.assert_allclose(whole[-5:], ((seen - seen.mean(0)) / seen.std(0))[-5:], rtol=1e-5)


def test_no_window_is_of_two_series(tmp_path):
    """Each file is a series, of which its own last tenth is held out."""
    first, second = table_of(tmp_path / "1.csv", wave(60)), table_of(tmp_path / "2.csv", wave(50))
    alone = [windows(path) for path in (first, second)]
    both = windows(first, second)
    assert both.train.tolist() == [*alone[0].train, *(alone[1].train + 60)]
    assert both.validation.tolist() == [*alone[0].validation, *(alone[1].validation + 60)]


def test_tables_of_each_kind_are_the_same_series(tmp_path):
    """An array with several numbers in each row is several columns; times have the form that the file gives them."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    numbers, times = np.array(wave(60)), np.arange("2024-01-31", "2024-03-31", dtype="datetime64[D]")
    expected = windows(table_of(tmp_path / "t.csv", numbers.tolist())).batch(np.arange(9))
    np.savez(tmp_path / "t.npz", both=numbers, when=times)
    columns = {"load": numbers[:, 0], "wind": numbers[:, 1], "when": times.astype("datetime64[ms]")}
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    for name, given in (("t.npz", ("past=both",)), ("t.parquet", COLUMNS)):
        found = windows(tmp_path / name, columns=(*given, "time=when")).batch(np.arange(9))
        assert all(torch.equal(found[entry], expected[entry]) for entry in expected)


@pytest.mark.parametrize(
    ("times", "place"),
    [
        (HOURS, "line 5: the column `time` goes from 2024-02-29 00:00 to 2024-02-29 02:00, and most steps are 1:00:00"),
        (["2024-01", "2024-02", "2024-04", "2024-05", "2024-06"], "line 4: .* most steps are 1 months"),
        ([3, 2, 1, 0, -1], "line 3: the column `time` goes from 3 to 2"),
        ([1, 2, "soon", 4, 5], "line 4: the column `time` is no time: 'soon'"),
        (["2024-01-01", "2024-01-02T00:00Z", 3, 4, 5], "mixes numbers, times with a zone, and times without one"),
    ],
)
def test_rows_that_are_missing_are_told(tmp_path, times, place):
    """Also by the only step of another length, in hours, in months and in numbers."""
    rows = [(*row, time) for row, time in zip(wave(5), times, strict=True)]
    with pytest.raises(TrainingError, match=place):
        windows(table_of(tmp_path / "t.csv", rows, "load,wind,time"))


@pytest.mark.parametrize(
    ("cell", "columns", "message"),
    [
        ("", COLUMNS, "line 9: the column `load` is empty"),
        ("nan", COLUMNS, "line 9: the column `load` is no finite number: 'nan'"),
        ("much", COLUMNS, "line 9: the column `load` is no finite number: 'much'"),
        (1, (), "needs `past`, .* has no column of that name; its columns are load, wind"),
        (1, ("past=lod",), "has no column `lod`"),
        (1, ("passed=load",), "the model has no input `passed`"),
        (1, ("past=load",), r"reads `past`, .*, and is given 1 column of .* \(load\)"),
    ],
)
def test_what_is_wrong_in_a_table_is_told_with_its_place(tmp_path, cell, columns, message):
    rows = wave(60)
    rows[7] = (cell, 1)
    with pytest.raises(TrainingError, match=message):
        windows(table_of(tmp_path / "t.csv", rows), columns=columns)


def test_a_series_must_be_long_enough_to_learn_from_and_to_hold_out(tmp_path):
    for count, message in (
        (12, "has 12 rows, of which the first 10 are trained on; .* need 12"),
        (40, "the last 4 are held out"),
    ):
        with pytest.raises(TrainingError, match=message):
            windows(table_of(tmp_path / "t.csv", wave(count)))
    with pytest.raises(TrainingError, match="row 3: the column `past` is nan"):
        windows_of(Table(("t.npz",), {"past": np.array([1, 2, 3, math.nan])}, ""), composer.load(FORECASTER).program, seq_len=1)
    for change, message in (
        ({"inputs.past": "int[batch, context, series]"}, "reads inputs of numbers"),
        ({"outputs.forecast": "map"}, "what the loss compares with `future` is no output"),
    ):
        text = FORECASTER
        for key, value in change.items():
            old = "float[batch, context, series]" if key == "inputs.past" else "{forecast: ahead}"
            text = text.replace(old, value if key == "inputs.past" else f"{{forecast: {value}}}")
        if "int[" in text:
            text = text.replace("turned: {", "real: {compute: float32(past)}\n  turned: {").replace("in: past}", "in: real}")
        with pytest.raises(TrainingError, match=message):
            windows(table_of(tmp_path / "t.csv", wave(60)), recipe=text)


@pytest.mark.slow
def test_forecasts_are_measured_in_the_units_of_the_data(tmp_path, capsys):
    """Beside the last value and the value one season before, of one row after the other; and on another table by the scales of
    the run.
    """
    rows = wave(80)
    table, run = table_of(tmp_path / "t.csv", rows), tmp_path / "run"
    data = windows(table)
    settings = TrainSettings(steps=3, batch_size=4, warmup_steps=1, objective="forecast", columns=COLUMNS)
    recipe = composer.load(FORECASTER)
    train(recipe.compile(seed=0), ByteTokenizer(), data, settings, run, recipe=recipe.text, show=Quiet())
    trained = open_run(run)
    mean, deviation = (np.array([trained.scales[name][place] for name in ("load", "wind")]) for place in (0, 1))

    def by_hand(numbers, origins):
        """Return the absolute differences of three forecasts, with a season of three rows."""
        missed = {"model": [], "last_value": [], "one_season_before": []}
        for origin in origins:
            read = torch.tensor((numbers[origin - 7 : origin] - mean) / deviation).float()
            with torch.no_grad():
                told = trained.model(read[None]).forecast[0].numpy() * deviation + mean
            for ahead in range(5):
                came = numbers[origin + ahead]
                missed["model"].append(abs(told[ahead] - came))
                missed["last_value"].append(abs(numbers[origin - 1] - came))
                known = [row for row in range(origin) if (origin + ahead - row) % 3 == 0]
                missed["one_season_before"].append(abs(numbers[known[-1]] - came))
        return {name: (np.mean(each, 0), np.sqrt(np.mean(np.square(each), 0))) for name, each in missed.items()}

    def compared(found, numbers, origins):
        for name, (mae, rmse) in by_hand(numbers, origins).items():
            for place, column in enumerate(("load", "wind")):
                errors = found["forecasts"]["columns"][column][name]
                assert (errors["mae"], errors["rmse"]) == pytest.approx((mae[place], rmse[place]), rel=1e-5, abs=1e-9)

    assert main(["evaluate", str(run), "--season", "3", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["held_out"], found["examples"]) == (True, 4)
    compared(found, np.array(rows), range(72, 76))
    shifted = [(load + 100, 2 * wind) for load, wind in rows[:30]]
    elsewhere = evaluate(run, table_of(tmp_path / "u.csv", shifted), season=3)
    compared(elsewhere.to_json(), np.array(shifted), range(7, 26))
    with pytest.raises(TrainingError, match="the season has 8 rows, and a window 7"):
        evaluate(run, season=8)


@pytest.mark.parametrize("rows", ["horizon", "context + horizon", "context"])
def test_columns_that_are_known_ahead_are_read_from_the_rows_that_are_told(tmp_path, rows):
    """An input has the rows that its axis counts: those that are told, all of a window, or those that are read. Of several of the
    last kind, the first is the past."""
    inputs = [f'days: "float[batch, {rows}, facts]"', 'past: "float[batch, context, series]"']
    inputs = ", ".join(inputs if rows != "context" else inputs[::-1])
    recipe = f"""
recipe: ahead
params: {{context: 7, horizon: 5, series: 1, facts: 1}}
inputs: {{{inputs}, future: "float[batch, horizon, series]?"}}
graph:
  effect: {{type: linear, out: series, in: days}}
  known: {{type: mean, axis: -2}}
  last: {{type: select, axis: context, index: -1, in: past}}
  sum: {{type: add, in: [known, last]}}
  map: {{type: linear, out: horizon * series}}
  forecast: {{type: rearrange, pattern: "b (h s) -> b h s", sizes: [horizon]}}
outputs: {{forecast: forecast}}
losses: {{error: {{type: mse, in: forecast, target: future}}}}
"""
    values = [(*row, n % 7, n * n) for n, row in enumerate(wave(60))]
    path = table_of(tmp_path / "a.csv", values, "load,wind,weekday,square")
    columns = ("past=load", "days=weekday", "days=square")
    fitted = fitted_series(composer.load(recipe), read_table([path]), columns=columns)
    data = windows_of(read_table([path]), fitted.program, columns=columns, seq_len=9)
    whole = np.array(values)[:, 2:]
    scaled = (whole - whole[:54].mean(0)) / whole[:54].std(0)
    first, stop = {"horizon": (7, 12), "context + horizon": (0, 12), "context": (0, 7)}[rows]
    starts = data.validation
    expected = np.stack([scaled[start + first : start + stop] for start in starts.tolist()])
    np.testing.assert_allclose(data.batch(starts)["days"], expected, rtol=1e-5, atol=1e-6)
    assert [*data.series.scales] == ["load", "weekday", "square"]
    assert data.series.columns == ("load",)


def test_an_input_of_another_number_of_rows_is_refused(tmp_path):
    recipe = FORECASTER.replace(", future:", ', days: "float[batch, 9]", future:').replace(
        "{forecast: ahead}", "{forecast: ahead, days: days}"
    )
    path = table_of(tmp_path / "a.csv", wave(60))
    with pytest.raises(TrainingError, match=r"`days`, float\[batch, 9\], has neither the rows that are read, 7, nor"):
        windows(path, columns=(*COLUMNS, "days=load"), recipe=recipe)
