"""Blocks that leave one number of an axis: the mean, the largest, one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from blocks.core import AxisRef, Block, BlockError, BlockView, Look, Sizes, torch
from blocks.primitives.axes import axis_index


class Reduction(Block):
    """One number in place of all along an axis, which the output no longer has."""

    axis: AxisRef
    """The axis that goes: its name, or `last`."""

    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        axes = list(sizes["..."])
        del axes[sizes["dim"]]
        return {"y": replace(inputs["x"], axes=tuple(axes))}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"dim": axis_index(sizes["..."], self.axis)}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["..."][sizes["dim"]].size,)

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), (f"over {self.axis}",), "merge")


class Mean(Reduction, kind="mean"):
    """The mean along an axis: `y = Σᵢ xᵢ / n`."""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x.mean(self.dim)


class Max(Reduction, kind="max"):
    """The largest number along an axis: `y = maxᵢ xᵢ`; numbers that are equal share the gradient."""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x.amax(self.dim)


class Select(Reduction, kind="select"):
    """What stands at one place of an axis: `y = x[index]`."""

    index: int
    """The place, from 0 on; from the end where it is negative."""

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        count = sizes["..."][axis_index(sizes["..."], self.axis)].size
        if isinstance(count, int) and not -count <= self.index < count:
            raise BlockError(
                f"there is no place {self.index} in an axis of {count}", field="index", hint=f"places run from 0 to {count - 1}"
            )

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), (f"index {self.index} of {self.axis}",), "merge")

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x.select(self.dim, self.index)
