"""The tables of the page of benchmarks: read again as they were written, and held against new ones."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.bench import __main__ as program
from tests.bench.tables import Column, Row, Table, Written, falls, is_busy, key_of, marks, read, text_of, written
from tests.bench.timing import times

TABLE = Table(
    name="one",
    names=["what", "length"],
    columns={"speed": Column("more"), "time": Column("less", 1, "ms"), "size": Column("less", 0, "MB")},
    about="in turn",
    told=["size"],
)
TAKE_LONG = ("head", "peers", "recurrences", "decode")
"""Benches of which a toy takes seconds, or needs transformers."""
PAGE = "before\n{}\n\n{}\nafter\n".format(*marks("one"))
ROW: Row = {"what": "`a`", "length": 2048, "speed": 0.97, "time": 1234.5, "size": 1275.0, "control": 1.004}


@pytest.mark.parametrize("name", program.BENCHES)
def test_the_page_has_what_each_bench_writes(name: str) -> None:
    if name in ("peers", "recurrences"):
        pytest.importorskip("transformers")
    table = importlib.import_module(f"tests.bench.{program.BENCHES[name]}").TABLE
    page = program.PAGE.read_text(encoding="utf-8")
    found = read(page, table)
    assert table.name == name and found.machine
    assert name == "peers" or found.rows
    if found.rows:
        assert read(written(page, table, found.machine, found.rows.values()), table) == found


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in program.BENCHES if name not in TAKE_LONG])
def test_a_bench_measures_what_its_table_has(name: str) -> None:
    bench: Any = importlib.import_module(f"tests.bench.{program.BENCHES[name]}")
    row = next(bench.rows(toy=True))
    assert {*row} == {*bench.TABLE.header} and isinstance(row["control"], float)
    assert key_of(text_of(row, bench.TABLE), bench.TABLE)


def test_a_bench_that_fails_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "BENCHES", {"one": "no_such_bench", "draw-token": "bench_draw_token"})
    assert program.main(["--toy"]) == 1
    said = capsys.readouterr()
    assert "failed: one" in said.out and "draw-token: what is drawn" in said.out and "no_such_bench" in said.err


def test_a_table_is_read_as_it_was_written() -> None:
    text = text_of(ROW, TABLE)
    assert text == {
        "what": "`a`",
        "length": "2,048",
        "speed": "0.97",
        "time": "1,234.5 ms",
        "size": "1,275 MB",
        "control": "1.00",
    }
    page = written(PAGE, TABLE, "torch 3; a machine.", [text])
    assert read(page, TABLE) == Written("torch 3; a machine.", {("`a`", "2,048"): text})
    assert page.startswith("before\n") and page.endswith("after\n")
    assert written(page, TABLE, "torch 3; a machine.", [text]) == page


@pytest.mark.parametrize("page", ["", PAGE + PAGE, "{1}{0}".format(*marks("one")), PAGE.replace("\n\n", "\n| other |\n|---|\n")])
def test_a_page_without_the_place_of_a_table_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match=r"the page must have|other columns"):
        read(page, TABLE)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, []),
        ({"speed": 0.93, "time": 1290.0, "size": 9999.0}, []),
        ({"speed": 2.0, "time": 1.0}, []),
        ({"speed": 0.92}, ["one: `a`, 2,048: speed was 0.97, is 0.92"]),
        ({"time": 1300.0}, ["one: `a`, 2,048: time was 1234.5, is 1300"]),
        ({"what": "another", "speed": 0.1}, []),
    ],
)
def test_what_is_worse_by_more_than_a_twentieth_is_told(change: dict[str, Any], told: list[str]) -> None:
    old = Written("", {key_of(text := text_of(ROW, TABLE), TABLE): text})
    assert list(falls(old, text_of({**ROW, **change}, TABLE), TABLE)) == told


def test_a_busy_machine_is_not_judged() -> None:
    assert is_busy({"control": 1.06}) and is_busy({"control": 0.94}) and not is_busy({"control": 1.04})


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """Runs the program with rows in place of measurements, and returns its exit code and the page."""
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")

    def rows_of(rows: list[Row]) -> Callable[..., Iterator[Row]]:
        return lambda *, toy: iter(rows)

    def run(*rows: Row, machine: str = "this machine", options: tuple[str, ...] = ()) -> tuple[int, str]:
        fake = SimpleNamespace(TABLE=TABLE, rows=rows_of(list(rows)))
        monkeypatch.setattr(program.importlib, "import_module", lambda name: fake)
        monkeypatch.setattr(program, "BENCHES", {"one": "fake"})
        monkeypatch.setattr(program, "machine", lambda: machine)
        code = program.main(["--page", str(page), *options])
        return code, page.read_text(encoding="utf-8")

    return run


def test_a_planted_fall_is_found(bench: Callable[..., tuple[int, str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(ROW)[0] == 0
    code, page = bench({**ROW, "speed": 0.5})
    assert code == 1
    assert "worse: one: `a`, 2,048: speed was 0.97, is 0.5\n" in capsys.readouterr().out
    assert "| 0.50 | 1,234.5 ms |" in page  # the page tells what is


def test_a_busy_row_leaves_the_page(bench: Callable[..., tuple[int, str]], capsys: pytest.CaptureFixture[str]) -> None:
    before = bench(ROW)[1]
    assert bench({**ROW, "speed": 0.5, "control": 1.2}) == (2, before)
    assert "not judged: one: `a`, 2,048: control 1.20" in capsys.readouterr().out


def test_a_table_is_of_one_machine(bench: Callable[..., tuple[int, str]]) -> None:
    other = {**ROW, "length": 64}
    before = bench(ROW, other)[1]
    assert bench({**ROW, "speed": 0.98}, machine="another machine")[1] == before  # half of a table
    assert "| 0.98 |" in bench({**ROW, "speed": 0.98})[1]
    whole = bench({**ROW, "speed": 0.99}, other, machine="another machine")[1]
    assert "another machine" in whole and "this machine" not in whole


def test_a_toy_leaves_the_page(bench: Callable[..., tuple[int, str]]) -> None:
    assert bench(ROW, options=("--toy",))[1] == PAGE


def test_works_take_turns_and_the_first_is_its_own_control() -> None:
    calls: list[str] = []
    found = times({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=2, clock=itertools.count().__next__)
    assert calls == ["a", "b", "a", "b", "a", "a", "b", "a"]
    assert set(found.seconds) == {"a", "b"} and found.control > 0


def test_works_are_timed_again_while_the_machine_is_busy() -> None:
    """The clock says 1 s for each call, but 2 s for the calls of the first try that are the control's."""
    ticks = {"now": 0.0, "calls": 0}

    def clock() -> float:
        return ticks["now"]

    def work() -> None:
        ticks["calls"] += 1
        ticks["now"] += 2.0 if ticks["calls"] == 3 else 1.0  # a first call, then the work and its control

    found = times({"one": work}, rounds=1, clock=clock)
    assert found.control == 1.0 and ticks["calls"] == 5
