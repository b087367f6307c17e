"""What losses have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from blocks.core import Block, BlockError, Sizes, torch


class Loss(Block):
    """A scalar to minimize; with several inputs, each has its loss."""

    weight: float = 1.0
    """Constant factor of the loss."""
    reduction: Literal["mean", "sum"] = "mean"
    """How the losses of several inputs are combined."""

    outputs = {"y": "float[]"}

    def counted(self, numbers: int | None, given: Mapping[str, Any]) -> int | None:
        """Of how many things the loss is the mean, so that a batch can be learned from in pieces: from how many numbers its
        target has, and from what the ports that read the model's inputs are given. None where nobody can tell."""
        return None

    def together(self: Any, losses: list[torch.Tensor]) -> Any:
        """The losses of several inputs as one."""
        total = torch.stack(losses).sum()
        return self.weight * (total / len(losses) if self.reduction == "mean" else total)


class ScalarLoss(Loss, kind="scalar"):
    """A loss that another node already computes, such as `load_balancing` of a mixture of experts: `y = weight · mean(input)`."""

    inputs = {"input*": "float[]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        for index, one in enumerate(inputs["input"]):
            if one.axes:
                raise BlockError(f"takes scalars, not {one}", port="input", index=index, code="type-mismatch")
        return {}

    def forward(self: Any, *input: torch.Tensor) -> Any:
        return self.together(list(input))
