"""Operations that combine several inputs into one."""

from __future__ import annotations

from typing import Any

from blocks.core import Block, Init, Sizes, Tensor, Weights, torch


class Add(Block, kind="add"):
    """Sum of the inputs: `y = x₁ + x₂ + …`; axes are matched by name, and missing ones are broadcast."""

    inputs = {"xs*": "float[...]"}
    outputs = {"y": "float[...]"}
    broadcasts = True

    def forward(self: Any, *xs: torch.Tensor) -> torch.Tensor:
        y = xs[0]
        for x in xs[1:]:
            y = y + x
        return y

    def inline(self) -> str:
        return "{xs: + }"


class Multiply(Block, kind="multiply"):
    """Elementwise (Hadamard) product of the inputs: `y = x₁ · x₂ · …`; axes are matched by name, and missing ones are
    broadcast.
    """

    inputs = {"xs*": "float[...]"}
    outputs = {"y": "float[...]"}
    broadcasts = True

    def forward(self: Any, *xs: torch.Tensor) -> torch.Tensor:
        y = xs[0]
        for x in xs[1:]:
            y = y * x
        return y

    def inline(self) -> str:
        return "{xs: * }"


class WeightedSum(Block, kind="weighted_sum"):
    """Weighted sum of the inputs, with learned weights: `y = w₁ x₁ + w₂ x₂ + …`.

    The weights are unconstrained (no softmax) and start at one over the number of inputs, which gives the mean.
    """

    inputs = {"xs*": "float[...]"}
    outputs = {"y": "float[...]"}
    broadcasts = True

    def weights(self, sizes: Sizes, wired: frozenset[str]) -> Weights:
        return {"weight": Tensor(("inputs",), "gain", Init("constant", 1 / sizes["inputs"]))}

    def forward(self: Any, *xs: torch.Tensor) -> Any:
        return torch.stack(xs, dim=-1) @ self.weight  # [..., inputs] by [inputs]


class Concat(Block, kind="concat"):
    """Concatenate the inputs along one axis; all other axes must agree."""

    axis: str = "last"
    """The axis to concatenate along: its name, or `last`."""

    inputs = {"xs*": "float[...]"}
    outputs = {"y": "float[...]"}

    def forward(self: Any, *xs: torch.Tensor) -> torch.Tensor:
        return torch.cat(xs, dim=self.dim)
