"""Positional biases of the attention scores: ALiBi and T5."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from blocks.core import (
    Block,
    BlockError,
    BlockView,
    F,
    Init,
    Look,
    Paper,
    PositiveInt,
    Sizes,
    Tensor,
    append_to_cache,
    declaration,
    torch,
)
from blocks.positions.positions import check_leading_axes


class ScoreBias(Block):
    """A bias of the attention scores, per head, that depends on the positions of query and key.

    Its output is wired to the port `bias` of attention; one node can serve all layers. `x` has the positions of the queries and
    `memory`, where it is wired, those of the keys.
    """

    heads: PositiveInt
    """Number of heads of the attention."""

    inputs = {
        "x": "float[batch, time, dim]",
        "memory?": "float[batch, source, memory_dim]",
        "position_ids?": "int[..., time]",
        "memory_position_ids?": "int[..., source]",
    }
    outputs = {"y": "float[..., heads, time, source]"}
    axis_defaults = {"source": "time"}
    position_inputs = {"position_ids": "time", "memory_position_ids": "source"}
    shape_only_inputs = ("x", "memory")
    second_stream_inputs = ("memory",)
    folds_leading = True
    kept_axes = ("source",)
    cache_slots = {"key_position_ids": "int[batch, source]"}

    def look(self, view: BlockView) -> Look:
        facts = [f"{self.heads} head{'s' * (self.heads > 1)}", *self.bias_facts(view)]
        return Look(self.called(), tuple(facts), "pos")

    @declaration
    def bias_facts(self, view: BlockView) -> Sequence[str]:
        """Return short facts for drawings besides the number of heads."""
        return [setting for setting in view.settings if not setting.startswith("heads")]


def reject_positions(sizes: Sizes, wired: frozenset[str]) -> None:
    """Raise `BlockError` if queries and keys are the same tokens, but only the queries have wired positions."""
    check_leading_axes(sizes)
    if "position_ids" in wired and "memory_position_ids" not in wired and sizes["source"] == sizes["time"]:
        raise BlockError(
            "queries have the positions of `position_ids`, but keys count from 0", hint="wire `memory_position_ids` too"
        )


class Alibi(ScoreBias, kind="alibi"):
    """Attention with linear biases (ALiBi), a penalty that grows with distance:
    `y = -slope · |position_ids - memory_position_ids|`, with a slope for each head.

    Wire the output to the port `bias` of attention; one node can serve all layers. The slopes of n heads are `2^(-8i / n)` for
    i = 1 … n. If n is not a power of two, they are those of the next lower power of two, followed by every other one of those of
    twice as many heads, as in the paper's code. The paper uses causal attention; here, keys after the query are penalized too.
    """

    title = "ALiBi"
    paper = Paper("Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation", "arXiv:2108.12409")
    example = """
inputs: {x: "float[batch, time, 32]"}
graph:
  bias: {type: alibi, heads: 4, in: x}
  y: {type: attention, heads: 4, mask: causal, in: {x: x, bias: bias}}
"""

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        reject_positions(sizes, wired)

    def forward(self: Any, x: torch.Tensor, position_ids: torch.Tensor, memory_position_ids: torch.Tensor) -> torch.Tensor:
        memory_position_ids = append_to_cache(self, "key_position_ids", memory_position_ids)
        # [1, T, S] or [B, 1, T, S]
        distance = (position_ids[..., :, None] - memory_position_ids[..., None, :]).abs()[..., None, :, :]
        slope = slopes(self.heads, x.device)[:, None, None]  # [H, 1, 1]
        return (-slope * distance).to(x.dtype)


def slopes(heads: int, device: torch.device) -> torch.Tensor:
    """Return the slope of each head, [H]: how fast its scores fall, per position. It is computed where it is used, since a GPU
    would have to wait for numbers of the host.
    """
    power = 2 ** int(math.log2(heads))
    first = -8 / power * torch.arange(1, power + 1, device=device)
    between = -4 / power * (1 + 2 * torch.arange(heads - power, device=device))
    return torch.exp2(torch.cat([first, between]))


class T5Bias(ScoreBias, kind="t5_bias"):
    """Relative position bias of T5, a learned number for each head and bucket of distances:
    `y = weight[bucket(memory_position_ids - position_ids)]`.

    Wire the output to the port `bias` of attention; one node can serve all layers. Half of the buckets hold one distance each;
    the others grow logarithmically up to `max_distance`, and all larger distances share the last one.
    """

    buckets: PositiveInt = 32
    """Number of buckets; `relative_attention_num_buckets` in transformers."""
    max_distance: PositiveInt = 128
    """Distance from which on all keys share a bucket; `relative_attention_max_distance` in transformers."""
    bidirectional: bool = True
    """Whether half of the buckets are for keys after the query; otherwise these share the bucket of distance 0."""

    title = "T5 bias"
    paper = Paper("Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", "arXiv:1910.10683")
    example = """
inputs: {x: "float[batch, time, 32]"}
graph:
  bias: {type: t5_bias, heads: 4, in: x}
  y: {type: attention, heads: 4, in: {x: x, bias: bias}}
"""
    weights = {"weight": Tensor(("buckets", "heads"), "table", Init("normal", 0.02))}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        reject_positions(sizes, wired)
        parts = 4 if self.bidirectional else 2
        if self.buckets % parts:
            where = "for each direction" if self.bidirectional else "for near and far distances"
            raise BlockError(
                f"{self.buckets} buckets cannot be split in half {where}", field="buckets", hint=f"use a multiple of {parts}"
            )
        if self.max_distance <= self.buckets // parts:
            raise BlockError(
                f"distances below {self.buckets // parts} have a bucket each, so max_distance {self.max_distance} is too small",
                field="max_distance",
                hint="set a larger max_distance, or fewer buckets",
            )

    def bias_facts(self, view: BlockView) -> Sequence[str]:
        return [f"{self.buckets} buckets", *(["past only"] if not self.bidirectional else [])]

    def forward(self: Any, x: torch.Tensor, position_ids: torch.Tensor, memory_position_ids: torch.Tensor) -> torch.Tensor:
        memory_position_ids = append_to_cache(self, "key_position_ids", memory_position_ids)
        offset = memory_position_ids[..., None, :] - position_ids[..., :, None]  # [T, S] or [B, T, S]; negative before the query
        buckets = self.buckets // 2 if self.bidirectional else self.buckets
        distance = offset.abs() if self.bidirectional else -offset.clamp(max=0)
        exact = buckets // 2
        # Distances below `exact` are their own bucket; the logarithm of 0 is never used.
        growth = torch.log(distance.clamp(min=1).float() / exact) / math.log(self.max_distance / exact)
        far = (exact + (growth * (buckets - exact)).long()).clamp(max=buckets - 1)
        bucket = torch.where(distance < exact, distance, far)
        if self.bidirectional:
            bucket = bucket + buckets * (offset > 0)
        return F.embedding(bucket, self.weight).movedim(-1, -3).to(x.dtype)  # [H, T, S] or [B, H, T, S]
