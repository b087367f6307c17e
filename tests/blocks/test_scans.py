"""Cells against torch's own, and recurrences written out with `scan` against the layers and the loops that they are."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import composer
from composer.decode import session

D, H, B, T = 5, 4, 3, 6
TORCH: dict[str, Any] = {"rnn": nn.RNNCell, "gru": nn.GRUCell, "lstm": nn.LSTMCell}


def numbers(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def states_of(kind: str) -> list[str]:
    return ["h", "c"] if kind == "lstm" else ["h"]


def cell(kind: str, *, biases: str = "two", states: bool = True) -> Any:
    """Return a recipe of one cell as a float64 module, with its states wired in and out."""
    names = states_of(kind)
    inputs = "".join(f"  {name}: float[batch, {H}]\n" for name in names) if states else ""
    wires = "".join(f", {name}: {name}" for name in names) if states else ""
    text = f"recipe: one\ninputs:\n  x: float[batch, {D}]\n{inputs}graph:\n"
    text += f"  cell: {{type: {kind}_cell, hidden: {H}, biases: {biases}, in: {{x: x{wires}}}}}\noutputs:\n  h: cell\n"
    return composer.load(text + ("  c: cell.c\n" if kind == "lstm" else "")).compile(seed=0).double()


@pytest.mark.parametrize("states", [True, False])
@pytest.mark.parametrize("kind", TORCH)
def test_a_cell_is_that_of_torch(kind: str, states: bool) -> None:
    """With torch's parameters under the same names: values and gradients, with states and from zeros."""
    ours, theirs = cell(kind, states=states), TORCH[kind](D, H).double()
    ours.cell.load_state_dict(theirs.state_dict(), strict=True)
    x, before = numbers(B, D), [numbers(B, H, seed=2 + n) for n in range(len(states_of(kind)))] if states else []
    after = theirs(x, (tuple(before) if kind == "lstm" else before[0]) if states else None)
    expected, real = list(after) if kind == "lstm" else [after], list(ours(x, *before)[:-1])
    torch.testing.assert_close(real, expected, rtol=0, atol=1e-12)
    for values in (real, expected):
        sum(value.sin().sum() for value in values).backward()
    for name, parameter in theirs.named_parameters():
        torch.testing.assert_close(ours.cell.get_parameter(name).grad, parameter.grad, rtol=0, atol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "sigmoid", "softplus", "gelu_tanh"])
def test_a_cell_has_any_activation(activation: str) -> None:
    """Against the formula, step by step; the layer says so of one that it has no kernel for."""
    text = f"recipe: one\ninputs:\n  x: float[batch, time, {D}]\ngraph:\n  start: {{type: zeros, shape: [{H}]}}\n  layer:\n"
    text += "    scan: time\n    in: {x: x, h: start}\n"
    text += f"    graph: {{cell: {{type: rnn_cell, hidden: {H}, activation: {activation}, in: {{x: x, h: h}}}}}}\n"
    ours = composer.load(text + "    outputs: {y: cell, h: cell}\n").compile(seed=0).double()
    curve = {"gelu_tanh": partial(F.gelu, approximate="tanh"), "sigmoid": torch.sigmoid, "softplus": F.softplus, "relu": F.relu}
    x, h, cell = numbers(B, T, D), numbers(B, H) * 0, ours.layer.cell
    for t in range(T):
        h = curve[activation](x[:, t] @ cell.weight_ih.T + cell.bias_ih + h @ cell.weight_hh.T + cell.bias_hh)
        torch.testing.assert_close(ours(x).layer[:, t], h, rtol=0, atol=1e-12)


@pytest.mark.parametrize("biases", ["one", "two"])
@pytest.mark.parametrize("kind", TORCH)
def test_a_scan_of_a_cell_is_the_layer(kind: str, biases: str) -> None:
    """Values of every step, last states, and gradients of parameters and of the input."""
    names = states_of(kind)
    starts = "".join(f"  {name}: {{type: zeros, shape: [{H}], in: x}}\n" for name in names)
    handed = ", ".join(["step: x", *(f"{name}: {name}" for name in names)])
    wires = ", ".join(["x: step", *(f"{name}: {name}" for name in names)])
    returned = "{y: cell, h: cell" + (", c: cell.c}" if kind == "lstm" else "}")
    text = (
        f"recipe: walked\ninputs:\n  x: float[batch, time, {D}]\ngraph:\n{starts}  layer:\n    scan: time\n    in: {{{handed}}}\n"
    )
    text += (
        f"    graph: {{cell: {{type: {kind}_cell, hidden: {H}, biases: {biases}, in: {{{wires}}}}}}}\n    outputs: {returned}\n"
    )
    outputs = "outputs:\n  y: layer\n" + "".join(f"  {name}: layer.{name}\n" for name in names)
    walked = composer.load(text + outputs).compile(seed=0).double()
    whole = f"recipe: whole\ninputs:\n  x: float[batch, time, {D}]\ngraph:\n"
    whole += f"  layer: {{type: {kind}, hidden: {H}, biases: {biases}}}\n{outputs}"
    layer = composer.load(whole).compile(seed=0).double()
    layer.load_state_dict({f"{name.replace('.cell', '')}_l0": value for name, value in walked.state_dict().items()})
    x, again = numbers(B, T, D).requires_grad_(), numbers(B, T, D).requires_grad_()
    real, expected = walked(x)[:-1], layer(again)[:-1]
    torch.testing.assert_close(real[0], expected[0], rtol=0, atol=1e-12)
    for ours, theirs in zip(real[1:], expected[1:], strict=True):
        torch.testing.assert_close(ours, theirs[:, 0], rtol=0, atol=1e-12)
    real[0].sin().sum().backward()
    expected[0].sin().sum().backward()
    torch.testing.assert_close(x.grad, again.grad, rtol=0, atol=1e-12)
    for name, parameter in walked.named_parameters():
        gradient = layer.get_parameter(f"{name.replace('.cell', '')}_l0").grad
        torch.testing.assert_close(parameter.grad, gradient, rtol=0, atol=1e-12)


N = 3
SELECTIVE = f"""
recipe: selective
doc: The selective state space of Mamba, with A = −1, −2, −3 as S4D starts it, where exp(−n softplus(z)) = sigmoid(−z)ⁿ.
task: causal_lm
inputs:
  tokens: int[batch, time]
graph:
  embed: {{type: embedding, vocab: 11, dim: {D}}}
  delta: {{type: linear, out: {D}}}
  step: softplus
  b: {{type: linear, out: {N}, bias: false, in: embed}}
  c: {{type: linear, out: {N}, bias: false, in: embed}}
  less: {{type: scale, by: -1, in: delta}}
  once: sigmoid
  twice: {{type: multiply, in: [once, once]}}
  thrice: {{type: multiply, in: [twice, once]}}
  keep: {{type: stack, in: [once, twice, thrice]}}
  write: {{type: multiply, in: [step, embed]}}
  drive: {{type: einsum, pattern: "b t d, b t n -> b t d n", in: [write, b]}}
  nothing: {{type: zeros, shape: [{D}, {N}], in: embed}}
  states:
    scan: time
    in: {{keep: keep, drive: drive, read: c, h: nothing}}
    graph:
      kept: {{type: multiply, in: [keep, h]}}
      state: {{type: add, in: [kept, drive]}}
      y: {{type: einsum, pattern: "b d n, b n -> b d", in: [state, read]}}
    outputs: {{y: y, h: state}}
  skip: {{type: parameter, shape: [{D}], init: ones}}
  straight: {{type: multiply, in: [embed, skip]}}
  sum: {{type: add, in: [states, straight]}}
  head: {{type: linear, out: 11}}
outputs:
  logits: head
"""


def selective(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """Compute it in a plain loop: `h = exp(Δ A) h + Δ B x`, `y = C h + D x`, with A = -1, -2, -3 and Δ, B and C made of x."""
    p = dict(model.named_parameters())
    x = p["embed.weight"][tokens]
    step = torch.log1p(torch.exp(x @ p["delta.weight"].T + p["delta.bias"]))
    a, h, rows = -torch.arange(1, N + 1), torch.zeros(len(tokens), D, N, dtype=x.dtype), []
    for t in range(tokens.shape[1]):
        write, read = x[:, t] @ p["b.weight"].T, x[:, t] @ p["c.weight"].T
        h = torch.exp(step[:, t, :, None] * a) * h + (step[:, t] * x[:, t])[:, :, None] * write[:, None]
        rows.append((h * read[:, None]).sum(-1) + p["skip.weight"] * x[:, t])
    return torch.stack(rows, dim=1) @ p["head.weight"].T + p["head.bias"]


def test_a_selective_state_space_is_a_plain_loop() -> None:
    """From primitives: logits, gradients, and a text that is continued token by token."""
    model = composer.load(SELECTIVE).compile(seed=0).double()
    tokens = torch.randint(11, (B, T), generator=torch.Generator().manual_seed(3))
    expected = selective(model, tokens)
    torch.testing.assert_close(model(tokens).logits, expected, rtol=0, atol=1e-12)
    expected.sin().sum().backward()
    gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters() if parameter.grad is not None}
    model.zero_grad()
    model(tokens).logits.sin().sum().backward()
    assert gradients.keys() == dict(model.named_parameters()).keys()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name], rtol=0, atol=1e-12)
    with session(model):
        pieces = [model(piece).logits for piece in tokens.split(1, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), expected, rtol=0, atol=1e-12)


def test_a_diagonal_state_space_is_a_convolution() -> None:
    """S4D without input-dependent steps: the recurrence `h = a h + b x`, `y = c h` convolves x with `c aᵏ b`."""
    text = f"""
recipe: diagonal
inputs:
  x: float[batch, time, {D}]
graph:
  a: {{type: parameter, shape: [{D}, {N}], std: 0.4}}
  b: {{type: parameter, shape: [{D}, {N}], std: 1}}
  c: {{type: parameter, shape: [{D}, {N}], std: 1}}
  nothing: {{type: zeros, shape: [{D}, {N}], in: x}}
  states:
    scan: time
    in: {{x: x, h: nothing}}
    graph:
      kept: {{type: multiply, in: [h, a]}}
      new: {{type: einsum, pattern: "b d, d n -> b d n", in: [x, b]}}
      state: {{type: add, in: [kept, new]}}
      y: {{type: einsum, pattern: "b d n, d n -> b d", in: [state, c]}}
    outputs: {{y: y, h: state}}
outputs: {{y: states, last: states.h}}
"""
    model = composer.load(text).compile(seed=0).double()
    a, b, c = (model.get_parameter(f"{name}.weight") for name in "abc")
    x = numbers(B, T, D)
    kernel = torch.stack([(c * a**k * b).sum(-1) for k in range(T)])  # [T, D]
    expected = torch.stack([sum(kernel[k] * x[:, t - k] for k in range(t + 1)) for t in range(T)], dim=1)
    y, last, _ = model(x)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-12)
    assert last.shape == (B, D, N)
    torch.testing.assert_close((last * c).sum(-1), expected[:, -1], rtol=0, atol=1e-12)


def test_what_a_scan_costs_is_what_its_steps_cost() -> None:
    """A linear map at every step: two FLOPs for each weight, step and row."""
    text = 'recipe: a\ninputs: {x: "float[batch, time, 6]"}\ngraph:\n  s: {scan: time, graph: {l: {type: linear, out: 7}}}\n'
    summary = composer.load(text).summary()
    assert summary.costs.flops.dense == 2 * 6 * 7 * math.prod(summary.costs.lengths.values())
