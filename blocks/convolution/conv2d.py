"""Convolution over images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from blocks.attention.heads import check_split
from blocks.convolution.kernels import Sliding, SlidingKernel, alone, briefly, captions, slide
from blocks.core import (
    BlockView,
    Call,
    Cost,
    F,
    Init,
    Look,
    NonNegativeInt,
    Paper,
    PositiveInt,
    Sizes,
    Tensor,
    grouped,
    size,
    torch,
)

START = Init("uniform", "1 / sqrt(channels // groups * taps)")
"""torch's own initial values: those of a linear map with the same number of inputs."""


class Conv2d(Sliding, kind="conv2d"):
    """Two-dimensional convolution over the pixels of an image:
    `y[r, c] = b + Σᵢⱼ W[i, j] x[r · stride + i · dilation - padding, c · stride + j · dilation - padding]`, with zeros around
    the image.

    Along each axis, n pixels give `(n + 2 · padding - dilation · (kernel_size - 1) - 1) // stride + 1`. `kernel_size`, `stride`,
    `padding` and `dilation` are one number, or a list of those of the height and of the width; a `padding` of four numbers is
    what is added at the top, at the bottom, at the left and at the right.
    """

    out: PositiveInt
    """Number of output channels; `out_channels` in torch."""
    stride: PositiveInt | tuple[PositiveInt, ...] = 1
    """Step of the kernel between neighboring output pixels."""
    padding: Literal["same"] | NonNegativeInt | tuple[NonNegativeInt, ...] | None = None
    """Zeros on each side; `same` adds as many as keep the size at a stride of 1, an odd one at the right and at the bottom."""
    dilation: PositiveInt | tuple[PositiveInt, ...] = 1
    """Distance between neighboring pixels of the kernel."""
    groups: PositiveInt = 1
    """Groups of channels that are convolved separately; as many as there are channels is a depthwise convolution."""
    bias: bool = True
    """Whether `b` is added."""

    paper = Paper("Gradient-Based Learning Applied to Document Recognition", "Proc. IEEE 86 (1998)")
    example = """
inputs: {image: "float[batch, 3, 64, 48]"}
graph:
  stem: {type: conv2d, out: 64, kernel_size: 7, stride: 2, padding: 3, bias: false}
  deep: {type: conv2d, out: 64, kernel_size: [3, 5], padding: same, groups: 64}
"""
    along = ("height", "width")
    inputs = {"x": "float[batch, channels, height, width]"}
    outputs = {
        "y": "float[batch, out, (height + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1, "
        "(width + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1]"
    }
    weights = {
        "weight": Tensor(("out", "channels // groups", "kernel_height", "kernel_width"), "matrix", START),
        "bias": Tensor(("out",), "bias", START, when="bias"),
    }

    def slide(self) -> SlidingKernel:
        return slide(2, self.kernel_size, self.stride, self.padding, self.dilation, uneven=True)

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        super().check(sizes, wired)
        check_groups(self.groups, sizes["channels"], self.out)

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"y": image_of(inputs["x"], self.out, self.slide().lengths([sizes["height"], sizes["width"]]))}

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> Cost:
        return Cost("2 * batch * places * out * (channels // groups) * taps")

    def build(self, sizes: Sizes) -> Call | None:
        found = self.slide()
        if not found.even:
            return None
        numbers = {"stride": found.steps, "padding": found.plain()["pads"], "dilation": found.gaps, "groups": (self.groups,)}
        default = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
        others = {name: alone(value) for name, value in numbers.items() if alone(value) != default[name]}
        return Call("nn.Conv2d", ("channels", "out", alone(found.kernel)), {**others, "bias": "bias"})

    def look(self, view: BlockView) -> Look:
        deep = is_depthwise(self.groups, view.sizes["channels"])
        numbers = {"stride": 1, "dilation": 1, **({} if deep else {"groups": 1})}
        facts = (f"{size(view.sizes['channels'])} → {grouped(self.out)}", *captions(self, **numbers))
        title = "Depthwise convolution" if deep else "Convolution"
        return Look(title, facts, "embed", brief=briefly(title, facts), unsaid=("stride 1", "dilation 1"))

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        x = F.pad(x, self.edges)
        return F.conv2d(x, self.weight, self.bias, self.steps, 0, self.gaps, self.groups)  # [B, out, rows, columns]


def is_depthwise(groups: int, channels: Any) -> bool:
    """Return whether each channel is convolved by itself."""
    return groups > 1 and bool(groups == channels)


def check_groups(groups: int, channels: Any, out: int) -> None:
    """Raise `BlockError` if channels cannot be split into groups."""
    for name, count in (("the input", channels), ("the output", out)):
        check_split(count, groups, "groups", of=name)


def image_of(given: Any, channels: int | None, lengths: tuple[Any, ...]) -> Any:
    """Return the type of an image with another size and, if they are given, other channels."""
    batch, first, *others = given.axes
    first = first if channels is None else replace(first, name="out", size=channels)
    return replace(given, axes=(batch, first, *(replace(a, size=n) for a, n in zip(others, lengths, strict=True))))
