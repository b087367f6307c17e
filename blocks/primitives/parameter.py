"""A learned tensor that depends on no input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from blocks.core import (
    ONES,
    ZEROS,
    Block,
    BlockView,
    Init,
    Look,
    PositiveFloat,
    PositiveInt,
    Sizes,
    Tensor,
    Weights,
    grouped,
)


class Parameter(Block, kind="parameter"):
    """Learned tensor that depends on no input (`nn.Parameter`), such as latents, queries or a temperature."""

    shape: tuple[PositiveInt, ...]
    """Sizes of its axes, such as `[1, dim]`; `[]` is a scalar."""
    init: Literal["normal", "zeros", "ones"] = "normal"
    """Initial values: from a normal distribution of mean 0, all zeros or all ones."""
    std: PositiveFloat = 0.02
    """Standard deviation of `init: normal`."""

    is_primitive = True
    example = """
inputs: {x: "float[batch, time, 8]"}
graph:
  bias: {type: parameter, shape: [8]}
  y: {type: add, in: [x, bias]}
"""
    outputs = {"y": "float[...]"}

    def output_types(self, inputs: Mapping[str, Any], sizes: Sizes) -> Mapping[str, str]:
        return {"y": f"float[{', '.join(map(str, self.shape))}]"}

    def weights(self, sizes: Sizes, wired: frozenset[str]) -> Weights:
        start = {"normal": Init("normal", self.std), "zeros": ZEROS, "ones": ONES}[self.init]
        # Vectors that enter the stream directly, like those of an embedding.
        return {"weight": Tensor(self.shape, "embedding", start)}

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), (" × ".join(map(grouped, self.shape)) or "one number",), "embed")

    def forward(self: Any) -> Any:
        return self.weight
