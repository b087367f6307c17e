"""Costs of a model: parameters, memory and FLOPs, in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from composer.cost.active import active_parameters
from composer.cost.flops import FlopCounter, Flops
from composer.cost.lengths import lengths_of
from composer.graph.anatomy import TYPED
from composer.graph.cache_slots import grown_slots
from composer.graph.dims import Symbolic, substitute
from composer.graph.parameters import parameters
from composer.graph.task_signature import growing
from composer.graph.type_patterns import pattern, size
from composer.graph.typed import TypedBlock, TypedGraph, TypedNode, TypedProgram
from composer.graph.visit import Fold, Inside

BYTES = {"fp32": 4, "bf16": 2}
"""Bytes per number."""
MOMENTS = 2
"""Numbers that AdamW keeps per trained parameter, in fp32: the means of its gradient and squared gradient."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of a model at given lengths of its axes."""

    parameters: int
    """Number of parameters; a tied tensor counts once."""
    trainable: int
    """Number of parameters that training changes."""
    active: int
    """Number of parameters that one token meets: all but those of experts that it does not visit."""
    lengths: Mapping[str, int]
    """Length of each axis of the inputs."""
    flops: Flops
    """FLOPs of one forward pass at these lengths."""
    flops_per_token: Flops | None
    """FLOPs per position of the text; None if the model does not generate text."""
    cached_per_token: int
    """Numbers that decoding caches per position of the text, such as keys and values."""

    def weights(self, precision: str) -> int:
        """Return the bytes of all parameters.

        Args:
            precision: `"fp32"` or `"bf16"`.
        """
        return self.parameters * BYTES[precision]

    @property
    def optimizer(self) -> int:
        """Bytes of the state of AdamW."""
        return self.trainable * MOMENTS * BYTES["fp32"]

    def cache_per_token(self, precision: str) -> int:
        """Return the bytes that decoding caches per position of one text.

        Args:
            precision: `"fp32"` or `"bf16"`.
        """
        return self.cached_per_token * BYTES[precision]


def costs(typed: TypedProgram, given: Mapping[str, int] | None = None) -> Costs:
    """Return the costs of a model; `given` are lengths of its axes, the others are those of `lengths_of`."""
    lengths = lengths_of(typed, given or {})
    table = [entry for entry in parameters(typed) if not entry.tied_to]
    flops = FlopCounter(lengths).graph(typed.root)
    axis = growing(typed.untyped.recipe.task, typed.inputs)
    positions = None if axis is None else substitute(axis, lengths) * lengths.get("batch", 1)
    return Costs(
        parameters=sum(entry.numel for entry in table),
        trainable=sum(entry.numel for entry in table if entry.trainable),
        active=active_parameters(typed),
        lengths=lengths,
        flops=flops,
        flops_per_token=None if positions is None else Flops(flops.dense // positions, flops.masked // positions),
        cached_per_token=0 if axis is None else CacheCounter(axis, lengths).graph(typed.root),
    )


class CacheCounter:
    """Counts the numbers that decoding caches per position of an axis, for one sequence."""

    def __init__(self, axis: Symbolic, lengths: Mapping[str, int]) -> None:
        self.axis, self.lengths = axis, {**lengths, "batch": 1}
        self.counted = Fold(TYPED, self._node, lambda graph, found: sum(found))

    def graph(self, graph: TypedGraph) -> int:
        """Return the number for all nodes of a graph."""
        return self.counted.graph(graph)

    def _node(self, node: TypedNode, inside: Inside[TypedGraph, int, int]) -> int:
        """Return the number for a node, including the parts in its slots."""
        own = self._block(node) if isinstance(node, TypedBlock) else 0
        return own + sum(inside.passes()) + sum(kept for _, kept in inside.slots)

    def _block(self, block: TypedBlock) -> int:
        kept = 0
        for name in grown_slots(block, self.axis):
            axes = [size(expression, block.sizes) for expression in pattern(type(block.part).cache_slots[name]).axes]
            axes.remove(self.axis)
            kept += prod(substitute(axis, self.lengths) for axis in axes)
        return kept
