"""What decoding caches of a text: so much for each of its tokens, and so much at most where masks forget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from composer.cost.units import in_bytes
from composer.graph.anatomy import TYPED
from composer.graph.cache_slots import grown_slots, kept_rows
from composer.graph.dims import Symbolic, substitute
from composer.graph.type_patterns import pattern, size
from composer.graph.typed import TypedBlock, TypedGraph, TypedNode
from composer.graph.visit import Fold, Inside


@dataclass(frozen=True, slots=True)
class CachedNumbers:
    """The numbers that decoding caches of one sequence."""

    per_token: int = 0
    """Those per position, however long the sequence is."""
    in_windows: int = 0
    """Those, at most, of slots of which later positions need only so many rows."""


def cached_words(per_token: int, in_windows: int) -> str:
    """Return numbers of bytes as `4.00 KiB per token, up to 11.0 MiB in windows`; nothing where nothing is cached."""
    growing = [f"{in_bytes(per_token)} per token"] * bool(per_token)
    return ", ".join([*growing, *[f"up to {in_bytes(in_windows)} in windows"] * bool(in_windows)])


def total(found: Iterable[CachedNumbers]) -> CachedNumbers:
    """Return the sum of the numbers of several nodes."""
    every = list(found)
    return CachedNumbers(sum(one.per_token for one in every), sum(one.in_windows for one in every))


class CacheCounter:
    """Counts the numbers that decoding caches along an axis, for one sequence."""

    def __init__(self, axis: Symbolic, lengths: Mapping[str, int]) -> None:
        self.axis, self.lengths = axis, {**lengths, "batch": 1}
        self.counted = Fold(TYPED, self._node, lambda graph, found: total(found))

    def graph(self, graph: TypedGraph) -> CachedNumbers:
        """Return the numbers for all nodes of a graph."""
        return self.counted.graph(graph)

    def node(self, node: TypedNode) -> CachedNumbers:
        """Return the numbers for a node, with all that is in it."""
        return self.counted.node(node, node.name)

    def _node(self, node: TypedNode, inside: Inside[TypedGraph, CachedNumbers, CachedNumbers]) -> CachedNumbers:
        """Return the numbers for a node, including the parts in its slots."""
        own = [self._slot(node, name) for name in grown_slots(node, self.axis)] if isinstance(node, TypedBlock) else []
        return total([*own, *inside.passes(), *(kept for _, kept in inside.slots)])

    def _slot(self, block: TypedBlock, name: str) -> CachedNumbers:
        axes = [size(expression, block.sizes) for expression in pattern(type(block.part).cache_slots[name]).axes]
        axes.remove(self.axis)
        row = prod(substitute(axis, self.lengths) for axis in axes)
        kept = kept_rows(block, name, self.axis)
        return CachedNumbers(per_token=row) if kept is None else CachedNumbers(in_windows=row * kept.count)
