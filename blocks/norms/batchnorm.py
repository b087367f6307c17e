"""Batch normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blocks.core import ONES, ZEROS, BlockError, F, Norm, Paper, PositiveFloat, Probability, Sizes, Tensor, torch


class BatchNorm(Norm, kind="batchnorm"):
    """Bring each channel to mean 0 and variance 1: `y = (x - mean) / √(variance + eps) · weight + bias`.

    In training, mean and variance are those of the channel over all rows and positions of the batch, and move the running ones:
    `running ← (1 - momentum) · running + momentum · batch`, the variance without bias. Otherwise they are the running ones, so
    that rows do not see each other.
    """

    eps: PositiveFloat = 1e-5
    """Keeps the quotient finite where all numbers are the same."""
    momentum: Probability = 0.1
    """The weight of the latest batch in the running mean and variance."""
    affine: bool = True
    """Whether there is a learned gain and a learned shift."""

    title = "BatchNorm"
    paper = Paper(
        "Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate Shift", "arXiv:1502.03167"
    )
    weights = {"weight": Tensor(("dim",), "gain", ONES, when="affine"), "bias": Tensor(("dim",), "bias", ZEROS, when="affine")}
    buffers = {"running_mean": Tensor(("dim",), "state", ZEROS), "running_var": Tensor(("dim",), "state", ONES)}
    batch_dependent = True

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        if not sizes["..."]:
            raise BlockError("a single vector has no rows to take a mean over")

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return tuple(axis.size for axis in sizes["..."])

    def forward(self: Any, x: torch.Tensor) -> Any:
        rows = x.flatten(0, -2)  # [rows, dim]
        y = F.batch_norm(
            rows, self.running_mean, self.running_var, self.weight, self.bias, self.training, self.momentum, self.eps
        )
        return y.view(x.shape)
