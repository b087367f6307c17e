"""Cross-entropy of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blocks.core import BlockError, F, NonNegativeInt, Probability, Sizes, torch
from blocks.losses.loss import Loss


class CrossEntropy(Loss, kind="cross_entropy"):
    """Cross-entropy of classes, in nats: `-log softmax(input)[target]`, averaged over the targets that are not ignored.

    A target of floats has a probability for each class, as in torch: `-Σ target · log softmax(input)`.

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
    inputs = {"input*": "float[..., classes]", "target": "number[*]", "valid?": "bool[...]"}

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        target = inputs["target"]
        soft = target.dtype == "float"
        places = target.sizes[: len(target.sizes) - soft]
        for index, one in enumerate(inputs["input"]):
            if soft and one.sizes != target.sizes:
                classes = f"int[{', '.join(map(str, one.sizes[:-1]))}]"
                message = f"takes targets that are classes, {classes}, or the probability of each, {one}, not {target}"
                raise BlockError(message, port="target", code="type-mismatch")
            if not soft and (not one.axes or one.sizes[:-1] != places):
                message = f"takes logits over classes for each target of {target}, not {one}"
                raise BlockError(message, port="input", index=index, code="type-mismatch")
        if "valid" in inputs and inputs["valid"].sizes != places:
            message = f"takes bool[{', '.join(map(str, places))}], one for each target, not {inputs['valid']}"
            raise BlockError(message, port="valid", code="type-mismatch")
        if self.shift and not places:
            raise BlockError("a single target has no axis along which it could be shifted", field="shift")
        return {**super().constants(inputs, sizes), "soft": soft}

    def tells_classes(self) -> bool:
        return not self.shift

    def facts(self) -> Sequence[str]:
        return (f"shift {self.shift}",) if self.shift else ()

    def counted(self, numbers: int | None, given: Mapping[str, Any]) -> int | None:
        if "target" not in given:
            return None
        if given["target"].is_floating_point():
            return int(self.judged(given["target"], given.get("valid")).sum())
        return int((self.asked(given["target"], given.get("valid")) != self.ignore_index).sum())

    def asked(self: Any, target: torch.Tensor, valid: torch.Tensor | None) -> torch.Tensor:
        """Return the target of each position, ignored at padding and before it."""
        if valid is not None:
            target = target.masked_fill(~valid, self.ignore_index)
        if not self.shift:
            return target
        target = target[..., self.shift :]
        return target if valid is None else target.masked_fill(~valid[..., : -self.shift], self.ignore_index)

    def judged(self: Any, target: torch.Tensor, valid: torch.Tensor | None) -> torch.Tensor:
        """Return which positions have probabilities that count: not padding, nor what is before it."""
        real = torch.ones_like(target[..., 0], dtype=torch.bool) if valid is None else valid
        return real[..., self.shift :] & real[..., : -self.shift] if self.shift else real

    def forward(self: Any, *input: torch.Tensor, target: torch.Tensor, valid: torch.Tensor | None = None) -> Any:
        scores = [x[..., : -self.shift, :] if self.shift else x for x in input]
        if self.soft:
            real, shares = self.judged(target, valid), target[..., self.shift :, :] if self.shift else target
            return self.together([mean_over_classes(x, shares, self.label_smoothing, real) for x in scores])
        wanted = self.asked(target, valid)
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


def mean_over_classes(scores: torch.Tensor, shares: torch.Tensor, smoothing: float, real: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy of scores [..., classes] with probabilities of classes, over the real places; 0 if none is.

    Args:
        scores: The scores of the classes, [..., classes].
        shares: The probability of each class, [..., classes].
        smoothing: Share of the probability that is spread evenly over the classes.
        real: Which places count, [...].
    """
    wide = scores.to(torch.promote_types(scores.dtype, torch.float32)).reshape(-1, scores.shape[-1])
    wanted, asked = shares.to(wide.dtype).reshape(wide.shape), real.reshape(-1)
    each = F.cross_entropy(wide, wanted, label_smoothing=smoothing, reduction="none")
    return each.masked_fill(~asked, 0).sum() / asked.sum().clamp(min=1)
