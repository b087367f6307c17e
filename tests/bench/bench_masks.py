"""How fast masks are beside the causal kernel: `python -m tests.bench --only masks`.

For each mask, attention as a compiled model has it, torch's causal kernel, and torch's kernel with the dense matrix of the mask,
which is ready; 8 heads of 64 channels, one row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F

import composer
from tests.bench.tables import Column, Row, Table
from tests.bench.timing import passes, times

HEADS, CHANNELS = 8, 64
TABLE = Table(
    name="masks",
    names=["mask", "work"],
    columns={"share of the blocks": Column("less"), "attention": Column("more"), "dense": Column("more")},
    about="2,048 positions, medians of 9 calls each, in turn; the control is the causal kernel beside itself",
    told=["share of the blocks"],
)
MASKS = (
    "causal and block_window(64, 2)",
    "causal and (window(128) or global_first(4))",
    "causal and dilated(64, 4)",
    "causal and window(256) and documents(documents)",
    "block_window(64, 1) or random(3, 64, 0) or global_first(64)",
    "causal and random(8, 64, 1)",
    "causal and strided(128)",
)
RECIPE = """
recipe: one
inputs: {{x: "float[batch, time, {width}]", documents: "int[batch, time]?"}}
graph: {{y: {{type: attention, heads: {heads}, mask: "{mask}", in: x}}}}
"""


def prepared(mask: str, length: int) -> Any:
    """Return a mask as attention uses it."""
    text = RECIPE.format(width=HEADS * CHANNELS, heads=HEADS, mask=mask)
    model: Any = composer.load(text).compile(seed=0)
    documents = (torch.arange(length) // 300)[None]
    data = {"documents_documents": documents} if "documents" in mask else {}
    return model.mask.prepare(torch.arange(length), torch.arange(length), **data)


def share(view: Any, length: int) -> float:
    """Return the share of the blocks of pairs that are computed."""
    blocks = -(-length // 64)
    return float(sum(queries.numel() * keys.shape[1] for queries, keys, _ in view.groups) / blocks**2)


def rows(*, toy: bool) -> Iterator[Row]:
    """Yield a row for each mask and work."""
    torch.manual_seed(0)
    length = 512 if toy else 2048
    q, k, v = (torch.randn(1, length, HEADS, CHANNELS).transpose(1, 2).requires_grad_() for _ in range(3))  # as models have them
    causal = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)  # noqa: E731
    for mask in MASKS:
        view = prepared(mask, length)
        matrix = view.dense()
        ours = lambda: view.attend(q, k, v, CHANNELS**-0.5, 0.0)  # noqa: B023, E731
        dense = lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=matrix)  # noqa: B023, E731
        torch.testing.assert_close(ours(), dense())
        for kind, train in (("forward", False), ("forward and backward", True)):
            works = {"causal": causal, "attention": ours, "dense": dense}
            found = times({name: passes(each, train=train) for name, each in works.items()}, rounds=2 if toy else 9)
            yield {
                "mask": f"`{mask}`" + ", documents of 300" * ("documents" in mask),
                "share of the blocks": share(view, length) if hasattr(view, "groups") else None,
                "work": kind,
                "attention": found.speed("attention", beside="causal"),
                "dense": found.speed("dense", beside="causal"),
                "control": found.control,
            }
