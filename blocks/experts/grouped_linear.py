"""Linear maps of many experts, each applied to its own rows, as one torch operator, since the numbers of rows are data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blocks.core import torch
from blocks.experts.grouped_kernels import maps_of_rows, rows_by_maps
from blocks.experts.grouped_samples import maps_of_samples, samples_by_maps


def grouped_linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, counts: torch.Tensor) -> torch.Tensor:
    """Multiply rows x [N, D] by the maps weight [E, O, D], bias [E, O] of their experts: the first counts[0] by the first map,
    the next counts[1] by the second. The `counts` sum to N. They are [E], or [E + 1] where some rows may belong to no expert:
    these are the last ones and become zeros. Requires `register_grouped_linear`.
    """
    device = x.device.type
    if device != "meta" and torch.is_autocast_enabled(device):  # there is no autocast of tensors without storage
        x = x.to(torch.get_autocast_dtype(device))  # autocast does not apply inside the operator
    y = product(x, weight.to(x.dtype), counts)  # [N, O]
    if bias is None:
        return y
    experts = weight.shape[0]
    ends = counts[:experts].cumsum(0)  # [E]
    expert = torch.searchsorted(ends, torch.arange(x.shape[0], device=x.device), right=True)  # [N]; E for no expert
    wide = bias.to(torch.promote_types(bias.dtype, torch.float32))  # its gradient is a sum over rows
    rows = wide.index_select(0, expert.clamp(max=experts - 1)).to(x.dtype)
    return y + (rows if counts.shape[0] == experts else torch.where((expert < experts)[:, None], rows, 0))


def register_grouped_linear() -> None:
    """Register the operator with torch, once per process: its gradients, its form under `vmap` and its FLOPs. In a compiled
    graph it is a single call.
    """
    if hasattr(torch.ops.composer, "grouped_linear"):
        return
    from torch.utils.flop_counter import register_flop_formula

    library = torch.library
    forward, weights = "composer::grouped_linear", "composer::grouped_linear_weight"
    tags = (torch.Tag.pt2_compliant_tag,)
    library.define(forward, "(Tensor x, Tensor weight, Tensor counts) -> Tensor", tags=tags)
    library.define(weights, "(Tensor grad, Tensor x, Tensor counts) -> Tensor", tags=tags)
    library.impl(forward, "default", rows_by_maps)
    library.impl(weights, "default", maps_of_rows)
    library.register_fake(forward, lambda x, weight, counts: x.new_empty(x.shape[0], weight.shape[1]))
    library.register_fake(weights, lambda grad, x, counts: x.new_empty(counts.shape[0], grad.shape[1], x.shape[1]))
    library.register_autograd(forward, backward, setup_context=save)
    library.register_autograd(weights, backward_of_weights, setup_context=save)
    library.register_vmap(forward, samples_by_maps)
    library.register_vmap(weights, maps_of_samples)
    register_flop_formula(torch.ops.composer.grouped_linear)(flops)
    register_flop_formula(torch.ops.composer.grouped_linear_weight)(flops_of_weights)


def product(x: torch.Tensor, weight: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Return y [N, O], by the operator."""
    y: torch.Tensor = transformable(torch.ops.composer.grouped_linear, backward)(x, weight, counts)
    return y


def product_of_rows(grad: torch.Tensor, x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Return the gradient [E, O, D] of the maps, by the operator."""
    maps: torch.Tensor = transformable(torch.ops.composer.grouped_linear_weight, backward_of_weights)(grad, x, counts)
    return maps


def transformable(operator: Any, gradients: Any) -> Any:
    """Return an operator, within `torch.func` as a function that it takes gradients of, which of operators it does not."""
    if not torch._C._are_functorch_transforms_active():
        return operator

    class Differentiable(torch.autograd.Function):
        generate_vmap_rule = True
        forward = staticmethod(operator)
        setup_context = staticmethod(save)
        backward = staticmethod(gradients)

    return Differentiable.apply


def save(ctx: Any, inputs: Any, output: Any) -> None:
    """Keep the inputs of either operator for its backward pass."""
    ctx.save_for_backward(*inputs)


def backward(ctx: Any, grad: torch.Tensor) -> Any:
    """Return the gradients of x and of the maps."""
    x, weight, counts = ctx.saved_tensors
    of_x = product(grad, weight.mT, counts) if ctx.needs_input_grad[0] else None
    return of_x, product_of_rows(grad, x, counts[: weight.shape[0]]) if ctx.needs_input_grad[1] else None, None


def backward_of_weights(ctx: Any, of_maps: torch.Tensor) -> Any:
    """Return the gradients of both factors of the gradient of the maps; rows of no expert have none."""
    grad, x, counts = ctx.saved_tensors
    counts = torch.cat([counts, (x.shape[0] - counts.sum())[None]])
    of_grad = product(x, of_maps, counts) if ctx.needs_input_grad[0] else None
    return of_grad, product(grad, of_maps.mT, counts) if ctx.needs_input_grad[1] else None, None


def flops(x: Sequence[int], weight: Sequence[int], counts: Sequence[int], **_: object) -> int:
    """Return the FLOPs of the operator from the shapes of its inputs: each row is multiplied by one matrix."""
    return 2 * x[0] * weight[1] * weight[2]


def flops_of_weights(grad: Sequence[int], x: Sequence[int], counts: Sequence[int], **_: object) -> int:
    """Return the FLOPs of the gradient of the maps: an outer product for each row."""
    return 2 * x[0] * grad[1] * x[1]
