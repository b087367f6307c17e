"""Batch normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blocks.core import ONES, ZEROS, BlockError, F, Norm, Paper, PositiveFloat, Probability, Sizes, Tensor, torch


class BatchStatistics(Norm):
    """Normalization by the mean and the variance of a batch, without its axes."""

    eps: PositiveFloat = 1e-5
    """Added to the variance for numerical stability."""
    momentum: Probability = 0.1
    """Weight of the current batch in the running statistics, as in torch."""
    affine: bool = True
    """Whether there is a learned gain (`weight`) and bias."""

    title = "BatchNorm"
    paper = Paper(
        "Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate Shift", "arXiv:1502.03167"
    )
    batch_dependent = True


class BatchNorm(BatchStatistics, kind="batchnorm"):
    """Batch normalization (BatchNorm) of each channel: `y = (x - mean) / √(var + eps) · weight + bias`.

    In training, mean and variance are taken over all rows and positions of the batch, and update the running statistics:
    `running ← (1 - momentum) · running + momentum · batch`, with the unbiased variance. In evaluation the running statistics
    are used, so that the rows of a batch do not depend on each other.
    """

    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: batchnorm, in: x}}
"""
    weights = {"weight": Tensor(("dim",), "gain", ONES, when="affine"), "bias": Tensor(("dim",), "bias", ZEROS, when="affine")}
    buffers = {"running_mean": Tensor(("dim",), "state", ZEROS), "running_var": Tensor(("dim",), "state", ONES)}

    causal_forms = ("`layernorm`", "`rmsnorm`")

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


class BatchNorm2d(BatchStatistics, kind="batchnorm2d"):
    """Batch normalization (BatchNorm) of each channel of images: `y = (x - mean) / √(var + eps) · weight + bias`.

    As `batchnorm`, for images with the channels in front of the pixels: mean and variance are taken over all images of the batch
    and all their pixels.
    """

    example = """
inputs: {image: "float[batch, 3, 32, 32]"}
graph:
  norm: batchnorm2d
"""
    inputs = {"x": "float[batch, channels, height, width]"}
    outputs = {"y": "float[batch, channels, height, width]"}
    weights = {
        "weight": Tensor(("channels",), "gain", ONES, when="affine"),
        "bias": Tensor(("channels",), "bias", ZEROS, when="affine"),
    }
    buffers = {"running_mean": Tensor(("channels",), "state", ZEROS), "running_var": Tensor(("channels",), "state", ONES)}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return tuple(sizes[name] for name in ("batch", "height", "width"))

    def forward(self: Any, x: torch.Tensor) -> Any:
        if not x.is_contiguous(memory_format=torch.channels_last):
            x = (
                x.contiguous()
            )  # for transposed images, torch's compiler expects other strides of the result than the kernel gives
        return F.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, self.training, self.momentum, self.eps
        )
