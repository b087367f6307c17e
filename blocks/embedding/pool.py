"""Pooling of a sequence into one vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from blocks.core import Block, BlockView, Look, Sizes, torch


class Pool(Block, kind="pool"):
    """Pool each sequence into one vector: its first or last position, or the mean or maximum over positions.

    Padding, where `valid` is false, is left out; each sequence needs at least one valid position.
    """

    mode: Literal["first", "last", "mean", "max"]
    """`first` is BERT's classification token, `last` serves classifiers on causal models; `mean` and `max` are taken per
    channel.
    """

    example = """
inputs: {x: "float[batch, time, 8]", valid: "bool[batch, time]"}
graph: {y: {type: pool, mode: mean, in: {x: x, valid: valid}}}
"""
    inputs = {"x": "float[batch, time, dim]", "valid?": "bool[batch, time]"}
    outputs = {"y": "float[batch, dim]"}

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["time"],)

    def look(self, view: BlockView) -> Look:
        modes = {
            "first": "first position",
            "last": "last position",
            "mean": "mean over positions",
            "max": "maximum over positions",
        }
        return Look(self.called(), (modes[self.mode],), "merge", operation=(self.called().lower(),))

    def forward(self: Any, x: torch.Tensor, valid: torch.Tensor | None = None) -> torch.Tensor:
        if valid is None:
            valid = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)  # [B, T]
        match self.mode:
            case "mean":
                return (x * valid[..., None]).sum(1) / valid.sum(1, keepdim=True).clamp(min=1)  # [B, D]
            case "max":
                return x.masked_fill(~valid[..., None], torch.finfo(x.dtype).min).amax(1)
            case "first":
                chosen = valid.int().argmax(1)  # [B]; the first of the largest
            case _:
                chosen = x.shape[1] - 1 - valid.int().flip(1).argmax(1)
        return x.gather(1, chosen[:, None, None].expand(-1, 1, x.shape[-1])).squeeze(1)
