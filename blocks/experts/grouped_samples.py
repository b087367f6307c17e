"""`grouped_linear` of many samples at once, as `torch.vmap` calls it: one product whose groups have the rows of all of them."""

from __future__ import annotations

from typing import Any

from blocks.core import torch


def samples_by_maps(info: Any, in_dims: tuple[int | None, ...], x: Any, weight: Any, counts: Any) -> tuple[Any, int]:
    """Return y [S, N, O] of samples x [S, N, D], with maps [E, O, D] that they share or maps of their own [S, E, O, D]."""
    x, counts = (in_front(each, dim, info.batch_size) for each, dim in ((x, in_dims[0]), (counts, in_dims[2])))
    own = in_dims[1] is not None
    if own:
        weight = weight.movedim(in_dims[1], 0).flatten(0, 1)
    order, counts = regrouped(counts, x.shape[1], weight.shape[0] // (info.batch_size if own else 1), own=own)
    y = torch.ops.composer.grouped_linear(x.flatten(0, 1)[order], weight, counts)
    return torch.zeros_like(y).index_copy(0, order, y).reshape(*x.shape[:2], y.shape[1]), 0


def maps_of_samples(info: Any, in_dims: tuple[int | None, ...], grad: Any, x: Any, counts: Any) -> tuple[Any, int]:
    """Return the gradients [S, E, O, D] of the maps of each sample."""
    grad, x, counts = (in_front(each, dim, info.batch_size) for each, dim in zip((grad, x, counts), in_dims, strict=True))
    experts = counts.shape[1]
    order, counts = regrouped(counts, x.shape[1], experts, own=True)
    maps = torch.ops.composer.grouped_linear_weight(grad.flatten(0, 1)[order], x.flatten(0, 1)[order], counts)
    return maps.unflatten(0, (-1, experts)), 0


def in_front(value: Any, dim: int | None, samples: int) -> Any:
    """Return a value with the samples as its first axis."""
    return value.expand(samples, *value.shape) if dim is None else value.movedim(dim, 0)


def regrouped(counts: Any, rows: int, experts: int, *, own: bool) -> tuple[Any, Any]:
    """Return the order of all rows [S · N] by their expert, and the counts of it. With maps of their own, each sample has other
    experts; rows of no expert are last.
    """
    samples = counts.shape[0]
    ends = counts[:, :experts].cumsum(1).contiguous()  # [S, E]
    row = torch.arange(rows, device=counts.device).expand(samples, rows).contiguous()
    expert = torch.searchsorted(ends, row, right=True)  # [S, N]; E for no expert
    none = counts[:, experts:].sum(0)  # [1], or [0] if all rows have one
    if own:
        first = experts * torch.arange(samples, device=counts.device)[:, None]
        expert = torch.where(expert < experts, expert + first, experts * samples)
        return expert.flatten().argsort(stable=True), torch.cat([counts[:, :experts].flatten(), none])
    return expert.flatten().argsort(stable=True), torch.cat([counts[:, :experts].sum(0), none])
