"""Elementwise losses: of squared and absolute differences, and binary cross-entropy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blocks.core import BlockError, F, Paper, PositiveFloat, Sizes, torch
from blocks.losses.loss import Loss


class ElementwiseLoss(Loss):
    """A loss that compares every element of the input with the element of the target at the same place."""

    inputs = {"input*": "float[...]", "target": "float[...]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        for index, one in enumerate(inputs["input"]):
            if one.sizes != inputs["target"].sizes:
                raise BlockError(
                    f"takes {inputs['target']}, the type of its target, not {one}",
                    port="input",
                    index=index,
                    code="type-mismatch",
                )
        return super().constants(inputs, sizes)

    def counted(self, numbers: int | None, given: Mapping[str, Any]) -> int | None:
        return numbers


class MeanSquare(ElementwiseLoss, kind="mse"):
    """Mean squared error (MSE, L2 loss): `y = mean((input - target)²)`; in float32, also under bfloat16."""

    example = """
inputs: {x: "float[batch, 8]", target: "float[batch, 3]"}
graph: {y: {type: linear, out: 3, in: x}}
outputs: {y: y}
losses: {loss: {type: mse, in: {input: y, target: target}}}
"""

    def forward(self: Any, *input: torch.Tensor, target: torch.Tensor) -> Any:
        return self.together([F.mse_loss(wide(x), wide(target)) for x in input])


class L1(ElementwiseLoss, kind="l1_loss"):
    """L1 loss, the mean absolute error (MAE): `y = mean(|input - target|)`; in float32, also under bfloat16."""

    example = """
inputs: {x: "float[batch, 8]", box: "float[batch, 4]"}
graph: {corners: {type: linear, out: 4, in: x}}
outputs: {corners: corners}
losses: {loss: {type: l1_loss, in: {input: corners, target: box}}}
"""

    def forward(self: Any, *input: torch.Tensor, target: torch.Tensor) -> Any:
        return self.together([F.l1_loss(wide(x), wide(target)) for x in input])


class Huber(ElementwiseLoss, kind="huber"):
    """Huber loss, the mean of `d²/2` for differences d up to `delta`, and of `delta (|d| - delta/2)` for larger ones; in float32,
    also under bfloat16.

    The smooth L1 loss of detectors with β = `delta` is this one divided by `delta`: `weight: 1 / delta`.
    """

    delta: PositiveFloat = 1.0
    """Difference from which on the loss is linear."""

    paper = Paper("Robust Estimation of a Location Parameter", "Annals of Mathematical Statistics 35, 1964")
    example = """
inputs: {x: "float[batch, 8]", box: "float[batch, 4]"}
graph: {corners: {type: linear, out: 4, in: x}}
outputs: {corners: corners}
losses: {loss: {type: huber, delta: 0.1, weight: 10, in: {input: corners, target: box}}}
"""

    def forward(self: Any, *input: torch.Tensor, target: torch.Tensor) -> Any:
        return self.together([F.huber_loss(wide(x), wide(target), delta=self.delta) for x in input])


class BinaryCrossEntropy(ElementwiseLoss, kind="binary_cross_entropy"):
    """Binary cross-entropy with logits, in nats: `mean(-t log σ(x) - (1 - t) log(1 - σ(x)))` for logits x and targets t from 0
    to 1.

    Computed in float32, also under bfloat16; `F.binary_cross_entropy_with_logits` in torch.
    """

    example = """
inputs: {x: "float[batch, 8]", label: "float[batch, 3]"}
graph: {logits: {type: linear, out: 3, in: x}}
outputs: {logits: logits}
losses: {loss: {type: binary_cross_entropy, in: {input: logits, target: label}}}
"""

    def forward(self: Any, *input: torch.Tensor, target: torch.Tensor) -> Any:
        return self.together([F.binary_cross_entropy_with_logits(wide(x), wide(target)) for x in input])


def wide(x: torch.Tensor) -> torch.Tensor:
    """Return the tensor in float32 or higher precision."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
