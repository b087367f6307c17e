"""Masks that only the positions decide."""

from __future__ import annotations

from typing import Any

from blocks.core import NonNegativeInt, Paper, PositiveInt
from blocks.masks.areas import Band, Below, MaskArea, No, Some
from blocks.masks.mask import EVERYTHING, Mask, Structure


class Full(Mask, kind="full"):
    """Every query sees every key."""

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return True

    def structure(self) -> Structure:
        return EVERYTHING


class Causal(Mask, kind="causal"):
    """A query sees the keys up to its own position: `k ≤ q`."""

    familiar = "causal"

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return k <= q

    def structure(self) -> Structure:
        return Structure(causal=True)


class Lookahead(Mask, kind="lookahead"):
    """A query also sees a few keys after its own position, such as a recognizer that may wait a little: `k ≤ q + count`."""

    count: NonNegativeInt
    """How many positions ahead a query sees."""

    paper = Paper("Transformer Transducer: A Streamable Speech Recognition Model", "arXiv:2002.02562")
    shrinks = {"count": 2}

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return k <= q + self.count

    def area(self, queries: int, keys: int, unknown: bool) -> MaskArea:
        return Band(-self.count, None)

    def equivalent(self) -> Mask:
        return self if self.count else Causal()


class Window(Mask, kind="window"):
    """A query sees the keys less than `width` away: `|q − k| < width`; with `and causal`, the `width` latest.

    Mistral's 4096 is `causal and window(4096)`. Longformer's 512 is ± 256 inclusive: `local(256)`.
    """

    width: PositiveInt
    """How many positions back a query sees, its own included."""

    paper = Paper("Longformer: The Long-Document Transformer", "arXiv:2004.05150")
    shrinks = {"width": 3}
    width_field = "width"

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return abs(q - k) < self.width

    def structure(self) -> Structure:
        return Structure(width=self.width)


class Local(Mask, kind="local"):
    """A query sees the keys at most `radius` away: `|q − k| ≤ radius`. ModernBERT's 128 is `local(64)`."""

    radius: NonNegativeInt
    """How many positions a query sees to each side of its own."""

    paper = Paper("Longformer: The Long-Document Transformer", "arXiv:2004.05150")
    shrinks = {"radius": 2}

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return abs(q - k) <= self.radius

    def structure(self) -> Structure:
        return Structure(width=self.radius + 1)

    def equivalent(self) -> Mask:
        return Window(width=self.radius + 1)


class GlobalFirst(Mask, kind="global_first"):
    """The first `count` positions see all and are seen by all, such as a classification token: `q < count` or `k < count`."""

    count: PositiveInt
    """How many positions are global."""

    paper = Paper("Longformer: The Long-Document Transformer", "arXiv:2004.05150")
    shrinks = {"count": 1}

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return (q < self.count) | (k < self.count)

    def area(self, queries: int, keys: int, unknown: bool) -> MaskArea:
        return Some((Below("q", self.count), Below("k", self.count)))


class GlobalLast(Mask, kind="global_last"):
    """The last `count` positions see all and are seen by all: `q > last q − count` or `k > last k − count`.

    Which ones are the last is known once all are there, so a text cannot be written with it.
    """

    count: PositiveInt
    """How many positions are global."""

    needs_ends = True
    shrinks = {"count": 1}

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        ends = edges["ends"]
        return (q > ends.query - self.count) | (k > ends.key - self.count)

    def area(self, queries: int, keys: int, unknown: bool) -> MaskArea:
        return Some((No(Below("q", queries - self.count)), No(Below("k", keys - self.count))))
