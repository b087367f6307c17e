"""Operations that move what is along an axis: roll, flip, slice, pad, a new axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from blocks.core import AxisRef, Block, BlockError, BlockView, F, Look, NonNegativeInt, PositiveInt, Sizes, torch
from blocks.primitives.axes import axis_in_words, axis_index, changed, resized


class Roll(Block, kind="roll"):
    """Roll along axes: what leaves at one end comes in at the other, `y[i] = x[(i - by) mod n]`, such as the shifted windows of
    Swin.
    """

    by: dict[AxisRef, int]
    """For each axis, by how many positions; a negative number rolls toward the start."""

    is_primitive = True
    causal_forms = ("`shift`",)

    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: roll, by: {time: 1}, in: x}}
"""
    inputs = {"x": "any[...]"}
    outputs = {"y": "any[...]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        if not self.by:
            raise BlockError("takes at least one axis", field="by", hint="by: {time: 1}")
        return {"dims": tuple(axis_index(sizes["..."], axis, "by") for axis in self.by), "steps": tuple(self.by.values())}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"y": inputs["x"]}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return [sizes["..."][dim].size for dim, step in zip(sizes["dims"], sizes["steps"], strict=True) if step]

    def look(self, view: BlockView) -> Look:
        steps = tuple(f"{axis_in_words(axis, view.axes)} by {step}" for axis, step in self.by.items())
        return Look(self.called(), steps, "merge", low=True)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.roll(x, self.steps, self.dims)


class Flip(Block, kind="flip"):
    """Reverse the order along an axis: `y[i] = x[n - 1 - i]`."""

    axis: AxisRef
    """The axis to reverse."""

    is_primitive = True
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: flip, axis: time, in: x}}
"""
    inputs = {"x": "any[...]"}
    outputs = {"y": "any[...]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"dim": axis_index(sizes["..."], self.axis)}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"y": inputs["x"]}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["..."][sizes["dim"]].size,)

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), (f"along {axis_in_words(self.axis, view.axes)}",), "merge", low=True)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x.flip(self.dim)


class AxisSlice(Block, kind="slice"):
    """A range of an axis, from `start` up to but without `stop`, or every n-th place of it: `y = x[start:stop:step]`; negative
    numbers count from the end.

    With `like`, the range is as long as the axis of that name of another tensor, such as the one before padding, or as the one
    that `length_of` tells. The axis keeps its name.
    """

    axis: AxisRef
    """The axis to cut."""
    start: int = 0
    """The first index."""
    stop: int | None = None
    """The index after the last one; without it, the end of the axis."""
    step: PositiveInt = 1
    """The distance of neighboring places; 2 takes every other one."""
    length_of: AxisRef | None = None
    """The axis of `like` that tells the length; by default, that of the same name."""

    is_primitive = True
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: slice, axis: last, start: 1, stop: -1, in: x}}
"""
    inputs = {"x": "any[...]", "like?": "any[*]"}
    outputs = {"y": "any[...]"}
    shape_only_inputs = ("like",)

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        if "like" in wired and self.stop is not None:
            raise BlockError("`like` tells the length, so `stop` must be left out", field="stop")
        if "like" in wired and self.step != 1:
            raise BlockError("`like` tells the length of a range without steps", field="step")
        check_like(self.length_of, wired)

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        axes = sizes["..."]
        dim = axis_index(axes, self.axis)
        size = axes[dim].size
        for field, index in (("start", self.start), ("stop", self.stop)):
            if index is not None and isinstance(size, int) and not -size <= index <= size:
                message = f"{field} {index} is out of range for an axis of {size}"
                raise BlockError(message, field=field, hint=f"indices run from {-size} to {size}")
        if "like" in inputs:
            of = axis_index(
                inputs["like"].axes, self.length_of or axes[dim].name or self.axis, "length_of" if self.length_of else "axis"
            )
            length = inputs["like"].axes[of].size
            rest = size - self.start - length if self.start >= 0 else -self.start - length
            if isinstance(rest, int) and rest < 0:
                raise BlockError(f"from {self.start} on, an axis of {size} has no {length} places", field="start")
            return {"dim": dim, "of": of, "length": length}
        first = self.start if self.start >= 0 else size + self.start
        last = size if self.stop is None else self.stop if self.stop >= 0 else size + self.stop
        length = last - first
        if isinstance(length, int) and length < 1:
            end = "the end" if self.stop is None else f"stop {self.stop}"
            field = "start" if self.stop is None else "stop"
            raise BlockError(f"nothing is between start {self.start} and {end} of an axis of {size}", field=field)
        return {"dim": dim, "of": None, "length": length if self.step == 1 else (length - 1) // self.step + 1}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"y": resized(inputs["x"], sizes["dim"], sizes["length"])}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["..."][sizes["dim"]].size,)

    def look(self, view: BlockView) -> Look:
        axis = axis_in_words(self.axis, view.axes)
        if "like" in view.edges:
            some = f"as many of {axis} as another value has" + f", from {self.start} on" * (self.start != 0)
        elif self.stop is None and self.step == 1 and self.start:
            some = f"{axis} from {self.start} on" if self.start > 0 else f"last {-self.start} of {axis}"
        elif self.start == 0 and self.step == 1 and self.stop is not None and self.stop > 0:
            some = f"first {self.stop} of {axis}"
        elif self.start == 0 and self.step == 1 and self.stop is not None:
            some = f"all but the last {'' if self.stop == -1 else f'{-self.stop} '}of {axis}"
        else:
            stop = "" if self.stop is None else self.stop
            some = f"{self.start}:{stop}{f':{self.step}' * (self.step != 1)} of {axis}"
        return Look(self.called(), (some,), "merge", low=True)

    def forward(self: Any, x: torch.Tensor, like: torch.Tensor | None = None) -> torch.Tensor:
        size = x.shape[self.dim]
        first = self.start if self.start >= 0 else size + self.start
        if like is not None:
            last = first + like.shape[self.of]
        elif self.stop is None:
            last = size
        else:
            last = self.stop if self.stop >= 0 else size + self.stop
        if not 0 <= first < last <= size:
            raise IndexError(f"the range {first}:{last} is not inside of an axis of {size}")
        if self.step == 1:
            return x.narrow(self.dim, first, last - first)
        ranges = [slice(None)] * x.dim()
        ranges[self.dim] = slice(first, last, self.step)
        return x[tuple(ranges)]


class Pad(Block, kind="pad"):
    """Pad an axis with a value: `before` positions in front, `after` behind, and then up to a `multiple`. The axis keeps its
    name.
    """

    axis: AxisRef
    """The axis to pad."""
    before: NonNegativeInt = 0
    """The number of new positions in front."""
    after: NonNegativeInt = 0
    """The number of new positions behind."""
    multiple: PositiveInt = 1
    """The length becomes the next multiple of this, by further positions behind."""
    value: float = 0.0
    """The value of the new positions; ints take whole numbers, and booleans 0 or 1."""

    is_primitive = True
    title = "Padding"
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: pad, axis: time, multiple: 4, in: x}}
"""
    inputs = {"x": "any[...]"}
    outputs = {"y": "any[...]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        dtype, dim = inputs["x"].dtype, axis_index(sizes["..."], self.axis)
        if dtype != "float" and (not self.value.is_integer() or (dtype == "bool" and self.value not in (0, 1))):
            raise BlockError(f"{self.value:g} is no {dtype}", field="value")
        length = sizes["..."][dim].size + self.before + self.after
        length = (length + self.multiple - 1) // self.multiple * self.multiple
        return {"dim": dim, "length": length, "behind": -dim - 1}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"y": changed(resized(inputs["x"], sizes["dim"], sizes["length"]))}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["..."][sizes["dim"]].size,)

    def look(self, view: BlockView) -> Look:
        if self.multiple == 1 and bool(self.before) != bool(self.after):
            count = self.before or self.after
            new = f"{count} × {self.value:g}" if count > 1 else f"{self.value:g}"
            where = f"{new} along {axis_in_words(self.axis, view.axes)}"
            one = (view.sizes["dim"], self.value) if self.after == 1 and "dim" in view.sizes else None
            return Look("Append" if self.after else "Prepend", (where,), "merge", appends=one)
        facts = [f"{count} {where}" for count, where in ((self.before, "before"), (self.after, "after")) if count]
        facts += [f"to a multiple of {self.multiple}"] if self.multiple > 1 else []
        facts += [f"value {self.value:g}"] if self.value else []
        return Look(self.called(), (f"along {axis_in_words(self.axis, view.axes)}", *facts), "merge")

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        after = self.after + -(x.shape[self.dim] + self.before + self.after) % self.multiple
        return F.pad(x, (0, 0) * self.behind + (self.before, after), value=self.value)


def check_like(length_of: str | None, wired: frozenset[str]) -> None:
    """Raise `BlockError` if an axis of `like` is named, to which nothing is wired."""
    if length_of is not None and "like" not in wired:
        raise BlockError("`length_of` is an axis of `like`, to which nothing is wired", field="length_of")


class NewAxis(Block, kind="new_axis"):
    """A new axis, along which the values are repeated: `y[…, i, …] = x[…, …]`. With the length 1, this is `unsqueeze`, else
    `expand`.

    With `like`, it is as long as the axis of that name of another tensor, or as the one that `length_of` tells, whose length may
    be known only when the model runs.
    """

    name: str
    """What the new axis is called."""
    size: PositiveInt = 1
    """Its length."""
    before: AxisRef = "last"
    """The axis before which it is inserted; `last` appends it."""
    length_of: AxisRef | None = None
    """The axis of `like` that tells the length; by default, that of the same name."""

    is_primitive = True
    title = "New axis"
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: new_axis, name: head, size: 2, before: last, in: x}}
"""
    inputs = {"x": "any[...]", "like?": "any[*]"}
    outputs = {"y": "any[...]"}
    shape_only_inputs = ("like",)
    new_axis_field = "name"

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        if not self.name.isidentifier():
            raise BlockError(f"`{self.name}` is no name of an axis", field="name")
        if "like" in wired and self.size != 1:
            raise BlockError("`like` tells the length, so `size` must be left out", field="size")
        check_like(self.length_of, wired)

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        axes = sizes["..."]
        dim = -1 if self.before == "last" else axis_index(axes, self.before, "before") - 1
        if any(axis.name == self.name for axis in axes):
            raise BlockError(f"{inputs['x']} has an axis `{self.name}` already", field="name")
        if "like" not in inputs:
            return {"dim": dim, "of": None, "length": self.size}
        of = axis_index(inputs["like"].axes, self.length_of or self.name, "length_of" if self.length_of else "name")
        return {"dim": dim, "of": of, "length": inputs["like"].axes[of].size}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        x, like = inputs["x"], inputs.get("like")
        sample = x.axes[0] if x.axes else like.axes[0] if like is not None else None
        if sample is None:
            raise BlockError("takes a tensor with an axis, not a scalar", port="x")
        place = len(x.axes) + 1 + sizes["dim"]
        return {"y": replace(x, axes=(*x.axes[:place], replace(sample, name=self.name, size=sizes["length"]), *x.axes[place:]))}

    def look(self, view: BlockView) -> Look:
        if "like" not in view.edges and self.size == 1:
            return Look("Unsqueeze", (f"new axis {self.name}",), "merge", low=True)
        times = "" if "like" in view.edges else f"{self.size} × "
        return Look("Expand", (f"{times}along {self.name}",), "merge", low=True)

    def forward(self: Any, x: torch.Tensor, like: torch.Tensor | None = None) -> torch.Tensor:
        length = self.size if like is None else like.shape[self.of]
        y = x.unsqueeze(self.dim)
        shape = list(y.shape)
        shape[self.dim] = length
        return y.expand(shape)
