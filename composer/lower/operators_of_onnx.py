"""Models in operators that ONNX knows, for programs that run where neither Composer nor torch is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from composer.lower.operators_of_torch import InOperatorsOfTorch


class InOperatorsOfOnnx(InOperatorsOfTorch):
    """Takes operators that ONNX has a form of for those that it has none of, and computes the same."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.scaled_dot_product_attention:
            return _attention(*args, **(kwargs or {}))
        if func is torch.linalg.solve_triangular:
            return _solved(*args, **(kwargs or {}))
        if func is torch.searchsorted:
            return _places(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)


def translations() -> dict[Any, Callable[..., Any]]:
    """Return what ONNX computes for operators of torch that its exporter does not know, by these."""
    import onnxscript

    op: Any = onnxscript.opset18  # its types know nothing of the values of another operator

    def sorted_stably(x: Any, dim: int = -1, descending: bool = False, stable: bool | None = None) -> Any:
        """Return all of the largest or smallest values: of equal ones, TopK has the one of the lower index first."""
        size = op.Reshape(op.Gather(op.Shape(x), op.Constant(value_ints=[dim])), op.Constant(value_ints=[1]))
        return op.TopK(x, size, axis=dim, largest=int(descending), sorted=1)

    return {torch.ops.aten.sort.stable: sorted_stably}


def _attention(query: Any, key: Any, value: Any, attn_mask: Any = None, **options: Any) -> Any:
    """Let a query without keys see all of them, and make its result zero, which in ONNX a softmax of nothing is not.

    The result is contiguous, or what comes next is traced as a view of how a kernel of torch lays it out.
    """
    if attn_mask is None or attn_mask.dtype != torch.bool:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask, **options).contiguous()
    seeing = attn_mask.any(-1, keepdim=True)
    y = F.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask | ~seeing, **options)
    return torch.where(seeing, y, 0.0).contiguous()


def _places(ends: Any, values: Any, *, right: bool) -> Any:
    """Count the ends that are no larger than each value."""
    assert right
    return (values[..., None] >= ends).sum(-1)


def _solved(matrix: Any, right: Any, *, upper: bool, unitriangular: bool) -> Any:
    """Return the upper half of the rows, then the lower half, computed from what is known of the upper."""
    assert not upper and unitriangular
    size = matrix.shape[-1]
    if size == 1:
        return right
    half = size // 2
    first = _solved(matrix[..., :half, :half], right[..., :half, :], upper=False, unitriangular=True)
    rest = right[..., half:, :] - matrix[..., half:, :half] @ first
    second = _solved(matrix[..., half:, half:], rest, upper=False, unitriangular=True)
    return torch.cat([first, second], -2)
