"""`--blocks FILE.py`: a person's own blocks, and what is wrong with their file."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import composer
from blocks.core import library, standard
from blocks.primitives.linear import Linear
from tests.cli.conftest import Arco

BLOCK = """from blocks.core import Block


class Halve(Block, kind="{kind}"):
    \"\"\"Half of the input.\"\"\"

    inputs = {{"x": "float[...]"}}
    outputs = {{"y": "float[...]"}}

    def forward(self, x):
        return x / 2
"""
RECIPE = 'recipe: halved\ninputs: {x: "float[batch, time, 8]"}\ngraph: {half: halve}\n'

BROKEN = {
    "a bracket that stays open": ("x = 1\ny = (2,\n", "own.py:2:1", "SyntaxError: '(' was never closed"),
    "an exception": ("x = 1\n\nif x:\n    y = x / 0\n", "own.py:4:5", "ZeroDivisionError: division by zero"),
    "an exception below": ("def f():\n    return {}['a']\n\nf()\n", "own.py:2:5", "KeyError: 'a'"),
    "a module that is not there": ("import os\nimport no_such\n", "own.py:2:1", "ModuleNotFoundError: No module named 'no_such'"),
    "an end": ("import sys\nsys.exit('no')\n", "own.py:2:1", "SystemExit: no"),
    "no block": ("x = 1\n", "own.py:1:1", "this file defines no block"),
}


def test_a_block_of_ones_own_is_known_by_its_name(arco: Arco, tmp_path: Path) -> None:
    """In every command that takes a recipe; without the file it is unknown."""
    (tmp_path / "own.py").write_text(BLOCK.format(kind="halve"), encoding="utf-8")
    (tmp_path / "halved.yaml").write_text(RECIPE, encoding="utf-8")
    assert arco("check", "halved.yaml", "--blocks", "own.py") == (0, "halved.yaml: no problems found\n", "")
    assert "halve" in arco("summary", "halved.yaml", "--blocks", "own.py").out
    assert "type: halve" in arco("expand", "halved.yaml", "--blocks", "own.py").out
    assert "x / 2" in arco("export", "halved.yaml", "--blocks", "own.py", "-o", "-").out
    assert "error[unknown-block]" in arco("check", "halved.yaml").out


@pytest.mark.parametrize(("text", "place", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_reported_at_its_line(text: str, place: str, message: str, arco: Arco, tmp_path: Path) -> None:
    """Whether it cannot be read or does not run; no traceback."""
    (tmp_path / "own.py").write_text(text, encoding="utf-8")
    done = arco("check", "gpt2", "--blocks", "own.py")
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[0] == f"{place}: error[block-file]: {message}"


def test_a_broken_module_that_the_file_imports_is_reported_where_it_is_imported(
    arco: Arco, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line of another file would be no line of this one."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_below.py").write_text("\n\n\n\nx = 1 +\n", encoding="utf-8")
    (tmp_path / "own.py").write_text("\nimport broken_below\n", encoding="utf-8")
    done = arco("check", "gpt2", "--blocks", "own.py")
    assert done.err.startswith("own.py:2:1: error[block-file]: SyntaxError: ") and "broken_below.py, line 5" in done.err


def test_a_name_that_is_taken_names_both_files(arco: Arco, tmp_path: Path) -> None:
    """Of the library's block, or of another file's."""
    for name, kind in (("first", "halve"), ("second", "halve"), ("third", "rmsnorm")):
        (tmp_path / f"{name}.py").write_text(BLOCK.format(kind=kind), encoding="utf-8")
    done = arco("check", "gpt2", "--blocks", "first.py", "--blocks", "second.py")
    assert (done.code, done.out) == (2, "")
    place, _, message = done.err.strip().partition(": error[name-clash]: ")
    assert place == f"{tmp_path / 'second.py'}:4:1"
    assert message == f"two parts are called halve: one in {tmp_path / 'first.py'}, one in {tmp_path / 'second.py'}"
    done = arco("check", "gpt2", "--blocks", "third.py")
    assert "rmsnorm.py" in done.err and str(tmp_path / "third.py") in done.err


def test_what_is_no_python_file_is_refused(arco: Arco, tmp_path: Path) -> None:
    """One that is missing, a folder, one of bytes, one of another kind."""
    (tmp_path / "bytes.py").write_bytes(b"\x80")
    (tmp_path / "own.txt").write_text(BLOCK.format(kind="halve"), encoding="utf-8")
    assert arco("check", "gpt2", "--blocks", "no.py").err == "arco: no.py: this file cannot be read: no such file or directory\n"
    assert arco("check", "gpt2", "--blocks", tmp_path).err.startswith(f"arco: {tmp_path}: this file cannot be read: ")
    assert arco("check", "gpt2", "--blocks", "bytes.py").err == "arco: bytes.py: this file is not UTF-8 text\n"
    done = arco("check", "gpt2", "--blocks", "own.txt")
    assert (done.code, done.err) == (2, "own.txt:1:1: error[block-file]: a file of blocks ends in .py\n")


def test_two_installed_blocks_of_one_name_are_told_in_every_command(arco: Arco, monkeypatch: pytest.MonkeyPatch) -> None:
    """With both files, as for blocks of one's own, and without a traceback; in Python it is an exception of Composer."""
    monkeypatch.setattr(library, "_plugins", lambda: [type("Again", (Linear,), {"__module__": __name__}, kind="linear")])
    standard.cache_clear()
    for words in (["check", "gpt2"], ["summary", "gpt2"], ["blocks"], ["schema"], ["mask", "causal"]):
        done = arco(*words)
        assert (done.code, done.out) == (2, ""), words
        assert done.err == f"arco: two parts are called linear: one in {inspect.getsourcefile(Linear)}, one in {__file__}\n"
    with pytest.raises(composer.ComposerError, match="two parts are called linear"):
        composer.load("gpt2")
