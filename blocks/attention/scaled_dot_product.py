"""Scaled dot-product attention without projections, a primitive to build other attention from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from blocks.attention.explicit import in_parts
from blocks.attention.heads import check_head_counts, check_split, join_heads, split_heads
from blocks.core import (
    Block,
    BlockError,
    BlockView,
    Cost,
    Look,
    Paper,
    PerCall,
    PositiveFloat,
    PositiveInt,
    Probability,
    Sizes,
    append_to_cache,
    derived,
    torch,
)
from blocks.masks.mask import Mask
from blocks.masks.position_masks import Full
from blocks.masks.views import biased_attention
from blocks.positions.positions import check_leading_axes


class ScaledDotProduct(Block, kind="scaled_dot_product"):
    """Scaled dot-product attention (SDPA) without projections: `y = softmax(scale · q kᵀ) v` for each head.

    It has no parameters. With fewer key/value heads than query heads (GQA), keys are narrower than the queries by a factor of
    kv_heads / heads. `bias` is added to the scores, and more axes may stand behind the batch, as for `attention`.
    """

    heads: PositiveInt
    """Number of query heads, into which the channels of `q` are split."""
    kv_heads: PositiveInt = derived("heads")
    """Number of key/value heads, into which the channels of `k` and `v` are split; each is shared by heads / kv_heads query
    heads.
    """
    mask: Mask = Full()
    """Which keys each query may see."""
    scale: PositiveFloat = derived("1 / sqrt(query_dim / heads)")
    """Factor of the scores."""
    dropout: Probability = 0.0
    """Dropout probability of the attention weights, in training."""

    paper = Paper("Attention Is All You Need", "arXiv:1706.03762")
    example = """
inputs: {q: "float[batch, time, 32]", k: "float[batch, time, 32]", v: "float[batch, time, 32]"}
graph: {y: {type: scaled_dot_product, heads: 4, mask: causal, in: {q: q, k: k, v: v}}}
"""
    inputs = {
        "q": "float[batch, time, query_dim]",
        "k": "float[batch, source, key_dim]",
        "v": "float[batch, source, values_dim]",
        "position_ids?": "int[..., time]",
        "source_position_ids?": "int[..., source]",
        "bias?": "float[..., heads, time, source]",
    }
    outputs = {"y": "float[batch, time, values_dim * heads // kv_heads]"}
    position_inputs = {"position_ids": "time", "source_position_ids": "source"}
    second_stream_inputs = ("k", "v")
    folds_leading = True
    kept_axes = ("source",)
    so_far_inputs = ("k", "v", "bias")
    cache_slots = {
        "k": "float[batch, kv_heads, source, key_dim // kv_heads]",
        "v": "float[batch, kv_heads, source, values_dim // kv_heads]",
    }
    masked_slots = {"k": "mask", "v": "mask"}

    def per_call(self, wired: frozenset[str]) -> Mapping[str, PerCall]:
        return {"mask": PerCall("mask", ("position_ids", "source_position_ids"))}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        check_head_counts(self.heads, self.kv_heads)
        check_leading_axes(sizes)
        kv_heads = self.heads if self.kv_heads is None else self.kv_heads
        for port, dim, heads in (
            ("queries", sizes["query_dim"], self.heads),
            ("keys", sizes["key_dim"], kv_heads),
            ("values", sizes["values_dim"], kv_heads),
        ):
            field = "heads" if heads == self.heads else "kv_heads"
            check_split(dim, heads, "heads", of=f"the {port}", field=field, known=True)
        if isinstance(sizes["query_dim"], int) and isinstance(sizes["key_dim"], int):
            query, key = sizes["query_dim"] // self.heads, sizes["key_dim"] // kv_heads
            if query != key:
                raise BlockError(f"a head has {query} channels in the queries and {key} in the keys", field="heads")

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> Cost:
        pair = "2 * (query_dim + values_dim * heads // kv_heads)"
        pairs = "batch * time * source"
        return Cost(f"{pair} * {pairs}", per_pair=pair, pairs=pairs)

    def look(self, view: BlockView) -> Look:
        heads = f"{self.heads} head{'s' * (self.heads > 1)}"
        brief = (f"attention {heads}", "attention")
        return self.mask.added_to(Look("Scaled dot-product attention", (heads,), "attn", short="attention", brief=brief), view)

    def forward(
        self: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor | None = None, *, mask: Any
    ) -> torch.Tensor:
        q = split_heads(q, self.heads)  # [B, H, T, D]
        k = append_to_cache(self, "k", split_heads(k, self.kv_heads))  # [B, K, S, D]
        v = append_to_cache(self, "v", split_heads(v, self.kv_heads))  # [B, K, S, Dv]
        dropout = self.dropout if self.training else 0.0
        if bias is None:
            return join_heads(mask.attend(q, k, v, self.scale, dropout))
        biased = partial(biased_attention, scale=self.scale, dropout=dropout)
        return join_heads(in_parts(biased, q, k, v, mask.dense(), bias))
