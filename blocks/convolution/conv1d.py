"""Convolution over positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from blocks.convolution.conv2d import check_groups, is_depthwise
from blocks.convolution.kernels import OTHER_PADDING, SlidingKernel, briefly, slide
from blocks.core import (
    Block,
    BlockError,
    BlockView,
    Cost,
    F,
    Init,
    Look,
    NonNegativeInt,
    Paper,
    PositiveInt,
    Sizes,
    Tensor,
    Weights,
    cached,
    declaration,
    grouped,
    size,
    store_carry,
    torch,
)


class Conv1d(Block, kind="conv1d"):
    """One-dimensional convolution over positions: `y[t] = b + Σₖ W[k] x[t · stride + k · dilation - before]`, with zero padding
    at both ends.

    `before` is half of the kernel's span, (kernel_size - 1) · dilation; with `causal` it is the whole span, so that no position
    sees a later one. The output has ⌈time / stride⌉ positions. With a number as `padding`, so many zeros are at each end, and the
    output has `(time + 2 · padding - span - 1) // stride + 1` positions. A `kernel` that is wired is W, as a tensor that the
    recipe computes, such as one with weight normalization; without it, W is learned.
    """

    out: PositiveInt
    """Number of output channels; `out_channels` in torch."""
    kernel_size: PositiveInt
    """Number of positions in the kernel."""
    stride: PositiveInt = 1
    """Step of the kernel between neighboring output positions."""
    dilation: PositiveInt = 1
    """Distance between neighboring positions of the kernel."""
    groups: PositiveInt = 1
    """Groups of channels that are convolved separately; as many as there are channels is a depthwise convolution."""
    causal: bool = False
    """Whether a position sees no later one: all padding is on the left."""
    padding: Literal["same"] | NonNegativeInt | tuple[NonNegativeInt, ...] = "same"
    """Zeros at each end; `same` adds as many as keep the length at a stride of 1, an odd one on the right."""
    bias: bool = True
    """Whether `b` is added."""

    other_choices = OTHER_PADDING
    is_primitive = True
    paper = Paper("Phoneme Recognition Using Time-Delay Neural Networks", "IEEE TASSP 37 (1989)")
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: conv1d, out: 12, kernel_size: 3, causal: true, in: x}}
"""
    inputs = {"x": "float[batch, time, dim]", "kernel?": "float[out, group, kernel_size]"}
    outputs = {"y": "float[batch, places, out]"}
    causal_forms = ("`causal: true`",)
    carry = {"seen": "float[batch, (kernel_size - 1) * dilation, dim]"}

    def weights(self, sizes: Sizes, wired: frozenset[str]) -> Weights:
        # torch's own initial values: those of a linear map with the same number of inputs.
        start = Init("uniform", "1 / sqrt(dim // groups * kernel_size)")
        kernel = {} if "kernel" in wired else {"weight": Tensor(("out", "dim // groups", "kernel_size"), "matrix", start)}
        return {**kernel, "bias": Tensor(("out",), "bias", start, when="bias")}

    @declaration
    def slide(self) -> SlidingKernel:
        """Return its numbers along the positions."""
        return slide(1, self.kernel_size, self.stride, self.padding, self.dilation, causal=self.causal)

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        check_groups(self.groups, sizes["dim"], self.out)
        if self.causal and self.padding != "same":
            raise BlockError("`causal` says that all padding is on the left, so `padding` must be left out", field="padding")
        self.slide().check({"time": sizes["time"]})
        if "kernel" in wired and sizes["group"] != (each := sizes["dim"] // self.groups):
            raise BlockError(
                f"takes a kernel of [{self.out}, {each}, {self.kernel_size}], with {each} channels in each group, and not "
                f"{sizes['group']}",
                port="kernel",
                code="type-mismatch",
            )

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        found = self.slide()
        return {"places": found.lengths([sizes["time"]])[0], "around": found.around[0]}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        batch, time, dim = inputs["x"].axes
        return {"y": replace(inputs["x"], axes=(batch, replace(time, size=sizes["places"]), replace(dim, size=self.out)))}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return () if self.causal or self.kernel_size == 1 else (sizes["time"],)

    def past_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["time"],) if self.causal and self.kernel_size > 1 else ()

    def taps(self, sizes: Sizes) -> tuple[Any, tuple[int, ...]] | None:
        before, _ = self.slide().around[0]
        read = tuple(number * self.dilation - before for number in range(self.kernel_size))
        return (sizes["time"], read) if self.stride == 1 else None

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> Cost:
        return Cost("2 * batch * places * out * (dim // groups) * kernel_size")

    def look(self, view: BlockView) -> Look:
        deep = is_depthwise(self.groups, view.sizes["dim"])
        facts = [f"{size(view.sizes['dim'])} → {grouped(self.out)}", f"kernel {self.kernel_size}"]
        others = {"stride": self.stride, "dilation": self.dilation, **({} if deep else {"groups": self.groups})}
        facts += [f"{name} {value}" for name, value in others.items() if value != 1]
        facts += [] if self.padding == "same" else [f"padding {self.slide().around[0][0]}"]
        title = f"{'causal ' * self.causal}{'depthwise ' * deep}convolution".capitalize()
        return Look(title, tuple(facts), "embed", brief=briefly(title, facts), unsaid=("stride 1", "dilation 1"))

    def forward(self: Any, x: torch.Tensor, kernel: torch.Tensor | None = None) -> torch.Tensor:
        before, after = self.around
        if self.causal and before:
            held = cached(self, "seen")
            x = F.pad(x, (0, 0, before, 0)) if held is None else torch.cat([held, x], 1)  # [B, span + T, D]
            rows = x.shape[1] - before
            store_carry(self, rows, seen=x.narrow(1, rows, before))
            padded = x.transpose(1, 2)
        else:
            padded = F.pad(x.transpose(1, 2), (before, after))  # [B, D, span + T]
        weight = self.weight if kernel is None else kernel
        y = F.conv1d(padded, weight, self.bias, self.stride, 0, self.dilation, self.groups)
        return y.transpose(1, 2)  # [B, T, out]
