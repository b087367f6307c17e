"""Additive attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blocks.core import (
    Block,
    BlockView,
    Cost,
    LinearWeights,
    Look,
    Paper,
    Piece,
    PositiveInt,
    Sizes,
    grouped,
    linear_piece,
    look_with_icon,
    standard,
    torch,
)


class AdditiveAttention(Block, kind="additive_attention"):
    """Additive (Bahdanau) attention of one query to a memory: `y = Σₛ softmaxₛ(v · tanh(q(query) + k(memoryₛ))) memoryₛ`, with
    linear maps q, k and v.

    Positions where `valid` is false get weight zero. In the paper, the query is the decoder's state before the current token.
    """

    hidden: PositiveInt
    """Hidden width of the scoring network."""

    paper = Paper("Neural Machine Translation by Jointly Learning to Align and Translate", "arXiv:1409.0473")
    example = """
inputs: {query: "float[batch, 8]", memory: "float[batch, source, 12]", valid: "bool[batch, source]"}
graph: {y: {type: additive_attention, hidden: 16, in: {query: query, memory: memory, valid: valid}}}
"""
    inputs = {"query": "float[batch, dim]", "memory": "float[batch, source, memory_dim]", "valid?": "bool[batch, source]"}
    second_stream_inputs = ("memory",)
    outputs = {"y": "float[batch, memory_dim]", "weights?": "float[batch, source]"}
    weights = {
        "q": LinearWeights("dim", "hidden"),
        "k": LinearWeights("memory_dim", "hidden"),
        "v": LinearWeights("hidden", "1", rows="memory"),
    }

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["source"],)

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> Cost:
        per_position = "memory_dim * hidden + hidden + memory_dim"
        return Cost(f"2 * batch * dim * hidden + 2 * batch * source * ({per_position})")

    def look(self, view: BlockView) -> Look:
        hidden = f"hidden {grouped(self.hidden)}"
        brief = (f"additive attention {hidden}", "additive attention")
        return Look(self.called(), (hidden,), "cross", double=True, short="attention", brief=brief)

    def inside(self, view: BlockView) -> Sequence[Piece]:
        tanh = look_with_icon(standard()["tanh"](), BlockView("tanh"))
        valid = [("$valid", "valid")] if "valid" in view.edges else []
        return [
            linear_piece(view, "q", "Linear query", "$query", "cross"),
            linear_piece(view, "k", "Linear memory", "$memory", "cross"),
            Piece("sum", Look("Sum", hue="cross", sign="+"), (("q", ""), ("k", ""))),
            Piece("tanh", Look(tanh.title, hue="cross", icon=tanh.icon), (("sum", ""),)),
            linear_piece(view, "v", "Linear score", "tanh", "cross"),
            Piece("weights", Look("Softmax", ("over the memory",), "cross"), (("v", ""), *valid), gives=("weights",)),
            Piece("y", Look("Weighted sum", ("of the memory",), "cross"), (("weights", ""), ("$memory", "memory")), gives=("y",)),
        ]

    def forward(self: Any, query: torch.Tensor, memory: torch.Tensor, valid: torch.Tensor | None = None) -> Any:
        scores = self.v(torch.tanh(self.q(query)[:, None] + self.k(memory)))[..., 0]  # [B, S]
        if valid is not None:
            scores = scores.masked_fill(~valid, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32)).to(memory.dtype)
        y = (weights[:, None] @ memory)[:, 0]  # [B, D]
        return (y, weights) if "weights" in self.requested_outputs else y
