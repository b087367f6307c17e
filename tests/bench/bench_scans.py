"""How fast scans are beside the loop that they say: `python -m tests.bench --only scans`.

The loop is as a person writes it: the same modules, each step as the recipe has it, its inputs split once by `unbind`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import torch
from torch.nn import functional as F

import composer
from tests.bench.tables import Column, Row, Table
from tests.bench.timing import passes, times

TABLE = Table(
    name="scans",
    names=["scan", "how", "rows × width", "steps", "work"],
    columns={"times as fast as the loop": Column("more")},
    about="medians of the CPU time of 11 calls each, in turn; the control is the loop beside itself",
)
HEAD = """
recipe: one
params: {{width: {width}}}
inputs: {{x: "float[batch, time, width]"}}
graph:
  start: {{type: zeros, shape: [{shape}], in: x}}
  s:
    scan: time
    in: {{x: x, h: start}}
    graph:
"""
GATED = """
      gate: {type: linear, out: width, in: x}
      value: {type: linear, out: width, in: x}
      new: {compute: sigmoid(gate) * h + (1 - sigmoid(gate)) * value}
      y: {type: linear, out: width, in: new}
    outputs: {y: y, h: new}
"""
SELECTIVE = """
      dt: {type: linear, out: width, in: x}
      b: {type: linear, out: 4, bias: false, in: x}
      c: {type: linear, out: 4, bias: false, in: x}
      decay: {compute: "exp(-softplus(dt))"}
      new: {compute: decay * h + softplus(dt) * x * b, axes: {decay: r i, h: r i n, dt: r i, x: r i, b: r n}}
      y: {type: einsum, pattern: "r i n, r n -> r i", in: [new, c]}
    outputs: {y: y, h: new}
"""
GRU = """
      reset: {type: linear, out: width, in: x}
      update: {type: linear, out: width, in: x}
      value: {type: linear, out: width, in: x}
      recurrent: {type: linear, out: width, bias: false, in: h}
      new: {compute: sigmoid(update) * h + (1 - sigmoid(update)) * tanh(value + sigmoid(reset) * recurrent)}
      y: {type: linear, out: width, in: new}
    outputs: {y: y, h: new}
"""
ELMAN = """
      value: {type: linear, out: width, in: x}
      recurrent: {type: linear, out: width, bias: false, in: h}
      new: {compute: tanh(value + recurrent)}
      y: {type: linear, out: width, in: new}
    outputs: {y: y, h: new}
"""
Step = Callable[[Any, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


def gated(s: Any, x: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Take a step of a gated sum."""
    gate = torch.sigmoid(s.gate(x))
    h = gate * h + (1 - gate) * s.value(x)
    return s.y(h), h


def selective(s: Any, x: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Take a step of a selective scan."""
    dt = F.softplus(s.dt(x))
    h = torch.exp(-dt)[..., None] * h + (dt * x)[..., None] * s.b(x)[:, None]
    return (h @ s.c(x)[..., None]).squeeze(-1), h


def gru(s: Any, x: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Take a step of a gated recurrent unit."""
    update = torch.sigmoid(s.update(x))
    h = update * h + (1 - update) * torch.tanh(s.value(x) + torch.sigmoid(s.reset(x)) * s.recurrent(h))
    return s.y(h), h


def elman(s: Any, x: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Take a step of an Elman network."""
    h = torch.tanh(s.value(x) + s.recurrent(h))
    return s.y(h), h


KINDS: tuple[tuple[str, str, str, str, Step], ...] = (
    ("gated sum", "linear", "width", GATED, gated),
    ("selective scan, 4 numbers a channel", "linear", "width, 4", SELECTIVE, selective),
    ("GRU", "loop", "width", GRU, gru),
    ("Elman network", "loop", "width", ELMAN, elman),
)
SIZES = ((1, 64), (8, 256))


def looped(model: Any, x: torch.Tensor, step: Step) -> torch.Tensor:
    """Return what the scan gives by a plain loop."""
    h, rows = model.start(x), []
    for x_t in x.unbind(1):
        y, h = step(model.s, x_t, h)
        rows.append(y)
    return torch.stack(rows, 1)


def rows(*, toy: bool) -> Iterator[Row]:
    """Yield a row for each scan, size, number of steps and kind of work."""
    torch.manual_seed(0)
    for name, how, shape, text, step in KINDS:
        for batch, width in SIZES[:1] if toy else SIZES:
            model: Any = composer.load(HEAD.format(width=width, shape=shape) + text).compile(seed=0)
            for length in (20,) if toy else (512, 2048):
                x = torch.randn(batch, length, width)
                ours, theirs = (lambda x=x, model=model: model(x).s), (lambda x=x, model=model, step=step: looped(model, x, step))
                torch.testing.assert_close(ours(), theirs(), rtol=1e-3, atol=1e-4)
                for work, train in (("forward", False), ("forward and backward", True)):
                    works = {"loop": passes(theirs, train=train), "scan": passes(ours, train=train)}
                    found = times(works, rounds=2 if toy else 11, clock=process_time)
                    yield {
                        "scan": name,
                        "how": how,
                        "rows × width": f"{batch} × {width}",
                        "steps": length,
                        "work": work,
                        "times as fast as the loop": found.speed("scan", "loop"),
                        "control": found.control,
                    }
