"""Losses of choices among classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blocks.core import Count, F, Probability, Reject, Sizes, torch
from blocks.losses.loss import Loss


class CrossEntropy(Loss, kind="cross_entropy"):
    """The mean of `-log softmax(input)[target]` in nats over the targets that ask for something.

    In float32 also under bfloat16; 0 where no target asks for anything.
    """

    shift: Count = 0
    """How many places further on along the last axis the target of a position stands: 1 asks for the next token."""
    smoothing: Probability = 0.0
    """The share of each target that is spread evenly over all classes."""
    ignore: int = -100
    """The target that asks for nothing."""

    inputs = {"input*": "float[..., classes]", "target": "int[...]"}

    def known(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        for index, one in enumerate(inputs["input"]):
            if not one.axes or one.sizes[:-1] != inputs["target"].sizes:
                message = f"takes scores of classes for every target of {inputs['target']}, not {one}"
                raise Reject(message, port="input", index=index, code="type-mismatch")
        if self.shift and not inputs["target"].axes:
            raise Reject("a single target has no axis along which it could be shifted", field="shift")
        return {}

    def counted(self, numbers: int | None, target: Any) -> int | None:
        if target is None:
            return None
        return int(((target[..., self.shift :] if self.shift else target) != self.ignore).sum())

    def forward(self: Any, *input: torch.Tensor, target: torch.Tensor) -> Any:
        if self.shift:
            input = tuple(x[..., : -self.shift, :] for x in input)
            target = target[..., self.shift :]
        return self.together([mean_cross_entropy(x, target, self.smoothing, self.ignore) for x in input])


def mean_cross_entropy(scores: torch.Tensor, target: torch.Tensor, smoothing: float, ignore: int) -> torch.Tensor:
    """Mean over the targets [...] that ask for something, of scores [..., classes]; 0 where none does."""
    wide = scores.to(torch.promote_types(scores.dtype, torch.float32)).reshape(-1, scores.shape[-1])  # never summed in bf16
    wanted = target.reshape(-1)
    total = F.cross_entropy(wide, wanted, ignore_index=ignore, label_smoothing=smoothing, reduction="sum")
    return total / (wanted != ignore).sum().clamp(min=1)
