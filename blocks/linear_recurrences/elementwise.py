"""The recurrence `h = keep · h' + add` of numbers that do not see each other, for all steps at once."""

from __future__ import annotations

from collections.abc import Sequence

from blocks.core import torch


def recurrence(h: torch.Tensor, keep: torch.Tensor | float, add: torch.Tensor | float, axis: int = 1) -> torch.Tensor:
    """Return the states `h = keep · h' + add` after each step, stacked along an axis, given the state before the first.

    `keep` may have any sign. It and `add` have the steps along that axis, and are broadcast; one of them may be a number. In
    dtypes below float32, states are computed in float32.
    """
    dtype = h.dtype
    for each in (keep, add):
        dtype = torch.promote_types(dtype, each.dtype) if isinstance(each, torch.Tensor) else dtype
    wide = torch.promote_types(dtype, torch.float32)
    keep, add = (each if isinstance(each, torch.Tensor) else h.new_full((), each, dtype=wide) for each in (keep, add))
    h, keep, add = h.to(wide), beside(h, keep.to(wide)), beside(h, add.to(wide))
    count = max(keep.shape[axis], add.shape[axis])
    keep, add = (each.expand(*each.shape[:axis], count, *each.shape[axis + 1 :]) for each in (keep, add))
    side_by_side = count >= FEW and (torch.compiler.is_compiling() or h.is_cuda or h.numel() <= LARGE)
    return (in_chunks if side_by_side else one_by_one)(h, keep, add, axis).to(dtype)


def running_sum(h: torch.Tensor, add: torch.Tensor, axis: int = 1) -> torch.Tensor:
    """Return the states `h = h' + add` after each step, stacked along an axis, given the state before the first."""
    dtype = torch.promote_types(h.dtype, add.dtype)
    wide = torch.promote_types(dtype, torch.float32)
    return (h.unsqueeze(axis).to(wide) + beside(h, add.to(wide)).cumsum(axis)).to(dtype)


def states_before(h: torch.Tensor, states: torch.Tensor, axis: int = 1) -> torch.Tensor:
    """Return the state before each step, given the one before the first and those after each, stacked along an axis."""
    return torch.cat([h.unsqueeze(axis).to(states.dtype), states.narrow(axis, 0, states.shape[axis] - 1)], axis)


def beside(h: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return a value with as many axes as the states of all steps have."""
    return x[(None,) * (h.dim() + 1 - x.dim())]


FEW = 16
"""Below as many steps, they are taken one by one."""
LARGE = 1024
"""Numbers of a state beyond which reading it once more takes a processor longer than the operations that this saves."""


def one_by_one(h: torch.Tensor, keep: torch.Tensor, add: torch.Tensor, axis: int) -> torch.Tensor:
    """Return the states after each step, each from the one before by one operation."""
    return torch.stack(one_after_another(h, keep.unbind(axis), add.unbind(axis)), axis)


def one_after_another(h: torch.Tensor, keep: Sequence[torch.Tensor], add: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return the states after each step as a list."""
    states = []
    for kept, added in zip(keep, add, strict=True):
        h = torch.addcmul(added, kept, h)
        states.append(h)
    return states


def in_chunks(h: torch.Tensor, keep: torch.Tensor, add: torch.Tensor, axis: int) -> torch.Tensor:
    """Return the states after each step: of √steps chunks side by side from zeros, then with what each chunk starts with.

    Within a chunk `keep` is multiplied and never divided by, so it may be 0, and a decay that vanishes is 0.
    """
    count = add.shape[axis]
    length = int(count**0.5)
    whole = count // length * length
    factors, terms = (
        torch.unflatten(each.narrow(axis, 0, whole), axis, (whole // length, length)).unbind(axis + 1) for each in (keep, add)
    )
    products = [factors[0]]  # of `keep` since the chunk's start
    for kept in factors[1:]:
        products.append(kept * products[-1])
    from_zero = one_after_another(torch.zeros_like(terms[0]), factors, terms)
    ends = one_after_another(h, products[-1].unbind(axis), from_zero[-1].unbind(axis))
    starts = torch.stack([h.expand_as(ends[0]), *ends[:-1]], axis).unsqueeze(axis + 1)
    states = torch.addcmul(torch.stack(from_zero, axis + 1), torch.stack(products, axis + 1), starts).flatten(axis, axis + 1)
    if whole == count:
        return states
    rest = [each.narrow(axis, whole, count - whole).unbind(axis) for each in (keep, add)]
    return torch.cat([states, torch.stack(one_after_another(ends[-1], *rest), axis)], axis)
