"""`explain`, `blocks` and `schema`, and reports for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blocks.core import fields, standard
from composer.block_reference import docs_of
from composer.verify.declarations import TESTS
from composer.verify.properties import PROPERTIES
from tests.cases.case import FILES, cases
from tests.cli.conftest import Arco

EVERY_CASE = [case for file in FILES for case in cases(file)]


def test_every_code_is_explained(arco: Arco) -> None:
    """What it means, a recipe that has it, and what is said of that."""
    listed = arco("explain")
    assert listed.code == 0
    codes = {case.code for case in EVERY_CASE}
    assert {line.split()[0] for line in listed.out.splitlines()} == codes
    for code in codes:
        done = arco("explain", code)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(f"{code}\n\n") and f"[{code}]: " in done.out and "```" not in done.out


def test_a_code_is_taken_as_it_stands_in_a_report(arco: Arco) -> None:
    """And a near miss is offered the right one."""
    assert arco("explain", "error[cycle]") == arco("explain", "cycle")
    done = arco("explain", "indivisble")
    assert (done.code, done.out) == (2, "") and "did you mean indivisible?" in done.err


@pytest.mark.slow
def test_what_verify_tries_is_explained_too(arco: Arco) -> None:
    """As its errors are called, with what holds; of a block, also with what to do."""
    codes = {case.code for case in EVERY_CASE}
    for name, says in [*((each.name, each.says) for each in PROPERTIES), *((each.name, each.says) for each in TESTS)]:
        done = arco("explain", f"error[{name}]")
        assert (done.code, done.err) == (0, "")
        words = " ".join(done.out.split())
        assert done.out.startswith(f"{name}\n\n")
        assert says in words if name not in codes else "`arco verify` also calls" in words, name
    assert "did you mean gradients?" in arco("explain", "gradient").err


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_every_block_is_listed_and_has_an_entry(every: int, arco: Arco) -> None:
    """With each of its fields and what the field means."""
    listed = arco("blocks").out
    for name in [*standard()][::every]:
        assert f"  {name} " in listed
        done = arco("blocks", name)
        assert (done.code, done.err) == (0, "")
        words = " ".join(done.out.split())
        for field in fields(standard()[name]):
            assert f" {field}: " in words
            assert " ".join(docs_of(standard()[name])[field].replace("`", "").split()) in words.replace("`", "")


def test_blocks_of_ones_own_are_in_the_reference(arco: Arco, tmp_path: Path) -> None:
    """And in the schema."""
    text = '''
from blocks.core import Block, NonNegativeInt

class Halve(Block, kind="halve"):
    """Half of it."""

    times: NonNegativeInt
    """How often."""

    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def forward(self, x):
        return x / 2**self.times
'''
    (tmp_path / "own.py").write_text(text, encoding="utf-8")
    done = arco("blocks", "halve", "--blocks", "own.py")
    assert done.code == 0 and "times: integer ≥ 0; required\n    How often." in done.out
    assert "part_halve" in json.loads(arco("schema", "--blocks", "own.py").out)["$defs"]
    assert arco("blocks", "halve").code == arco("blocks", "--blocks", "no.py").code == 2


def test_reports_are_read_by_programs(arco: Arco, wrong: Path) -> None:
    """JSON holds nothing else, also where nothing is wrong."""
    done = arco("check", "wrong.yaml", "gpt2", "--format", "json")
    error, = [each for each in json.loads(done.out) if each["severity"] == "error"]  # fmt: skip
    assert done.code == 1
    place = {"path": "wrong.yaml", "line": 4, "column": 9, "end_line": 4, "end_column": 15}
    told = {"code": "unknown-block", "message": "there is no block called `rmsnrm`", "hint": "did you mean rmsnorm?"}
    assert error == {**place, "severity": "error", **told, "labels": []}
    assert arco("check", "gpt2", "--format", "json") == (0, "[]\n", "")


def test_github_is_told_the_columns_that_are_meant(arco: Arco, wrong: Path) -> None:
    """Its last column is inclusive, and line ends and colons are escaped."""
    done = arco("check", "wrong.yaml", "--format", "github")
    expected = "::error file=wrong.yaml,line=4,col=9,endLine=4,endColumn=14,title=unknown-block::"
    assert done.out == f"{expected}there is no block called `rmsnrm`%0Adid you mean rmsnorm?\n"
    assert arco("check", "gpt2", "--format", "github") == (0, "", "")
