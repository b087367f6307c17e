"""Group normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blocks.attention.heads import check_split
from blocks.core import ONES, ZEROS, BlockError, Norm, Paper, PositiveFloat, PositiveInt, Sizes, Tensor, torch


class GroupNorm(Norm, kind="groupnorm"):
    """Group normalization (GroupNorm), over the channels of a group and all positions of a row:
    `y = (x - mean) / √(var + eps) · weight + bias`.

    One group normalizes each row as a whole; as many groups as channels is instance normalization.
    """

    groups: PositiveInt
    """Number of groups of channels; `num_groups` in torch."""
    eps: PositiveFloat = 1e-5
    """Added to the variance for numerical stability."""
    affine: bool = True
    """Whether there is a learned gain (`weight`) and bias."""

    title = "GroupNorm"
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: groupnorm, groups: 4, in: x}}
"""
    causal_forms = ("`layernorm`", "`rmsnorm`")
    paper = Paper("Group Normalization", "arXiv:1803.08494")
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
