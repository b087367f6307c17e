"""The negative log-likelihood of connectionist temporal classification as one torch operator: torch's own tells neither the
compiler nor tensors without storage what shape it gives.
"""

from __future__ import annotations

from typing import Any

from blocks.core import torch


def ctc_nats(
    log_probs: torch.Tensor, targets: torch.Tensor, frames: torch.Tensor, tokens: torch.Tensor, blank: int, zero_infinity: bool
) -> torch.Tensor:
    """Return the loss of each row, in nats, [B]. Requires `register_ctc`.

    Args:
        log_probs: Log-probabilities of classes, float32 or float64, [T, B, classes].
        targets: Classes, [B, N].
        frames: The number of frames of each row, [B].
        tokens: The number of tokens of each row, [B].
        blank: The class of the blank.
        zero_infinity: Whether a row that cannot be aligned has the loss 0 and no gradient.
    """
    learned = log_probs.requires_grad and torch.is_grad_enabled()
    nats: torch.Tensor = torch.ops.composer.ctc(log_probs, targets, frames, tokens, blank, zero_infinity, learned)[0]
    return nats


def register_ctc() -> None:
    """Register the operator with torch, once per process. It gives the gradient of each row's loss together with the loss."""
    if hasattr(torch.ops.composer, "ctc"):
        return
    forward = torch.library.custom_op(
        "composer::ctc",
        nats_and_slope,
        mutates_args=(),
        schema="(Tensor log_probs, Tensor targets, Tensor frames, Tensor tokens, int blank, bool zero_infinity, bool learned) "
        "-> (Tensor, Tensor)",
    )

    def shapes(log_probs: Any, targets: Any, frames: Any, tokens: Any, blank: int, zero_infinity: bool, learned: bool) -> Any:
        return log_probs.new_empty(log_probs.shape[1]), log_probs.new_empty(log_probs.shape if learned else 0)

    def save(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output[1])
        ctx.mark_non_differentiable(output[1])

    def backward(ctx: Any, grad: torch.Tensor, _: Any) -> Any:
        (slope,) = ctx.saved_tensors
        return slope * grad[:, None], *(None,) * 6

    forward.register_fake(shapes)
    forward.register_autograd(backward, setup_context=save)


def nats_and_slope(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    frames: torch.Tensor,
    tokens: torch.Tensor,
    blank: int,
    zero_infinity: bool,
    learned: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss of each row, [B], and, if it is learned from, its derivatives by the log-probabilities, [T, B, classes]."""
    lengths = (frames.tolist(), tokens.tolist())
    aten = torch.ops.aten
    nats, alpha = aten._ctc_loss(log_probs, targets, *lengths, blank, zero_infinity)
    slope = log_probs.new_empty(0)
    if learned:
        ones = torch.ones_like(nats)
        slope = aten._ctc_loss_backward(ones, log_probs, targets, *lengths, nats, alpha, blank, zero_infinity)
    return nats.masked_fill(nats == float("inf"), 0) if zero_infinity else nats.clone(), slope
