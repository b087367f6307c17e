"""Blocks that bring the numbers along one axis to a common scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blocks.core import AxisRef, Block, F, PositiveFloat, Sizes, torch
from blocks.primitives.axes import axis_index


class Softmax(Block, kind="softmax"):
    """Positive numbers that sum to 1 along an axis: `yᵢ = exp(xᵢ) / Σⱼ exp(xⱼ)`; in float32 also under bfloat16."""

    axis: AxisRef = "last"
    """The axis that sums to 1: its name, or `last`."""

    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"dim": axis_index(sizes["..."], self.axis)}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["..."][sizes["dim"]].size,)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=self.dim, dtype=torch.promote_types(x.dtype, torch.float32)).to(x.dtype)


class L2Norm(Block, kind="l2norm"):
    """Vectors of length 1 along an axis: `y = x / max(‖x‖₂, eps)`."""

    axis: AxisRef = "last"
    """The axis along which a vector runs: its name, or `last`."""
    eps: PositiveFloat = 1e-12
    """The length from which on a vector is scaled to 1; a shorter one is divided by it."""

    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"dim": axis_index(sizes["..."], self.axis)}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["..."][sizes["dim"]].size,)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.normalize(x, dim=self.dim, eps=self.eps)
