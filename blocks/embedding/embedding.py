"""Token embedding."""

from __future__ import annotations

from typing import Any

from blocks.core import (
    Block,
    BlockError,
    BlockView,
    Call,
    F,
    Init,
    Look,
    NonNegativeInt,
    Paper,
    PositiveFloat,
    PositiveInt,
    Sizes,
    Tensor,
    grouped,
    torch,
)


class Embedding(Block, kind="embedding"):
    """Embedding table with a learned vector per id, such as a token embedding: `y = scale · weight[ids]`."""

    vocab: PositiveInt
    """Vocabulary size: ids run from 0 to vocab − 1. `num_embeddings` in torch."""
    dim: PositiveInt
    """Width of a vector; `embedding_dim` in torch."""
    scale: PositiveFloat = 1.0
    """Constant factor: √dim in the original Transformer and in Gemma."""
    padding_idx: NonNegativeInt | None = None
    """Id of the padding token, whose vector is zero and receives no gradient."""

    paper = Paper("A Neural Probabilistic Language Model", "JMLR 3 (2003)")
    example = """
inputs: {ids: "int[batch, time]"}
graph: {y: {type: embedding, vocab: 67, dim: 8, in: ids}}
"""
    inputs = {"ids": "int[...]"}
    outputs = {"y": "float[..., dim]"}
    vocab_field = "vocab"
    weights = {"weight": Tensor(("vocab", "dim"), "embedding", Init("normal", 1.0), zero_row="padding_idx")}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        if self.padding_idx is not None and self.padding_idx >= self.vocab:
            raise BlockError(
                f"id {self.padding_idx} is not among the {self.vocab} ids of the vocabulary",
                field="padding_idx",
                hint=f"ids run from 0 to {self.vocab - 1}",
            )

    def build(self, sizes: Sizes) -> Call | None:
        if self.scale != 1:
            return None
        return Call("nn.Embedding", ("vocab", "dim"), {} if self.padding_idx is None else {"padding_idx": "padding_idx"})

    def look(self, view: BlockView) -> Look:
        facts = [f"{grouped(self.vocab)} × {grouped(self.dim)}"]
        if self.scale != 1:
            root = abs(self.scale - self.dim**0.5) < 1e-6 * self.scale
            facts.append(f"× √{grouped(self.dim)}" if root else f"× {self.scale:.4g}")
        names = {"tokens": "Token", "source": "Source", "target": "Target", "token_types": "Token-type"}
        ids = view.edges.get("ids", "")
        return Look(f"{names[ids]} embedding" if ids in names else self.called(), tuple(facts), "embed")

    def forward(self: Any, ids: torch.Tensor) -> Any:
        return F.embedding(ids, self.weight, self.padding_idx) * self.scale  # the row of the padding gets no gradient
