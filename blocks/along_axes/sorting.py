"""Operations that order the values along an axis: sort, the largest ones, the places of the largest ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import annotated_types

from blocks.core import AxisRef, Block, BlockError, BlockView, Look, Paper, PositiveInt, Sizes, torch
from blocks.primitives.axes import axis_in_words, axis_index, changed, resized


class Sort(Block, kind="sort"):
    """Sort along an axis: `y` has the values in ascending order, `indices` where each was. Equal values keep their order."""

    axis: AxisRef = "last"
    """The axis to sort along."""
    descending: bool = False
    """Whether the largest value comes first."""

    is_primitive = True
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
        return Look(self.called(), (f"along {axis_in_words(self.axis, view.axes)}", *["descending"] * self.descending), "merge")

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
    """The axis to choose along."""

    is_primitive = True
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
        return Look(f"Top {self.k}", (f"along {axis_in_words(self.axis, view.axes)}",), "merge", operation=(f"top {self.k}",))

    def forward(self: Any, x: torch.Tensor) -> Any:
        if self.k > x.shape[self.dim]:
            raise IndexError(f"{self.k} values cannot be chosen from an axis of {x.shape[self.dim]}")
        y, indices = torch.topk(x, self.k, dim=self.dim)
        return (y, indices) if "indices" in self.requested_outputs else y


class TopShare(Block, kind="top_share"):
    """Which positions of a sequence have the largest scores: y is true at the `share · n` best of its n positions, rounded up; of
    equal scores, the first ones.

    With `valid`, only valid positions count and are chosen, so that a row gives what it gives without its padding.
    """

    share: Annotated[float, annotated_types.Gt(0), annotated_types.Le(1)]
    """The share of the positions."""

    is_primitive = True
    paper = Paper("Mixture-of-Depths: Dynamically allocating compute in transformer-based language models", "arXiv:2404.02258")
    example = """
inputs: {x: "float[batch, time]"}
graph: {y: {type: top_share, share: 0.125, in: x}}
"""
    inputs = {"x": "float[batch, time]", "valid?": "bool[batch, time]"}
    outputs = {"y": "bool[batch, time]"}
    causal_forms = ("`in_training`, with what each position chooses by itself at other times",)

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["time"],)

    def look(self, view: BlockView) -> Look:
        return Look(f"Top {100 * self.share:.4g} %", ("of the positions",), "merge")

    def forward(self: Any, x: torch.Tensor, valid: torch.Tensor | None = None) -> Any:
        there = torch.ones_like(x, dtype=torch.bool) if valid is None else valid
        order = x.masked_fill(~there, -torch.inf).argsort(dim=1, descending=True, stable=True)  # [B, T]
        rank = order.argsort(dim=1)  # the place of each position in that order
        count = (self.share * there.sum(1, keepdim=True)).ceil()
        return (rank < count) & there
