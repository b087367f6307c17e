"""What is computed in training alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blocks.core import Block, BlockError, BlockView, Look, Sizes, torch


class InTraining(Block, kind="in_training"):
    """One value in training and another one in evaluation: `y = x` in training, and `y = otherwise` in evaluation, and so while a
    text is generated.

    A model that generates a text may compute x from later tokens, as a router does that takes the best tokens of a sequence in
    training; `otherwise` may not look ahead.
    """

    is_primitive = True
    example = """
inputs: {x: "float[batch, time]", guess: "float[batch, time]"}
graph:
  best: {type: top_share, share: 0.5, in: x}
  likely: {compute: guess > 0}
  y: {type: in_training, in: {x: best, otherwise: likely}}
"""
    inputs = {"x": "any[...]", "otherwise": "any[...]"}
    outputs = {"y": "any[...]"}
    training_inputs = ("x",)

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        x, otherwise = inputs["x"], inputs["otherwise"]
        if x.dtype != otherwise.dtype:
            raise BlockError(f"takes {x}, as in training, not {otherwise}", port="otherwise", code="type-mismatch")
        return {"y": otherwise}

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), (), "merge")

    def forward(self: Any, x: torch.Tensor, otherwise: torch.Tensor) -> Any:
        return x if self.training else otherwise
