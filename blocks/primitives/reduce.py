"""Operations that remove axes: sum, mean, extremes, selection of an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from blocks.core import AxesRef, AxisRef, Block, BlockError, BlockView, Look, Sizes, torch
from blocks.primitives.axes import axes_in_words, axis_in_words, axis_index, axis_indices, changed

FEW = 2
"""Axes that a drawing names one by one where there are no others."""


class Reduction(Block):
    """Replaces all values along an axis, or along several, by one, and removes the axes."""

    axis: AxesRef
    """The axis to remove, or a list of several, `[height, width]`, in any order."""

    pools: ClassVar[bool] = False
    """Whether a closed box around it tells it, as it does pooling."""
    is_primitive = True
    inputs = {"x": "number[...]"}
    outputs = {"y": "number[...]"}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        axes, removed = sizes["..."], _several(sizes["dim"])
        left = tuple(axis for place, axis in enumerate(axes, -len(axes)) if place not in removed)
        return {"y": replace(inputs["x"], axes=left)}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        if not self.axis:
            raise BlockError("takes at least one axis", field="axis", hint="axis: [height, width]")
        first, *others = sorted(axis_indices(sizes["..."], _several(self.axis)))
        return {"dim": (first, *others) if others else first}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return tuple(sizes["..."][dim].size for dim in _several(sizes["dim"]))

    def look(self, view: BlockView) -> Look:
        title = self.called().removesuffix(" along an axis")
        every = FEW < len(_several(self.axis)) == len(view.sizes.get("...", ()))
        over = "over all axes" if every else f"over {axes_in_words(_several(self.axis), view.axes)}"
        operation = (f"{title.lower()} {over}", title.lower()) if self.pools else ()
        return Look(title, (over,), "merge", operation=operation)


class OfOneAxis(Reduction):
    """Takes one place along an axis, which one number tells, and removes the axis."""

    axis: AxisRef
    """The axis to remove."""


class Sum(Reduction, kind="sum"):
    """Sum along an axis: `y = Σᵢ xᵢ`."""

    title = "Sum along an axis"
    causal_forms = ("`cumsum`",)
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: sum, axis: last, in: x}}
"""

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"y": changed(super().output_types(inputs, sizes)["y"])}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x.sum(self.dim)


class Mean(Reduction, kind="mean"):
    """Mean along an axis: `y = Σᵢ xᵢ / n`."""

    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: mean, axis: time, in: x}}
"""
    causal_forms = ("`cumsum`", "`mean_pool1d` with `causal: true`")
    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x.mean(self.dim)


class Max(Reduction, kind="max"):
    """Maximum along an axis: `y = maxᵢ xᵢ`; equal maxima share the gradient."""

    pools: ClassVar[bool] = True
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: max, axis: time, in: x}}
"""
    causal_forms = ("`max_pool1d` with `causal: true`",)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x.amax(self.dim)


class Min(Reduction, kind="min"):
    """Minimum along an axis: `y = minᵢ xᵢ`; equal minima share the gradient."""

    title = "Minimum"
    pools: ClassVar[bool] = True
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: min, axis: last, in: x}}
"""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x.amin(self.dim)


class LogSumExp(Reduction, kind="logsumexp"):
    """Logarithm of the sum of exponentials along an axis, without overflow: `y = log Σᵢ exp(xᵢ)`; in float32, also under
    bfloat16.
    """

    title = "Log-sum-exp"
    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: logsumexp, axis: last, in: x}}
"""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.promote_types(x.dtype, torch.float32)).logsumexp(self.dim).to(x.dtype)


class ArgMax(OfOneAxis, kind="argmax"):
    """Index of the largest value along an axis: `y = argmaxᵢ xᵢ`; of equal ones, the first. No gradient flows through it."""

    title = "Arg max"
    outputs = {"y": "int[...]"}
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: argmax, axis: last, in: x}}
"""

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"y": replace(changed(super().output_types(inputs, sizes)["y"]), dtype="int")}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x.argmax(self.dim)

    def look(self, view: BlockView) -> Look:
        return replace(super().look(view), operation=(self.called().lower(),))


class Select(OfOneAxis, kind="select"):
    """Select one index of an axis: `y = x[index]`."""

    index: int
    """The index, from 0; a negative one counts from the end."""

    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: select, axis: time, index: 0, in: x}}
"""
    inputs = {"x": "any[...]"}
    outputs = {"y": "any[...]"}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        count = sizes["..."][axis_index(sizes["..."], self.axis)].size
        if isinstance(count, int) and not -count <= self.index < count:
            raise BlockError(
                f"index {self.index} is out of range for an axis of {count}",
                field="index",
                hint=f"indices run from 0 to {count - 1}",
            )

    def look(self, view: BlockView) -> Look:
        axes, said = view.sizes.get("...", ()), axis_in_words(self.axis, view.axes)
        if axes and axes[axis_index(axes, self.axis)].size == 1:  # there is no other index
            return Look("Squeeze", (said,), "merge", low=True)
        return Look(self.called(), (f"index {self.index} of {said}",), "merge", low=True)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        if not -x.shape[self.dim] <= self.index < x.shape[self.dim]:
            raise IndexError(f"index {self.index} is out of range for an axis of {x.shape[self.dim]}")
        return x.select(self.dim, self.index)


def _several(one_or_more: Any) -> tuple[Any, ...]:
    """Return what is one or a tuple of some as a tuple."""
    return one_or_more if isinstance(one_or_more, tuple) else (one_or_more,)
