"""Patch embedding of images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from blocks.core import (
    Block,
    BlockError,
    BlockView,
    Cost,
    F,
    Init,
    Look,
    Paper,
    PositiveInt,
    Sizes,
    Tensor,
    grouped,
    torch,
)


class PatchEmbedding(Block, kind="patch_embedding"):
    """Patch embedding of an image (ViT), a linear map of each square patch in row-major order: `y = patches(image) Wᵀ + b`.

    It equals a convolution whose stride is its kernel size. Pixels at the right and bottom that do not fill a patch are
    dropped.
    """

    patch_size: PositiveInt
    """Height and width of a patch, in pixels."""
    dim: PositiveInt
    """Width of the vector of a patch; `embed_dim` in timm."""
    bias: bool = True
    """Whether `b` is added."""

    paper = Paper("An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale", "arXiv:2010.11929")
    example = """
inputs: {image: "float[batch, 3, 16, 24]"}
graph: {y: {type: patch_embedding, patch_size: 8, dim: 12, in: image}}
"""
    inputs = {"image": "float[batch, channels, height, width]"}
    outputs = {"y": "float[batch, time, dim]"}
    weights = {
        "weight": Tensor(
            ("dim", "channels", "patch_size", "patch_size"),
            "matrix",
            Init("uniform", "1 / sqrt(channels * patch_size * patch_size)"),
        ),
        "bias": Tensor(("dim",), "bias", Init("uniform", "1 / sqrt(channels * patch_size * patch_size)"), when="bias"),
    }

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        for name in ("height", "width"):
            if isinstance(sizes[name], int) and sizes[name] < self.patch_size:
                raise BlockError(
                    f"a patch of {self.patch_size} pixels does not fit in a {name} of {sizes[name]}", field="patch_size"
                )

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        batch, channels, height, _ = inputs["image"].axes
        patches = (sizes["height"] // self.patch_size) * (sizes["width"] // self.patch_size)
        axes = (batch, replace(height, name="time", size=patches), replace(channels, name="dim", size=self.dim))
        return {"y": replace(inputs["image"], axes=axes)}

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> Cost:
        return Cost("2 * batch * (height // patch_size) * (width // patch_size) * dim * channels * patch_size * patch_size")

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), (f"{self.patch_size} × {self.patch_size} pixels → {grouped(self.dim)}",), "embed")

    def forward(self: Any, image: torch.Tensor) -> torch.Tensor:
        y = F.conv2d(image, self.weight, self.bias, stride=self.patch_size)  # [B, D, rows, columns]
        return y.flatten(2).transpose(1, 2)  # [B, T, D]
