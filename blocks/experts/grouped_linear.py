"""Linear maps of many experts, each applied to its own rows, as one torch operator, since the numbers of rows are data."""

from __future__ import annotations

from typing import Any

from blocks.core import torch


def grouped_linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, counts: torch.Tensor) -> torch.Tensor:
    """Multiply rows x [N, D] by the maps weight [E, O, D], bias [E, O] of their experts: the first counts[0] by the first map,
    the next counts[1] by the second. Rows after these belong to no expert and become zeros. Requires `register_grouped_linear`.
    """
    device = x.device.type
    if device != "meta" and torch.is_autocast_enabled(device):  # there is no autocast of tensors without storage
        x = x.to(torch.get_autocast_dtype(device))  # autocast does not apply inside the operator
    y: torch.Tensor = torch.ops.composer.grouped_linear(x, weight.to(x.dtype), counts)  # [N, O]
    if bias is None:
        return y
    ends = counts.cumsum(0)  # [E]
    row = torch.arange(x.shape[0], device=x.device)
    expert = torch.searchsorted(ends, row, right=True)  # [N]; E for no expert
    rows = bias.to(x.dtype)[expert.clamp(max=len(bias) - 1)]
    return y + torch.where((expert < len(bias))[:, None], rows, 0)


def register_grouped_linear() -> None:
    """Register the operator with torch, once per process: a loop over experts, each of which computes only its own rows. In a
    compiled graph it is a single call.
    """
    if hasattr(torch.ops.composer, "grouped_linear"):
        return
    forward = torch.library.custom_op(
        "composer::grouped_linear", each_forward, mutates_args=(), schema="(Tensor x, Tensor weight, Tensor counts) -> Tensor"
    )
    weights = torch.library.custom_op(
        "composer::grouped_linear_weight",
        each_weight,
        mutates_args=(),
        schema="(Tensor grad, Tensor x, Tensor counts) -> Tensor",
    )
    forward.register_fake(lambda x, weight, counts: x.new_empty(x.shape[0], weight.shape[1]))
    weights.register_fake(lambda grad, x, counts: x.new_empty(counts.shape[0], grad.shape[1], x.shape[1]))

    def save(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        x, weight, counts = ctx.saved_tensors
        grad_x = forward(grad, weight.mT, counts) if ctx.needs_input_grad[0] else None
        return grad_x, weights(grad, x, counts) if ctx.needs_input_grad[1] else None, None

    forward.register_autograd(backward, setup_context=save)


def each_forward(x: torch.Tensor, weight: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Return y [N, O]: the rows of each expert, multiplied by its map."""
    y, start = x.new_zeros(x.shape[0], weight.shape[1]), 0
    for matrix, count in zip(weight.unbind(), counts.tolist(), strict=True):
        if count:
            torch.mm(x[start : start + count], matrix.mT, out=y[start : start + count])
        start += count
    return y


def each_weight(grad: torch.Tensor, x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Return the gradient [E, O, D] of the maps, from that of y."""
    total, start = x.new_zeros(counts.shape[0], grad.shape[1], x.shape[1]), 0
    for matrix, count in zip(total.unbind(), counts.tolist(), strict=True):
        if count:
            torch.mm(grad[start : start + count].mT, x[start : start + count], out=matrix)
        start += count
    return total


def each_forward_in_operators(x: torch.Tensor, weight: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Return y [N, O] as `each_forward` does, in operators of torch alone: for programs that run where ours is not registered."""
    parts, start = [], 0
    for matrix, count in zip(weight.unbind(), counts.tolist(), strict=True):
        torch._check(count >= 0)  # type: ignore[no-untyped-call]  # torch has no annotation
        torch._check(start + count <= x.shape[0])  # type: ignore[no-untyped-call]
        parts.append(x.narrow(0, start, count) @ matrix.mT)
        start = start + count
    return torch.cat([*parts, x.new_zeros(x.shape[0] - start, weight.shape[1])])
