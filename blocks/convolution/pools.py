"""Pooling by a kernel that slides along positions, or over the pixels of an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, Literal

from blocks.convolution.conv2d import image_of
from blocks.convolution.kernels import Sliding, SlidingKernel, alone, captions, slide
from blocks.core import (
    BlockError,
    BlockView,
    Call,
    F,
    Look,
    NonNegativeInt,
    PositiveInt,
    Sizes,
    cached,
    declaration,
    store_carry,
    torch,
)


class KernelPooling(Sliding):
    """Pools what a kernel reads, without its axes."""

    stride: PositiveInt | tuple[PositiveInt, ...] | None = None
    """Step of the kernel between neighboring places; by default, `kernel_size`."""
    padding: Literal["same"] | NonNegativeInt | tuple[NonNegativeInt, ...] | None = None
    """What is added on each side, at most half of what the kernel spans; `same` adds as much as keeps the size if the
    stride is 1.
    """
    ceil_mode: bool = False
    """Whether what is left at the end, too short for a step, gets a place too, in which the kernel reads what is there."""

    def slide(self) -> SlidingKernel:
        dilation = getattr(self, "dilation", 1)
        return slide(len(self.along), self.kernel_size, self.stride, self.padding, dilation, ceil=self.ceil_mode)

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        super().check(sizes, wired)
        found = self.slide()
        for (before, _), limit in zip(found.around, self.spans(), strict=True):
            if found.even and before > limit // 2:
                message = f"a padding of {before} is more than half of a kernel of {limit}"
                raise BlockError(message, field="padding", hint=f"with at most {limit // 2}, every place has something to read")
        for (_, after), step, span in zip(found.around, found.steps, found.spans, strict=True):
            if self.ceil_mode and step + after > span:
                raise BlockError(
                    f"a last place beyond the end would read nothing of a kernel that spans {span}, at a stride of {step}",
                    field="ceil_mode",
                    hint="the stride and the padding together may be as long as the kernel",
                )

    @declaration
    def spans(self) -> tuple[int, ...]:
        """Return, for each axis, twice the largest padding."""
        return self.slide().kernel

    def look(self, view: BlockView) -> Look:
        facts = captions(self, dilation=1)
        step = self.slide().steps
        stride = () if step == self.slide().kernel else (f"stride {' × '.join(map(str, dict.fromkeys(step)))}",)
        title = f"Causal {self.called().lower()}" if getattr(self, "causal", False) else self.called()
        sized = f"{title} {facts[0].removeprefix('kernel ')}"
        operation = (*(f"{sized}, {one}" for one in stride), sized, title)
        return Look(title, (facts[0], *stride, *facts[1:]), "merge", operation=operation)


class ImagePooling(KernelPooling):
    """Pooling over the pixels of an image."""

    along = ("height", "width")
    inputs = {"x": "float[batch, channels, height, width]"}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"y": image_of(inputs["x"], None, self.slide().lengths([sizes["height"], sizes["width"]]))}


class PositionPooling(KernelPooling):
    """Pooling over positions."""

    causal: bool = False
    """Whether a position sees no later one: it is pooled with those before it, at a stride of 1."""

    along = ("time",)
    causal_forms = ("`causal: true`",)
    inputs = {"x": "float[batch, time, dim]"}
    carry = {"seen": "float[batch, time, dim]"}

    def slide(self) -> SlidingKernel:
        dilation = getattr(self, "dilation", 1)
        if self.causal:
            return slide(1, self.kernel_size, 1 if self.stride is None else self.stride, None, dilation, causal=True)
        return slide(1, self.kernel_size, self.stride, self.padding, dilation, ceil=self.ceil_mode)

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        super().check(sizes, wired)
        if self.causal and self.slide().steps != (1,):
            raise BlockError("a causal pooling gives a value for each position, so its stride is 1", field="stride")
        if self.causal and self.padding is not None:
            raise BlockError("a causal pooling has its padding on the left, as much as the kernel spans", field="padding")

    def spans(self) -> tuple[int, ...]:
        return self.slide().spans

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return () if self.causal else super().mixed_axes(sizes)

    def past_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["time"],) if self.causal and self.spans() != (1,) else ()

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        batch, time, dim = inputs["x"].axes
        return {"y": replace(inputs["x"], axes=(batch, replace(time, size=self.slide().lengths([time.size])[0]), dim))}

    def around(self: Any, x: torch.Tensor) -> tuple[torch.Tensor, tuple[int, int]]:
        """Return what the kernel reads, [B, D, T], and how much is missing before and after it."""
        if not self.causal:
            return x.transpose(1, 2), self.missing
        reach, before = self.missing[0], cached(self, "seen")
        seen = x if before is None else torch.cat([before, x], 1)  # with the inputs of earlier calls that it reaches
        store_carry(self, x.shape[1], seen=seen[:, max(seen.shape[1] - reach, 0) :])
        return seen.transpose(1, 2), (x.shape[1] + reach - seen.shape[1], 0)

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {**super().constants(inputs, sizes), "missing": self.slide().around[0]}


class MaxPool1d(PositionPooling, kind="max_pool1d"):
    """Largest value of each channel among the positions that a kernel reads:
    `y[t] = maxₖ x[t · stride + k · dilation - padding]`.

    A sequence of n positions gets `(n + 2 · padding - dilation · (kernel_size - 1) - 1) // stride + 1`. What is added at the ends
    is never the largest. With `causal`, position t is pooled with the earlier ones that the kernel reaches.
    """

    dilation: PositiveInt | tuple[PositiveInt, ...] = 1
    """Distance between neighboring positions of the kernel."""

    title = "Max pooling"
    example = """
inputs: {x: "float[batch, time, 16]"}
graph:
  halved: {type: max_pool1d, kernel_size: 2}
  lately: {type: max_pool1d, kernel_size: 3, causal: true}
"""
    outputs = {"y": "float[batch, (time + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1, dim]"}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        x, missing = self.around(x)
        y = F.max_pool1d(F.pad(x, missing, value=-inf), self.kernel, self.steps, 0, self.gaps, self.ceil_mode)
        return y.transpose(1, 2)  # [B, places, D]


class MeanPool1d(PositionPooling, kind="mean_pool1d"):
    """Mean of each channel over the positions that a kernel reads: `y[t] = Σₖ x[t · stride + k - padding] / kernel_size`.

    A sequence of n positions gets `(n + 2 · padding - kernel_size) // stride + 1`. With `causal`, position t is pooled with the
    earlier ones that the kernel reaches.
    """

    count_include_pad: bool = True
    """Whether the zeros that are added at the ends count in the mean; otherwise it is over positions that exist."""

    title = "Mean pooling"
    example = """
inputs: {x: "float[batch, time, 16]"}
graph:
  halved: {type: mean_pool1d, kernel_size: 2}
  lately: {type: mean_pool1d, kernel_size: 3, causal: true, count_include_pad: false}
"""
    outputs = {"y": "float[batch, (time + 2 * padding - kernel_size) // stride + 1, dim]"}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        x, missing = self.around(x)
        y = F.avg_pool1d(F.pad(x, missing), self.kernel, self.steps, 0, self.ceil_mode)
        if not self.count_include_pad:
            there = F.pad(x.new_ones(1, 1, x.shape[2]), missing)
            y = y / F.avg_pool1d(
                there, self.kernel, self.steps, 0, self.ceil_mode
            )  # the share of the kernel that reads positions
        return y.transpose(1, 2)  # [B, places, D]


class MaxPool2d(ImagePooling, kind="max_pool2d"):
    """Largest value of each channel among the pixels that a kernel reads:
    `y[r, c] = maxᵢⱼ x[r · stride + i · dilation - padding, c · stride + j · dilation - padding]`.

    Along each axis, n pixels give `(n + 2 · padding - dilation · (kernel_size - 1) - 1) // stride + 1`. What is added around the
    image is never the largest. The numbers are one for both axes, or a list of those of the height and of the width.
    """

    dilation: PositiveInt | tuple[PositiveInt, ...] = 1
    """Distance between neighboring pixels of the kernel."""

    title = "Max pooling"
    example = """
inputs: {image: "float[batch, 3, 32, 32]"}
graph:
  pool: {type: max_pool2d, kernel_size: 3, stride: 2, padding: 1}
"""
    outputs = {
        "y": "float[batch, channels, (height + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1, "
        "(width + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1]"
    }

    def build(self, sizes: Sizes) -> Call | None:
        found = self.slide()
        if not found.even:
            return None
        numbers = {"padding": (found.plain()["pads"], 0), "dilation": (found.gaps, 1)}
        others: dict[str, Any] = {name: alone(value) for name, (value, default) in numbers.items() if alone(value) != default}
        others |= {"ceil_mode": True} if self.ceil_mode else {}
        return Call("nn.MaxPool2d", (alone(found.kernel), alone(found.steps)), others)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(F.pad(x, self.edges, value=-inf), self.kernel, self.steps, 0, self.gaps, self.ceil_mode)


class MeanPool2d(ImagePooling, kind="mean_pool2d"):
    """Mean of each channel over the pixels that a kernel reads: `y[r, c] = Σᵢⱼ x[r · stride + i - padding,
    c · stride + j - padding] / kernel_size²`.

    Along each axis, n pixels give `(n + 2 · padding - kernel_size) // stride + 1`. The numbers are one for both axes, or a list
    of those of the height and of the width.
    """

    count_include_pad: bool = True
    """Whether the zeros that are added around the image count in the mean; otherwise it is over pixels that exist."""

    title = "Mean pooling"
    example = """
inputs: {image: "float[batch, 3, 32, 32]"}
graph:
  pool: {type: mean_pool2d, kernel_size: 2}
"""
    outputs = {
        "y": "float[batch, channels, (height + 2 * padding - kernel_size) // stride + 1, "
        "(width + 2 * padding - kernel_size) // stride + 1]"
    }

    def build(self, sizes: Sizes) -> Call | None:
        found = self.slide()
        if not found.even:
            return None
        others: dict[str, Any] = {"padding": alone(found.plain()["pads"])} if any(found.plain()["pads"]) else {}
        others |= {} if self.count_include_pad else {"count_include_pad": False}
        others |= {"ceil_mode": True} if self.ceil_mode else {}
        return Call("nn.AvgPool2d", (alone(found.kernel), alone(found.steps)), others)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        y = F.avg_pool2d(F.pad(x, self.edges), self.kernel, self.steps, 0, self.ceil_mode)
        if self.count_include_pad:
            return y
        there = F.pad(x.new_ones(1, 1, *x.shape[2:]), self.edges)
        return y / F.avg_pool2d(there, self.kernel, self.steps, 0, self.ceil_mode)  # the share of the kernel that reads pixels
