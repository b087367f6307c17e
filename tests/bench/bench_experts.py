"""How fast mixtures of experts are beside transformers' `grouped_mm`: `python -m tests.bench --only experts`.

A layer of Mixtral with the same weights: router, experts and sum. Speeds are multiples of transformers'. On a card,
`tests.bench.gpu` measures the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from transformers import MixtralConfig
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

import composer
from tests.bench.tables import Column, Row, Table
from tests.bench.timing import passes, times

TABLE = Table(
    name="experts",
    names=["experts", "width → hidden", "positions", "work"],
    columns={"experts beside transformers": Column("more")},
    about="float32, medians of 15 calls each, in turn; the control is transformers' layer beside itself",
)

SHAPES = (
    (8, 2, 256, 512, 512),
    (8, 2, 512, 1024, 8),
    (64, 4, 256, 256, 1024),
    (64, 8, 128, 64, 64),
    (128, 8, 256, 128, 1024),
    (128, 8, 128, 64, 8),
)
"""Experts, experts of a position, width, hidden width, positions."""


def both(experts: int, top_k: int, width: int, hidden: int) -> tuple[Any, Any]:
    """Return transformers' layer and ours, with the same weights."""
    config = MixtralConfig(hidden_size=width, intermediate_size=hidden, num_local_experts=experts, num_experts_per_tok=top_k)
    config._experts_implementation = "grouped_mm"
    theirs = MixtralSparseMoeBlock(config)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=width**-0.5)
    text = f"recipe: one\ninputs: {{x: 'float[batch, time, {width}]'}}\ngraph:\n  moe: {{type: moe, experts: {experts}, "
    text += f"expert: {{type: gated_ffn, hidden: {hidden}}}, router: {{type: top_k_router, top_k: {top_k}}}}}\n"
    ours: Any = composer.load(text).compile(seed=0)
    gate, up = theirs.experts.gate_up_proj.chunk(2, dim=1)
    state = {"gate.weight": theirs.gate.weight, "expert.gate.weight": gate, "expert.up.weight": up}
    ours.moe.load_state_dict({**state, "expert.down.weight": theirs.experts.down_proj}, strict=True)
    return theirs, ours.moe


def rows(*, toy: bool) -> Iterator[Row]:
    """Yield a row for each shape and work."""
    for experts, top_k, width, hidden, length in SHAPES[-1:] if toy else SHAPES:
        torch.manual_seed(0)
        theirs, ours = both(experts, top_k, width, hidden)
        x = torch.randn(1, length, width, requires_grad=True)
        for kind, train in (("forward", False), ("forward and backward", True)):
            works = {name: passes(partial(layer, x), train=train) for name, layer in (("theirs", theirs), ("ours", ours))}
            found = times(works, rounds=2 if toy else 15)
            yield {
                "experts": f"{top_k} of {experts}",
                "width → hidden": f"{width} → {hidden:,}",
                "positions": f"{length:,}",
                "work": kind,
                "experts beside transformers": found.speed("ours", beside="theirs"),
                "control": found.control,
            }
