"""Scans whose steps are linear in what is carried, against the loop over the steps: which they are, and that all is equal."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import composer
from composer.decode import session
from composer.graph.flatten import flatten
from composer.graph.scans.hoist_steps import hoist_steps
from composer.graph.typed import TypedScan
from tests.conformance.interpreter import Interpreter

B, T, D = 2, 37, 3
HEAD = f"""
recipe: steps
inputs:
  x: float[batch, time, {D}]
  g: float[batch, time, {D}]
  m: bool[batch, time]
graph:
  rate: {{type: parameter, shape: [{D}], std: 0.5}}
  start: {{type: parameter, shape: [{D}], std: 0.5}}
  map: {{type: linear, out: {D}, in: x}}
  s:
    scan: time
    in: {{h: start, u: x, v: g, w: m, z: map}}
"""
LINEAR = {
    "a decay and a sum": "{n: {compute: sigmoid(v) * h + u}}",
    "of any sign": "{n: {compute: v * h - u}}",
    "a number": "{n: {compute: 0.9 * h + 0.1 * u}}",
    "a number and a state that is subtracted": "{n: {compute: u - 0.5 * h}}",
    "a quotient": "{n: {compute: h / (1 + v * v) + u}}",
    "a sum": "{n: {compute: h + v * u}}",
    "blocks": "{k: {type: multiply, in: [h, v]}, n: {type: add, in: [k, u]}}",
    "a decay of channels": "{n: {compute: exp(-softplus(float32(rate))) * h + u}}",
    "several nodes": "{a: {compute: h + u}, n: {compute: 0.5 * (a * tanh(v) - h) + z}}",
    "a choice": "{n: {compute: 'where(keep, sigmoid(v) * h + u, h)', in: {keep: w}, axes: {keep: b, v: b d, h: b d, u: b d}}}",
    "a choice of two steps": "{n: {compute: 'where(u > 0, 0.5 * h, tanh(v) * h + u) - v'}}",
    "a sum of some": "{n: {compute: 'where(v > 0, h + u, h)'}}",
    "a choice of two numbers": "{n: {compute: 'where(v > 0, 0.5 * h, h) + u'}}",
    "a divisor": "{n: {compute: (h + u) / 3}}",
    "a factor alone": "{n: {compute: tanh(v) * h}}",
    "a number that is added": "{n: {compute: sigmoid(v) * h + 1}}",
    "a map of inputs": f"{{f: {{type: linear, out: {D}, in: v}}, n: {{compute: sigmoid(f) * h + u}}}}",
    "in float32": "{n: {compute: float32(exp(-softplus(float32(v))) * h + u)}, y: {compute: float(n)}}",
}
OTHER = {
    "a restart": "{n: {compute: 'where(keep, h, 0.0) * v + u', in: {keep: w}, axes: {keep: b, v: b d, h: b d, u: b d}}}",
    "numbers only": "{n: {compute: 0.5 * h + 1}}",
    "a square": "{n: {compute: 0.1 * h * h + tanh(u)}}",
    "a curve": "{n: {compute: tanh(h) + u}}",
    "a map": f"{{f: {{type: linear, out: {D}, in: h}}, n: {{compute: 0.1 * f + u}}}}",
    "a gate that reads the state": "{n: {compute: sigmoid(h + v) * u}}",
    "a state that is not differentiated": "{n: {compute: stop_gradient(h) * v + u}}",
    "a choice by the state": "{n: {compute: 'where(h > 0, v * h, u)'}}",
    "a state that is forgotten": "{n: {compute: u * v}}",
    "a product of states": "{n: {compute: 0.1 * (h + tanh(u)) * (h + tanh(v))}}",
}
AFTER = {
    "the states": ("", "{y: n, h: n}"),
    "the states before": ("y: {compute: h * v}", "{y: y, h: n}"),
    "both": ("y: {compute: tanh(h) + n * u}", "{y: y, h: n}"),
    "a map of them": (f"y: {{type: linear, out: {D}, in: n}}", "{y: y, h: n}"),
    "a sum over them": (
        "e: {type: einsum, pattern: 'b d, b d -> b', in: [n, v]}, y: {compute: e * u, axes: {e: b, u: b d}}",
        "{y: y, h: n}",
    ),
}


def text(graph: str, outputs: str = "{y: n, h: n}") -> str:
    return HEAD + f"    graph: {graph}\n    outputs: {outputs}\noutputs:\n  y: s\n  last: s.h\n  rate: rate\n  map: map\n"


def scan_of(recipe: str) -> TypedScan:
    (scan,) = (node for node in hoist_steps(flatten(composer.load(recipe).program)).root.nodes if isinstance(node, TypedScan))
    return scan


def inputs(length: int = T, dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    x, g = torch.randn(2, B, length, D, generator=generator, dtype=torch.float64).to(dtype)
    return {"x": x.requires_grad_(), "g": g.requires_grad_(), "m": torch.rand(B, length, generator=generator) > 0.3}


def compare(recipe: str, length: int = T) -> None:
    """Compare outputs and gradients with those of the graph walked step by step."""
    model = composer.load(recipe).compile(dtype=torch.float64, seed=1)
    oracle = Interpreter(copy.deepcopy(model), dense=True)
    found = []
    for run, of in ((lambda given: model(**given)[:-1], model), (lambda given: tuple(oracle(**given).values()), oracle.model)):
        given = inputs(length)
        outputs = run(given)
        sum(torch.sin(value).sum() for value in outputs).backward()
        leaves = [*of.parameters(), given["x"], given["g"]]
        found.append([*outputs, *(torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("graph", LINEAR.values(), ids=LINEAR)
def test_linear_steps_have_no_loop(graph: str) -> None:
    """Values and gradients of all steps are those of the loop."""
    recipe = text(graph, "{y: y, h: n}" if " y: " in graph else "{y: n, h: n}")
    assert scan_of(recipe).linear
    assert " in zip(" not in composer.load(recipe).export().partition("class Steps")[2]
    for length in (1, T):
        compare(recipe, length)


@pytest.mark.parametrize("graph", OTHER.values(), ids=OTHER)
def test_other_steps_are_a_loop(graph: str) -> None:
    """As are those that are linear and would need a product of matrices."""
    recipe = text(graph)
    assert not scan_of(recipe).linear
    compare(recipe)


@pytest.mark.parametrize("step", ["sigmoid(v) * h + u", "tanh(v * h) + u"])
@pytest.mark.parametrize(("more", "outputs"), AFTER.values(), ids=AFTER)
def test_what_reads_states_is_computed_after_them(more: str, outputs: str, step: str) -> None:
    """Of all steps at once, whether or not there is a loop."""
    recipe = text(f"{{n: {{compute: {step}}}{', ' * bool(more)}{more}}}", outputs)
    scan = scan_of(recipe)
    assert [node.name for node in scan.graph.nodes] == ["n"]
    compare(recipe)


def test_states_that_do_not_mix_are_computed_each() -> None:
    """And those that do, step by step."""
    apart = "{n: {compute: sigmoid(v) * h + u}, m: {compute: tanh(u) * c + v}, y: {compute: n * m}}"
    mixed = apart.replace("tanh(u) * c", "tanh(u) * c + h")
    for graph, linear in ((apart, True), (mixed, False)):
        recipe = text(graph, "{y: y, h: n, c: m}").replace("in: {h: start,", "in: {h: start, c: rate,")
        assert bool(scan_of(recipe).linear) == linear
        compare(recipe)


def test_decays_that_vanish_or_grow_are_no_quotients() -> None:
    """Zeros, and decays whose product is too small for a float."""
    model = composer.load(text("{n: {compute: v * h + u}}")).compile(seed=0)
    given = {name: value.detach() for name, value in inputs(200, torch.float32).items()}
    for rate in (0.0, 1e-20, -1.0, 1.01):
        given["g"] = torch.full_like(given["g"], rate).requires_grad_()
        y = model(**given).y
        h, states = model.start.weight, []
        for step in range(200):
            h = rate * h + given["x"][:, step]
            states.append(h)
        torch.testing.assert_close(y, torch.stack(states, 1), rtol=1e-5, atol=1e-5)
        y.sum().backward()
        assert given["g"].grad is not None and given["g"].grad.isfinite().all()


RESET = """
recipe: reset
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 3, dim: 4}
  start: {type: zeros, shape: [4], in: embed}
  s:
    scan: time
    in: {h: start, u: embed, t: tokens}
    graph:
      n: {compute: "where(t == 0, u, FACTOR * h + u)", axes: {t: b, u: b d, h: b d}}
    outputs: {y: n, h: n}
outputs: {logits: s}
"""


@pytest.mark.parametrize("lost", [math.nan, math.inf, 1.0], ids=str)
def test_a_reset_forgets_infinity_and_nan(lost: float) -> None:
    """Which 0 times the state would not: in one call and in a session; the last case overflows by its factor."""
    recipe = RESET.replace("FACTOR", "0.5" if lost != 1 else "30")
    assert not scan_of(recipe).linear
    model = composer.load(recipe).compile(seed=0)
    with torch.no_grad():
        model.embed.weight[2] = lost
    tokens = torch.tensor([[2, *[1] * 35, 0, 1, 1, 0, 1], [*[1] * 20, 2, *[1] * 18, 0, 1]])
    h, states = torch.zeros(2, 4), []
    for t in tokens.unbind(1):
        u = model.embed.weight[t]
        h = torch.where(t[:, None] == 0, u, (0.5 if lost != 1 else 30) * h + u)
        states.append(h)
    expected = torch.stack(states, 1).detach()
    assert not expected[:, 35].isfinite().all() and expected[:, -1].isfinite().all()
    torch.testing.assert_close(model(tokens).logits, expected, equal_nan=True)
    for cuts in ([1] * 41, [30, 11]):
        with torch.no_grad(), session(model):
            parts = [model(part).logits for part in tokens.split(cuts, 1)]
        torch.testing.assert_close(torch.cat(parts, 1), expected, equal_nan=True)


TEXT = """
recipe: text
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 11, dim: 6}
  start: {type: parameter, shape: [6], std: 0.5}
  s:
    scan: time
    in: {h: start, c: start, u: embed}
    graph:
      gate: {type: linear, out: 6, in: u}
      n: {compute: sigmoid(gate) * h + u}
      k: {compute: c + 0.1 * u}
      y: {compute: n * h + k}
    outputs: {y: y, h: n, c: k}
  head: {type: linear, out: 11}
outputs: {logits: head}
"""


def test_a_session_goes_on_from_the_last_state() -> None:
    """However the text is cut."""
    model = composer.load(TEXT).compile(dtype=torch.float64, seed=0)
    tokens = torch.randint(11, (B, 40), generator=torch.Generator().manual_seed(1))
    whole = model(tokens).logits
    for cuts in ([1] * 40, [20, 20], [33, 1, 6]):
        with torch.no_grad(), session(model):
            parts = [model(part).logits for part in tokens.split(cuts, 1)]
        torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-11, atol=1e-11)


READ = """
recipe: read
task: causal_lm
inputs: {tokens: "int[batch, time]", memory: "float[batch, source, 6]"}
graph:
  start: {type: parameter, shape: [6], std: 0.5}
  read:
    scan: source
    in: {h: start, u: memory}
    graph:
      gate: {type: linear, out: 6, in: u}
      n: {compute: STEP}
      y: {type: linear, out: 6, in: n}
    outputs: {y: y, h: n}
  all: {type: mean, axis: source, in: read}
  embed: {type: embedding, vocab: 11, dim: 6, in: tokens}
  both: {compute: embed + all + read.h, axes: {embed: b t d, all: b d, read.h: b d}}
  head: {type: linear, out: 11}
outputs: {logits: head}
"""


@pytest.mark.parametrize("step", ["sigmoid(gate) * h + u", "tanh(h + gate)"], ids=["linear", "loop"])
def test_a_session_reads_another_sequence_once(step: str) -> None:
    """What stands before and after a scan of it, too."""
    model = composer.load(READ.replace("STEP", step)).compile(dtype=torch.float64, seed=0)
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(11, (B, 6), generator=generator)
    memory = torch.randn(B, 20, 6, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        whole = model(tokens, memory).logits
        with session(model):
            parts = [model(part, memory).logits for part in tokens.split([2, 1, 3], 1)]
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("graph", [LINEAR["a decay and a sum"], LINEAR["a sum"]], ids=["decay", "sum"])
def test_torch_transforms_it(graph: str) -> None:
    """`torch.compile` without a break, `torch.export`, `vmap` of gradients, and second derivatives."""
    model = composer.load(text(graph)).compile(dtype=torch.float64, seed=1)
    given = {name: value.detach() for name, value in inputs().items()}
    expected = model(**given).y
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(**given).y, expected)
    exported = torch.export.export(model, (), dict(given))
    torch.testing.assert_close(exported.module()(**given).y, expected)

    def loss(x: torch.Tensor, g: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        return model(x=x[None], g=g[None], m=m[None]).y.square().sum()

    rows = torch.func.vmap(torch.func.grad(loss))(*given.values())
    for row in range(B):
        one = torch.func.grad(loss)(*(value[row] for value in given.values()))
        torch.testing.assert_close(rows[row], one)
    short = {name: value[:1, :20] for name, value in given.items()}
    call: Callable[..., Any] = lambda x, g: model(x=x, g=g, m=short["m"]).y  # noqa: E731
    leaves = tuple(short[name].clone().requires_grad_() for name in "xg")
    assert torch.autograd.gradgradcheck(call, leaves, atol=1e-6)
    assert torch.autograd.gradcheck(call, leaves, check_forward_ad=True)


def test_blocks_that_are_moved_keep_their_names() -> None:
    """A checkpoint of the loop is one of what is computed at once."""
    model = composer.load(TEXT).compile(seed=0)
    assert {name for name, _ in model.named_parameters()} >= {"s.gate.weight", "s.gate.bias"}
    assert isinstance(model.s.gate, nn.Linear)


NESTED = f"""
recipe: nested
inputs:
  image: float[batch, height, width, {D}]
  side: float[batch, height, {D}]
graph:
  start: {{type: parameter, shape: [{D}], std: 0.5}}
  s:
    scan: height
    in: {{g: start, side: side, row: image}}
    graph:
      inner:
        scan: width
        in: {{h: g, x: row}}
        graph: {{f: {{type: linear, out: {D}, in: x}}, new: {{compute: INNER}}, y: {{compute: tanh(f) * h + new}}}}
        outputs: {{y: y, h: new}}
      all: {{type: mean, axis: width, in: inner}}
      new: {{compute: OUTER}}
    outputs: {{y: new, g: new}}
outputs: {{y: s, last: s.g}}
"""


@pytest.mark.parametrize("inner", ["sigmoid(f) * h + x", "h + f", "tanh(f + h) * x"])
@pytest.mark.parametrize("outer", ["0.5 * g + tanh(inner.h * all)", "sigmoid(side) * tanh(g) + 0.1 * (inner.h + all)"])
def test_a_scan_in_a_scan_is_two_loops(inner: str, outer: str) -> None:
    """What is taken out of the inner one, and then out of the outer one, has its own name in the code."""
    steps: dict[str, Callable[..., torch.Tensor]] = {
        "sigmoid(f) * h + x": lambda h, f, x: torch.sigmoid(f) * h + x,
        "h + f": lambda h, f, x: h + f,
        "tanh(f + h) * x": lambda h, f, x: torch.tanh(f + h) * x,
        "0.5 * g + tanh(inner.h * all)": lambda g, h, every, side: 0.5 * g + torch.tanh(h * every),
        "sigmoid(side) * tanh(g) + 0.1 * (inner.h + all)": lambda g, h, every, side: (
            torch.sigmoid(side) * torch.tanh(g) + 0.1 * (h + every)
        ),
    }
    model = composer.load(NESTED.replace("INNER", inner).replace("OUTER", outer)).compile(dtype=torch.float64, seed=0)
    generator = torch.Generator().manual_seed(2)
    for height, width in ((1, 1), (5, 20), (20, 5)):
        image = torch.randn(B, height, width, D, generator=generator, dtype=torch.float64).requires_grad_()
        side = torch.randn(B, height, D, generator=generator, dtype=torch.float64).requires_grad_()
        g, states = model.start.weight.expand(B, D), []
        for row, beside in zip(image.unbind(1), side.unbind(1), strict=True):
            h, ys = g, []
            for x in row.unbind(1):
                f = model.s.inner.f(x)
                before, h = h, steps[inner](h, f, x)
                ys.append(torch.tanh(f) * before + h)
            g = steps[outer](g, h, torch.stack(ys).mean(0), beside)
            states.append(g)
        expected, found = torch.stack(states, 1), model(image=image, side=side)
        torch.testing.assert_close(found.y, expected, rtol=1e-10, atol=1e-11)
        torch.testing.assert_close(found.last, g, rtol=1e-10, atol=1e-11)
        leaves = [image, *model.parameters()]
        ours, theirs = (torch.autograd.grad(y.sin().sum(), leaves) for y in (found.y, expected))
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-11)
