"""Operations that order the values along an axis: sort, the largest ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from blocks.core import AxisRef, Block, BlockError, BlockView, Look, PositiveInt, Sizes, torch
from blocks.primitives.axes import axis_in_words, axis_index, changed, resized


class Sort(Block, kind="sort"):
    """Sort along an axis: `y` has the values in ascending order, `indices` where each was. Equal values keep their order."""

    axis: AxisRef = "last"
    """The axis: its name, or `last`."""
    descending: bool = False
    """Whether the largest value comes first."""

    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: sort, axis: last, in: x}}
"""
    inputs = {"x": "number[...]"}
    outputs = {"y": "number[...]", "indices?": "int[...]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"dim": axis_index(sizes["..."], self.axis)}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"y": inputs["x"], "indices": replace(changed(inputs["x"]), dtype="int")}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["..."][sizes["dim"]].size,)

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), (f"along {axis_in_words(self.axis)}", *["descending"] * self.descending), "merge")

    def forward(self: Any, x: torch.Tensor) -> Any:
        y, indices = torch.sort(x, dim=self.dim, descending=self.descending, stable=True)
        return (y, indices) if "indices" in self.requested_outputs else y


class TopValues(Block, kind="top_k"):
    """The k largest values along an axis, the largest first, and in `indices` where they were. Which one of equal values is
    chosen is not specified. The axis keeps its name.
    """

    k: PositiveInt
    """The number of values."""
    axis: AxisRef = "last"
    """The axis: its name, or `last`."""

    title = "Top k"
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: top_k, k: 2, axis: last, in: x}}
"""
    inputs = {"x": "number[...]"}
    outputs = {"y": "number[...]", "indices?": "int[...]"}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        count = sizes["..."][axis_index(sizes["..."], self.axis)].size
        if isinstance(count, int) and self.k > count:
            raise BlockError(f"{self.k} values cannot be chosen from an axis of {count}", field="k")

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"dim": axis_index(sizes["..."], self.axis)}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        y = resized(inputs["x"], sizes["dim"], self.k)
        return {"y": y, "indices": replace(changed(y), dtype="int")}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["..."][sizes["dim"]].size,)

    def look(self, view: BlockView) -> Look:
        return Look(f"Top {self.k}", (f"along {axis_in_words(self.axis)}",), "merge")

    def forward(self: Any, x: torch.Tensor) -> Any:
        if self.k > x.shape[self.dim]:
            raise IndexError(f"{self.k} values cannot be chosen from an axis of {x.shape[self.dim]}")
        y, indices = torch.topk(x, self.k, dim=self.dim)
        return (y, indices) if "indices" in self.requested_outputs else y
