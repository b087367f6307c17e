"""Cross-entropy of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blocks.core import BlockError, F, NonNegativeInt, Probability, Sizes, torch
from blocks.losses.loss import Loss


class CrossEntropy(Loss, kind="cross_entropy"):
    """Cross-entropy of class indices, in nats: `-log softmax(input)[target]`, averaged over the targets that are not ignored.

    Computed in float32, also under bfloat16; 0 where all targets are ignored. Padding, where `valid` is false, counts neither
    as a target nor, with `shift`, as the position that predicts one.
    """

    shift: NonNegativeInt = 0
    """How many positions later the target is, along the last axis: 1 for next-token prediction."""
    label_smoothing: Probability = 0.0
    """Share of each target's probability that is spread evenly over all classes."""
    ignore_index: int = -100
    """Target that is left out of the mean."""

    example = """
inputs: {x: "float[batch, 8]", label: "int[batch]"}
graph: {logits: {type: linear, out: 5, in: x}}
outputs: {logits: logits}
losses: {loss: {type: cross_entropy, in: {input: logits, target: label}}}
"""
    inputs = {"input*": "float[..., classes]", "target": "int[...]", "valid?": "bool[...]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        for index, one in enumerate(inputs["input"]):
            if not one.axes or one.sizes[:-1] != inputs["target"].sizes:
                message = f"takes logits over classes for each target of {inputs['target']}, not {one}"
                raise BlockError(message, port="input", index=index, code="type-mismatch")
        if self.shift and not inputs["target"].axes:
            raise BlockError("a single target has no axis along which it could be shifted", field="shift")
        return super().constants(inputs, sizes)

    def tells_classes(self) -> bool:
        return not self.shift

    def facts(self) -> Sequence[str]:
        return (f"shift {self.shift}",) if self.shift else ()

    def counted(self, numbers: int | None, given: Mapping[str, Any]) -> int | None:
        if "target" not in given:
            return None
        return int((self.asked(given["target"], given.get("valid")) != self.ignore_index).sum())

    def asked(self: Any, target: torch.Tensor, valid: torch.Tensor | None) -> torch.Tensor:
        """Return the target of each position, ignored at padding and before it."""
        if valid is not None:
            target = target.masked_fill(~valid, self.ignore_index)
        if not self.shift:
            return target
        target = target[..., self.shift :]
        return target if valid is None else target.masked_fill(~valid[..., : -self.shift], self.ignore_index)

    def forward(self: Any, *input: torch.Tensor, target: torch.Tensor, valid: torch.Tensor | None = None) -> Any:
        wanted = self.asked(target, valid)
        scores = [x[..., : -self.shift, :] if self.shift else x for x in input]
        return self.together([mean_cross_entropy(x, wanted, self.label_smoothing, self.ignore_index) for x in scores])


def mean_cross_entropy(
    scores: torch.Tensor, target: torch.Tensor, smoothing: float, ignore: int, count: int | None = None
) -> torch.Tensor:
    """Return the mean cross-entropy of scores [..., classes] over the targets [...] that are not ignored; 0 if all are.

    Args:
        scores: The scores of the classes, [..., classes].
        target: The right class of each place, [...].
        smoothing: Share of each target's probability that is spread evenly over the classes.
        ignore: The target that is left out.
        count: How many targets are not ignored, if it is known.
    """
    wide = scores.to(torch.promote_types(scores.dtype, torch.float32)).reshape(
        -1, scores.shape[-1]
    )  # bf16 is too coarse for the sum
    wanted = target.reshape(-1)
    if count and not smoothing:  # torch's own mean: not a number without a target, and with smoothing rounded in another order
        return F.cross_entropy(wide, wanted, ignore_index=ignore, label_smoothing=smoothing)
    total = F.cross_entropy(wide, wanted, ignore_index=ignore, label_smoothing=smoothing, reduction="sum")
    return total / (wanted != ignore).sum().clamp(min=1)
