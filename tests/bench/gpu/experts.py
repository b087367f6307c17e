"""Mixtures of experts beside those of transformers, and beside torch's grouped product alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import MixtralConfig
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

import composer
from tests.bench.gpu.setting import Row, Setting, mib
from tests.bench.timing import passes

TOKENS, DIM = 4096, 2048
SHAPES = ((8, 2, 4096), (8, 8, 1024), (64, 2, 1024), (64, 8, 1024))
"""Experts, experts of a token, and the hidden width of an expert."""


def run(setting: Setting) -> None:
    """Measure all shapes, in bfloat16."""
    tokens, dim = (64, 64) if setting.toy else (TOKENS, DIM)
    for experts, top_k, hidden in SHAPES:
        hidden = 64 if setting.toy else hidden
        x = torch.randn(4, tokens // 4, dim, device=setting.device, dtype=setting.dtype, requires_grad=True)
        failed: Row = {}
        works = works_of(setting, failed, x, experts, top_k, hidden)
        flops = 6 * tokens * top_k * dim * hidden
        for kind, train in (("forward", False), ("forward and backward", True)):
            facts = {"experts": experts, "of a token": top_k, "hidden": hidden, "what": kind}
            rows: dict[str, Row] = {name: {"section": setting.section, "case": name, **facts} for name in works}
            runs: dict[str, Callable[[], Any]] = {}
            for name, each in works.items():
                with setting.part(rows[name], "running"):
                    run = passes(each, train=train)
                    run()
                    rows[name] |= {"MiB": mib(setting.peak(run)), "waits": waits(setting, run)}
                    runs[name] = run
            found, apart = setting.times(runs, rounds=5)
            for name, row in rows.items():
                if name in found:
                    row |= {"ms": 1000 * found[name], "TFLOP/s": flops * (3 if train else 1) / found[name] / 1e12}
                    row |= {"time of moe / its": found["moe"] / found[name], "A/A": apart}
                setting.write(row)
        setting.write({"section": setting.section, "case": "differences", "experts": experts, "of a token": top_k, **failed})


def works_of(setting: Setting, row: Row, x: Tensor, experts: int, top_k: int, hidden: int) -> Mapping[str, Callable[[], Tensor]]:
    """Return the composer's layer, that of transformers in two ways, and the same by hand, all with the same weights."""
    dim = x.shape[-1]
    model: Any = composer.load(f"""
recipe: one
inputs: {{x: "float[batch, time, {dim}]"}}
graph:
  y:
    type: moe
    experts: {experts}
    expert: {{type: gated_ffn, hidden: {hidden}, activation: silu}}
    router: {{type: top_k_router, top_k: {top_k}}}
    in: x
""").compile(seed=0, device=setting.device, dtype=setting.dtype)
    weights = dict(model.named_parameters())
    gate, down = weights["y.gate.weight"], weights["y.expert.down.weight"]
    both = torch.cat([weights["y.expert.gate.weight"], weights["y.expert.up.weight"]], dim=1)  # [E, 2H, D]
    works: dict[str, Callable[[], Tensor]] = {"moe": lambda: model(x=x).y}
    for name in ("grouped_mm", "eager"):
        with setting.part(row, name):
            config = MixtralConfig(
                hidden_size=dim, intermediate_size=hidden, num_local_experts=experts, num_experts_per_tok=top_k,
            )  # fmt: skip
            config._experts_implementation = name
            with setting.device:
                theirs: Any = MixtralSparseMoeBlock(config).to(setting.dtype)
            with torch.no_grad():
                theirs.gate.weight.copy_(gate)
                theirs.experts.gate_up_proj.copy_(both)
                theirs.experts.down_proj.copy_(down)
            works[f"transformers, {name}"] = lambda theirs=theirs: first_of(theirs(x))
    own = [value.detach().clone().requires_grad_() for value in (gate, both, down)]
    works["by hand"] = lambda: by_hand(x, *own, top_k)
    with torch.no_grad():
        wanted = works["moe"]().float()
        for name, each in works.items():
            with setting.part(row, f"{name}, compared"):
                row[f"{name}, difference"] = float((each().float() - wanted).norm() / wanted.norm())
    return works


def first_of(found: Any) -> Tensor:
    """Return the hidden states of a layer that may also return logits of the router."""
    return found if isinstance(found, Tensor) else found[0]


def by_hand(x: Tensor, gate: Tensor, both: Tensor, down: Tensor, top_k: int) -> Tensor:
    """Return the layer with two grouped products, without waiting for the card."""
    rows = x.flatten(0, 1)
    weights, chosen = F.linear(rows, gate).float().softmax(-1).topk(top_k, dim=-1)
    weights = weights / weights.sum(-1, keepdim=True)
    order = chosen.flatten().argsort(stable=True)
    ends = torch.searchsorted(chosen.flatten()[order], torch.arange(len(both), device=x.device), right=True).to(torch.int32)
    bent, up = torch._grouped_mm(rows[order // top_k], both.mT, offs=ends).chunk(2, dim=-1)
    y = torch._grouped_mm(F.silu(bent) * up, down.mT, offs=ends) * weights.flatten()[order, None].to(x.dtype)
    return torch.zeros_like(rows).index_add(0, order // top_k, y).view(x.shape)


def waits(setting: Setting, run: Callable[[], object]) -> int | None:
    """Return how often the processor waits for the card in a call."""
    if not setting.on_card:
        return None
    torch.cuda.synchronize()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            run()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(each.message) for each in found)
