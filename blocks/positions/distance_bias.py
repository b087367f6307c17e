"""A bias of the attention scores that each query chooses by distance, as in relative attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blocks.core import Block, BlockError, BlockView, Look, NonNegativeInt, Paper, Sizes, append_to_cache, torch
from blocks.positions.score_bias import reject_positions


class DistanceBias(Block, kind="distance_bias"):
    """Bias of the attention scores by distance, of which each query brings its own numbers, as in relative attention:
    `y[q, k] = x[q, position_ids[q] - memory_position_ids[k] + ahead]`, with the nearest distance that x has.

    Wire the output to the port `bias` of attention. `x` has a number for each query, head and distance, usually the product of
    the query with a vector of the distance. `memory`, where it is wired, has the positions of the keys; otherwise these are the
    queries' own.
    """

    ahead: NonNegativeInt = 0
    """How many of the distances, the first ones, are those of keys after the query."""

    title = "Distance bias"
    paper = Paper("Self-Attention with Relative Position Representations", "arXiv:1803.02155")
    example = """
inputs: {x: "float[batch, time, 16]"}
graph:
  attended: {type: linear, out: 16, in: x}
  products: {type: linear, out: 2 * 9, in: x}
  by_distance: {type: rearrange, pattern: "b t (head distance) -> b t head distance", lengths: {head: 2}}
  bias: {type: distance_bias, ahead: 4}
  attn: {type: attention, heads: 2, in: {x: attended, bias: bias}}
"""
    inputs = {
        "x": "float[batch, time, heads, distance]",
        "memory?": "float[batch, source, memory_dim]",
        "position_ids?": "int[..., time]",
        "memory_position_ids?": "int[..., source]",
    }
    outputs = {"y": "float[batch, heads, time, source]"}
    axis_defaults = {"source": "time"}
    position_inputs = {"position_ids": "time", "memory_position_ids": "source"}
    shape_only_inputs = ("memory",)
    second_stream_inputs = ("memory",)
    kept_axes = ("source",)
    cache_slots = {"key_position_ids": "int[batch, source]"}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        reject_positions(sizes, wired)
        distances = sizes["distance"]
        if isinstance(distances, int) and self.ahead >= distances:
            raise BlockError(f"x has {distances} distances, of which {self.ahead} cannot be ahead", field="ahead")

    def mixed_axes(self, sizes: Sizes) -> Sequence[Any]:
        return (sizes["distance"],)

    def look(self, view: BlockView) -> Look:
        return Look("Distance bias", tuple(view.settings), "pos")

    def forward(self: Any, x: torch.Tensor, position_ids: torch.Tensor, memory_position_ids: torch.Tensor) -> torch.Tensor:
        memory_position_ids = append_to_cache(self, "key_position_ids", memory_position_ids)
        distance = position_ids[..., :, None] - memory_position_ids[..., None, :] + self.ahead  # [T, S] or [B, T, S]
        place = distance.clamp(0, x.shape[-1] - 1)[..., None, :, :]  # the heads in front
        x = x.transpose(1, 2)  # [B, H, T, distances]
        return torch.gather(x, -1, place.expand(*x.shape[:-1], -1))
