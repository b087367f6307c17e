"""Convolution over positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from blocks.attention.heads import nearest_divisors
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
    append_to_cache,
    grouped,
    size,
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

    paper = Paper("Phoneme Recognition Using Time-Delay Neural Networks", "IEEE TASSP 37 (1989)")
    inputs = {"x": "float[batch, time, dim]"}
    outputs = {"y": "float[batch, (time + stride - 1) // stride, out]"}
    cache_slots = {"seen": "float[batch, time, dim]"}
    # torch's own initial values: those of a linear map with the same number of inputs.
    weights = {
        "weight": Tensor(
            ("out", "dim // groups", "kernel_size"), "matrix", Init("uniform", "1 / sqrt(dim // groups * kernel_size)")
        ),
        "bias": Tensor(("out",), "bias", Init("uniform", "1 / sqrt(dim // groups * kernel_size)"), when="bias"),
    }

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        for name, channels in (("the input", sizes["dim"]), ("the output", self.out)):
            if isinstance(channels, int) and channels % self.groups:
                raise BlockError(
                    f"{channels} channels of {name} cannot be split into {self.groups} groups",
                    field="groups",
                    hint=nearest_divisors(channels, self.groups),
                    code="indivisible",
                )

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        batch, time, dim = inputs["x"].axes
        moved = time.size if self.stride == 1 else (time.size + self.stride - 1) // self.stride
        return {"y": replace(inputs["x"], axes=(batch, replace(time, size=moved), replace(dim, size=self.out)))}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return () if self.causal or self.kernel_size == 1 else (sizes["time"],)

    def cost(self, sizes: Sizes, wired: frozenset[str]) -> Cost:
        return Cost("2 * batch * ((time + stride - 1) // stride) * out * (dim // groups) * kernel_size")

    def look(self, view: BlockView) -> Look:
        facts = [f"{size(view.sizes['dim'])} → {grouped(self.out)}", f"kernel {self.kernel_size}"]
        others = {"stride": self.stride, "dilation": self.dilation, "groups": self.groups}
        facts += [f"{name} {value}" for name, value in others.items() if value != 1]
        return Look("Causal convolution" if self.causal else "Convolution", tuple(facts), "embed")

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        span = (self.kernel_size - 1) * self.dilation
        if self.causal:
            seen = append_to_cache(self, "seen", x)[
                :, -x.shape[1] - span :
            ]  # with the inputs of earlier calls that the kernel reaches
            before, after = x.shape[1] + span - seen.shape[1], 0
        else:
            seen, before, after = x, span // 2, span - span // 2
        padded = F.pad(seen.transpose(1, 2), (before, after))  # [B, D, span + T]
        y = F.conv1d(padded, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
        return y.transpose(1, 2)  # [B, T, out]
