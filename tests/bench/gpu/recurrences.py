"""Linear recurrences beside transformers without its fused kernels, and a scan beside a plain loop."""

from __future__ import annotations

import torch

import composer
from tests.bench.bench_recurrences import (
    Function,
    decaying_average,
    diagonal_recurrence,
    gated_delta_rule,
    linear_attention,
    selective_scan,
)
from tests.bench.gpu.setting import Setting, mib
from tests.bench.timing import passes

SCAN = """
recipe: one
inputs: {{x: "float[batch, time, {width}]"}}
graph:
  start: {{type: zeros, shape: [{width}]}}
  layer:
    scan: time
    in: {{x: x, h: start}}
    graph:
      new: {{type: linear, out: {width}, bias: false, in: h}}
      next: {{compute: tanh(new + x)}}
    outputs: {{y: next, h: next}}
"""


def run(setting: Setting) -> None:
    """Measure forward, and forward and backward, in float32 as the blocks compute."""
    for make in (selective_scan, linear_attention, gated_delta_rule, diagonal_recurrence, decaying_average):
        length = 64 if setting.toy else 2048
        with setting.device:
            ours, theirs = make(length)
        against(setting, make.__name__, length, ours, theirs)
    length, width = (16, 32) if setting.toy else (512, 512)
    model = composer.load(SCAN.format(width=width)).compile(seed=0, device=setting.device)
    x = torch.randn(8, length, width, device=setting.device, requires_grad=True)
    (weight,) = model.parameters()

    def loop() -> torch.Tensor:
        h, found = x.new_zeros(8, width), []
        for step in x.unbind(1):
            h = torch.tanh(torch.nn.functional.linear(h, weight) + step)
            found.append(h)
        return torch.stack(found, dim=1)

    against(setting, "scan, beside a plain loop", length, lambda: model(x=x).layer, loop)


def against(setting: Setting, name: str, length: int, ours: Function, theirs: Function) -> None:
    """Write a row for the times of both forward, and one for forward and backward."""
    for kind, train in (("forward", False), ("forward and backward", True)):
        with setting.case(name, length=length, what=kind) as row:
            works = {"theirs": passes(theirs, train=train), "ours": passes(ours, train=train)}
            for each in works.values():
                each()
            row |= {f"MiB of {each}": mib(setting.peak(run)) for each, run in works.items()}
            found, apart = setting.times(works, rounds=3)
            row |= {"ms": 1000 * found["ours"], "theirs, ms": 1000 * found["theirs"]}
            row |= {"ours / theirs": found["ours"] / found["theirs"], "A/A": apart}
