"""Softmax and L2 normalization along an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from blocks.core import AxisRef, Block, BlockView, F, Look, PositiveFloat, Sizes, torch
from blocks.primitives.axes import axis_index


class Softmax(Block, kind="softmax"):
    """Softmax along an axis: `yᵢ = exp(xᵢ) / Σⱼ exp(xⱼ)`; in float32, also under bfloat16."""

    axis: AxisRef = "last"
    """The axis that sums to 1."""

    is_primitive = True
    example = """
inputs: {scores: "float[batch, time, source]"}
graph: {y: {type: softmax, in: scores}}
"""
    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"dim": axis_index(sizes["..."], self.axis)}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["..."][sizes["dim"]].size,)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=self.dim, dtype=torch.promote_types(x.dtype, torch.float32)).to(x.dtype)

    def look(self, view: BlockView) -> Look:
        return replace(super().look(view), operation=(self.called().lower(),))


class L2Norm(Block, kind="l2norm"):
    """L2 normalization, to vectors of unit length along an axis: `y = x / max(‖x‖₂, eps)`.

    `F.normalize` in torch.
    """

    axis: AxisRef = "last"
    """The axis of the vectors."""
    eps: PositiveFloat = 1e-12
    """Lower bound of the length that a vector is divided by."""

    is_primitive = True
    title = "L2 norm"
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: l2norm, in: x}}
"""
    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"dim": axis_index(sizes["..."], self.axis)}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["..."][sizes["dim"]].size,)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.normalize(x, dim=self.dim, eps=self.eps)
