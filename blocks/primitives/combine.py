"""Blocks that make one stream of several."""

from __future__ import annotations

from typing import Any

from blocks.core import Block, BlockView, Init, Look, Sizes, Tensor, Weights, torch


class Add(Block, kind="add"):
    """The sum of all inputs: `y = x₁ + x₂ + …`; axes match by name, and missing ones are expanded."""

    title = "Sum"
    inputs = {"xs*": "float[...]"}
    outputs = {"y": "float[...]"}
    broadcasts = True

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), hue="merge", sign="+")

    def forward(self: Any, *xs: torch.Tensor) -> torch.Tensor:
        y = xs[0]
        for x in xs[1:]:
            y = y + x
        return y

    def inline(self) -> str:
        return "{xs: + }"


class Multiply(Block, kind="multiply"):
    """The product of all inputs, number by number: `y = x₁ · x₂ · …`; axes match by name, and missing ones are expanded."""

    title = "Product"
    inputs = {"xs*": "float[...]"}
    outputs = {"y": "float[...]"}
    broadcasts = True

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), hue="merge", sign="×")

    def forward(self: Any, *xs: torch.Tensor) -> torch.Tensor:
        y = xs[0]
        for x in xs[1:]:
            y = y * x
        return y

    def inline(self) -> str:
        return "{xs: * }"


class WeightedSum(Block, kind="weighted_sum"):
    """The sum of all inputs, each by a learned factor: `y = w₁ x₁ + w₂ x₂ + …`.

    The factors are free (no softmax holds them to a sum of one) and start at one over the number of inputs, which is the mean.
    """

    inputs = {"xs*": "float[...]"}
    outputs = {"y": "float[...]"}
    broadcasts = True

    def weights(self, sizes: Sizes, wired: frozenset[str]) -> Weights:
        return {"weight": Tensor(("inputs",), "gain", Init("constant", 1 / sizes["inputs"]))}

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), hue="embed")

    def forward(self: Any, *xs: torch.Tensor) -> Any:
        return torch.stack(xs, dim=-1) @ self.weight  # [..., inputs] by [inputs]


class Concat(Block, kind="concat"):
    """The inputs one after the other along one axis; all other axes agree."""

    axis: str = "last"
    """The axis that grows: its name, or `last`."""

    title = "Concatenation"
    inputs = {"xs*": "float[...]"}
    outputs = {"y": "float[...]"}

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), (f"along {self.axis}",) if self.axis != "last" else (), hue="merge", sign="‖")

    def forward(self: Any, *xs: torch.Tensor) -> torch.Tensor:
        return torch.cat(xs, dim=self.dim)
