"""Contrastive loss."""

from __future__ import annotations

from typing import Any

from blocks.core import Cost, F, Paper, Sizes, torch
from blocks.losses.loss import Loss


class Contrastive(Loss, kind="contrastive"):
    """Symmetric contrastive loss (InfoNCE, as in CLIP): `y = (CE(s) + CE(sᵀ)) / 2` with logits `s = scale · a bᵀ`, where CE is
    the cross-entropy of matching each row with its own among all rows of the batch.

    Rows are not normalized here: CLIP applies `l2norm` to both inputs before, and its `scale` is the exponential of a learned
    number.
    """

    paper = Paper("Learning Transferable Visual Models From Natural Language Supervision", "arXiv:2103.00020")
    example = """
inputs: {images: "float[batch, 8]", texts: "float[batch, 12]"}
graph:
  image: {type: linear, out: 6, in: images}
  text: {type: linear, out: 6, in: texts}
  a: {type: l2norm, in: image}
  b: {type: l2norm, in: text}
  scale: {type: parameter, shape: [], init: ones}
outputs: {image: a, text: b}
losses: {loss: {type: contrastive, in: {a: a, b: b, scale: scale}}}
"""
    inputs = {"a": "float[batch, dim]", "b": "float[batch, dim]", "scale": "float[]"}

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> Cost:
        return Cost("2 * batch * batch * dim")

    def forward(self: Any, a: torch.Tensor, b: torch.Tensor, scale: torch.Tensor) -> Any:
        return self.together([symmetric_cross_entropy(a, b, scale)])


def symmetric_cross_entropy(a: torch.Tensor, b: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy of matching rows of a with those of b, in both directions; both are [B, D]."""
    scores = scale * (a @ b.mT)  # [B, B]
    wide = scores.to(torch.promote_types(scores.dtype, torch.float32))
    own = torch.arange(len(wide), device=wide.device)
    return (F.cross_entropy(wide, own) + F.cross_entropy(wide.mT, own)) / 2
