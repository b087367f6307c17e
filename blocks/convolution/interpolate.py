"""Interpolation to another number of positions or pixels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import floor
from typing import Any, ClassVar, Literal

from blocks.convolution.conv2d import image_of
from blocks.convolution.kernels import per_axis
from blocks.core import Block, BlockError, BlockView, F, Look, PositiveFloat, PositiveInt, Sizes, declaration, number, torch

FINEST = 64
"""Largest denominator of a scale for lengths that are known only when the model runs, whose result is computed exactly."""


class Interpolation(Block):
    """Interpolates along axes, without these."""

    size: PositiveInt | tuple[PositiveInt, ...] | None = None
    """Length of each axis of the output; either this or `scale`."""
    scale: PositiveFloat | tuple[PositiveFloat, ...] | None = None
    """Factor of the length of each axis, which is rounded down; `scale_factor` in torch."""
    align_corners: bool = False
    """Whether the first and the last values stay where they are, instead of the outer edges of the first and the last ones; for
    `linear` and `cubic`.
    """

    along: ClassVar[tuple[str, ...]]
    """The axes that it changes, as its input's type calls them."""

    is_primitive = True

    @declaration
    def lengths(self, sizes: Sizes) -> tuple[Any, ...]:
        """Return the length of each axis of the output.

        Raises:
            BlockError: A list has another number of numbers than there are axes, or a length cannot be computed.
        """
        if self.size is not None:
            return per_axis(self.size, len(self.along), "size")
        return tuple(scaled(sizes[name], factor) for name, factor in zip(self.along, self.factors() or (), strict=True))

    @declaration
    def factors(self) -> tuple[float, ...] | None:
        """Return the factor of each axis; None if the lengths are given."""
        if self.scale is None:
            return None
        found: Any = per_axis(self.scale, len(self.along), "scale")  # type: ignore[arg-type]  # numbers of any kind
        return tuple(float(factor) for factor in found)

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        if (self.size is None) == (self.scale is None):
            raise BlockError("takes either `size` or `scale`", field=None if self.size is None else "scale")
        for name, length in zip(self.along, self.lengths(sizes), strict=True):
            if isinstance(length, int) and length < 1:
                raise BlockError(f"nothing is left of a {name} of {sizes[name]}", field="scale")
        if self.align_corners and self.mode not in ("linear", "cubic"):  # type: ignore[attr-defined]  # each class has its modes
            raise BlockError("only `linear` and `cubic` can align corners", field="align_corners")

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"output_size": self.lengths(sizes) if self.size is not None else None, "scale_factor": self.factors()}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        factors = self.factors() or (None,) * len(self.along)
        return tuple(sizes[name] for name, factor in zip(self.along, factors, strict=True) if factor != 1)

    def look(self, view: BlockView) -> Look:
        numbers: Any = self.size if self.size is not None else self.scale
        several = numbers if isinstance(numbers, tuple) else (numbers,)
        words = " × ".join(map(number, several))
        fact = f"to {words}" if self.size is not None else f"scale {words}"
        larger = self.size is None and all(one > 1 for one in several)
        operation = (f"upsample {words}", "upsample") if larger else (f"resize {fact}", "resize")
        return Look("Interpolation", (fact, self.mode), "merge", operation=operation)  # type: ignore[attr-defined]  # each class has its modes


def scaled(length: Any, factor: float) -> Any:
    """Return a length times a factor, rounded down as torch does.

    Raises:
        BlockError: The length is known only when the model runs, and the factor is no simple fraction.
    """
    if isinstance(length, int):
        return floor(float(length) * factor)
    exact = Fraction(factor)
    if exact.denominator > FINEST:
        raise BlockError(
            f"{factor:.3g} times `{length}` is not exact",
            field="scale",
            hint="use `size`, or a scale such as 2 or 0.5, where the length is known only when the model runs",
        )
    return length * exact.numerator // exact.denominator


class Interpolate1d(Interpolation, kind="interpolate1d"):
    """Interpolate each channel to another number of positions: with n positions that become m, `y[t] = x[⌊t · n / m⌋]` for
    `nearest`, and for `linear` the two values next to `(t + ½) · n / m - ½`, weighted by how near they are.
    """

    mode: Literal["nearest", "linear", "area"] = "nearest"
    """How values are computed: the nearest one before, between two by distance, or the mean of those that fall together."""

    example = """
inputs: {x: "float[batch, time, 16]"}
graph:
  twice: {type: interpolate1d, scale: 2, mode: linear}
"""
    along = ("time",)
    inputs = {"x": "float[batch, time, dim]"}
    outputs = {"y": "float[batch, time * scale, dim]"}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        batch, time, dim = inputs["x"].axes
        return {"y": replace(inputs["x"], axes=(batch, replace(time, size=self.lengths(sizes)[0]), dim))}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        corners = self.align_corners if self.mode == "linear" else None  # torch takes it for this mode alone
        y = F.interpolate(x.transpose(1, 2), self.output_size, self.scale_factor, self.mode, corners)
        return y.transpose(1, 2)  # [B, size, D]


class Interpolate2d(Interpolation, kind="interpolate2d"):
    """Interpolate each channel of an image to another size: with n pixels of an axis that become m, `y[r] = x[⌊r · n / m⌋]` for
    `nearest`; for `linear` and `cubic` the two or four values next to `(r + ½) · n / m - ½` along each axis, weighted by how near
    they are (bilinear and bicubic interpolation).

    `size` and `scale` are one number for both axes, or a list of those of the height and of the width.
    """

    mode: Literal["nearest", "linear", "cubic", "area"] = "nearest"
    """How values are computed: the nearest one before, between two or four along each axis, or the mean of those that fall
    together.
    """
    antialias: bool = False
    """Whether an image that becomes smaller is smoothed first, with `linear` and `cubic`."""

    example = """
inputs: {image: "float[batch, 3, 16, 16]"}
graph:
  twice: {type: interpolate2d, scale: 2}
  exact: {type: interpolate2d, size: [20, 24], mode: linear}
"""
    along = ("height", "width")
    inputs = {"x": "float[batch, channels, height, width]"}
    outputs = {"y": "float[batch, channels, height * scale, width * scale]"}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        super().check(sizes, wired)
        if self.antialias and self.mode not in ("linear", "cubic"):
            raise BlockError("only `linear` and `cubic` can be smoothed", field="antialias")

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"y": image_of(inputs["x"], None, self.lengths(sizes))}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        mode = f"bi{self.mode}" if self.mode in ("linear", "cubic") else self.mode
        corners = self.align_corners if self.mode in ("linear", "cubic") else None  # torch takes it for these modes alone
        return F.interpolate(x, self.output_size, self.scale_factor, mode, corners, antialias=self.antialias)
