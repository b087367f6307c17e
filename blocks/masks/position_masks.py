"""Masks that depend on positions only."""

from __future__ import annotations

from typing import Any

from blocks.core import NonNegativeInt, Paper, PositiveInt
from blocks.masks.areas import Band, Below, MaskArea, No, Some
from blocks.masks.mask import EVERYTHING, Mask, Structure


class Full(Mask, kind="full"):
    """Full (bidirectional) attention, in which every query sees every key."""

    example = """
inputs: {x: "float[batch, time, 32]"}
graph: {y: {type: attention, heads: 4, mask: full, in: x}}
"""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return True

    def structure(self) -> Structure:
        return EVERYTHING


class Causal(Mask, kind="causal"):
    """Causal (autoregressive) mask, in which a query sees the keys up to its own position: `k ≤ q`."""

    familiar = "causal"
    example = """
inputs: {x: "float[batch, time, 32]"}
graph: {y: {type: attention, heads: 4, mask: causal, in: x}}
"""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return k <= q

    def structure(self) -> Structure:
        return Structure(causal=True)


class Lookahead(Mask, kind="lookahead"):
    """Causal mask with lookahead, as in streaming speech recognition: `k ≤ q + count`."""

    count: NonNegativeInt
    """Number of later positions that a query sees."""

    paper = Paper("Transformer Transducer: A Streamable Speech Recognition Model", "arXiv:2002.02562")
    shrinks = {"count": 2}
    example = """
inputs: {x: "float[batch, time, 32]"}
graph: {y: {type: attention, heads: 4, mask: lookahead(2), in: x}}
"""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return k <= q + self.count

    def area(self, queries: int, keys: int, unknown: bool) -> MaskArea:
        return Band(-self.count, None)

    def equivalent(self) -> Mask:
        return self if self.count else Causal()


class Window(Mask, kind="window"):
    """Sliding window attention, in which a query sees the keys less than `width` away: `|q − k| < width`; with `and causal`,
    the `width` latest.

    Mistral's 4096 is `causal and window(4096)`. Longformer's 512 is ± 256 inclusive: `local(256)`.
    """

    width: PositiveInt
    """Number of keys that a query sees on one side, its own position included; `sliding_window` in transformers."""

    paper = Paper("Longformer: The Long-Document Transformer", "arXiv:2004.05150")
    shrinks = {"width": 3}
    width_field = "width"
    example = """
inputs: {x: "float[batch, time, 32]"}
graph: {y: {type: attention, heads: 4, mask: causal and window(16), in: x}}
"""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return abs(q - k) < self.width

    def structure(self) -> Structure:
        return Structure(width=self.width)


class Local(Mask, kind="local"):
    """Local attention (symmetric sliding window), in which a query sees the keys at most `radius` away: `|q − k| ≤ radius`.

    ModernBERT's window of 128 is `local(64)`.
    """

    radius: NonNegativeInt
    """Number of positions that a query sees on each side of its own."""

    paper = Paper("Longformer: The Long-Document Transformer", "arXiv:2004.05150")
    shrinks = {"radius": 2}
    example = """
inputs: {x: "float[batch, time, 32]"}
graph: {y: {type: attention, heads: 4, mask: local(8), in: x}}
"""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return abs(q - k) <= self.radius

    def structure(self) -> Structure:
        return Structure(width=self.radius + 1)

    def equivalent(self) -> Mask:
        return Window(width=self.radius + 1)


class GlobalFirst(Mask, kind="global_first"):
    """Global attention of the first `count` positions, such as a classification token: `q < count` or `k < count`.

    They see all positions and are seen by all.
    """

    count: PositiveInt
    """Number of global positions."""

    paper = Paper("Longformer: The Long-Document Transformer", "arXiv:2004.05150")
    shrinks = {"count": 1}
    example = """
inputs: {x: "float[batch, time, 32]"}
graph: {y: {type: attention, heads: 4, mask: causal and (window(16) or global_first(4)), in: x}}
"""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return (q < self.count) | (k < self.count)

    def area(self, queries: int, keys: int, unknown: bool) -> MaskArea:
        return Some((Below("q", self.count), Below("k", self.count)))


class GlobalLast(Mask, kind="global_last"):
    """Global attention of the last `count` positions: `q > last q − count` or `k > last k − count`.

    They see all positions and are seen by all. Which ones are last is known only once the sequence is complete, so a model with
    this mask cannot generate.
    """

    count: PositiveInt
    """Number of global positions."""

    needs_ends = True
    shrinks = {"count": 1}
    example = """
inputs: {x: "float[batch, time, 32]"}
graph: {y: {type: attention, heads: 4, mask: local(8) or global_last(2), in: x}}
"""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        ends = edges["ends"]
        return (q > ends.query - self.count) | (k > ends.key - self.count)

    def area(self, queries: int, keys: int, unknown: bool) -> MaskArea:
        return Some((No(Below("q", queries - self.count)), No(Below("k", keys - self.count))))
