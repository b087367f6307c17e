"""Multi-head attention, to the sequence itself or to another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from blocks.attention.drawing import attention_look, attention_pieces
from blocks.attention.explicit import (
    attention_by_formula,
    attention_logsumexp,
    attention_scores,
    attention_weights,
    in_parts,
    per_query_head,
)
from blocks.attention.heads import check_head_counts, check_split
from blocks.core import (
    ZEROS,
    Activation,
    Block,
    BlockError,
    BlockView,
    Builtin,
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
    Tensor,
    Units,
    Weights,
    append_to_cache,
    cached,
    derived,
    torch,
)
from blocks.masks.mask import Mask
from blocks.masks.position_masks import Full
from blocks.masks.views import biased_attention
from blocks.positions.positions import Positions, check_coordinates, check_leading_axes, position_ports

Projection = Literal["q", "k", "v", "out", "gate"]


class MultiHead(Block):
    """Multi-head attention without its ports, which self-attention and cross-attention declare."""

    heads: PositiveInt
    """Number of query heads; `num_attention_heads` in transformers."""
    kv_heads: PositiveInt = derived("heads")
    """Number of key/value heads, each shared by heads / kv_heads query heads: fewer than `heads` is grouped-query attention
    (GQA), 1 is multi-query attention (MQA). `num_key_value_heads` in transformers.
    """
    head_dim: PositiveInt = derived("dim // heads")
    """Channels of a query and of a key in each head."""
    value_dim: PositiveInt = derived("head_dim")
    """Channels of a value in each head."""
    mask: Mask = Full()
    """Which keys each query may see."""
    bias: bool | dict[Projection, bool] = False
    """Whether the projections, and the map of the gate, have a bias."""
    scale: PositiveFloat = derived("1 / sqrt(head_dim)")
    """Factor of the scores; the default keeps their variance independent of `head_dim`."""
    positions: Positions | None = None
    """Positional encoding applied to queries and keys, such as `rotary` (RoPE)."""
    qk_norm: Norm | None = None
    """Norm of each head's queries and keys, before the positional encoding (QK-norm)."""
    out: Block | Builtin | None = Builtin()
    """Output projection, by default a linear map back to the input's width; `none` leaves the heads concatenated."""
    softcap: PositiveFloat | None = None
    """Logit soft-capping: scores become `softcap · tanh(scores / softcap)`, as in Gemma 2."""
    sinks: bool = False
    """Whether each head has a learned attention sink, a logit that takes part in the softmax and has no value, as in GPT-OSS."""
    output_gate: Activation | None = None
    """Activation of a gate on the concatenated heads, a learned linear map of the input; `sigmoid` in Qwen3-Next."""
    dropout: Probability = 0.0
    """Dropout probability of the attention weights, in training."""

    paper = Paper("Attention Is All You Need", "arXiv:1706.03762")
    outputs = {
        "y": "float[batch, time, dim]",
        "k?": "float[batch, source, kv_heads, head_dim]",
        "v?": "float[batch, source, kv_heads, value_dim]",
        "scores?": "float[batch, heads, time, source]",
        "weights?": "float[batch, heads, time, source]",
        "logsumexp?": "float[batch, heads, time]",
    }
    position_inputs = {"position_ids": "time", "memory_position_ids": "source"}
    second_stream_inputs = ("memory", "k", "v")
    folds_leading = True
    kept_axes = ("source",)
    so_far_inputs = ("k", "v", "bias")
    cache_slots = {"k": "float[batch, kv_heads, source, head_dim]", "v": "float[batch, kv_heads, source, value_dim]"}
    masked_slots = {"k": "mask", "v": "mask"}
    units = {"heads": Units(within="kv_heads"), "kv_heads": Units()}

    def weights(self, sizes: Sizes, wired: frozenset[str]) -> Weights:
        weights: dict[str, LinearWeights | Slot | Tensor] = {
            "q": LinearWeights("dim", "heads * head_dim", bias=biased(self.bias, "q"))
        }
        if "k" not in wired:
            weights["k"] = LinearWeights("memory_dim", "kv_heads * head_dim", bias=biased(self.bias, "k"))
        if "v" not in wired:
            weights["v"] = LinearWeights("memory_dim", "kv_heads * value_dim", bias=biased(self.bias, "v"))
        weights["q_norm"] = Slot("qk_norm", "float[batch, heads, time, head_dim]")
        if "k" not in wired:
            weights["k_norm"] = Slot("qk_norm", "float[batch, kv_heads, source, head_dim]")
        weights["sink_scores"] = Tensor(("heads",), "bias", ZEROS, when="sinks")
        if self.output_gate is not None:
            weights["gate"] = LinearWeights("dim", "heads * value_dim", bias=biased(self.bias, "gate"))
        weights["output_gate"] = Slot("output_gate", "float[batch, time, heads * value_dim]")
        if isinstance(self.out, Builtin):
            weights["out"] = LinearWeights("heads * value_dim", "dim", bias=biased(self.bias, "out"))
        else:
            weights["out"] = Slot("out", "float[batch, time, heads * value_dim]", "float[batch, time, dim]")
        return weights

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, str] | None:
        return {**self.outputs, "y": "float[batch, time, heads * value_dim]"} if self.out is None else None

    def per_call(self, wired: frozenset[str]) -> Mapping[str, PerCall]:
        key_position_ids = "memory_position_ids" if wired & {"memory", "k"} else "position_ids"
        prepared = {"mask": PerCall("mask", ("position_ids", key_position_ids))}
        if self.positions is not None:
            prepared["rope"] = PerCall("positions", position_ports(wired), {"head_dim": "head_dim"})
            if "k" not in wired and key_position_ids != "position_ids":
                prepared["memory_rope"] = PerCall("positions", position_ports(wired, "memory_"), {"head_dim": "head_dim"})
        return prepared

    def reads(self, wired: frozenset[str]) -> Mapping[str, Sequence[str]]:
        source, prefix = ("memory", "memory_") if "memory" in wired else ("x", "")
        return {
            "k": ("k",) if "k" in wired else (source, *position_ports(wired, prefix), "k_norm"),
            "k_norm": (source,),
            "v": ("v",) if "v" in wired else (source,),
        }

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        dim = sizes["dim"]
        if self.head_dim is None:
            check_split(dim, self.heads, "heads")
        check_head_counts(self.heads, self.kv_heads)
        if isinstance(self.bias, dict) and self.bias.get("gate") and self.output_gate is None:
            raise BlockError("there is no gate to have a bias", field="bias", hint="set `output_gate`, such as `sigmoid`")
        check_leading_axes(sizes)
        check_coordinates(self.positions, sizes, wired)
        source, time = sizes.get("source"), sizes.get("time")
        if "memory" not in wired and not {"k", "v"} <= wired and source != time:
            raise BlockError(
                f"keys and values differ in number: {time} are computed from x, and the wired port has {source}",
                hint="wire `memory`, or both `k` and `v`",
                code="type-mismatch",
            )
        head_dim = head_width(self, sizes)
        if self.positions is not None and head_dim is not None:
            try:
                self.positions.check({**sizes, "head_dim": head_dim}, wired)
            except BlockError as error:
                raise BlockError(error.message, field=f"positions.{error.field}", hint=error.hint, code=error.code) from None

    def warn(self, sizes: Sizes, wired: frozenset[str]) -> Sequence[BlockError]:
        head_dim = head_width(self, sizes)
        if head_dim is None or head_dim % 8 == 0:
            return []
        return [
            BlockError(
                f"a head has {head_dim} channels, which is not a multiple of 8",
                field="heads" if self.head_dim is None else "head_dim",
                hint="GPU kernels are fastest at multiples of 8",
                code="head-size",
            )
        ]

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> Cost:
        per_query = ["dim * heads * head_dim"]
        if self.output_gate is not None:
            per_query.append("dim * heads * value_dim")
        if isinstance(self.out, Builtin):
            per_query.append("heads * value_dim * dim")
        widths = {"k": "head_dim", "v": "value_dim"}
        per_key = [f"memory_dim * kv_heads * {width}" for port, width in widths.items() if port not in wired]
        pair = "2 * heads * (head_dim + value_dim)"
        pairs = "batch * time * source"
        terms = [f"2 * batch * time * ({' + '.join(per_query)})", f"{pair} * {pairs}"]
        if per_key:
            terms.append(f"2 * batch * source * ({' + '.join(per_key)})")
        return Cost(" + ".join(terms), per_pair=pair, pairs=pairs)

    def look(self, view: BlockView) -> Look:
        return attention_look(self, view)

    def inside(self, view: BlockView) -> Sequence[Piece]:
        return attention_pieces(self, view)

    def forward(
        self: Any,
        x: torch.Tensor,
        memory: torch.Tensor | None = None,
        k: torch.Tensor | None = None,
        v: torch.Tensor | None = None,
        bias: torch.Tensor | None = None,
        *,
        mask: Any,
        rope: Any = None,
        memory_rope: Any = None,
    ) -> Any:
        source = x if memory is None else memory
        key_rope = rope if memory_rope is None else memory_rope
        cache, asked = self.cache, self.requested_outputs

        q = torch.unflatten(self.q(x), -1, (-1, self.head_dim)).transpose(1, 2)  # [B, H, T, D]; of split maps, fewer heads
        if (norm := self.q_norm) is not None:
            q = norm(q)
        if rope is not None:
            q = self.positions.rotate(q, rope)

        if k is not None:
            k = append_to_cache(self, "k", k.transpose(1, 2))  # [B, K, S, D]; from another attention, it has all positions
        elif cache is None or (k := cached(self, "k")) is None:  # in a session, those of a memory are computed once
            k = torch.unflatten(self.k(source), -1, (-1, self.head_dim)).transpose(1, 2)  # [B, K, S, D]
            if (norm := self.k_norm) is not None:
                k = norm(k)
            if key_rope is not None:
                k = self.positions.rotate(k, key_rope)
            if cache is not None:
                k = append_to_cache(self, "k", k)
        if v is not None:
            v = append_to_cache(self, "v", v.transpose(1, 2))
        elif cache is None or (v := cached(self, "v")) is None:
            v = torch.unflatten(self.v(source), -1, (-1, self.value_dim)).transpose(1, 2)  # [B, K, S, Dv]
            if cache is not None:
                v = append_to_cache(self, "v", v)

        kv_heads = k.shape[1]
        if v.shape[1] != kv_heads or q.shape[1] * self.kv_heads != kv_heads * self.heads:
            raise ValueError("the maps of queries, keys and values are split into unequal shares of their heads")

        dropout = self.dropout if self.training else 0.0
        scores = weights = total = None
        sinks = self.sink_scores if self.sinks else None
        if asked and not asked.isdisjoint(("scores", "weights", "logsumexp")):
            scores = attention_scores(q, k, scale=self.scale, softcap=self.softcap, bias=bias)  # [B, H, T, S]
            if "logsumexp" in asked:
                total = attention_logsumexp(scores, mask.dense(), sinks)
            weights = attention_weights(scores, mask.dense(), sinks)
            weights = torch.dropout(weights, dropout, self.training).to(v.dtype)
            y = weights @ per_query_head(v, q.shape[1])  # [B, H, T, Dv]
        elif self.softcap is not None or sinks is not None:
            formula = partial(attention_by_formula, scale=self.scale, softcap=self.softcap, sinks=sinks, dropout=dropout)
            y = in_parts(formula, q, k, v, mask.dense(), bias)
        elif bias is not None:
            y = in_parts(partial(biased_attention, scale=self.scale, dropout=dropout), q, k, v, mask.dense(), bias)
        else:
            y = mask.attend(q, k, v, self.scale, dropout)

        y = y.transpose(1, 2).flatten(2)  # [B, T, H · Dv]
        if self.output_gate is not None:
            y = y * self.output_gate(self.gate(x))
        if (out := self.out) is not None:
            y = out(y)
        if not asked:
            return y
        read = {"k": k.transpose(1, 2), "v": v.transpose(1, 2), "scores": scores, "weights": weights, "logsumexp": total}
        return (y, *(value for name, value in read.items() if name in asked))


def biased(bias: bool | dict[Projection, bool], name: Projection) -> bool:
    """Return whether a projection has a bias."""
    return bias if isinstance(bias, bool) else bias.get(name, False)


def head_width(block: MultiHead, sizes: Sizes) -> int | None:
    """Return the channels of a query, or None if they are not yet known."""
    if block.head_dim is not None:
        return block.head_dim
    return sizes["dim"] // block.heads if isinstance(sizes["dim"], int) else None


class Attention(MultiHead, kind="attention"):
    """Multi-head, grouped-query and multi-query attention (MHA, GQA, MQA): `y = out(concat over heads of
    softmax(scale · q kᵀ) v)`, with q, k, v linear in x.

    It is self-attention unless a `memory` is wired, from which keys and values are then computed (cross-attention). Wired `k`
    and `v` replace them with those of another attention, taken after its positional encoding (KV sharing across layers). `bias`
    is added to the scores, as for ALiBi or T5. Of the optional outputs, `scores` are the scores before the mask, `weights`
    those that the values are multiplied by, and `logsumexp` the logarithm of what the softmax divides by, with which the
    attention a to one memory and b to another are the attention to both: `a + σ(logsumexp_b - logsumexp_a) (b - a)`. Reading one
    of these rules out the fused kernels.

    More axes may stand behind the batch, such as windows, rows and columns, or frames, as in `[batch, row, column, time, dim]`:
    each is attended to by itself. `memory`, `k` and `v` then have the same axes; `bias`, positions and what masks read have all
    of them, the first or the last of them.
    """

    example = """
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 67, dim: 32}
  attn: {type: attention, heads: 4, mask: causal}
  head: {type: linear, out: 67}
outputs: {logits: head}
"""
    inputs = {
        "x": "float[batch, time, dim]",
        "memory?": "float[batch, source, memory_dim]",
        "k?": "float[batch, source, kv_heads, head_dim]",
        "v?": "float[batch, source, kv_heads, value_dim]",
        "position_ids?": "int[..., time]",
        "memory_position_ids?": "int[..., source]",
        "coordinates?": "number[..., time, coordinate]",
        "memory_coordinates?": "number[..., source, coordinate]",
        "bias?": "float[..., heads, time, source]",
    }
    axis_defaults = {"source": "time", "memory_dim": "dim"}


class CrossAttention(MultiHead, kind="cross_attention"):
    """Multi-head cross-attention, with keys and values computed from a `memory`, such as the output of an encoder.

    As for `attention`, more axes may stand behind the batch.
    """

    example = """
inputs: {x: "float[batch, time, 32]", memory: "float[batch, source, 24]", source_valid: "bool[batch, source]"}
graph:
  y: {type: cross_attention, heads: 4, mask: valid(source_valid), in: {x: x, memory: memory}}
"""
    inputs = {
        "x": "float[batch, time, dim]",
        "memory": "float[batch, source, memory_dim]",
        "k?": "float[batch, source, kv_heads, head_dim]",
        "v?": "float[batch, source, kv_heads, value_dim]",
        "position_ids?": "int[..., time]",
        "memory_position_ids?": "int[..., source]",
        "coordinates?": "number[..., time, coordinate]",
        "memory_coordinates?": "number[..., source, coordinate]",
        "bias?": "float[..., heads, time, source]",
    }
