"""Operations along an axis in which a position depends on itself and earlier ones: cumulative sum and product, shift, count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from blocks.core import (
    AxisRef,
    Block,
    BlockError,
    BlockView,
    Look,
    LoopIcon,
    Sizes,
    append_to_cache,
    cached,
    next_positions,
    store_carry,
    torch,
)
from blocks.primitives.axes import axis_in_words, axis_index, changed


class Running(Block):
    """Combines, at each position of an axis, the values up to it; a session carries the result so far from call to call."""

    axis: AxisRef
    """The axis to go along."""

    is_primitive = True
    inputs = {"x": "number[...]"}
    outputs = {"y": "number[...]"}
    carry = {"so_far": "number[...]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"dim": axis_index(sizes["..."], self.axis)}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"y": changed(inputs["x"])}

    def past_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["..."][sizes["dim"]].size,)

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), (f"along {axis_in_words(self.axis, view.axes)}",), "rec")

    def icon(self) -> LoopIcon:
        return LoopIcon()


class CumSum(Running, kind="cumsum"):
    """Cumulative sum along an axis: `y[t] = Σₛ x[s]` over all s ≤ t; floats are added in float32, also under bfloat16.

    Padding counts: multiply the input by the mask of what is valid to leave it out.
    """

    title = "Cumulative sum"
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: cumsum, axis: time, in: x}}
"""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(x.dtype, torch.float32) if x.is_floating_point() else x.dtype
        y = x.cumsum(self.dim, dtype=wide)
        before = cached(self, "so_far")
        if before is not None:
            y = y + before
        store_carry(self, x.shape[self.dim], so_far=y.narrow(self.dim, x.shape[self.dim] - 1, 1))
        return y.to(x.dtype)


class CumProd(Running, kind="cumprod"):
    """Cumulative product along an axis: `y[t] = Πₛ x[s]` over all s ≤ t; floats are multiplied in float32, also under
    bfloat16.
    """

    title = "Cumulative product"
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: cumprod, axis: time, in: x}}
"""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(x.dtype, torch.float32) if x.is_floating_point() else x.dtype
        y = x.to(wide).cumprod(self.dim)  # with `dtype=wide`, torch's gradient fails for zeros in bfloat16
        before = cached(self, "so_far")
        if before is not None:
            y = y * before
        store_carry(self, x.shape[self.dim], so_far=y.narrow(self.dim, x.shape[self.dim] - 1, 1))
        return y.to(x.dtype)


class Shift(Block, kind="shift"):
    """Shift along an axis, with zeros in the places that become free: `y[t] = x[t - by]`. A positive `by` looks back, as the
    token shift of RWKV does, and keeps the last positions while decoding; a negative one looks ahead.
    """

    axis: AxisRef
    """The axis to shift along."""
    by: int = 1
    """The number of positions."""

    is_primitive = True
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: shift, axis: time, by: 1, in: x}}
"""
    inputs = {"x": "any[...]"}
    outputs = {"y": "any[...]"}
    carry = {"last": "any[...]"}
    causal_forms = ("a positive `by`",)

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"dim": axis_index(sizes["..."], self.axis)}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"y": changed(inputs["x"])}

    def past_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["..."][sizes["dim"]].size,) if self.by > 0 else ()

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["..."][sizes["dim"]].size,) if self.by < 0 else ()

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), (f"by {self.by} along {axis_in_words(self.axis, view.axes)}",), "merge", low=True)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        rows, free = x.shape[self.dim], abs(self.by)
        before = cached(self, "last")
        if before is None:
            shape = list(x.shape)
            shape[self.dim] = free
            before = x.new_zeros(shape)
        if self.by < 0:
            return torch.cat([x, before], self.dim).narrow(self.dim, free, rows)
        seen = torch.cat([before, x], self.dim)
        store_carry(self, rows, last=seen.narrow(self.dim, rows, free))
        return seen.narrow(self.dim, 0, rows)


class ARange(Block, kind="arange"):
    """Indices of an axis of x: `y = 0, 1, 2 …`, for each row of the batch; while decoding, continued from the previous call.

    With `valid`, the valid positions are counted, so that the first one of a text with padding on its left is 0. With
    `position_ids`, the result is these.
    """

    axis: AxisRef
    """The axis of x whose positions are counted."""

    is_primitive = True
    title = "Indices"
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: arange, axis: time, in: x}}
"""
    inputs = {"x": "any[...]", "position_ids?": "int[batch, length]", "valid?": "bool[batch, length]"}
    outputs = {"y": "int[...]"}
    shape_only_inputs = ("x",)
    cache_slots = {"length": "int[]", "seen": "bool[batch, counted]"}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        if {"position_ids", "valid"} <= wired:
            raise BlockError("takes positions from `position_ids` or counts what is `valid`, not both", port="valid")

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        axes = sizes["..."]
        dim = axis_index(axes, self.axis)
        own = [axis.size for axis in (axes[0], axes[dim])]
        for port in ("position_ids", "valid"):
            if port in inputs and (len(axes) + dim == 0 or list(inputs[port].sizes) != own):
                first = f"[{own[0]}, {own[1]}]" if len(axes) + dim else "no axis before the one that is counted"
                raise BlockError(f"takes {port} of [batch, {self.axis}], not {inputs[port]}: x has {first}", port=port)
        return {"dim": dim, "length": own[1], **({"counted": own[1]} if "valid" in inputs else {})}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        x, dim = inputs["x"], sizes["dim"]
        batch = x.axes[:1] if len(x.axes) + dim else ()
        return {"y": replace(changed(x), dtype="int", axes=(*batch, x.axes[dim]))}

    def past_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["length"],)

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), (f"of {axis_in_words(self.axis, view.axes)}",), "pos")

    def forward(
        self: Any, x: torch.Tensor, position_ids: torch.Tensor | None = None, valid: torch.Tensor | None = None
    ) -> torch.Tensor:
        if position_ids is not None:
            return position_ids
        if valid is not None:
            seen: torch.Tensor = append_to_cache(self, "seen", valid)  # [B, S]; while decoding, with the flags of earlier calls
            return (seen.cumsum(1)[:, seen.shape[1] - valid.shape[1] :] - 1).clamp(min=0)
        rows = x.shape[self.dim]
        counted: torch.Tensor = next_positions(self, rows, x.device)
        return counted.expand(x.shape[0], rows) if x.dim() + self.dim else counted
