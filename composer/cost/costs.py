"""Costs of a model: parameters, memory and FLOPs, in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from composer.cost.active import active_parameters
from composer.cost.cached import CacheCounter, CachedNumbers
from composer.cost.flops import FlopCounter, Flops
from composer.cost.lengths import lengths_of
from composer.graph.dims import substitute
from composer.graph.parameters import numel, parameters
from composer.graph.task_signature import growing
from composer.graph.typed import TypedProgram

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
    """Numbers that decoding caches per position of the text, such as keys and values, however long it is."""
    cached_in_windows: int
    """Numbers that decoding caches at most for masks that let a query see only so many keys, such as windows."""

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

    def cache_in_windows(self, precision: str) -> int:
        """Return the bytes that decoding caches at most of one text for masks that let a query see only so many keys.

        Args:
            precision: `"fp32"` or `"bf16"`.
        """
        return self.cached_in_windows * BYTES[precision]


def costs(typed: TypedProgram, given: Mapping[str, int] | None = None) -> Costs:
    """Return the costs of a model; `given` are lengths of its axes, the others are those of `lengths_of`."""
    lengths = lengths_of(typed, given or {})
    table = parameters(typed)
    flops = FlopCounter(lengths).graph(typed.root)
    axis = growing(typed.untyped.recipe.task, typed.inputs)
    cached = CachedNumbers() if axis is None else CacheCounter(axis, lengths).graph(typed.root)
    positions = None if axis is None else substitute(axis, lengths) * lengths.get("batch", 1)
    return Costs(
        parameters=numel(table),
        trainable=numel(entry for entry in table if entry.trainable),
        active=active_parameters(typed),
        lengths=lengths,
        flops=flops,
        flops_per_token=None if positions is None else Flops(flops.dense // positions, flops.masked // positions),
        cached_per_token=cached.per_token,
        cached_in_windows=cached.in_windows,
    )
