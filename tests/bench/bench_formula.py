"""What attention by its formula, or with a bias, saves by computing it in parts: `python -m tests.bench --only formula`.

One row, the blocks of a recipe with its maps. The memory is what torch allocates at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import torch
from torch.profiler import ProfilerActivity, profile

import composer
from blocks.attention import explicit
from tests.bench.tables import Column, Row, Table
from tests.bench.timing import Work, times

TABLE = Table(
    name="formula",
    names=["attention", "work"],
    columns={
        "times as fast": Column("more"), "memory": Column("less", 0, "MB"), "all at once": Column("less", 0, "MB"),
    },
    about="2,048 positions, medians of 5 calls each, in turn; the control is all at once beside itself",
)  # fmt: skip

WIDTH, HEADS, LENGTH = 512, 8, 2048
CASES = ("softcap: 20", "softcap: 20, mask: causal", "sinks: true, mask: causal and window(128)", "in: {x: x, bias: bias}")


def model(fields: str, at_a_time: int) -> torch.nn.Module:
    """Return attention with some fields, compiled to compute as many scores at a time."""
    bias = f"bias: {{type: t5_bias, heads: {HEADS}, in: x}}, " if "bias" in fields else ""
    graph = f"graph: {{{bias}y: {{type: attention, heads: {HEADS}, {fields}{'' if bias else ', in: x'}}}}}\noutputs: {{y: y}}\n"
    with patch.object(explicit, "AT_A_TIME", at_a_time):
        text = f'recipe: formula\nlanguage: 1\ninputs: {{x: "float[batch, time, {WIDTH}]"}}\n{graph}'
        return composer.load(text).compile(seed=0)


def work(attention: torch.nn.Module, time: int, *, train: bool) -> Work:
    """Return a function for one forward, or a forward and a backward."""
    x = torch.randn(1, time, WIDTH, generator=torch.Generator().manual_seed(0))

    def forward() -> torch.Tensor:
        with torch.inference_mode():
            y: torch.Tensor = attention(x).y
            return y

    def step() -> None:
        attention.zero_grad(set_to_none=True)
        attention(x).y.sum().backward()

    return step if train else forward


def most_allocated(run: Work) -> float:
    """Return the megabytes that torch has allocated at most during a call."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    allocated = most = 0
    for event in seen.profiler.kineto_results.events():
        if event.name() == "[memory]":
            allocated += event.nbytes()
            most = max(most, allocated)
    return most / 2**20


def rows(*, toy: bool) -> Iterator[Row]:
    """Yield a row for each attention and work."""
    time = 128 if toy else LENGTH
    for fields in CASES[:1] if toy else CASES:
        for kind, train in (("forward", False), ("forward and backward", True)):
            parts, whole = model(fields, 2**13 if toy else explicit.AT_A_TIME), model(fields, 2**40)
            works = {"whole": work(whole, time, train=train), "parts": work(parts, time, train=train)}
            found = times(works, rounds=1 if toy else 5)
            yield {
                "attention": f"`{fields}`",
                "work": kind,
                "times as fast": found.speed("parts", beside="whole"),
                "memory": most_allocated(works["parts"]),
                "all at once": most_allocated(works["whole"]),
                "control": found.control,
            }
