"""How fast padded rows are beside rows of the same shape without padding: `python -m tests.bench --only padding`.

Attention as a compiled model has it, with lengths drawn between half and all of the positions, and torch's kernel with the dense
matrix, which is ready; 8 heads of 64 channels. Speeds are multiples of torch's kernel's without padding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F

import composer
from tests.bench.bench_masks import CHANNELS, HEADS
from tests.bench.tables import Column, Row, Table
from tests.bench.timing import passes, times

TABLE = Table(
    name="padding",
    names=["mask", "rows × positions", "work"],
    columns={"attention": Column("more"), "dense": Column("more")},
    about="medians of 15 calls each, in turn; the control is torch's kernel without padding beside itself",
)

RECIPE = """
recipe: one
inputs: {{x: "float[batch, time, {width}]", valid: "bool[batch, time]?"}}
graph: {{y: {{type: attention, heads: {heads}, mask: "{mask}", in: x}}}}
"""
SHAPES = ((32, 64), (16, 256), (8, 512), (4, 1024))
"""Rows and positions."""


def rows(*, toy: bool) -> Iterator[Row]:
    """Yield a row for each mask, shape and work."""
    for mask in ("causal and valid(valid)", "valid(valid)"):
        model: Any = composer.load(RECIPE.format(width=HEADS * CHANNELS, heads=HEADS, mask=mask)).compile(seed=0)
        for count, length in SHAPES[:1] if toy else SHAPES:
            torch.manual_seed(0)
            valid = torch.arange(length) < torch.randint(length // 2, length + 1, (count, 1))
            q, k, v = (torch.randn(count, HEADS, length, CHANNELS, requires_grad=True) for _ in range(3))
            at = torch.arange(length)
            view = model.mask.prepare(at, at, valid_valid=valid)
            matrix = view.dense()
            plain = lambda: F.scaled_dot_product_attention(q, k, v, is_causal="causal" in mask)  # noqa: B023, E731
            ours = lambda: view.attend(q, k, v, CHANNELS**-0.5, 0.0)  # noqa: B023, E731
            dense = lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=matrix)  # noqa: B023, E731
            torch.testing.assert_close(ours(), dense())
            for kind, train in (("forward", False), ("forward and backward", True)):
                works = {"plain": plain, "attention": ours, "dense": dense}
                found = times({name: passes(each, train=train) for name, each in works.items()}, rounds=2 if toy else 15)
                yield {
                    "mask": f"`{mask}`",
                    "rows × positions": f"{count} × {length:,}",
                    "work": kind,
                    "attention": found.speed("attention", beside="plain"),
                    "dense": found.speed("dense", beside="plain"),
                    "control": found.control,
                }
