"""Wherever a name is not known, the one that was meant is offered: a slip of one letter in every place that takes a name."""

from pathlib import Path

import pytest

import composer
from composer.diagnostics import Diagnostic, RecipeError
from composer.language.suggestions import DID_YOU_MEAN
from tests.diagnostics.test_cases import codes
from tests.operations import at_most

HEAD = 'recipe: r\nparams: {width: 8, own: {type: block, default: rmsnorm}}\ninputs: {data: "float[batch, time, 8]"}\ngraph:\n'
USED = "  used: {type: linear, out: width}\n  plain: layernorm\n  norm: own\n"
NODES = {
    "key of a group": ("unknown-key", "  a: {graph: {b: relu}, outptus: b}\n"),
    "key of a repeat": ("unknown-key", "  a: {repeat: 2, graph: {b: relu}, eahc: {n: 1}}\n"),
    "key of a scan": ("unknown-key", "  a: {scan: time, graph: {b: relu}, outptus: b}\n"),
    "key of a choice": ("unknown-key", "  a: {if: width > 2, then: relu, else: silu, whne: width > 1}\n"),
    "one of several booleans": ("unknown-key", "  a: {type: attention, heads: 2, bias: {ouf: true}}\n"),
    "block": ("unknown-block", "  a: {type: lineer, out: 8}\n"),
    "block by name alone": ("unknown-block", "  a: rmsnrom\n"),
    "block in a slot": ("unknown-block", "  a: {type: residual, norm: rmsnrom, body: relu}\n"),
    "block in a slot with fields": ("unknown-block", "  a: {type: residual, norm: {type: layrnorm}, body: relu}\n"),
    "part in a slot": ("unknown-block", "  a: {type: attention, heads: 2, positions: rotray}\n"),
    "block of a param": ("unknown-block", "  a: owm\n"),
    "block that a condition chooses": ("unknown-block", "  a: relu if width > 9 else rellu\n"),
    "type that a condition chooses": ("unknown-block", "  a: {type: relu if width > 9 else rellu}\n"),
    "field": ("unknown-field", "  a: {type: linear, outt: 8}\n"),
    "option of a node": ("unknown-field", "  a: {type: relu, whne: width > 2}\n"),
    "field of a part in a slot": ("unknown-field", "  a: {type: attention, heads: 2, positions: {type: rotary, tehta: 3}}\n"),
    "port": ("unknown-port", "  a: {type: cross_attention, heads: 2, in: {x: data, memry: data}}\n"),
    "port of a param's block": ("unknown-port", "  a: {type: cross_attention, heads: 2, in: {x: data, memorry: data}}\n"),
    "output": ("unknown-port", "  a: {type: attention, heads: 2, in: data}\n  b: {type: relu, in: a.weigths}\n"),
    "node": ("unknown-node", "  a: {type: relu, in: usde}\n"),
    "input": ("unknown-node", "  a: {type: relu, in: daat}\n"),
    "node of a group": ("unknown-node", "  a: {graph: {inner: relu}}\n  b: {type: relu, in: a.iner}\n"),
    "node of a pass": ("unknown-node", "  a: {repeat: 2, graph: {inner: relu}}\n  b: {type: relu, in: a(0).iner}\n"),
    "node of a range of passes": ("unknown-node", '  a: {repeat: 2, graph: {inner: relu}}\n  b: {type: add, in: "a(:).iner"}\n'),
    "node of a tie": ("unknown-node", "  a: {type: linear, out: 8, tie: usde}\n"),
    "parameter of a tie": ("unknown-parameter", "  a: {type: linear, out: 8, tie: {wieght: used.weight}}\n"),
    "parameter that a tie names": ("unknown-parameter", "  a: {type: linear, out: 8, tie: {weight: used.wieght}}\n"),
    "input of a mask": ("unknown-node", "  a: {type: attention, heads: 2, mask: valid(daat)}\n"),
    "mask": ("unknown-mask", "  a: {type: attention, heads: 2, mask: causl}\n"),
    "mask in an expression": ("unknown-mask", "  a: {type: attention, heads: 2, mask: causal and windw(3)}\n"),
    "word of a choice": ("unknown-choice", "  a: {type: residual, norm: rmsnorm, placement: psot, body: relu}\n"),
    "name in an expression": ("unknown-name", "  a: {type: linear, out: 2 * widht}\n"),
    "name alone": ("unknown-name", "  a: {type: linear, out: widht}\n"),
    "name in a condition": ("unknown-name", "  a: {type: relu, when: widht > 2}\n"),
    "name in a number of passes": ("unknown-name", "  a: {repeat: widht, graph: {b: relu}}\n"),
    "name in a pass": ("unknown-name", "  a: {repeat: 2, graph: {b: relu}}\n  c: {type: relu, in: a(widht)}\n"),
    "function": ("unknown-name", "  a: {type: linear, out: \"mix(3, 4)\"}\n"),
    "axis of a block": ("rejected", "  a: {type: mean, axis: tiem}\n"),
    "axis of a scan": ("scan-axis", "  a: {scan: tiem, graph: {b: relu}}\n"),
    "axis of an own size": ("unknown-name", "  a: {type: linear, out: 4 * dimm}\n"),
}  # fmt: skip
BESIDE = {
    "key of a recipe": ("unknown-key", "otuputs: {y: norm}\n"),
    "output": ("unknown-node", "outputs: {y: nrom}\n"),
    "axis of positions": ("unknown-axis", "positions: {tiem: data}\n"),
    "node of positions": ("unknown-node", "positions: {time: daat}\n"),
    "initializer": ("unknown-init", 'init: {"*": {noraml: 0.02}}\n'),
    "pattern": ("unused-init", "init: {used.wieght: {normal: 0.02}}\n"),
    "task": ("unknown-task", "task: encodre\n"),
    "loss": ("unknown-block", "losses: {l: {type: msee, in: norm, target: data}}\n"),
    "key of a loss": ("unknown-key", "losses: {l: {type: mse, in: norm, targte: data}}\n"),
    "node of a loss": ("unknown-node", "losses: {l: {type: mse, in: nrom, target: data}}\n"),
    "param of a block": (
        "unknown-name",
        "  b: mlp\nblocks: {mlp: {inputs: {x: \"float[..., dim]\"}, graph: {up: {type: linear, out: widht}}}}\n",
    ),
    "key of a block": ("unknown-key", 'blocks: {mlp: {inptus: {x: "float[..., dim]"}, graph: {up: relu}}}\n'),
}  # fmt: skip
SET = {
    "param": ("unknown-path", "widht=3"),
    "param under params": ("unknown-param", "params.widht=3"),
    "key of a param": ("unknown-path", "params.width.defualt=3"),
    "node": ("unknown-path", "usde.out=3"),
    "node under graph": ("unknown-node", "graph.usde.out=3"),
    "field": ("unknown-field", "used.outt=3"),
    "field of a slot": ("unknown-field", "plain.epss=3"),
    "name under a key": ("unknown-path", "inputs.daat=3"),
}
ELSEWHERE = {
    "unknown-param-type": "tests/cases/params.md",
    "unknown-recipe": "tests/diagnostics/test_cases.py",
}
NO_NAMES = {"unknown-escape", "unknown-size", "unknown-end", "unknown-operator"}
"""Codes of what is not known for another reason than its spelling."""


def found(text: str, *settings: str) -> list[Diagnostic]:
    """Return what `check` says of a recipe."""
    try:
        return composer.load(text, overrides=settings).check()
    except RecipeError as error:
        return list(error.diagnostics)


def assert_offers(diagnostics: list[Diagnostic], code: str) -> None:
    """Assert that one diagnostic has the code, and offers a name."""
    named = [each for each in diagnostics if each.code == code]
    assert len(named) == 1, [(each.code, each.message, each.hint) for each in diagnostics]
    assert named[0].hint.startswith(DID_YOU_MEAN), (named[0].message, named[0].hint)
    following = [
        each for each in diagnostics if each.severity == "error" and each.code not in (code, "unused-param", "dead-node")
    ]
    assert following == [], following


@pytest.mark.parametrize(("code", "node"), NODES.values(), ids=NODES)
def test_a_slip_in_a_node(code: str, node: str) -> None:
    """At every key, field, port, slot, edge and expression of a graph; and nothing else is said that follows from it."""
    assert_offers(found(HEAD + USED + node), code)


@pytest.mark.parametrize(("code", "text"), BESIDE.values(), ids=BESIDE)
def test_a_slip_beside_the_graph(code: str, text: str) -> None:
    """At every other key of a recipe."""
    assert_offers(found(HEAD + USED + text), code)


@pytest.mark.parametrize(("code", "setting"), SET.values(), ids=SET)
def test_a_slip_in_a_path(code: str, setting: str) -> None:
    """At every step of one."""
    assert_offers(found(HEAD + USED, setting), code)


def test_every_code_of_unknown_names_is_here() -> None:
    """A new one needs a row."""
    here = {code for rows in (NODES, BESIDE, SET) for code, _ in rows.values()}
    assert {code for code in codes() if code.startswith("unknown-")} - here - ELSEWHERE.keys() == NO_NAMES
    for code, file in ELSEWHERE.items():
        assert code in Path(file).read_text(encoding="utf-8")


BARE = 'recipe: r\ninputs: {data: "float[batch, time, 8]"}\ngraph:\n'
PASSES = "  a:\n    repeat: 2\n    graph:\n"
MANY = {
    "names of nodes": (
        lambda n: BARE + PASSES + "".join(f"      n{i}: {{type: relu, in: nn{i}}}\n" for i in range(n)),
        3_000_000,
    ),
    "patterns": (
        lambda n: (
            f"{BARE}{PASSES}"
            + "".join(f"      n{i}: {{type: linear, out: 8}}\n" for i in range(50))
            + f"init:\n{''.join(f'  a.*.n{i}.wieght: {{constant: 0}}{chr(10)}' for i in range(n))}"
        ),
        500_000,
    ),
    "parameters of ties": (
        lambda n: (
            f"{BARE}  g: {{graph: {{{', '.join(f'n{i}: {{type: linear, out: 8}}' for i in range(n))}}}}}\n"
            f"  h: {{graph: {{{', '.join(f'n{i}: {{type: linear, out: 8}}' for i in range(n))}}}, "
            f"tie: {{{', '.join(f'n{i}.wieght: g.n{i}.weight' for i in range(n))}}}}}\n"
        ),
        3_000_000,
    ),
}
"""Recipes with many misspelled names, and the functions that may be entered before they are told."""


@pytest.mark.parametrize("many", MANY)
def test_many_misspelled_names_are_told_soon(many: str) -> None:
    """Names are offered for as many as are reported; the others are not even looked for."""
    write, calls = MANY[many]
    recipe = composer.load(write(1200))
    with at_most(calls):
        found = recipe.check()
    assert found[0].hint.startswith(DID_YOU_MEAN)
    assert len(found) > 100
