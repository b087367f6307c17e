"""Random numbers: noise, and masks of chance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import annotated_types

from blocks.core import AxisRef, Block, BlockError, BlockView, Look, PositiveFloat, Sizes, declaration, number, size, torch
from blocks.primitives.axes import axes_in_words, axis_indices


class RandomNumbers(Block):
    """Random numbers with the shape of x, or with some of its axes, drawn anew in every call.

    They come from torch's own generator, as those of dropout do, so that `torch.manual_seed`, and the seed of a run, repeat them.
    """

    axes: tuple[AxisRef, ...] | None = None
    """The axes of x that they have, in this order, by their names; by default, all. `[batch]` is one number for each row."""
    during: Literal["training", "always"] = "training"
    """When they are drawn: in training, or in evaluation too. While a text is generated they are off in either case."""

    is_primitive = True
    inputs = {"x": "float[...]"}
    shape_only_inputs = ("x",)
    is_random = True

    @declaration
    def places(self, sizes: Sizes) -> tuple[int, ...]:
        """Return the index of each axis, counted from the last."""
        axes = sizes["..."]
        if self.axes is None:
            return tuple(range(-len(axes), 0))
        return axis_indices(axes, self.axes, "axes")

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        self.places(sizes)

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"dims": self.places(sizes)}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        given = inputs["x"]
        return {"y": type(given)("float", tuple(given.axes[place] for place in self.places(sizes)))}

    def look(self, view: BlockView) -> Look:
        always = ("also in evaluation",) if self.during == "always" else ()
        told = (word for word in view.settings if not word.startswith(("during", "axes")))
        names = ["row" if name == "batch" else name for name in self.axes or ()]
        each = (f"one for each {axes_in_words(names)}",) if names else ()
        if len(names) > 1 and "..." in view.sizes:
            sizes = [size(view.sizes["..."][place].size) for place in self.places(view.sizes)]
            each = (" × ".join(f"({one})" if " " in one else one for one in sizes),)
        return Look(self.called(), (*told, *each, *always), "io", operation=(f"{self.called().lower()} noise",))

    def on(self: Any) -> bool:
        """Return whether numbers are drawn in this call."""
        return (self.training or self.during == "always") and self.cache is None

    def shape(self: Any, x: torch.Tensor) -> list[int]:
        """Return the lengths of their axes."""
        return [x.shape[dim] for dim in self.dims]


class Normal(RandomNumbers, kind="normal"):
    """Noise with a normal distribution: `y ~ N(mean, std²)`, and where nothing is drawn `y = mean`.

    x gives the shape alone. Numbers are drawn in training, from torch's own generator, as those of dropout are.
    """

    mean: float = 0.0
    """Mean of the numbers."""
    std: PositiveFloat = 1.0
    """Standard deviation of the numbers."""

    example = """
inputs: {x: "float[batch, time, 16]"}
graph:
  noise: {type: normal, std: 0.1}
  y: {type: add, in: [x, noise]}
"""
    outputs = {"y": "float[...]"}

    def forward(self: Any, x: torch.Tensor) -> Any:
        if not self.on():
            return x.new_full(self.shape(x), self.mean)
        return self.mean + self.std * torch.randn(self.shape(x), dtype=x.dtype, device=x.device)


class Uniform(RandomNumbers, kind="uniform"):
    """Noise with a uniform distribution: `low ≤ y < high`, and where nothing is drawn `y = (low + high) / 2`.

    x gives the shape alone. Numbers are drawn in training, from torch's own generator, as those of dropout are.
    """

    low: float = 0.0
    """The smallest number."""
    high: float = 1.0
    """The bound below which all numbers are."""

    example = """
inputs: {x: "float[batch, time, 16]"}
graph:
  noise: {type: uniform, low: 0.9, high: 1.1, axes: [batch]}
  y: {type: multiply, in: [x, noise]}
"""
    outputs = {"y": "float[...]"}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        super().check(sizes, wired)
        if self.low >= self.high:
            raise BlockError(f"no number is from {number(self.low)} to {number(self.high)}", field="high")

    def forward(self: Any, x: torch.Tensor) -> Any:
        if not self.on():
            return x.new_full(self.shape(x), (self.low + self.high) / 2)
        return self.low + (self.high - self.low) * torch.rand(self.shape(x), dtype=x.dtype, device=x.device)


class Bernoulli(RandomNumbers, kind="bernoulli"):
    """Mask of chance: each element is true with probability `p`, and where nothing is drawn it is `otherwise`.

    x gives the shape alone. It is drawn in training, from torch's own generator, as dropout is.
    """

    p: Annotated[float, annotated_types.Ge(0), annotated_types.Le(1)]
    """Probability that an element is true."""
    otherwise: bool = True
    """The value of every element where nothing is drawn."""

    example = """
inputs: {x: "float[batch, time, 16]"}
graph:
  seen: {type: bernoulli, p: 0.9, axes: [batch, time]}
  attn: {type: attention, heads: 2, mask: valid(seen), in: x}
"""
    outputs = {"y": "bool[...]"}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        given = inputs["x"]
        return {"y": type(given)("bool", tuple(given.axes[place] for place in self.places(sizes)))}

    def forward(self: Any, x: torch.Tensor) -> Any:
        if not self.on():
            return x.new_full(self.shape(x), self.otherwise, dtype=torch.bool)
        return torch.rand(self.shape(x), device=x.device) < self.p
