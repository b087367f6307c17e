"""FLOPs in closed form, against torch's counter and against sums over pairs of positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import composer
from composer.cost.costs import costs
from composer.cost.flops import FlopCounter, Flops

LENGTHS = {"batch": 2, "time": 7, "source": 5}
TINY = {
    "gpt2": {"n_layers": 2, "d_model": 24, "n_heads": 4, "vocab": 61, "context": 16},
    "llama3": {"n_layers": 3, "d_model": 24, "n_heads": 6, "n_kv_heads": 2, "hidden": 40, "vocab": 61},
    "gemma3": {"n_layers": 7, "d_model": 24, "n_heads": 4, "head_dim": 8, "hidden": 40, "vocab": 61, "sliding_window": 9},
    "gpt_mini": {"n_layers": 2, "d_model": 24, "n_heads": 2},
}
GRAPHS = {
    "a memory of other widths": """
        seen: {type: cross_attention, heads: 2, head_dim: 8, value_dim: 4, mask: full, in: {x: x, memory: memory}}""",
    "keys of another attention": """
        one: {type: attention, heads: 4, kv_heads: 2, mask: causal}
        two: {type: attention, heads: 4, kv_heads: 2, mask: causal, in: {x: one, k: one.k, v: one.v}}""",
    "no projection back, and a gate": """
        a: {type: attention, heads: 4, out: none, head_dim: 5, output_gate: sigmoid, mask: causal}
        b: {type: linear, out: 24}""",
    "scores that are read": """
        a: {type: attention, heads: 4, softcap: 20, mask: causal}
        b: {type: gated_ffn, hidden: 31}""",
    "attention from primitives": """
        q: {type: linear, out: 24, in: x}
        k: {type: linear, out: 12, in: x}
        v: {type: linear, out: 6, in: x}
        mixed: {type: scaled_dot_product, heads: 6, kv_heads: 3, mask: causal, in: {q: q, k: k, v: v}}""",
    "slots that compute": """
        a: {type: ffn, hidden: 10, activation: {graph: {curve: silu, map: {type: linear, out: 10}}}}
        b: {type: residual, norm: rmsnorm, body: {graph: {one: {type: ffn, hidden: 9}, two: {type: linear, out: 24}}}}""",
    "an input beside the implied one": """
        one: {type: gru, hidden: 24, layers: 2}
        two: {type: gru, hidden: 24, layers: 2, in: {h: one.h}}""",
    "what is dropped": """
        a: {type: ffn, hidden: 10, when: false}
        b: {repeat: 3, graph: {c: {type: linear, out: 24, when: layer == 1}, d: silu}}""",
    "passes that differ": """
        a: {repeat: 4, each: {wide: [9, 24, 40]}, graph: {f: {type: residual, body: {type: ffn, hidden: wide}}}}""",
}


def graph(text: str) -> composer.Recipe:
    """Return a graph on the stream `x` of 24 channels, beside a `memory` of 10."""
    memory = "  memory: float[batch, source, 10]\n" if "memory" in text else ""
    return composer.load(f"recipe: counted\ninputs:\n  x: float[batch, time, 24]\n{memory}graph:{text}\n")


def counted(recipe: composer.Recipe) -> int:
    """Return what torch counts while the model runs without memory, by matrix products alone."""
    model = recipe.compile(device="meta").eval()
    inputs = {name: zeros(type_) for name, type_ in recipe.program.inputs.items() if not type_.optional}
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(**inputs)
    return int(counter.get_total_flops())


def zeros(type_: Any) -> torch.Tensor:
    """Return an input on the meta device."""
    shape = [LENGTHS.get(str(size), size) for size in type_.sizes]
    return torch.zeros(shape, dtype=torch.int64 if type_.dtype == "int" else torch.float32, device="meta")


@pytest.mark.parametrize("name", TINY)
def test_dense_flops_of_the_zoo_are_those_that_torch_counts(name: str) -> None:
    """To the last one; no window hides anything, since where it does, the model computes less than a dense kernel."""
    recipe = composer.load(name, overrides=TINY[name])
    assert costs(recipe.program, LENGTHS).flops.dense == counted(recipe) > 0


@pytest.mark.parametrize("text", GRAPHS.values(), ids=GRAPHS)
def test_dense_flops_of_graphs_are_those_that_torch_counts(text: str) -> None:
    """What the zoo does not have."""
    recipe = graph(text)
    assert costs(recipe.program, LENGTHS).flops.dense == counted(recipe) > 0


MASKS: dict[str, Callable[[int, int], bool]] = {
    "full": lambda q, k: True,
    "causal": lambda q, k: k <= q,
    "causal and window(3)": lambda q, k: q - 3 < k <= q,
    "local(2)": lambda q, k: abs(q - k) <= 2,
    "causal or prefix(4)": lambda q, k: k <= q or k < 4,
    "causal and (window(2) or global_first(1))": lambda q, k: k <= q and (q - 2 < k or k < 1),
    "not causal": lambda q, k: k > q,
}


@pytest.mark.parametrize("mask", MASKS)
def test_masked_flops_leave_out_the_pairs_that_are_hidden(mask: str) -> None:
    """Each pair of a query and a key costs a product of scores and one of values in every head; projections stay."""
    typed = graph(f'\n  a: {{type: attention, heads: 3, head_dim: 8, value_dim: 5, mask: "{mask}"}}').program
    hidden = sum(not MASKS[mask](q, k) for q in range(7) for k in range(7))
    flops = costs(typed, LENGTHS).flops
    assert flops.dense - flops.masked == 2 * 3 * (8 + 5) * hidden * LENGTHS["batch"]


def test_masks_that_depend_on_data_hide_nothing_in_advance() -> None:
    """How much `valid` hides, nobody knows before the text is there."""
    recipe = composer.load("gpt_mini", overrides=TINY["gpt_mini"])
    causal = composer.load("gpt_mini", overrides={**TINY["gpt_mini"], "layers.attn.body.mask": "causal"})
    assert costs(recipe.program, LENGTHS).flops == costs(causal.program, LENGTHS).flops


def test_flops_per_token_are_shares_of_the_whole() -> None:
    """Of batch times time positions."""
    found = costs(composer.load("gpt2", overrides=TINY["gpt2"]).program, LENGTHS)
    assert found.flops_per_token == Flops(found.flops.dense // 14, found.flops.masked // 14)


def test_equal_passes_are_counted_once() -> None:
    """A thousand layers take as many steps as two, and cost what they cost."""
    dense, graphs = {}, {}
    for layers in (2, 3, 1000):
        counter = FlopCounter({"batch": 1, "time": 7})
        dense[layers] = counter.graph(composer.load("gpt2", overrides={**TINY["gpt2"], "n_layers": layers}).program.root).dense
        graphs[layers] = len(counter.counted.known)
    assert dense[1000] == dense[2] + 998 * (dense[3] - dense[2])
    assert graphs[1000] == graphs[2]
