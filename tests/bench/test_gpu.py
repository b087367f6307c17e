"""The measurements on a card, at toy size on a processor: what is written whatever happens."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.bench.gpu import __main__ as program
from tests.bench.gpu.setting import RESULTS, Setting, rounded, shown


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(section="one", device=torch.device("cpu"), toy=True, folder=tmp_path, backend="aot_eager")


def test_a_row_is_written_with_what_it_has_when_it_fails(setting: Setting) -> None:
    with setting.case("a", length=3) as row:
        row["ms"] = 1.23456
        with setting.part(row, "first"):
            raise ValueError("one\n two\n three")
        row["kernels"] = ["flash", "math"]
        raise RuntimeError("the end")
    with setting.case("b"):
        pass
    first, second = program.rows_of(setting.folder)
    assert first.pop("took_s") >= 0
    assert first == {
        "section": "one", "case": "a", "length": 3, "ms": 1.235, "error of first": "ValueError: one two",
        "kernels": ["flash", "math"], "error": "RuntimeError: the end",
    }  # fmt: skip
    assert second["case"] == "b" and "error" not in second


def test_nothing_is_written_where_only_programs_are_compiled(setting: Setting) -> None:
    setting.warm = True
    with setting.case("a") as row:
        assert setting.times({"work": lambda: row.update(ran=True)}) == ({"work": 1.0}, 0.0)
    assert row["ran"] and not (setting.folder / RESULTS).exists()


def test_works_are_timed_in_turn_with_a_control(setting: Setting) -> None:
    calls: list[str] = []
    found, apart = setting.times({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")})
    assert set(found) == {"a", "b"} and apart >= 0
    assert calls[-6:] == ["a", "b", "a", "a", "b", "a"]


def test_rows_become_a_table_with_all_columns() -> None:
    rows = [{"section": "one", "case": "a", "ms": 1.5}, {"section": "one", "case": "b|c", "count": 12_345, "took_s": 1}]
    assert program.table(rows) == "| case | ms | count |\n| --- | --- | --- |\n| a | 1.5 |  |\n| b/c |  | 12,345 |\n"
    assert shown(rounded({"x": [123_456.7, None]})) == "x 123,500; None"


@pytest.mark.slow
def test_sections_are_measured_again_one_by_one(tmp_path: Path) -> None:
    """Rows of other sections stay."""
    (tmp_path / RESULTS).write_text(
        "".join(json.dumps({"section": name, "case": "of before"}) + "\n" for name in ("head", "drawing")), encoding="utf-8"
    )
    command = [sys.executable, "-m", "tests.bench.gpu", "--device", "cpu", "--toy", "--only", "drawing", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows: list[dict[str, Any]] = program.rows_of(tmp_path)
    assert [row["case"] for row in rows if row["section"] == "head"] == ["of before"]
    drawn = [row for row in rows if row["section"] == "drawing"]
    assert {row["case"] for row in drawn} == {"greedy", "top_k 50", "all tokens"}
    assert all(row["times as long"] > 0 and "error" not in row for row in drawn)
    assert "## drawing" in (tmp_path / "results.md").read_text(encoding="utf-8")


def test_a_section_that_ends_by_itself_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "SECTIONS", {"nothing": ("no_such_module", (), 5)})
    command = ["gpu", "--device", "cpu", "--toy", "--out", str(tmp_path)]
    monkeypatch.setattr(program.sys, "argv", command)
    monkeypatch.setattr(program.sys, "executable", "/bin/false")
    assert program.main() == 1
    (row,) = program.rows_of(tmp_path)
    assert row["section"] == "nothing" and row["error"].startswith("not loaded within")


def test_a_section_that_does_not_exist_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program.sys, "argv", ["gpu", "--only", "masts", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="2"):
        program.main()
