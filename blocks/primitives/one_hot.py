"""One-hot encoding."""

from __future__ import annotations

from typing import Any

from blocks.core import UNIT_BUFFER, Block, PositiveInt, torch


class OneHot(Block, kind="one_hot"):
    """One-hot encoding of ids: `yᵢ = [i = id]`; all zeros if the id is not a class."""

    classes: PositiveInt
    """Number of classes, which is the width of the output."""

    is_primitive = True
    example = """
inputs: {ids: "int[batch, time]"}
graph: {y: {type: one_hot, classes: 5, in: ids}}
"""
    inputs = {"ids": "int[...]"}
    outputs = {"y": "float[..., classes]"}
    buffers = UNIT_BUFFER  # ids have no floating-point dtype

    def forward(self: Any, ids: torch.Tensor) -> Any:
        return (ids[..., None] == torch.arange(self.classes, device=ids.device)) * self.one
