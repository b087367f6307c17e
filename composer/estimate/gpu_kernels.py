"""The operators that torch takes on a GPU where it takes others on a CPU, on tensors without storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

WIDEST_HEAD = 256
"""The widest heads that a fused kernel takes."""
SCALED_DOT_PRODUCT_ATTENTION: Callable[..., Any] = F.scaled_dot_product_attention
"""Torch's own choice of an operator."""


@contextmanager
def gpu_kernels() -> Iterator[None]:
    """Let torch's functions take them in this process: attention that is fused with dropout, in any precision and with a learned
    bias, and dropout that keeps a flag for each value. On a CPU, torch computes whole matrices of scores in these cases, and
    dropout keeps a number for each value.

    The functions themselves are replaced, since a mode of torch is off in a backward pass that computes activations again.
    """
    torchs = {name: getattr(F, name) for name in REPLACED}
    try:
        for name, function in REPLACED.items():
            setattr(F, name, function)
        yield
    finally:
        for name, function in torchs.items():
            setattr(F, name, function)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Return fused attention: FlashAttention without a mask in 16 bits, else the memory-efficient kernel."""
    if max(query.shape[-1], value.shape[-1]) > WIDEST_HEAD or query.dim() != 4:
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    if torch.is_autocast_enabled("cpu"):
        low = torch.get_autocast_dtype("cpu")
        query, key, value = query.to(low), key.to(low), value.to(low)
        attn_mask = attn_mask if attn_mask is None or attn_mask.dtype == torch.bool else attn_mask.to(low)
    if attn_mask is None and query.dtype in (torch.bfloat16, torch.float16) and query.shape[-1] == value.shape[-1]:
        flash: Any = torch.ops.aten._scaled_dot_product_flash_attention
        return flash(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
    if enable_gqa:
        groups = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            attn_mask = torch.where(attn_mask, 0.0, float("-inf")).to(query.dtype)
        attn_mask = attn_mask.expand(*query.shape[:3], key.shape[2])
    keeps = torch.is_grad_enabled() and any(each.requires_grad for each in (query, key, value))
    efficient: Any = torch.ops.aten._scaled_dot_product_efficient_attention
    return efficient(query, key, value, attn_mask, keeps, dropout_p, is_causal, scale=scale)[0]


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return dropout that keeps a flag for each value."""
    return torch.native_dropout(input, p, training)[0] if training and p else input


REPLACED: Mapping[str, Callable[..., Any]] = {"scaled_dot_product_attention": attention, "dropout": dropout}
