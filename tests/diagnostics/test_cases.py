"""The case files: every code has its section, and every broken recipe gives exactly what stands below it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from yaml import Mark, MarkedYAMLError

import composer
from composer.diagnostics import Source, full
from composer.language.yaml.error_context import ParseStop
from composer.language.yaml.errors import explain
from composer.recipe import zoo_names
from tests.cases.case import FILES, Case, cases, diagnose, shown
from tests.cases.index import PAGE, page
from tests.docs.pages import ROOT

ALL = [case for file in FILES for case in cases(file)]
FIRST = {case.code: case for case in reversed(ALL)}
"""One case of each code; all others are slow, and so is the one that needs a model of very many modules."""
FEW = [case for code, case in FIRST.items() if code != "too-many-modules"]
each_case = pytest.mark.parametrize(
    "case", [case if case in FEW else pytest.param(case, marks=pytest.mark.slow) for case in ALL], ids=str
)
CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
PLACE_OF_CODE = {
    "Diagnostic": 0, "error": 0, "_error": 0, "refuse": 0, "_refuse": 0, "unknown": 0, "_unknown": 0, "diagnose": 0,
    "refused_property": 0, "_at": 1, "_edge": 2, "_require": 3,
}  # fmt: skip
"""Which argument of a call is the code."""
BY_EVENT = {"anchor", "tag"}
"""Codes that the reader takes from the YAML event."""
ELSEWHERE = {
    "not-a-file": "tests/language/test_open_source.py",
    "not-utf8": "tests/language/test_open_source.py",
    "unreadable-file": "tests/weights/test_checkpoint.py",
    "block-file": "tests/diagnostics/test_cases.py",
    "name-clash": "tests/diagnostics/test_cases.py",
    "too-large": "tests/language/test_hostile.py",
    "too-many-errors": "tests/diagnostics/test_cases.py",
    "fixed-length": "tests/published/test_programs.py",
    "unknown-operator": "tests/published/test_onnx.py",
    "checkpoints-differ": "tests/weights/test_mapping.py",
    "checkpoints-dtype": "tests/weights/test_hostile_files.py",
    "checkpoints-missing": "tests/weights/test_mapping.py",
    "checkpoints-value": "tests/weights/test_numbers.py",
    "checkpoints-unexpected": "tests/weights/test_mapping.py",
    "yaml-syntax": "tests/diagnostics/test_cases.py",
}
"""Codes of files, checkpoints and texts too long for a case, with the test of each."""


@each_case
def test_a_broken_recipe_gives_what_its_case_says(case: Case) -> None:
    """Every diagnostic with its place and hint, and nothing more."""
    assert "".join(map(shown, diagnose(case))) == case.expected.text


@each_case
def test_a_case_shows_its_code_and_can_be_rendered(case: Case) -> None:
    """Each marks the line that its place names."""
    found = diagnose(case)
    assert case.code in {each.code for each in found}
    for each in found:
        assert each.message[0] == each.message[0].lower() and not each.message.endswith(".")
        assert "^" in full(each) or not each.span.source.lines[each.span.line - 1]


def test_every_code_has_cases_in_two_places() -> None:
    """And every section is that of a code that the composer gives."""
    contexts = defaultdict(set)
    for case in ALL:
        contexts[case.code].add(case.context)
    assert contexts.keys() == (set(codes()) | BY_EVENT) - ELSEWHERE.keys()
    assert {code for code, places in contexts.items() if len(places) < 2} == set()


@pytest.mark.parametrize("code", ELSEWHERE)
def test_codes_without_a_case_have_a_test(code: str) -> None:
    """It names the code beside this list."""
    text = (ROOT / ELSEWHERE[code]).read_text(encoding="utf-8")
    assert text.count(f'"{code}"') >= (2 if ELSEWHERE[code] == "tests/diagnostics/test_cases.py" else 1)


def codes() -> Iterator[str]:
    """Yield every code that the sources hand to a diagnostic."""
    for folder in ("composer", "blocks"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                for place in _code_of(node):
                    yield from (each.value for each in ast.walk(place) if _is_code(each))  # type: ignore[attr-defined]  # a constant


def _code_of(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands for the code: an argument, the default of one, or a constant of that name."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments, keywords=keywords):
            place = PLACE_OF_CODE.get(name)
            if place is not None and place < len(arguments):
                yield from _alternatives(arguments[place])
            yield from (keyword.value for keyword in keywords if keyword.arg == "code")
            if name == "_Mistake" and len(arguments) > 2:
                yield arguments[2]
        case ast.FunctionDef(args=ast.arguments(args=arguments, defaults=defaults)):
            pairs = zip(reversed(arguments), reversed(defaults), strict=False)
            yield from (default for argument, default in pairs if argument.arg == "code")
        case ast.Assign(targets=[ast.Name(id="CODE")], value=value):
            yield value


def _alternatives(argument: ast.expr) -> Iterator[ast.AST]:
    match argument:
        case ast.Constant():
            yield argument
        case ast.BoolOp(values=values):
            yield from values
        case ast.IfExp(body=body, orelse=orelse):
            yield from (body, orelse)


def _is_code(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(CODE.fullmatch(node.value))


@pytest.mark.slow
def test_the_page_of_errors_is_current() -> None:
    """`python -m tests.cases.index` writes it."""
    text = page()
    assert PAGE.read_text(encoding="utf-8") == text
    assert len(text.encode()) < 120_000


def test_the_example_of_the_language_comes_out() -> None:
    """A param in the middle of the caret line, its value behind it, and where it was set."""
    recipe = """recipe: gpt2
doc: GPT-2 small, decoder-only with learned positions, pre-LayerNorm, GELU and a tied head.
paper: Radford et al. 2019, Language Models are Unsupervised Multitask Learners
task: causal_lm

params:
  vocab: 50304
  context: 1024
  d_model: 768
  n_layers: 12
  n_heads: 10

inputs:
  tokens: int[batch, time]

graph:
  embed: {type: embedding, vocab: vocab, dim: d_model}
  positions: {type: learned_positions, max_length: context}
  layers:
    repeat: n_layers
    graph:
      attn: {type: residual, norm: layernorm, body: {type: attention, heads: n_heads, mask: causal, bias: true}}
      ffn: {type: residual, norm: layernorm, body: {type: ffn, hidden: 4 * d_model, activation: gelu_tanh, bias: true}}
  norm: layernorm
  head: {type: linear, out: vocab, bias: false, tie: {weight: embed.weight}}

outputs:
  logits: head
"""
    (found,) = composer.load(recipe).check()
    assert (
        full(found)
        == """<text>:22:78: error[indivisible]: 768 channels cannot be split into 10 heads
   |
22 |      attn: {type: residual, norm: layernorm, body: {type: attention, heads: n_heads, mask: causal, bias: true}}
   |                                                                             ^^^^^^^ 10
11 |  n_heads: 10
   |           -- set here
   = 8 and 12 divide 768"""
    )


def code_of(error: pytest.ExceptionInfo[composer.RecipeError]) -> list[str]:
    return [each.code for each in error.value.diagnostics]


def test_a_recipe_of_no_name_in_the_zoo_is_refused() -> None:
    """With the nearest name, and a word on files."""
    with pytest.raises(composer.RecipeError) as error:
        composer.load("gtp2")
    assert code_of(error) == ["unknown-recipe"]
    assert "gpt2" in zoo_names()
    assert error.value.diagnostics[0].hint == "did you mean gpt2?"


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("x = 1\n", "this file defines no block", 1),
        ("x = 1\ny = x +\n", "SyntaxError: invalid syntax", 2),
        ("x = 1\n\nraise ValueError('no')\n", "ValueError: no", 3),
    ],
)
def test_a_file_of_blocks_that_cannot_be_used_is_refused(text: str, message: str, line: int, tmp_path: Path) -> None:
    """At the line that stopped it."""
    file = tmp_path / "own.py"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(composer.RecipeError) as error:
        composer.load("gpt2", blocks=[file])
    (found,) = error.value.diagnostics
    assert (found.code, found.message, found.span.line) == ("block-file", message, line)


def test_a_block_with_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    """At its class."""
    file = tmp_path / "own.py"
    file.write_text('from blocks.core import Block\n\n\nclass Mine(Block, kind="linear"):\n    """Mine."""\n', encoding="utf-8")
    with pytest.raises(composer.RecipeError) as error:
        composer.load("gpt2", blocks=[file])
    assert code_of(error) == ["name-clash"]
    assert error.value.diagnostics[0].span.line == 4


def test_after_many_mistakes_the_rest_is_not_told() -> None:
    """Those of reading, and those of the graph."""
    reading = "recipe: example\n" + "".join(f"a{number}: *b\n" for number in range(200))
    nodes = "".join(f"  a{number}: {{type: linear, out: c{number}}}\n" for number in range(200))
    graph = f'recipe: example\ninputs: {{x: "float[batch, time, 8]"}}\ngraph:\n{nodes}'
    for text in (reading, graph):
        found = composer.load(text).check()
        assert len(found) <= 101
        assert [each.code for each in found].count("too-many-errors") == 1


def test_what_no_rule_knows_is_still_located() -> None:
    """The parser's own place, with `yaml-syntax`, the code of last resort."""
    source = Source("r.yaml", "a: b\nc: d\n")
    mark = Mark("r.yaml", 7, 1, 2, "", 0)
    found = explain(
        MarkedYAMLError(problem="a new kind of problem", problem_mark=mark), source, ParseStop(None, None, False, None)
    )
    assert (found.code, found.span.line, found.span.column) == ("yaml-syntax", 2, 3)
