"""Operations that combine several inputs into one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from blocks.core import AxisRef, Block, BlockError, BlockView, Init, InputAxes, Look, Sizes, Tensor, Weights, torch
from blocks.primitives.axes import axis_in_words, axis_index, changed
from blocks.primitives.stack_split import of_port


class Add(Block, kind="add"):
    """Sum of the inputs: `y = x₁ + x₂ + …`; axes are matched by name, and missing ones are broadcast."""

    axes: InputAxes = ()
    """Names for the axes of each input where these match in another way, such as `[batch time dim, dim]`."""

    is_primitive = True
    title = "Sum"
    example = """
inputs: {a: "float[batch, time, 8]", b: "float[batch, time, 8]"}
graph: {y: {type: add, in: [a, b]}}
"""
    inputs = {"xs*": "float[...]"}
    outputs = {"y": "float[...]"}
    broadcasts = True

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), hue="merge", sign="+")

    def forward(self: Any, *xs: torch.Tensor) -> torch.Tensor:
        y = xs[0]
        for x in xs[1:]:
            y = y + x
        return y

    def inline(self, sizes: Sizes) -> str:
        return "{xs: + }"


class Multiply(Block, kind="multiply"):
    """Elementwise (Hadamard) product of the inputs: `y = x₁ · x₂ · …`; axes are matched by name, and missing ones are
    broadcast.
    """

    axes: InputAxes = ()
    """Names for the axes of each input where these match in another way, such as `[rows, columns]`."""

    is_primitive = True
    title = "Product"
    example = """
inputs: {a: "float[batch, time, 8]", gate: "float[batch, time, 8]"}
graph: {y: {type: multiply, in: [a, gate]}}
"""
    inputs = {"xs*": "float[...]"}
    outputs = {"y": "float[...]"}
    broadcasts = True

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), hue="merge", sign="×")

    def forward(self: Any, *xs: torch.Tensor) -> torch.Tensor:
        y = xs[0]
        for x in xs[1:]:
            y = y * x
        return y

    def inline(self, sizes: Sizes) -> str:
        return "{xs: * }"


class WeightedSum(Block, kind="weighted_sum"):
    """Weighted sum of the inputs, with learned weights: `y = w₁ x₁ + w₂ x₂ + …`.

    The weights are unconstrained (no softmax) and start at one over the number of inputs, which gives the mean.
    """

    axes: InputAxes = ()
    """Names for the axes of each input where these match in another way, such as `[batch time dim, batch dim]`."""

    is_primitive = True
    example = """
inputs: {a: "float[batch, time, 8]", b: "float[batch, time, 8]"}
graph: {y: {type: weighted_sum, in: [a, b]}}
"""
    inputs = {"xs*": "float[...]"}
    outputs = {"y": "float[...]"}
    broadcasts = True

    def weights(self, sizes: Sizes, wired: frozenset[str]) -> Weights:
        return {"weight": Tensor(("inputs",), "gain", Init("constant", 1 / sizes["inputs"]))}

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), hue="embed")

    def forward(self: Any, *xs: torch.Tensor) -> Any:
        return torch.stack(xs, dim=-1) @ self.weight  # [..., inputs] by [inputs]


class Concat(Block, kind="concat"):
    """Concatenate the inputs along one axis; all other axes must agree."""

    axis: AxisRef = "last"
    """The axis to concatenate along."""

    is_primitive = True
    is_ordered = True
    title = "Concatenation"
    example = """
inputs: {a: "float[batch, time, 8]", b: "float[batch, time, 5]"}
graph: {y: {type: concat, in: [a, b]}}
"""
    inputs = {"xs*": "any[...]"}
    outputs = {"y": "any[...]"}

    def look(self, view: BlockView) -> Look:
        along = () if self.axis == "last" else (f"along {axis_in_words(self.axis, view.axes)}",)
        return Look(self.called(), along, hue="merge", sign="‖")

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        first, *others = of_port(inputs["xs"])
        dim = len(first.axes) + axis_index(first.axes, self.axis)
        for index, other in enumerate(others, start=1):
            if differs := difference(first, other, dim):
                message = f"cannot join {first} and {other} along axis {dim}: {differs}"
                raise BlockError(message, port="xs", index=index, code="type-mismatch")
        return {"dim": dim}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        several, dim = of_port(inputs["xs"]), sizes["dim"]
        axes = list(several[0].axes)
        axes[dim] = replace(axes[dim], size=sum((one.axes[dim].size for one in several[1:]), axes[dim].size))
        return {"y": replace(changed(several[0]), axes=tuple(axes))}

    def forward(self: Any, *xs: torch.Tensor) -> torch.Tensor:
        return torch.cat(xs, dim=self.dim)


def difference(first: Any, other: Any, dim: int) -> str:
    """Return the dtype or the axes other than `dim` in which two types differ; empty if they agree.

    Axes are told by their places, since their names may come from another block.
    """
    if other.dtype != first.dtype:
        return f"one is {first.dtype} and the other {other.dtype}"
    if len(other.axes) != len(first.axes):
        return f"one has {len(first.axes)} axes and the other {len(other.axes)}"
    pairs = enumerate(zip(first.sizes, other.sizes, strict=True))
    odd = ((index, a, b) for index, (a, b) in pairs if index != dim and a != b)
    return next((f"axis {index} is {a} in one and {b} in the other" for index, a, b in odd), "")
