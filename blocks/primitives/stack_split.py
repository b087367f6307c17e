"""Stacking inputs on a new axis, and splitting an axis into several outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from blocks.core import AxisRef, Block, BlockError, BlockView, Look, PositiveInt, Sizes, torch
from blocks.primitives.axes import axis_in_words, axis_index, changed


class Stack(Block, kind="stack"):
    """Stack the inputs along a new axis, called `inputs`; all inputs must have the same axes."""

    axis: AxisRef = "last"
    """The axis before which the new one is inserted; `last` appends it."""

    is_primitive = True
    is_ordered = True
    example = """
inputs: {a: "float[batch, 8]", b: "float[batch, 8]"}
graph: {y: {type: stack, in: [a, b]}}
"""
    inputs = {"xs*": "any[...]"}
    outputs = {"y": "any[...]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        first, *others = of_port(inputs["xs"])
        for index, other in enumerate(others, start=1):
            if not first.agrees(other):
                raise BlockError(f"cannot stack {first} and {other}", port="xs", index=index, code="type-mismatch")
        return {"dim": -1 if self.axis == "last" else axis_index(first.axes, self.axis) - 1}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        several = of_port(inputs["xs"])
        axes = several[0].axes
        new = replace(axes[0], name="inputs", size=len(several))
        index = len(axes) + 1 + sizes["dim"]
        return {"y": replace(changed(several[0]), axes=(*axes[:index], new, *axes[index:]))}

    def look(self, view: BlockView) -> Look:
        before = () if self.axis == "last" else (f"along a new axis before {axis_in_words(self.axis, view.axes)}",)
        return Look(self.called(), before, "merge", low=True)

    def forward(self: Any, *xs: torch.Tensor) -> torch.Tensor:
        return torch.stack(xs, dim=self.dim)


def of_port(given: Any) -> tuple[Any, ...]:
    """Return the types at a port that takes several."""
    return given if isinstance(given, tuple) else (given,)


class Split(Block, kind="split"):
    """Split an axis into pieces, each an output with a name of its own: `name.a`, `name.b`."""

    into: tuple[str, ...]
    """Names of the pieces, in order."""
    axis: AxisRef = "last"
    """The axis to split."""
    sizes: tuple[PositiveInt, ...] = ()
    """Size of each piece; without it, all are equal."""

    is_primitive = True
    example = """
inputs: {x: "float[batch, time, 8]"}
graph:
  parts: {type: split, into: [a, b], in: x}
  y: {type: multiply, in: [parts.a, parts.b]}
"""
    inputs = {"x": "any[...]"}
    named_by = "into"

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        if len(self.into) < 2:
            raise BlockError("a split needs at least two pieces", field="into", hint="into: [first, second]")
        for before, after in pairwise(sorted(self.into)):
            if before == after:
                raise BlockError(f"two pieces are called `{before}`", field="into")
        if self.sizes and len(self.sizes) != len(self.into):
            raise BlockError(f"there are {len(self.into)} pieces, but {len(self.sizes)} sizes", field="sizes")

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        dim = axis_index(sizes["..."], self.axis)
        whole, count = inputs["x"].sizes[dim], len(self.into)
        if not isinstance(whole, int):
            raise BlockError(
                f"`{whole}` is known only when the model runs", field="axis", hint="split an axis whose size is a number"
            )
        if not self.sizes and whole % count:
            raise BlockError(
                f"an axis of {whole} cannot be split into {count} equal pieces",
                field="into",
                hint="write `sizes`",
                code="indivisible",
            )
        if self.sizes and sum(self.sizes) != whole:
            raise BlockError(f"the sizes add up to {sum(self.sizes)}, and the axis has {whole}", field="sizes")
        return {"dim": dim, "parts": self.sizes or (whole // count,) * count}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        x, dim = inputs["x"], sizes["dim"]
        index = len(x.axes) + dim
        return {
            name: replace(x, axes=(*x.axes[:index], replace(x.axes[index], size=part), *x.axes[index + 1 :]))
            for name, part in zip(self.into, sizes["parts"], strict=True)
        }

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), (", ".join(self.into),), "merge", low=True)

    def forward(self: Any, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.split(x, self.parts, dim=self.dim)
