"""Memos: what comes of a recipe does not depend on what was worked out before."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

import composer
from blocks.core import Block
from composer import memo
from composer.memo import Ambient, Interned, Memo, alike
from tests.cases.case import FILES, Case, cases, diagnose, shown
from tests.draw.cases import FORMS
from tests.zoo import NAMED, REPRESENTATIVES

LARGE = {"too-many-modules", "too-many-nodes"}
"""Codes of cases with thousands of passes, each of which is worked out anew where memos are off."""
CASES = [
    case if case.code != "too-large-to-build" else pytest.param(case, marks=pytest.mark.slow)
    for file in FILES
    for case in cases(file)
    if case.code not in LARGE
]
FEW = {"gpt2", "gemma3", "seq2seq_rnn", "clip", "unet"}
"""Models that are no slow tests: equal layers, unequal ones, a scan, two towers, skips."""
MODELS = [
    *(
        source
        if Path(source).stem in FEW
        else pytest.param(source, marks=pytest.mark.slow if source in NAMED else pytest.mark.exhaustive)
        for source in (*REPRESENTATIVES, *FORMS)
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_without_memos_a_case_gives_what_it_says(case: Case) -> None:
    """Every mistake is found at its own place, and once."""
    with memo.off():
        assert "".join(map(shown, diagnose.__wrapped__(case))) == case.expected.text


@pytest.mark.parametrize("source", MODELS, ids=lambda source: Path(source).stem)
def test_without_memos_a_model_is_the_same(source: str | Path) -> None:
    """Its types, warnings, costs, source and picture."""
    expected = artifacts(source)
    with memo.off():
        found = artifacts(source)
    assert found == expected


def test_without_memos_a_diff_is_the_same() -> None:
    """Of two models whose layers are not equal."""
    expected = str(composer.load("gpt2").diff(composer.load("gemma3")))
    with memo.off():
        assert str(composer.load("gpt2").diff(composer.load("gemma3"))) == expected


def artifacts(source: str | Path) -> dict[str, str]:
    """Return what comes of a recipe, as texts."""
    recipe = composer.load(source)
    return {
        "warnings": "\n".join(map(str, recipe.check())),
        "types": repr(list(recipe.to_networkx().edges(data=True))),
        "summary": str(recipe.summary()),
        "recipe": recipe.expand(),
        "source": recipe.export(),
        "picture": recipe.draw().svg(),
    }


# -- equal graphs in unequal surroundings


class Widen(Block, kind="widen"):
    """Add what cannot be added."""

    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}
    graph = """
        wide: {type: linear, out: 7}
        add: {type: add, in: [input, wide]}
    """


TWICE = """
recipe: example
inputs: {x: "float[batch, time, 8]"}
graph:
  a: {type: widen, in: x}
  b: {type: widen, in: x}
  both: {type: concat, axis: time, in: [a, b]}
"""
SIDE = """
recipe: example
task: causal_lm
inputs: {tokens: "int[batch, time]"}
blocks:
  mix: {inputs: {x: "float[..., dim]"}, graph: {a: {type: softmax, axis: time}}}
graph:
  embed: {type: embedding, vocab: 8, dim: 8}
  side: {type: mix, in: embed}
  main: {type: mix, in: embed}
  head: {type: linear, out: 8}
outputs: {logits: head}
losses:
  near: {type: mse, in: side, target: embed}
"""
POSITIONS = """
recipe: example
blocks:
  places: {inputs: {x: "float[2, time, dim]"}, graph: {a: {type: learned_positions, max_length: 9}}}
inputs: {x: "float[2, time, 8]", ids: "int[2, time]"}
graph:
  before: {type: places, in: x}
  numbers: {type: concat, axis: time, in: [ids]}
  after: {type: places, in: x}
  both: {type: add, in: [before, after]}
positions: {time: numbers}
"""
TOWERS = """
recipe: example
inputs: {x: "float[batch, time, 8]"}
blocks:
  tower:
    inputs: {x: "float[batch, time, dim]"}
    graph:
      a: {type: residual, body: {type: ffn, hidden: 16}}
      b: {type: residual, body: {type: ffn, hidden: 16}}
      c: {type: residual, body: {type: ffn, hidden: 16}}
graph:
  first: {type: tower, in: x}
  second: {type: tower, in: first, tie: first}
"""


def test_each_use_of_a_block_has_its_own_mistakes() -> None:
    """Where equal blocks of equal inputs are wrong inside, each is told of, at its own place."""
    found = [each.span.line for each in composer.load(TWICE.lstrip(), blocks=[Widen]).check()]
    assert found == [4, 5]
    with memo.off():
        assert [each.span.line for each in composer.load(TWICE.lstrip(), blocks=[Widen]).check()] == found


@pytest.mark.parametrize("text", [SIDE, POSITIONS, TOWERS], ids=["side", "positions", "towers"])
def test_equal_graphs_are_told_apart_by_what_is_around_them(text: str) -> None:
    """What only a loss reads, what is typed before the positions, and what has the parameters of another."""
    recipe = composer.load(text.lstrip())
    expected = recipe.check()
    picture = "" if any(each.severity == "error" for each in expected) else recipe.draw().svg()
    with memo.off():
        other = composer.load(text.lstrip())
        assert [each.message for each in other.check()] == [each.message for each in expected]
        assert not picture or other.draw().svg() == picture


# -- the tables


@dataclass(frozen=True, eq=False)
class Thing:
    """Something that is compared by identity."""

    parts: tuple[object, ...]


def test_a_memo_computes_once_unless_it_is_off() -> None:
    """The switch holds for the tables that are made while it is set."""
    usual: Memo[str, object] = Memo()
    with memo.off():
        off: Memo[str, object] = Memo()
    assert usual.get("key", object) is usual.get("key", object)
    assert off.get("key", object) is not off.get("key", object)


def test_interned_objects_stay_one_and_are_held_against_new_ones() -> None:
    """A key that lacks something is found where memos are off."""
    with memo.off():
        table: Interned[str, Thing] = Interned()
    first = table.get("key", lambda: Thing((1,)))
    assert table.get("key", lambda: Thing((1,))) is first
    with pytest.raises(Ambient):
        table.get("key", lambda: Thing((2,)))
    usual: Interned[str, Thing] = Interned()
    assert usual.get("key", lambda: first) is usual.get("key", lambda: Thing((2,)))


def test_things_are_alike_where_they_hold_the_same_in_the_same_places() -> None:
    """Twice one thing is not two equal ones."""
    one, other = Thing((1,)), Thing((1,))
    assert alike(Thing((one, one)), Thing((other, other)))
    assert alike({"a": [one]}, {"a": [other]})
    assert not alike(Thing((one, one)), Thing((one, other)))
    assert not alike(Thing((one, other)), Thing((one, one)))
    assert not alike([one], (one,))


VALUES = {"str", "int", "float", "Role", "Mask", "frozenset[str]", "tuple[tuple[str, int], ...]"}
VALUES |= {"type[Part]", "type | types.FunctionType", "YamlScalar", "Always", "Ordering", "tuple[tuple[Name, ...], ...]"}
"""Types of what a bare cache may depend on: classes and functions, and values that never change and are equal where they are
alike, or each only to itself.
"""


def test_only_functions_of_classes_and_values_have_a_cache_of_their_own() -> None:
    """Whatever depends on more, such as a graph or what is around it, is kept in a table of `composer.memo`."""
    root = Path(composer.__file__).parents[1]
    found = {}
    for file in (file for package in ("blocks", "composer") for file in (root / package).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and {"cache", "lru_cache"} & {*map(decorator, node.decorator_list)}:
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
                read = {ast.unparse(each.annotation) if each.annotation else "" for each in given if each is not None}
                found[f"{file.relative_to(root)}:{node.name}"] = read - VALUES
    assert found and {place: more for place, more in found.items() if more} == {}


def decorator(node: ast.expr) -> str:
    """Return the name of a decorator, without its module and arguments."""
    return ast.unparse(node).partition("(")[0].rpartition(".")[2]
