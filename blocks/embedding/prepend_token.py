"""A learned token before each sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from blocks.core import Block, BlockView, Init, Look, Paper, Sizes, Tensor, torch


class PrependToken(Block, kind="prepend_token"):
    """Prepend a learned vector to each sequence, such as the classification token ([CLS]) of BERT and ViT."""

    paper = Paper("BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", "arXiv:1810.04805")
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: prepend_token, in: x}}
"""
    inputs = {"x": "float[batch, time, dim]"}
    outputs = {"y": "float[batch, time + 1, dim]"}
    weights = {"weight": Tensor((1, "dim"), "embedding", Init("normal", 0.02))}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        batch, time, dim = inputs["x"].axes
        return {"y": replace(inputs["x"], axes=(batch, replace(time, size=time.size + 1), dim))}

    def look(self, view: BlockView) -> Look:
        return Look("Prepend a token", ("[CLS], learned",), "embed")

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.weight.to(x.dtype).expand(x.shape[0], 1, -1), x], dim=1)  # [B, 1 + T, D]
