"""Attention behind every mask on a GPU, in the precisions of training, against float64 on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import composer

MASKS = [
    "causal",
    "full",
    "causal and window(40)",
    "window(40)",
    "causal and chunk(64)",
    "causal and valid(valid)",
    "valid(valid)",
    "causal and documents(documents)",
    "causal and window(48) and documents(documents)",
    "causal and block_window(64, 2)",
    "causal and (window(32) or global_first(4))",
    "causal and dilated(32, 4)",
    "causal and strided(64)",
    "causal and random(3, 64, 1)",
]
OPTIONS = ["", "softcap: 20.0", "sinks: true", "qk_norm: {type: rmsnorm}"]
BOUNDS = {torch.float32: 2e-5, torch.bfloat16: 2e-2, torch.float16: 4e-3}
"""Largest differences from float64, as parts of the largest value."""


def attention(mask: str, options: str) -> composer.Recipe:
    """Return a layer of attention of grouped heads."""
    extra = f", {options}" if options else ""
    return composer.load(f"""
recipe: attention
inputs: {{x: "float[batch, time, 64]", valid: "bool[batch, time]?", documents: "int[batch, time]?"}}
graph:
  attend: {{type: attention, heads: 4, kv_heads: 2, positions: rotary, mask: "{mask}"{extra}, in: x}}
outputs: {{y: attend}}
""")


def given(length: int, kind: torch.dtype, place: str) -> dict[str, Any]:
    """Return three rows: one whole, one padded on the left, one on the right; of three documents each."""
    generator = torch.Generator().manual_seed(length)
    valid = torch.ones(3, length, dtype=torch.bool)
    valid[1, : length // 3], valid[2, -length // 4 :] = False, False
    documents = torch.randint(2, (3, length), generator=generator).cumsum(-1) // (length // 6)
    x = torch.randn(3, length, 64, generator=generator)
    return {"x": x.to(place, kind), "valid": valid.to(place), "documents": documents.to(place)}


@pytest.mark.parametrize("kind", BOUNDS)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("mask", MASKS)
def test_attention_is_that_of_float64(mask: str, options: str, kind: torch.dtype, gpu: str) -> None:
    """Values and gradients, of an odd length and of one that fills blocks."""
    if gpu == "cpu" and kind == torch.float16:
        pytest.skip("half precision is for GPUs")
    recipe = attention(mask, options)
    for length in (97, 384):
        oracle = recipe.compile(seed=2).double()
        model = recipe.compile(seed=2).to(gpu, kind)
        found = []
        for each, inputs in ((oracle, given(length, torch.double, "cpu")), (model, given(length, kind, gpu))):
            known = {name: value for name, value in inputs.items() if name in each.program.inputs}
            known["x"].requires_grad_()
            y = each(**known)[0]
            seen = inputs["valid"][..., None] if "valid" in mask else torch.ones_like(y, dtype=torch.bool)
            y = y.masked_fill(~seen, 0)
            y.square().sum().backward()  # of a mean, the gradient would be too small for 16 bits
            found.append((y.detach().cpu().double(), known["x"].grad.cpu().double()))
        (y, slope), (ours, our_slope) = found
        for one, two in ((ours, y), (our_slope, slope)):
            assert not one.isnan().any()
            assert (one - two).abs().max() <= BOUNDS[kind] * two.abs().max() * (1 if one is ours else 2)
