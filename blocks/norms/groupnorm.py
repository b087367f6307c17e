"""Group normalization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from blocks.attention.heads import check_split
from blocks.core import ONES, ZEROS, BlockError, BlockView, Look, Norm, Paper, PositiveFloat, PositiveInt, Sizes, Tensor, torch


class GroupStatistics(Norm):
    """Normalization of each row by the mean and the variance of a group of its channels, without its axes."""

    groups: PositiveInt
    """Number of groups of channels; `num_groups` in torch."""
    eps: PositiveFloat = 1e-5
    """Added to the variance for numerical stability."""
    affine: bool = True
    """Whether there is a learned gain (`weight`) and bias."""

    title = "GroupNorm"
    paper = Paper("Group Normalization", "arXiv:1803.08494")

    def look(self, view: BlockView) -> Look:
        channels, *positions = self.mixed_axes(view.sizes) if view.sizes else (None,)
        if positions and channels == self.groups > 1:  # each channel by itself
            return Look("InstanceNorm", (f"{self.groups} channels",), "norm")
        return replace(super().look(view), facts=(f"{self.groups} group{'s' * (self.groups > 1)}",))


class GroupNorm(GroupStatistics, kind="groupnorm"):
    """Group normalization (GroupNorm), over the channels of a group and all positions of a row:
    `y = (x - mean) / √(var + eps) · weight + bias`.

    One group normalizes each row as a whole; as many groups as channels is instance normalization. The channels are the last
    axis, and the first one is the batch; `groupnorm2d` takes images with the channels in front of the pixels.
    """

    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: groupnorm, groups: 4, in: x}}
"""
    causal_forms = ("`layernorm`", "`rmsnorm`")
    weights = {"weight": Tensor(("dim",), "gain", ONES, when="affine"), "bias": Tensor(("dim",), "bias", ZEROS, when="affine")}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        check_split(sizes["dim"], self.groups, "groups", known=True)
        if not sizes["..."]:
            raise BlockError("a single vector has no rows to normalize one by one")

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["dim"], *(axis.size for axis in sizes["..."][1:]))

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        # torch has the channels second; `F.group_norm` refuses groups of one value, which are normalized to 0
        y = torch.group_norm(x.movedim(-1, 1), self.groups, self.weight, self.bias, self.eps)
        return y.movedim(1, -1)


class GroupNorm2d(GroupStatistics, kind="groupnorm2d"):
    """Group normalization (GroupNorm) of images: `y = (x - mean) / √(var + eps) · weight + bias`.

    As `groupnorm`, for images with the channels in front of the pixels: mean and variance are taken over the channels of a group
    and all pixels of one image.
    """

    example = """
inputs: {image: "float[batch, 6, 32, 32]"}
graph:
  norm: {type: groupnorm2d, groups: 2}
"""
    inputs = {"x": "float[batch, channels, height, width]"}
    outputs = {"y": "float[batch, channels, height, width]"}
    weights = {
        "weight": Tensor(("channels",), "gain", ONES, when="affine"),
        "bias": Tensor(("channels",), "bias", ZEROS, when="affine"),
    }

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        check_split(sizes["channels"], self.groups, "groups", known=True)

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return tuple(sizes[name] for name in ("channels", "height", "width"))

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        # `F.group_norm` refuses groups of one value, which are normalized to 0
        return torch.group_norm(x, self.groups, self.weight, self.bias, self.eps)
