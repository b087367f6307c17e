"""Reading and adding at places of an axis that an index names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from blocks.core import AxisRef, Block, BlockError, BlockView, Look, NonNegativeInt, PositiveInt, Sizes, torch
from blocks.primitives.axes import axis_in_words, axis_index, changed, resized


class Indexed(Block):
    """Places of an axis that an index names. An index outside of the axis is an error: of a constant when the recipe is checked,
    else when the model runs, on a GPU inside the kernel.
    """

    axis: AxisRef
    """The axis of x."""
    shared: NonNegativeInt = 0
    """The number of leading axes that x and the index have in common, such as the batch; `batch_dims` in TensorFlow."""

    is_primitive = True
    indexed = "places"


def check_shared(shared: int, x: Any, index: Any, place: int) -> None:
    """Raise `BlockError` if x and the index do not have the shared axes in common, or more than these.

    Args:
        shared: The number of shared axes.
        x: The type of x.
        index: The type of the index.
        place: The index of the axis, from the first.
    """
    most = min(place, len(index.axes))
    if shared > most:
        raise BlockError(f"{x} and {index} cannot share {shared} axes, but {most} at most", field="shared")
    pairs = list(zip(x.sizes, index.sizes, strict=False))[:most]
    odd = next((i for i, (a, b) in enumerate(pairs[:shared]) if a != b), None)
    if odd is not None:
        raise BlockError(f"axis {odd} is {pairs[odd][0]} in x and {pairs[odd][1]} in the index", field="shared")
    common = next((i for i, (a, b) in enumerate(pairs) if a != b or isinstance(a, int)), len(pairs))
    if common > shared:
        named = ", ".join(str(a) for a, _ in pairs[:common])
        message = f"takes an index of other axes than {named}, which x has too"
        raise BlockError(message, port="index", hint=f"where they are the same, write `shared: {common}`")


def check_range(index: Any, size: Any) -> None:
    """Raise `BlockError` if a value of an index that is known is outside of an axis.

    Args:
        index: The type of the index.
        size: The length of the axis.
    """
    if index.within is None:
        return
    least, most = index.within
    if least < 0 or (isinstance(size, int) and most >= size):
        wrong = least if least < 0 else most
        raise BlockError(f"takes an index below {size}, and this one has {wrong}", port="index")


def check_indices(index: torch.Tensor, size: int) -> None:
    """Raise `IndexError` if a value of an index is outside of an axis.

    Args:
        index: The index.
        size: The length of the axis.
    """
    wrong = index[(index < 0) | (index >= size)]
    if wrong.numel():
        raise IndexError(f"index {int(wrong[0])} is out of range for an axis of {size}: indices run from 0 to {size - 1}")


ROWS = -2
"""The axis along which the rows of a matrix lie."""


class Gather(Indexed, kind="gather"):
    """Values at the places of an axis that an index names, such as rows of a table: `y[…, i…, …] = x[…, index[i…], …]`. The axes
    of the index take the place of the axis.
    """

    example = """
inputs: {x: "float[batch, time, 8]", ids: "int[k]"}
graph: {y: {type: gather, axis: last, in: {x: x, index: ids}}}
"""
    inputs = {"x": "any[...]", "index": "int[*]"}
    outputs = {"y": "any[...]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        x, index = inputs["x"], inputs["index"]
        dim = axis_index(x.axes, self.axis)
        check_shared(self.shared, x, index, len(x.axes) + dim)
        check_range(index, x.sizes[dim])
        return {"dim": dim, "places": x.sizes[dim]}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        x, index = inputs["x"], inputs["index"]
        place = len(x.axes) + sizes["dim"]
        return {"y": replace(x, axes=(*x.axes[:place], *index.axes[self.shared :], *x.axes[place + 1 :]))}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["..."][sizes["dim"]].size,)

    def read_by_rows(self, sizes: Sizes) -> Sequence[tuple[str, int]]:
        return [("x", 0)] if sizes["dim"] == ROWS else []

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), (f"along {axis_in_words(self.axis, view.axes)}",), "merge", operation=(self.called().lower(),))

    def forward(self: Any, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        try:
            place = x.dim() + self.dim
            shape = x.shape[:place] + index.shape[self.shared :] + x.shape[place + 1 :]
            if self.shared == 0:
                return x.index_select(self.dim, index.reshape(-1)).reshape(shape)
            rows = index.reshape(*index.shape[: self.shared], *(1,) * (place - self.shared), -1, *(1,) * (-self.dim - 1))
            rows = rows.expand(*x.shape[:place], -1, *x.shape[place + 1 :])
            return x.gather(self.dim, rows).reshape(shape)
        except (IndexError, RuntimeError):
            check_indices(index, x.shape[self.dim])
            raise


class Scatter(Indexed, kind="scatter"):
    """Add the values along an axis at the places that an index names: `y[…, index[i], …] += x[…, i, …]`, from zeros, or from
    `onto`. Where several have one place, it is their sum.
    """

    size: PositiveInt | None = None
    """The length of the axis in the result; without it, that of `onto`."""

    example = """
inputs: {x: "float[batch, time, 8]", places: "int[8]"}
graph: {y: {type: scatter, axis: last, size: 5, in: {x: x, index: places}}}
"""
    inputs = {"x": "number[...]", "index": "int[*]", "onto?": "number[*]"}
    outputs = {"y": "number[...]"}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        if ("onto" in wired) == (self.size is not None):
            message = "`onto` tells the length, so `size` must be left out" if self.size else "needs the length of the result"
            raise BlockError(message, field="size", hint="" if self.size else "write `size`, or wire `onto`")

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        x, index, onto = inputs["x"], inputs["index"], inputs.get("onto")
        dim = axis_index(x.axes, self.axis)
        place = len(x.axes) + dim
        check_shared(self.shared, x, index, place)
        if len(index.axes) != self.shared + 1 or index.sizes[-1] != x.sizes[dim]:
            wanted = ", ".join(map(str, (*x.sizes[: self.shared], x.sizes[dim])))
            raise BlockError(f"takes an index of [{wanted}], a place for each value, not {index}", port="index")
        length = self.size if onto is None else onto.sizes[dim] if len(onto.axes) == len(x.axes) else None
        if onto is not None and (length is None or onto.dtype != x.dtype or resized(x, dim, length).sizes != onto.sizes):
            raise BlockError(f"adds {x} onto a tensor of the same axes but `{self.axis}`, not {onto}", port="onto")
        check_range(index, length)
        return {"dim": dim, "places": length}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"y": changed(resized(inputs["x"], sizes["dim"], sizes["places"]))}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["..."][sizes["dim"]].size, sizes["places"])

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), (f"along {axis_in_words(self.axis, view.axes)}",), "merge", operation=(self.called().lower(),))

    def forward(self: Any, x: torch.Tensor, index: torch.Tensor, onto: torch.Tensor | None = None) -> torch.Tensor:
        if onto is None:
            shape = list(x.shape)
            shape[self.dim] = self.size
            onto = x.new_zeros(shape)
        between = (1,) * (x.dim() + self.dim - self.shared)
        places = index.reshape(*index.shape[: self.shared], *between, -1, *(1,) * (-self.dim - 1)).expand(x.shape)
        try:
            return onto.scatter_add(self.dim, places, x)
        except (IndexError, RuntimeError):
            check_indices(index, onto.shape[self.dim])
            raise
