"""`--blocks FILE.py`: a person's own blocks, and what is wrong with their file."""

from __future__ import annotations

import inspect
import json
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


TWO = 'recipe: two\ninputs: {x: "float[batch, time, 8]"}\ngraph: {half: halve, again: quarter, up: {type: linear, out: 8}}\n'


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["check", "two.yaml"], "no problems found"),
        (["show", "two.yaml"], "quarter"),
        (["expand", "two.yaml"], "type: quarter"),
        (["export", "two.yaml", "-o", "-"], "x / 2"),
        (["summary", "two.yaml"], "quarter"),
        (["draw", "two.yaml", "-o", "-", "--format", "mermaid"], "Quarter"),
        (["diff", "two.yaml", "two.yaml"], "same model"),
        (["verify", "two.yaml"], "every declaration of halve, quarter"),
        (["blocks", "quarter"], "Half of the input"),
        (["schema"], "quarter"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_blocks_come_from_several_files_in_every_command(words: list[str], shown: str, arco: Arco, tmp_path: Path) -> None:
    """Each file once, however often it is given; the same from Python."""
    for name, kind in (("first", "halve"), ("second", "quarter")):
        (tmp_path / f"{name}.py").write_text(BLOCK.format(kind=kind), encoding="utf-8")
    (tmp_path / "two.yaml").write_text(TWO, encoding="utf-8")
    done = arco(*words, "--blocks", "first.py", "--blocks", "second.py", "--blocks", "./first.py")
    assert (done.code, done.err) == (0, "") and shown in done.out
    assert composer.load(tmp_path / "two.yaml", blocks=[tmp_path / "first.py", tmp_path / "second.py"]).check() == []


WRONG_DECLARATIONS = {
    "a type": ('"x": "float[...]"', '"x": "flot[...]"', "inputs =", "`x`: 'flot[...]' is not a type"),
    "an axis": ('"y": "float[...]"', '"y": "float[..., width]"', "outputs =", "`y` has `width`, to which neither an input nor"),
    "leading axes": ('"x": "float[...]"', '"x": "float[time]"', "outputs =", "`y` has `...`, and no input has"),
    "a parameter": (
        "    def",
        '    weights = {"m": LinearWeights("dim", "dim")}\n\n    def',
        "weights =",
        "`m` has `dim`, to which neither",
    ),
    "a reserved name": (
        "    def",
        '    weights = {"one": LinearWeights("4", "4")}\n\n    def',
        "weights =",
        "`one` is the name of the buffer of `UNIT_BUFFER`",
    ),
    "a port": ("    def", '    shape_only_inputs = ("xx",)\n\n    def', "shape_only_inputs =", "there is no input `xx`"),
    "an output": ("    def", '    mean_outputs = {"z": "batch"}\n\n    def', "mean_outputs =", "there is no output `z`"),
    "a slot": (
        "    def",
        '    cache_slots = {"k": "int[]"}\n    masked_slots = {"k": "mask"}\n\n    def',
        "masked_slots =",
        "there is no field `mask`",
    ),
    "a field": ("    def", '    vocab_field = "ids"\n\n    def', "vocab_field =", "there is no field `ids`"),
    "an argument": ("(self, x)", "(self, x, more)", "def forward", "`forward` needs `more`, and there is no such port"),
    "a port that is not taken": (
        '"x": "float[...]"',
        '"x": "float[...]", "z?": "float[...]"',
        "def forward",
        "does not take the port `z`",
    ),
    "no forward": ("def forward", "def other", "class Halve", "it has outputs, and neither a `forward` nor a `graph`"),
}


@pytest.mark.parametrize(("old", "new", "line", "message"), WRONG_DECLARATIONS.values(), ids=WRONG_DECLARATIONS)
def test_a_declaration_that_cannot_be_right_is_located_without_a_recipe(
    old: str, new: str, line: str, message: str, arco: Arco, tmp_path: Path
) -> None:
    """In its file, by the check of the file and by every command that is given it; none is a traceback."""
    text = BLOCK.format(kind="halve").replace("import Block", "import Block, LinearWeights").replace(old, new)
    (tmp_path / "own.py").write_text(text, encoding="utf-8")
    (tmp_path / "halved.yaml").write_text(RECIPE, encoding="utf-8")
    number = next(at for at, each in enumerate(text.splitlines(), 1) if each.strip().startswith(line))
    done = arco("check", "own.py", "--format", "concise")
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith(f"own.py:{number}:") and "error[block-file]: halve: " in done.out and message in done.out
    (found,) = json.loads(arco("check", "own.py", "--format", "json").out)
    assert (found["code"], found["line"], found["path"]) == ("block-file", number, "own.py")
    done = arco("check", "halved.yaml", "--blocks", "own.py")
    assert (done.code, done.out) == (2, "") and done.err.startswith(f"own.py:{number}:") and message in done.err


@pytest.mark.parametrize(("text", "place", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_of_blocks_is_an_error_of_the_file(text: str, place: str, message: str, arco: Arco, tmp_path: Path) -> None:
    """With the same words as where it is given to a command, and the exit code of a recipe with errors."""
    (tmp_path / "own.py").write_text(text, encoding="utf-8")
    done = arco("check", "own.py", "--format", "concise")
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines()[0].startswith(f"{place}: error[block-file]: {message}")


def test_a_file_of_blocks_is_checked_without_a_recipe(arco: Arco, tmp_path: Path) -> None:
    """One of Python, with the names of the library and of other files taken; one that cannot be read has the other exit code."""
    (tmp_path / "own.py").write_text(BLOCK.format(kind="halve"), encoding="utf-8")
    (tmp_path / "other.py").write_text(BLOCK.format(kind="halve"), encoding="utf-8")
    assert arco("check", "own.py") == (0, "own.py: 1 block, no problems found\n", "")
    assert arco("check", "own.py", "--blocks", "own.py").code == 0
    clash = arco("check", "own.py", "--blocks", "other.py", "--format", "concise")
    assert clash.code == 1 and "own.py:4:1: error[name-clash]: two parts are called halve: one in " in clash.out
    assert arco("check", "no.py") == (2, "", "arco: no.py: this file cannot be read: no such file or directory\n")
    against = arco("check", "own.py", "--against", "gpt2")
    assert against.code == 2 and "own.py is a file of blocks" in against.err


BLOCKS = """params: {wide: 8PARAMS}
blocks:
  twice:
    doc: Two maps.
    inputs: {x: "float[..., d]", valid: "bool[batch, time]?"}
    params: {heads: 4}
    graph:
      a: {type: attention, heads: heads, mask: valid(valid), in: x}
      b: {type: linear, out: wide}
      c: {type: linear, out: OUT}
  joined:
    inputs: {x: "float[batch, time, d]", y: "float[batch, time, e]"}
    params: {n: {type: int, required: true}, body: {type: block, required: true}}
    graph:
      a: {type: concat, in: [x, y]}
      t: NAME
      r: {repeat: n, graph: {z: body}}
      b: {type: linear, out: d}
  sized:
    inputs: {x: "float[batch, time, heads * 16]"}
    params: {heads: 4, m: {type: mask, required: true}}
    graph:
      a: {type: attention, heads: heads, mask: m}
      s: {type: add, in: [a, x]}
"""
DEFAULT = {"PARAMS": "", "OUT": "d", "NAME": "twice"}
WRONG_BLOCKS = {
    "nothing": ({}, []),
    "a name": ({"NAME": "twise"}, [(16, "unknown-block", "there is no block called `twise`")]),
    "a param": ({"PARAMS": ", gone: 3"}, [(1, "unused-param", "nothing uses `gone`")]),
    "a type": ({"      s: {type: add, in: [a, x]}": "      w: {type: linear, out: 9}\n      s: {type: add, in: [w, x]}"},
               [(25, "type-mismatch", "add cannot broadcast float[batch, time, 9] and float[batch, time, 64]")]),
    "a node": ({"in: x}": "in: z}"}, [(8, "unknown-node", "there is no node called `z`")]),
    "an own param": ({"params: {heads: 4}": "params: {heads: 4, gone: 3}"}, [(6, "unused-param", "nothing uses `gone`")]),
    "a key": ({"params: {wide": "positions: {time: x}\nparams: {wide"}, [(1, "not-used", "`positions`")]),
    "several": ({"NAME": "twise", "in: x}": "in: z}"}, [(8, "unknown-node", "`z`"), (16, "unknown-block", "`twise`")]),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "expected"), WRONG_BLOCKS.values(), ids=WRONG_BLOCKS)
def test_every_block_of_a_yaml_file_is_checked(
    changes: dict[str, str], expected: list[tuple[int, str, str]], arco: Arco, tmp_path: Path
) -> None:
    """At the inputs that it declares, with errors at their lines; no recipe uses it."""
    text = BLOCKS
    for old, new in {**DEFAULT, **changes}.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "blocks.yaml").write_text(text, encoding="utf-8")
    done = arco("check", "blocks.yaml", "--format", "json")
    assert (done.code, done.err) == (int(bool(expected)), "")
    found = json.loads(done.out)
    assert [(each["path"], each["line"], each["code"]) for each in found] == [
        ("blocks.yaml", at, code) for at, code, _ in expected
    ]
    assert all(message in each["message"] for each, (_, _, message) in zip(found, expected, strict=True))
    plain = arco("check", "blocks.yaml")
    assert plain.code == done.code and (plain.out == "blocks.yaml: 3 blocks, no problems found\n") is (not expected)


METHODS = {
    "check": "def check(self, sizes, wired):\n        {}['a']",
    "constants": "def constants(self, given, sizes):\n        return {}['a']",
    "cost": "def cost(self, sizes, wired):\n        return {}['a']",
    "output_types": "def output_types(self, given, sizes):\n        return {}['a']",
    "warn": "def warn(self, sizes, wired):\n        return {}['a']",
    "weights": "def weights(self, sizes, wired):\n        return {}['a']",
}
"""Methods of a block that run while a recipe is checked, each with an exception at its second line."""


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("graph", ["{half: halve}", "{a: {repeat: 2, graph: {f: {type: residual, body: halve}}}}"])
def test_an_exception_in_a_method_is_reported_at_its_line(method: str, graph: str, arco: Arco, tmp_path: Path) -> None:
    """With the block, the exception and the use of the block; no traceback."""
    text = BLOCK.format(kind="halve") + f"\n    {method}\n"
    (tmp_path / "own.py").write_text(text, encoding="utf-8")
    (tmp_path / "halved.yaml").write_text(RECIPE.replace("{half: halve}", graph), encoding="utf-8")
    done = arco("check", "halved.yaml", "--blocks", "own.py")
    line = 1 + next(number for number, written in enumerate(text.splitlines()) if "['a']" in written)
    assert done.code == 1
    assert f"own.py:{line}:9: error[block-file]: halve: raises KeyError: 'a'" in done.out
    assert "--> halved.yaml:3\n" in done.out
    assert done.err == ""


MASK = """from blocks.masks.mask import Mask


class Odd(Mask, kind="odd"):
    \"\"\"See keys of odd positions.\"\"\"

    def check(self, sizes, wired):
        return 1 / 0

    def allows(self, query, key):
        return key % 2 == 1
"""


def test_an_exception_in_a_mask_is_reported_at_its_line(arco: Arco, tmp_path: Path) -> None:
    """Though the block that it is in is of the library."""
    (tmp_path / "own.py").write_text(MASK, encoding="utf-8")
    recipe = RECIPE.replace("{half: halve}", "{a: {type: attention, heads: 2, mask: odd}}")
    (tmp_path / "masked.yaml").write_text(recipe, encoding="utf-8")
    done = arco("check", "masked.yaml", "--blocks", "own.py")
    assert "own.py:8:9: error[block-file]: odd: raises ZeroDivisionError: division by zero" in done.out
