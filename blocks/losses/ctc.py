"""Connectionist temporal classification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blocks.core import BlockError, NonNegativeInt, Paper, Sizes, torch
from blocks.losses.ctc_operator import ctc_nats, register_ctc
from blocks.losses.loss import Loss


class CTC(Loss, kind="ctc"):
    """Connectionist temporal classification, in nats: `-log P(target)`, where a target has the probability of all its alignments
    together: of every way to write one class at each frame that gives the target when repeated classes are joined and then
    blanks are left out.

    The loss of a row is divided by the number of its tokens, and the mean is over the rows, as in `F.ctc_loss` of torch. Frames
    where `valid` is false are left out, and so are tokens where `target_valid` is false, wherever they stand, and those of -100.
    A row without tokens counts nothing. The input is logits, not log-probabilities; computed in float32, also under bfloat16.
    """

    blank: NonNegativeInt = 0
    """The class of the blank, which no target has."""
    zero_infinity: bool = False
    """Whether a row with fewer frames than its target needs, a token each and one between equal neighbors, has the loss 0 and no
    gradient, and still counts as a row. Otherwise its loss is infinite."""

    paper = Paper("Connectionist Temporal Classification", "ICML 2006")
    example = """
inputs: {x: "float[batch, time, 8]", text: "int[batch, letters]"}
graph: {logits: {type: linear, out: 5, in: x}}
outputs: {logits: logits}
losses: {loss: {type: ctc, in: {input: logits, target: text}}}
"""
    inputs = {
        "input*": "float[batch, frames, classes]",
        "target": "int[batch, tokens]",
        "valid?": "bool[batch, frames]",
        "target_valid?": "bool[batch, tokens]",
    }

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        for index, one in enumerate(inputs["input"]):
            if len(one.sizes) != 3 or one.sizes[0] != inputs["target"].sizes[0]:
                message = f"takes logits over classes for each frame of as many rows as {inputs['target']}, not {one}"
                raise BlockError(message, port="input", index=index, code="type-mismatch")
            _, frames, classes = one.sizes
            if isinstance(classes, int) and self.blank >= classes:
                raise BlockError(f"the blank is class {self.blank}, and there are {classes}, counted from 0", field="blank")
            if "valid" in inputs and inputs["valid"].sizes[1] != frames:
                message = f"takes a flag for each of {frames} frames, not {inputs['valid']}"
                raise BlockError(message, port="valid", code="type-mismatch")
        return super().constants(inputs, sizes)

    def facts(self) -> Sequence[str]:
        return (f"blank {self.blank}",)

    def counted(self, numbers: int | None, given: Mapping[str, Any]) -> int | None:
        if "target" not in given:
            return None
        return int(tokens_asked(given["target"], given.get("target_valid")).any(1).sum())

    def setup(self) -> None:
        register_ctc()

    def forward(
        self: Any,
        *input: torch.Tensor,
        target: torch.Tensor,
        valid: torch.Tensor | None = None,
        target_valid: torch.Tensor | None = None,
    ) -> Any:
        asked = tokens_asked(target, target_valid)
        return self.together([mean_ctc(x, target, asked, valid, self.blank, self.zero_infinity) for x in input])


def tokens_asked(target: torch.Tensor, valid: torch.Tensor | None) -> torch.Tensor:
    """Return which tokens of the targets [B, N] count."""
    real = target != -100
    return real if valid is None else real & valid


def mean_ctc(
    scores: torch.Tensor,
    target: torch.Tensor,
    asked: torch.Tensor,
    valid: torch.Tensor | None,
    blank: int,
    zero_infinity: bool,
) -> torch.Tensor:
    """Return the mean over rows of CTC per token, of scores [B, T, classes] and the tokens of targets [B, N] that are asked; 0 if
    none are.
    """
    wide = torch.log_softmax(scores.to(torch.promote_types(scores.dtype, torch.float32)), -1)
    tokens, counts = asked.sum(1), asked.any(1)
    frames = torch.full_like(tokens, scores.shape[1])
    if valid is not None:
        order = valid.int().argsort(dim=1, descending=True, stable=True)  # valid frames first, in their order
        wide = wide.gather(1, order[:, :, None].expand_as(wide))
        frames = torch.where(counts, valid.sum(1), frames)  # of no tokens, any frames will do: what they give is left out
    first = asked.int().argsort(dim=1, descending=True, stable=True)
    written = target.masked_fill(~asked, 0).gather(1, first)
    each = ctc_nats(wide.transpose(0, 1), written, frames, tokens, blank, zero_infinity)  # [B]
    return torch.where(counts, each / tokens.clamp(min=1), 0.0).sum() / counts.sum().clamp(min=1)
