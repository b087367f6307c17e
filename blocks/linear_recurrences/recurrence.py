"""The base of linear recurrences: what they say of axes, of padding and of the state that a call passes to the next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from blocks.core import Block, BlockError, BlockView, Look, LoopIcon, Sizes, cached, size, store_carry, torch


class LinearRecurrence(Block):
    """The base of linear recurrences, without the recurrence. Its state `h` is float32 at least, also in a model in bfloat16."""

    def past_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["time"],)

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return tuple(length for name, length in sizes.items() if name in MIXED_AXES)

    def look(self, view: BlockView) -> Look:
        _, _, *axes = re.findall(r"\w+", self.carry["h"])  # behind the dtype and the batch
        state, name = f"state {' × '.join(size(view.sizes[name]) for name in axes)}", self.called().lower()
        return Look(self.called(), (state,), "rec", brief=(f"{name} {state}", name))

    def icon(self) -> LoopIcon:
        return LoopIcon()

    def before(self: Any, h: torch.Tensor | None, *shape: int, like: torch.Tensor) -> torch.Tensor:
        """Return the state before the first position: that of the previous call, else the wired one, else zeros."""
        left = cached(self, "h")
        state = h if left is None else left
        return like.new_zeros(shape) if state is None else state.to(like.dtype)

    def after(self: Any, y: torch.Tensor, h: torch.Tensor, like: torch.Tensor) -> Any:
        """Return the outputs in the dtype of an input, and keep the state for the next call."""
        store_carry(self, like.shape[1], h=h)
        y = y.to(like.dtype)
        return (y, h.to(like.dtype)) if "h" in self.requested_outputs else y


def check_decay(decay: Any, every: Sequence[Sequence[Any]]) -> None:
    """Raise `BlockError` for decays that have none of the lists of axes that they may have."""
    if decay is not None and list(decay.sizes) not in every:
        wanted = " or ".join(f"[{', '.join(map(str, axes))}]" for axes in every)
        raise BlockError(f"takes a log_decay of {wanted}, not {decay}", port="log_decay", code="type-mismatch")


MIXED_AXES = ("channels", "state", "groups", "heads", "key", "value")
"""The axes of inputs but the batch and the positions: those of states, and heads of keys, which heads of values share."""


def wide(x: torch.Tensor, valid: torch.Tensor | None) -> torch.Tensor:
    """Return a value with positions along its second axis in float32 at least, with zeros where it is padding."""
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    return x if valid is None else x.masked_fill(~valid.view(*valid.shape, *(1,) * (x.dim() - 2)), 0)


def sums_between(x: torch.Tensor) -> torch.Tensor:
    """Return the sums of x over the positions after s and up to t, [..., t, s]; minus infinity where s is after t.

    Each is a sum of its own, not a difference of two sums from the beginning: it keeps its digits however far it is from there.
    """
    before = torch.ones(x.shape[-1], x.shape[-1], dtype=torch.bool, device=x.device).tril(-1)
    each = x[..., None].expand(*x.shape, x.shape[-1]).masked_fill(~before, 0)
    return each.cumsum(-2).masked_fill(before.mT, -torch.inf)
