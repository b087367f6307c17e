"""Masks of blocks and strides."""

from __future__ import annotations

from typing import Any

from blocks.core import NonNegativeInt, Paper, PositiveInt
from blocks.masks.areas import All, Band, BlockBand, MaskArea, Multiple
from blocks.masks.mask import Mask, Structure


class Chunk(Mask, kind="chunk"):
    """Chunked (block-diagonal) attention, in which a query sees its own chunk of the sequence: `⌊q / length⌋ = ⌊k / length⌋`.

    With `and causal` it is the chunked attention of Llama 4.
    """

    length: PositiveInt
    """Positions in a chunk."""

    paper = Paper("Generating Long Sequences with Sparse Transformers", "arXiv:1904.10509")
    shrinks = {"length": 4}
    example = """
inputs: {x: "float[batch, time, 32]"}
graph: {y: {type: attention, heads: 4, mask: causal and chunk(16), in: x}}
"""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return q // self.length == k // self.length

    def structure(self) -> Structure:
        return Structure(chunk=self.length)


class BlockWindow(Mask, kind="block_window"):
    """Block-wise sliding window, in which a query sees its own block and those next to it:
    `|⌊q / block⌋ − ⌊k / block⌋| ≤ radius`.
    """

    block: PositiveInt
    """Positions in a block."""
    radius: NonNegativeInt
    """Number of blocks that a query sees on each side of its own."""

    paper = Paper("Big Bird: Transformers for Longer Sequences", "arXiv:2007.14062")
    shrinks = {"block": 2, "radius": 1}
    example = """
inputs: {x: "float[batch, time, 32]"}
graph: {y: {type: attention, heads: 4, mask: "block_window(16, 1)", in: x}}
"""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return abs(q // self.block - k // self.block) <= self.radius

    def area(self, queries: int, keys: int, unknown: bool) -> MaskArea:
        return BlockBand(self.block, self.radius)


class Strided(Mask, kind="strided"):
    """Strided attention, in which a query sees every `step`-th position from its own: `(q − k) mod step = 0`."""

    step: PositiveInt
    """Distance between visible keys."""

    paper = Paper("Generating Long Sequences with Sparse Transformers", "arXiv:1904.10509")
    shrinks = {"step": 3}
    example = """
inputs: {x: "float[batch, time, 32]"}
graph: {y: {type: attention, heads: 4, mask: causal and strided(8), in: x}}
"""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return (q - k) % self.step == 0

    def area(self, queries: int, keys: int, unknown: bool) -> MaskArea:
        return Multiple(self.step)


class Dilated(Mask, kind="dilated"):
    """Dilated sliding window, in which a query sees every `step`-th key around it: `|q − k| < width · step` and
    `(q − k) mod step = 0`; with `and causal`, `width` keys.
    """

    width: PositiveInt
    """Number of keys that a query sees on one side, its own position included."""
    step: PositiveInt
    """Distance between visible keys, the dilation."""

    paper = Paper("Longformer: The Long-Document Transformer", "arXiv:2004.05150")
    shrinks = {"width": 2, "step": 2}
    example = """
inputs: {x: "float[batch, time, 32]"}
graph: {y: {type: attention, heads: 4, mask: "causal and dilated(16, 2)", in: x}}
"""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return (abs(q - k) < self.width * self.step) & ((q - k) % self.step == 0)

    def area(self, queries: int, keys: int, unknown: bool) -> MaskArea:
        farthest = self.width * self.step - 1
        return All((Band(-farthest, farthest), Multiple(self.step)))
