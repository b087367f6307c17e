"""LayerScale."""

from __future__ import annotations

from typing import Any

from blocks.core import Block, BlockView, Init, Look, Paper, Tensor, torch


class LayerScale(Block, kind="layer_scale"):
    """LayerScale, a learned factor for each channel: `y = weight · x`; small at first, it lets deep networks start near the
    identity.
    """

    init: float = 1e-4
    """Initial value of the factors; CaiT uses 0.1 up to depth 18, 1e-5 up to 24 and 1e-6 beyond."""

    paper = Paper("Going deeper with Image Transformers", "arXiv:2103.17239")
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: layer_scale, in: x}}
"""
    inputs = {"x": "float[..., dim]"}
    outputs = {"y": "float[..., dim]"}
    weights = {"weight": Tensor(("dim",), "gain", Init("constant", "init"))}

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), hue="embed")

    def forward(self: Any, x: torch.Tensor) -> Any:
        return x * self.weight
