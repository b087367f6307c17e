"""Group normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blocks.attention.heads import check_known, nearest_divisors
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
    paper = Paper("Group Normalization", "arXiv:1803.08494")
    weights = {"weight": Tensor(("dim",), "gain", ONES, when="affine"), "bias": Tensor(("dim",), "bias", ZEROS, when="affine")}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        dim = sizes["dim"]
        check_known(dim, self.groups, "groups")
        if isinstance(dim, int) and dim % self.groups:
            raise BlockError(
                f"{dim} channels cannot be split into {self.groups} groups",
                field="groups",
                hint=nearest_divisors(dim, self.groups),
                code="indivisible",
            )
        if not sizes["..."]:
            raise BlockError("a single vector has no rows to normalize one by one")

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["dim"], *(axis.size for axis in sizes["..."][1:]))

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        # torch has the channels second; `F.group_norm` refuses groups of one value, which are normalized to 0
        y = torch.group_norm(x.movedim(-1, 1), self.groups, self.weight, self.bias, self.eps)
        return y.movedim(1, -1)
