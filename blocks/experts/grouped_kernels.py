"""What `grouped_linear` computes, with torch's grouped matrix product where there is one and expert by expert elsewhere."""

from __future__ import annotations

from blocks.core import F, torch

MOST_GROUPS = 1023
"""Groups that torch's kernel takes on a GPU."""
ALIGNED = 16
"""Bytes of which rows and the beginnings of matrices must be multiples for torch's grouped product."""


def rows_by_maps(x: torch.Tensor, weight: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Return y [N, O]: the rows of each expert, multiplied by its map; zeros for the rows of no expert."""
    experts, outputs, inputs = weight.shape
    if not has_product(x, experts, outputs, inputs):
        return each_forward(x, weight, counts)
    may_leave_out = counts.shape[0] > experts
    ends = (counts[:experts] if may_leave_out else counts).cumsum(0, dtype=torch.int32)
    y = F.grouped_mm(in_rows(x), as_stored(weight).mT, offs=ends)
    if not may_leave_out:
        return y
    if y.device.type == "cpu":
        y[int(ends[-1]) :] = 0
        return y
    left_out = torch.arange(x.shape[0], device=x.device) >= ends[-1]
    return y.masked_fill_(left_out[:, None], 0)  # all rows are read, so that the host need not wait for their number


def maps_of_rows(grad: torch.Tensor, x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Return the gradient [E, O, D] of the maps from that of y [N, O]; rows after those counted [E] have no part in it."""
    if not has_product(x, counts.shape[0], grad.shape[1], x.shape[1]):
        return each_weight(grad, x, counts)
    return F.grouped_mm(in_rows(grad).mT, in_rows(x), offs=counts.cumsum(0, dtype=torch.int32))


def has_product(x: torch.Tensor, experts: int, outputs: int, inputs: int) -> bool:
    """Return whether torch has a grouped product of rows x. On a GPU it is a kernel for bfloat16, which does not wait for the
    counts; for other dtypes it would be a loop.
    """
    step = ALIGNED // x.element_size()
    if outputs % step or inputs % step or not x.shape[0]:
        return False
    if x.device.type == "cpu":
        return x.dtype in (torch.float32, torch.bfloat16, torch.float16)
    return x.device.type == "cuda" and x.dtype == torch.bfloat16 and experts <= MOST_GROUPS


def in_rows(x: torch.Tensor) -> torch.Tensor:
    """Return x with its rows behind each other in memory, also by their stride, which says nothing of a single row."""
    fits = x.stride() == (x.shape[1], 1) and not x.data_ptr() % ALIGNED
    return x if fits else x.clone(memory_format=torch.contiguous_format)


def as_stored(weight: torch.Tensor) -> torch.Tensor:
    """Return a weight as it is if each of its matrices or their transposes lie row by row in memory, and a copy otherwise."""
    fits = weight.stride()[1:] in ((weight.shape[2], 1), (1, weight.shape[1])) and not weight.data_ptr() % ALIGNED
    return weight if fits else weight.clone(memory_format=torch.contiguous_format)


def each_forward(x: torch.Tensor, weight: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Return what `rows_by_maps` does, expert by expert."""
    y, start = x.new_empty(x.shape[0], weight.shape[1]), 0
    for matrix, count in zip(weight.unbind(), counts.tolist(), strict=False):
        if count:
            torch.mm(x[start : start + count], matrix.mT, out=y[start : start + count])
        start += count
    y[start:] = 0
    return y


def each_weight(grad: torch.Tensor, x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Return what `maps_of_rows` does, expert by expert."""
    total, start = x.new_zeros(counts.shape[0], grad.shape[1], x.shape[1]), 0
    for matrix, count in zip(total.unbind(), counts.tolist(), strict=True):
        if count:
            torch.mm(grad[start : start + count].mT, x[start : start + count], out=matrix)
        start += count
    return total


def each_forward_in_operators(x: torch.Tensor, weight: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Return what `rows_by_maps` does in operators of torch alone: for programs that run where ours is not registered."""
    parts, start = [], 0
    for matrix, count in zip(weight.unbind(), counts.tolist(), strict=False):
        torch._check(count >= 0)  # type: ignore[no-untyped-call]  # torch has no annotation
        torch._check(start + count <= x.shape[0])  # type: ignore[no-untyped-call]
        parts.append(x.narrow(0, start, count) @ matrix.mT)
        start = start + count
    return torch.cat([*parts, x.new_zeros(x.shape[0] - start, weight.shape[1])])
