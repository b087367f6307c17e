"""Transposed convolutions, over positions and over images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from blocks.convolution.conv2d import check_groups, image_of
from blocks.convolution.kernels import Sliding, SlidingKernel, alone, briefly, captions, per_axis, slide
from blocks.core import (
    BlockError,
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
    declaration,
    grouped,
    size,
    torch,
)

START = Init("uniform", "1 / sqrt(out // groups * taps)")
"""torch's own initial values."""


class Transposed(Sliding):
    """A transposed convolution, without its axes."""

    out: PositiveInt
    """Number of output channels; `out_channels` in torch."""
    stride: PositiveInt | tuple[PositiveInt, ...] = 1
    """Distance in the output between the kernels of neighboring inputs."""
    padding: NonNegativeInt | tuple[NonNegativeInt, ...] | None = None
    """What is cut off on each side of the output."""
    output_padding: NonNegativeInt | tuple[NonNegativeInt, ...] | None = None
    """What is added to the output at its end, where strides leave a choice of its size; less than the stride or the dilation."""
    dilation: PositiveInt | tuple[PositiveInt, ...] = 1
    """Distance between neighboring places of the kernel."""
    groups: PositiveInt = 1
    """Groups of channels that are convolved separately."""
    bias: bool = True
    """Whether `b` is added."""

    paper = Paper("Deconvolutional Networks", "CVPR 2010")

    def slide(self) -> SlidingKernel:
        return slide(len(self.along), self.kernel_size, self.stride, self.padding, self.dilation)

    @declaration
    def extra(self) -> tuple[int, ...]:
        """Return what is added to the output at its end, for each axis."""
        return per_axis(0 if self.output_padding is None else self.output_padding, len(self.along), "output_padding")

    @declaration
    def output_lengths(self, sizes: Sizes) -> tuple[Any, ...]:
        """Return the lengths of the axes of the output."""
        found = self.slide()
        numbers = zip(self.along, found.steps, found.around, found.spans, self.extra(), strict=True)
        return tuple(
            (sizes[name] - 1) * step - before - after + span + more for name, step, (before, after), span, more in numbers
        )

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        found = self.slide()
        for step, gap, more in zip(found.steps, found.gaps, self.extra(), strict=True):
            if more >= max(step, gap):
                raise BlockError(
                    f"an output padding of {more} is not less than the stride {step} or the dilation {gap}",
                    field="output_padding",
                )
        for name, length in zip(self.along, self.output_lengths(sizes), strict=True):
            if isinstance(length, int) and length < 1:
                raise BlockError(f"a {name} of {length} is left of the output", field="padding", hint="use less padding")
        check_groups(self.groups, sizes["channels"], self.out)

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        first, *others = (sizes[name] for name in self.along)
        return {**super().constants(inputs, sizes), "extras": self.extra(), "places": prod(others, start=first)}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        found = self.slide()
        places = zip(self.along, found.kernel, found.steps, strict=True)
        return tuple(sizes[name] for name, kernel, step in places if kernel > 1 or step > 1)

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> Cost:
        return Cost("2 * batch * places * channels * (out // groups) * taps")

    def look(self, view: BlockView) -> Look:
        facts = (f"{size(view.sizes['channels'])} → {grouped(self.out)}", *captions(self, stride=1, dilation=1, groups=1))
        return Look("Transposed convolution", facts, "embed", brief=briefly("Transposed convolution", facts))


class ConvTranspose1d(Transposed, kind="conv_transpose1d"):
    """One-dimensional transposed convolution over positions, which makes a sequence longer:
    `y[t · stride + k · dilation - padding] += W[k] x[t]` for every t and k, and b everywhere.

    A sequence of n positions gets `(n - 1) · stride - 2 · padding + dilation · (kernel_size - 1) + 1 + output_padding`. Every
    position adds to several of the output, so a model that generates cannot use it along its text.
    """

    example = """
inputs: {x: "float[batch, time, 16]"}
graph:
  up: {type: conv_transpose1d, out: 8, kernel_size: 4, stride: 2, padding: 1}
"""
    along = ("time",)
    inputs = {"x": "float[batch, time, channels]"}
    outputs = {"y": "float[batch, (time - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + 1 + output_padding, out]"}
    weights = {
        "weight": Tensor(("channels", "out // groups", "kernel_time"), "matrix", START),
        "bias": Tensor(("out",), "bias", START, when="bias"),
    }

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        batch, time, channels = inputs["x"].axes
        axes = (batch, replace(time, size=self.output_lengths(sizes)[0]), replace(channels, name="out", size=self.out))
        return {"y": replace(inputs["x"], axes=axes)}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        y = F.conv_transpose1d(
            x.transpose(1, 2), self.weight, self.bias, self.steps, self.pads, self.extras, self.groups, self.gaps
        )
        return y.transpose(1, 2)  # [B, T, out]


class ConvTranspose2d(Transposed, kind="conv_transpose2d"):
    """Two-dimensional transposed convolution, which makes an image larger:
    `y[r · stride + i · dilation - padding, c · stride + j · dilation - padding] += W[i, j] x[r, c]` for every pixel of x and of
    the kernel, and b everywhere.

    Along each axis, n pixels give `(n - 1) · stride - 2 · padding + dilation · (kernel_size - 1) + 1 + output_padding`. The
    numbers are one for both axes, or a list of those of the height and of the width.
    """

    example = """
inputs: {image: "float[batch, 16, 8, 8]"}
graph:
  up: {type: conv_transpose2d, out: 8, kernel_size: 2, stride: 2}
"""
    along = ("height", "width")
    inputs = {"x": "float[batch, channels, height, width]"}
    outputs = {
        "y": "float[batch, out, (height - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + 1 + output_padding, "
        "(width - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + 1 + output_padding]"
    }
    weights = {
        "weight": Tensor(("channels", "out // groups", "kernel_height", "kernel_width"), "matrix", START),
        "bias": Tensor(("out",), "bias", START, when="bias"),
    }

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"y": image_of(inputs["x"], self.out, self.output_lengths(sizes))}

    def build(self, sizes: Sizes) -> Call:
        found = self.slide()
        numbers = {
            "stride": (found.steps, 1),
            "padding": (found.plain()["pads"], 0),
            "output_padding": (self.extra(), 0),
            "groups": ((self.groups,), 1),
            "dilation": (found.gaps, 1),
        }
        others = {name: alone(value) for name, (value, default) in numbers.items() if alone(value) != default}
        return Call("nn.ConvTranspose2d", ("channels", "out", alone(found.kernel)), {**others, "bias": "bias"})
