"""The discrete Fourier transform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from blocks.core import AxisRef, Block, BlockView, Look, Paper, Sizes, torch
from blocks.primitives.axes import axis_in_words, axis_index


class FFT(Block, kind="fft"):
    """Discrete Fourier transform along an axis: `y[k] = Σₙ x[n] exp(-2πi k n / N)`; in float32, also under bfloat16.

    A complex tensor is two: `y` and `x` are its real part, the ports `imaginary` the other one.
    """

    axis: AxisRef = "last"
    """The axis to transform."""
    inverse: bool = False
    """Whether it is the inverse transform."""
    norm: Literal["backward", "ortho", "forward"] = "backward"
    """Which direction is divided by the length, as in torch: the inverse, both by its root, or the forward one."""

    is_primitive = True
    title = "Fourier transform"
    paper = Paper("FNet: Mixing Tokens with Fourier Transforms", "arXiv:2105.03824")
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: fft, axis: time, in: x}}
"""
    inputs = {"x": "float[...]", "imaginary?": "float[...]"}
    outputs = {"y": "float[...]", "imaginary?": "float[...]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"dim": axis_index(sizes["..."], self.axis)}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["..."][sizes["dim"]].size,)

    def look(self, view: BlockView) -> Look:
        title = "Inverse Fourier transform" if self.inverse else self.called()
        norm = [f"norm {self.norm}"] * (self.norm != "backward")
        return Look(title, (f"along {axis_in_words(self.axis, view.axes)}", *norm), "merge")

    def forward(self: Any, x: torch.Tensor, imaginary: torch.Tensor | None = None) -> Any:
        wide = torch.promote_types(x.dtype, torch.float32)
        z = x.to(wide) if imaginary is None else torch.complex(x.to(wide), imaginary.to(wide))
        transform = torch.fft.ifft if self.inverse else torch.fft.fft
        y = transform(z, dim=self.dim, norm=self.norm)
        if "imaginary" in self.requested_outputs:
            return y.real.to(x.dtype), y.imag.to(x.dtype)
        return y.real.to(x.dtype)
