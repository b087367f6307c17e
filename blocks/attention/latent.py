"""Multi-head latent attention, whose keys and values are linear in one narrow latent of each position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blocks.attention.explicit import attention_weights
from blocks.attention.heads import join_heads, split_heads
from blocks.attention.latent_drawing import latent_look, latent_pieces
from blocks.core import (
    Block,
    BlockError,
    BlockView,
    Cost,
    LinearWeights,
    Look,
    Norm,
    Paper,
    PerCall,
    Piece,
    PositiveFloat,
    PositiveInt,
    Probability,
    Sizes,
    Slot,
    Weights,
    append_to_cache,
    derived,
    torch,
)
from blocks.masks.mask import Mask
from blocks.masks.position_masks import Full
from blocks.norms.rmsnorm import RMSNorm
from blocks.positions.positions import Positions, check_coordinates, check_leading_axes, position_ports


class LatentAttention(Block, kind="latent_attention"):
    """Multi-head latent attention (MLA), whose keys and values are computed from a narrow latent c of each position:
    `y = out(concat over heads of softmax(scale · (q kᵀ + q' k'ᵀ)) v)`, with k and v linear in `c = norm(kv_down(x))`.

    Positions do not go through the latent: `q'` and `k'` are further channels of the queries and one further key for all heads,
    also linear in x, and only these are encoded. While decoding, the cache holds the latent and k' alone, `kv_rank + rope_dim`
    numbers per position whatever the number of heads. Keys and values are then not computed where that takes fewer
    multiplications: `kv_up`, which computes them, is absorbed into the queries and the outputs, so that queries are compared
    with the latents themselves. The result is the same up to rounding.

    As for `attention`, more axes may stand behind the batch.
    """

    heads: PositiveInt
    """Number of heads; `num_attention_heads` in transformers."""
    kv_rank: PositiveInt
    """Channels of the latent of keys and values; `kv_lora_rank` in transformers."""
    q_rank: PositiveInt | None = None
    """Channels of the latent of queries, of which nothing is cached; `none` computes queries from x. `q_lora_rank` in
    transformers.
    """
    nope_dim: PositiveInt
    """Channels of a query and of a key in each head that carry no position; `qk_nope_head_dim` in transformers."""
    rope_dim: PositiveInt
    """Channels of a query in each head, and of the key that all heads share, that carry the position; `qk_rope_head_dim` in
    transformers.
    """
    value_dim: PositiveInt = derived("nope_dim")
    """Channels of a value in each head; `v_head_dim` in transformers."""
    mask: Mask = Full()
    """Which keys each query may see."""
    scale: PositiveFloat = derived("1 / sqrt(nope_dim + rope_dim)")
    """Factor of the scores."""
    positions: Positions | None = None
    """Positional encoding of the `rope_dim` channels, such as `rotary` (RoPE)."""
    bias: bool = False
    """Whether the maps to the latents and the output projection have a bias, `q_down`, `kv_down` and `out`; `attention_bias` in
    transformers.
    """
    norm: Norm | None = RMSNorm()
    """Norm of the latents of queries, and of keys and values."""
    dropout: Probability = 0.0
    """Dropout probability of the attention weights, in training."""

    paper = Paper("DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model", "arXiv:2405.04434")
    example = """
task: causal_lm
inputs: {tokens: "int[batch, time]", valid: "bool[batch, time]?"}
graph:
  embed: {type: embedding, vocab: 67, dim: 64}
  attn:
    type: latent_attention
    heads: 4
    kv_rank: 32
    nope_dim: 16
    rope_dim: 8
    mask: causal and valid(valid)
    positions: {type: rotary, layout: interleaved}
  head: {type: linear, out: 67}
outputs: {logits: head}
"""
    inputs = {
        "x": "float[batch, time, dim]",
        "position_ids?": "int[..., time]",
        "coordinates?": "number[..., time, coordinate]",
    }
    outputs = {"y": "float[batch, time, dim]"}
    position_inputs = {"position_ids": "time"}
    folds_leading = True
    cache_slots = {"latent": "float[batch, time, kv_rank]", "rope_key": "float[batch, time, rope_dim]"}
    masked_slots = {"latent": "mask", "rope_key": "mask"}

    def weights(self, sizes: Sizes, wired: frozenset[str]) -> Weights:
        queries = "heads * (nope_dim + rope_dim)"
        weights: dict[str, LinearWeights | Slot] = {}
        if self.q_rank is None:
            weights["q"] = LinearWeights("dim", queries)
        else:
            weights["q_down"] = LinearWeights("dim", "q_rank", bias=self.bias)
            weights["q_norm"] = Slot("norm", "float[batch, time, q_rank]")
            weights["q_up"] = LinearWeights("q_rank", queries)
        weights["kv_down"] = LinearWeights("dim", "kv_rank + rope_dim", bias=self.bias)
        weights["kv_norm"] = Slot("norm", "float[batch, time, kv_rank]")
        weights["kv_up"] = LinearWeights("kv_rank", "heads * (nope_dim + value_dim)", adaptable=False)  # absorbed when decoding
        weights["out"] = LinearWeights("heads * value_dim", "dim", bias=self.bias)
        return weights

    def per_call(self, wired: frozenset[str]) -> Mapping[str, PerCall]:
        prepared = {"mask": PerCall("mask", ("position_ids", "position_ids"))}
        if self.positions is not None:
            prepared["rope"] = PerCall("positions", position_ports(wired), {"head_dim": "rope_dim"})
        return prepared

    def reads(self, wired: frozenset[str]) -> Mapping[str, Sequence[str]]:
        return {"q_norm": ("x",), "kv_norm": ("x",)}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        check_leading_axes(sizes)
        check_coordinates(self.positions, sizes, wired)
        if self.positions is not None:
            try:
                self.positions.check({**sizes, "head_dim": self.rope_dim}, wired)
            except BlockError as error:
                raise BlockError(error.message, field=f"positions.{error.field}", hint=error.hint, code=error.code) from None

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> Cost:
        queries = "heads * (nope_dim + rope_dim)"
        maps = [
            f"dim * {queries}" if self.q_rank is None else f"q_rank * (dim + {queries})",
            "dim * (kv_rank + rope_dim)",
            "kv_rank * heads * (nope_dim + value_dim)",
            "heads * value_dim * dim",
        ]
        pair = "2 * heads * (nope_dim + rope_dim + value_dim)"
        pairs = "batch * time * time"
        return Cost(f"2 * batch * time * ({' + '.join(maps)}) + {pair} * {pairs}", per_pair=pair, pairs=pairs)

    def look(self, view: BlockView) -> Look:
        return latent_look(self, view)

    def inside(self, view: BlockView) -> Sequence[Piece]:
        return latent_pieces(self, view)

    def forward(self: Any, x: torch.Tensor, *, mask: Any, rope: Any = None) -> torch.Tensor:
        if self.q_rank is None:
            q = self.q(x)
        else:
            q = self.q_down(x)
            q = self.q_up(q if self.q_norm is None else self.q_norm(q))
        q = split_heads(q, self.heads)  # [B, H, T, N + P]
        q_nope, q_rope = torch.split(q, [self.nope_dim, self.rope_dim], dim=-1)
        latent, k_rope = torch.split(self.kv_down(x), [self.kv_rank, self.rope_dim], dim=-1)  # [B, T, R], [B, T, P]
        if self.kv_norm is not None:
            latent = self.kv_norm(latent)
        if rope is not None:
            q_rope = self.positions.rotate(q_rope, rope)
            k_rope = self.positions.rotate(k_rope[:, None], rope)[:, 0]
        latent = append_to_cache(self, "latent", latent)  # [B, S, R]
        k_rope = append_to_cache(self, "rope_key", k_rope)  # [B, S, P]

        dropout = self.dropout if self.training else 0.0
        if self.cache is not None and absorbing_is_cheaper(self, x.shape[1], latent.shape[1]):
            up = torch.unflatten(self.kv_up.weight, 0, (self.heads, -1))  # [H, N + V, R]
            k_up, v_up = torch.split(up, [self.nope_dim, self.value_dim], dim=1)
            q = torch.cat([q_nope @ k_up, q_rope], dim=-1)  # [B, H, T, R + P]
            k = torch.cat([latent, k_rope], dim=-1)  # [B, S, R + P]
            scores = torch.unflatten(q.flatten(1, 2) @ k.mT, 1, (self.heads, -1)) * self.scale  # [B, H, T, S]
            weights = torch.dropout(attention_weights(scores, mask.dense(), None), dropout, self.training).to(latent.dtype)
            y = torch.unflatten(weights.flatten(1, 2) @ latent, 1, (self.heads, -1)) @ v_up.mT  # [B, H, T, V]
        else:
            kv = split_heads(self.kv_up(latent), self.heads)  # [B, H, S, N + V]
            k_nope, v = torch.split(kv, [self.nope_dim, self.value_dim], dim=-1)
            k = torch.cat([k_nope, k_rope[:, None].expand(-1, self.heads, -1, -1)], dim=-1)
            y = mask.attend(torch.cat([q_nope, q_rope], dim=-1), k, v, self.scale, dropout)
        out: torch.Tensor = self.out(join_heads(y))
        return out


def absorbing_is_cheaper(block: Any, queries: int, keys: int) -> bool:
    """Return whether queries are compared with latents in fewer multiplications than it takes to compute keys and values."""
    up = block.kv_rank * (block.nope_dim + block.value_dim)  # of a position and a head, in either form
    absorbed: int = queries * up + queries * keys * (2 * block.kv_rank + block.rope_dim)
    multiplied: int = keys * up + queries * keys * (block.nope_dim + block.rope_dim + block.value_dim)
    return absorbed < multiplied
