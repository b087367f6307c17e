"""What a block learns: names, shapes, roles and initial values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

ParameterRole = Literal["matrix", "embedding", "gain", "bias", "experts", "state", "table"]
"""What a parameter is for; decides weight decay, precision and sharding, never its number of dimensions.
`table` is a table of positions."""


@dataclass(frozen=True, slots=True)
class Init:
    """An initializer: `normal(std)`, `uniform(bound)` or `constant(value)`."""

    how: Literal["normal", "uniform", "constant"]
    value: float | str
    """Standard deviation, half width, or the value itself: a number, or the name of a field that holds it."""


ZEROS = Init("constant", 0.0)
ONES = Init("constant", 1.0)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A parameter of the block itself. Axes are expressions over the block's sizes and fields."""

    shape: tuple[str | int, ...]
    role: ParameterRole
    init: Init
    when: str = ""
    """A boolean field without which there is no such parameter."""
    zero_row: str = ""
    """A field that names a row that starts as zeros, whatever the initializer; none where the field is none."""


@dataclass(frozen=True, slots=True)
class LinearWeights:
    """An `nn.Linear` under the name: `weight` [out, in] and, with `bias`, `bias` [out]."""

    inputs: str
    outputs: str
    bias: bool = False


@dataclass(frozen=True, slots=True)
class Slot:
    """The part in one of the block's slots, as a sub-module under the name."""

    field: str
    given: str
    """The type of what the block feeds it, over the block's sizes."""
    outputs: str = ""
    """The type it must return; without it, the type it is given."""
    count: str = ""
    """How many copies of an `Expert` there are; without it, one part by itself."""


Weight: TypeAlias = Tensor | LinearWeights | Slot
Weights: TypeAlias = Mapping[str, Weight]
