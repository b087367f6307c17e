"""Zeros."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from blocks.core import Block, BlockError, BlockView, Look, PositiveInt, Sizes, torch


class Zeros(Block, kind="zeros"):
    """Zeros for each row of the batch of x, such as the initial state of a recurrence."""

    shape: tuple[PositiveInt, ...]
    """Sizes of the axes after the batch, such as `[hidden]`; `[]` is one number for each row."""

    is_primitive = True
    example = """
inputs: {x: "float[batch, time, 8]"}
graph:
  nothing: {type: zeros, shape: [12]}
  layer:
    scan: time
    in: {x: x, h: nothing}
    graph:
      new: {type: gru_cell, hidden: 12, in: {x: x, h: h}}
    outputs: {y: new, h: new}
"""
    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}
    shape_only_inputs = ("x",)

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"y": f"float[{', '.join(['batch', *map(str, self.shape)])}]"}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        if not sizes["..."]:
            raise BlockError("takes a tensor with a batch axis, not a scalar", port="x")

    def constants(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
        return {"batch": sizes["..."][0].size}

    def look(self, view: BlockView) -> Look:
        return replace(super().look(view), number="0")

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x.new_zeros(x.shape[0], *self.shape)
