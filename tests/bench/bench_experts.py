"""How fast mixtures of experts are beside transformers' `grouped_mm`: `python -m tests.bench.bench_experts [--train]`.

A layer of Mixtral with the same weights: router, experts and sum. They are run in turn, call by call, in one process: on a
processor in float32 with one thread, whose time is measured, whatever else runs; on a GPU in bfloat16. Speeds are multiples of
transformers'; that of transformers beside itself says how far the machine can be believed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import torch
from torch import Tensor
from transformers import MixtralConfig
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

import composer
from tests.bench.bench_masks import medians

SHAPES = (
    (8, 2, 256, 512, 512),
    (8, 2, 512, 1024, 8),
    (64, 4, 256, 256, 1024),
    (64, 8, 128, 64, 64),
    (128, 8, 256, 128, 1024),
    (128, 8, 128, 64, 8),
)
"""Experts, experts of a position, width, hidden width, positions."""
ON_A_GPU = (
    (8, 2, 1024, 3584, 8192),
    (8, 2, 2048, 7168, 4096),
    (64, 6, 2048, 1408, 4096),
    (128, 8, 2048, 768, 4096),
    (8, 2, 1024, 3584, 16),
)


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


def work(layer: Any, x: Tensor, *, train: bool) -> Callable[[], object]:
    """Return a call of a layer, with its backward pass in training."""

    def forward() -> None:
        with torch.no_grad():
            layer(x)
        synchronize()

    def both_passes() -> None:
        layer(x).backward(x.detach())
        synchronize()

    return both_passes if train else forward


def synchronize() -> None:
    """Wait for a GPU."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def main() -> None:
    """Print the speeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", action="store_true", help="forward and backward")
    parser.add_argument("--calls", type=int, default=25)
    options = parser.parse_args()
    torch.set_num_threads(1)
    on_gpu = torch.cuda.is_available()
    device, dtype = ("cuda", torch.bfloat16) if on_gpu else ("cpu", torch.float32)
    kind = "forward and backward" if options.train else "forward"
    print(f"torch {torch.__version__}, {device}, {kind}, {options.calls} calls each, in turn")
    for experts, top_k, width, hidden, length in ON_A_GPU if on_gpu else SHAPES:
        torch.manual_seed(0)
        theirs, ours = (layer.to(device, dtype) for layer in both(experts, top_k, width, hidden))
        x = torch.randn(1, length, width, device=device, dtype=dtype, requires_grad=True)
        calls = [work(layer, x, train=options.train) for layer in (theirs, theirs, ours)]
        first, again, own = medians(calls, calls=options.calls, clock=perf_counter if on_gpu else process_time)
        shape = f"{top_k} of {experts} experts, {width} → {hidden}, {length} positions"
        print(f"{shape}: ours {first / own:.2f}, control {first / again:.2f}", flush=True)


if __name__ == "__main__":
    main()
