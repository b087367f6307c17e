"""Convolution over positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from blocks.convolution.conv2d import check_groups
from blocks.core import (
    Block,
    BlockView,
    Cost,
    F,
    Init,
    Look,
    Paper,
    PositiveInt,
    Sizes,
    Tensor,
    cached,
    grouped,
    size,
    store_carry,
    torch,
)


class Conv1d(Block, kind="conv1d"):
    """One-dimensional convolution over positions: `y[t] = b + Σₖ W[k] x[t · stride + k · dilation - before]`, with zero padding
    at both ends.

    `before` is half of the kernel's span, (kernel_size - 1) · dilation; with `causal` it is the whole span, so that no position
    sees a later one. The output has ⌈time / stride⌉ positions.
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
    bias: bool = True
    """Whether `b` is added."""

    is_primitive = True
    paper = Paper("Phoneme Recognition Using Time-Delay Neural Networks", "IEEE TASSP 37 (1989)")
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: conv1d, out: 12, kernel_size: 3, causal: true, in: x}}
"""
    inputs = {"x": "float[batch, time, dim]"}
    outputs = {"y": "float[batch, (time + stride - 1) // stride, out]"}
    causal_forms = ("`causal: true`",)
    carry = {"seen": "float[batch, (kernel_size - 1) * dilation, dim]"}
    # torch's own initial values: those of a linear map with the same number of inputs.
    weights = {
        "weight": Tensor(
            ("out", "dim // groups", "kernel_size"), "matrix", Init("uniform", "1 / sqrt(dim // groups * kernel_size)")
        ),
        "bias": Tensor(("out",), "bias", Init("uniform", "1 / sqrt(dim // groups * kernel_size)"), when="bias"),
    }

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        check_groups(self.groups, sizes["dim"], self.out)

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        batch, time, dim = inputs["x"].axes
        moved = time.size if self.stride == 1 else (time.size + self.stride - 1) // self.stride
        return {"y": replace(inputs["x"], axes=(batch, replace(time, size=moved), replace(dim, size=self.out)))}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return () if self.causal or self.kernel_size == 1 else (sizes["time"],)

    def past_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["time"],) if self.causal and self.kernel_size > 1 else ()

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> Cost:
        return Cost("2 * batch * ((time + stride - 1) // stride) * out * (dim // groups) * kernel_size")

    def look(self, view: BlockView) -> Look:
        facts = [f"{size(view.sizes['dim'])} → {grouped(self.out)}", f"kernel {self.kernel_size}"]
        others = {"stride": self.stride, "dilation": self.dilation, "groups": self.groups}
        facts += [f"{name} {value}" for name, value in others.items() if value != 1]
        return Look("Causal convolution" if self.causal else "Convolution", tuple(facts), "embed")

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        span = (self.kernel_size - 1) * self.dilation
        if self.causal and span:
            before = cached(self, "seen")
            x = F.pad(x, (0, 0, span, 0)) if before is None else torch.cat([before, x], 1)  # [B, span + T, D]
            rows = x.shape[1] - span
            store_carry(self, rows, seen=x.narrow(1, rows, span))
            padded = x.transpose(1, 2)
        else:
            padded = F.pad(x.transpose(1, 2), (span // 2, span - span // 2))  # [B, D, span + T]
        y = F.conv1d(padded, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
        return y.transpose(1, 2)  # [B, T, out]
