"""Masks that cut the sequence into equal stretches, or step through it."""

from __future__ import annotations

from typing import Any

from blocks.core import Count, Paper, Size
from blocks.masks.areas import All, Area, Band, Blocks, Multiple
from blocks.masks.mask import Mask, Structure


class Chunk(Mask, kind="chunk"):
    """A query sees its own chunk of the sequence: `⌊q / length⌋ = ⌊k / length⌋`."""

    length: Size
    """Positions in a chunk."""

    source = Paper("Generating Long Sequences with Sparse Transformers", "arXiv:1904.10509")
    shrinks = {"length": 4}

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return q // self.length == k // self.length

    def structure(self) -> Structure:
        return Structure(chunk=self.length)


class BlockWindow(Mask, kind="block_window"):
    """A query sees its own block and those around it: `|⌊q / block⌋ − ⌊k / block⌋| ≤ radius`."""

    block: Size
    """Positions in a block."""
    radius: Count
    """How many blocks a query sees to each side of its own."""

    source = Paper("Big Bird: Transformers for Longer Sequences", "arXiv:2007.14062")
    shrinks = {"block": 2, "radius": 1}

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return abs(q // self.block - k // self.block) <= self.radius

    def area(self, queries: int, keys: int, unknown: bool) -> Area:
        return Blocks(self.block, self.radius)


class Strided(Mask, kind="strided"):
    """A query sees every `step`-th position, counted from its own: `step` divides `q − k`."""

    step: Size
    """From one position that is seen to the next."""

    source = Paper("Generating Long Sequences with Sparse Transformers", "arXiv:1904.10509")
    shrinks = {"step": 3}

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return (q - k) % self.step == 0

    def area(self, queries: int, keys: int, unknown: bool) -> Area:
        return Multiple(self.step)


class Dilated(Mask, kind="dilated"):
    """A window with gaps: `|q − k| < width · step`, and `step` divides `q − k`; with `and causal`, `width` positions."""

    width: Size
    """How many positions back a query sees, its own included and the gaps left out."""
    step: Size
    """From one position that is seen to the next."""

    source = Paper("Longformer: The Long-Document Transformer", "arXiv:2004.05150")
    shrinks = {"width": 2, "step": 2}

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return (abs(q - k) < self.width * self.step) & ((q - k) % self.step == 0)

    def area(self, queries: int, keys: int, unknown: bool) -> Area:
        farthest = self.width * self.step - 1
        return All((Band(-farthest, farthest), Multiple(self.step)))
