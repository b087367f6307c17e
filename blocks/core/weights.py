"""Declarations of the parameters of a block: names, shapes, roles and initial values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from blocks.core.text import number

ParameterRole = Literal["matrix", "embedding", "gain", "bias", "experts", "state", "table", "adapter"]
"""The role of a parameter, which determines weight decay; its number of dimensions does not. `table` is a table of positions, and
`adapter` what a recipe adds to a linear map."""


@dataclass(frozen=True, slots=True)
class Init:
    """An initializer: `normal(std)`, `uniform(bound)`, `constant(value)`, of a table of positions `sinusoids(base)` and
    `grid_sinusoids(base)`, or a formula of the places or of what is drawn.
    """

    how: Literal["normal", "uniform", "constant", "sinusoids", "grid_sinusoids"]
    value: float | str
    """Standard deviation, half width, constant or base of wavelengths: a number, or the name of a field with the number."""
    low: float | None = None
    """The least value of `uniform`, of which `value` is then the greatest; without, it is `-value`."""
    formula: str = ""
    """What the values come to, of `i`, `j`, `k` and `l`, the place along each axis counted from 0, of `x`, what is drawn there,
    and of `layer`, the index of the innermost pass around the parameter; empty: what is drawn."""

    def text(self, spelled: Callable[[float], str] = number) -> str:
        """Return the initializer in words: `uniform 0.1`, `uniform 0.5 to 2, log(x)`, `log(j + 1)`.

        Args:
            spelled: How a number is written; with all of its digits by default.
        """
        if self.formula and not self.is_drawn:
            return self.formula
        value = spelled(float(self.value))
        range_ = value if self.low is None else f"{spelled(self.low)} to {value}"
        return f"{self.how} {range_}" + (f", {self.formula}" if self.formula else "")

    @property
    def is_drawn(self) -> bool:
        """Whether numbers are drawn."""
        return self.how in ("normal", "uniform")


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
    """A field with the index of a row that is initialized to zeros; ignored if the field is none."""


UNIT = "one"
"""The name of a buffer with the number 1, which tells a block without parameters the device and the dtype of the model. It is
saved, so that it has these however a model is loaded; published checkpoints lack it."""
UNIT_BUFFER: Mapping[str, Tensor] = {UNIT: Tensor((), "table", ONES)}


@dataclass(frozen=True, slots=True)
class LinearWeights:
    """An `nn.Linear` under the name: `weight` [out, in] and, with `bias`, `bias` [out]."""

    inputs: str
    outputs: str
    bias: bool = False
    rows: str = ""
    """The input whose vectors it maps; by default, the one whose last axis is `inputs`, or else the first."""
    adaptable: bool = True
    """Whether the block always calls it, so that a recipe may give it an adapter; false where `forward` reads its `weight`."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The part in one of the block's slots, as a submodule under the name."""

    field: str
    given: str
    """The type of its input, over the block's sizes."""
    outputs: str = ""
    """The type that it must return; by default, that of its input."""
    count: str = ""
    """The number of copies of an `Expert`; by default, a single part."""


Weight: TypeAlias = Tensor | LinearWeights | Slot
Weights: TypeAlias = Mapping[str, Weight]


@dataclass(frozen=True, slots=True)
class Units:
    """What a field counts if it computes side by side, such as heads: each reads the same, and linear maps add up what all give.
    With weights of zero in these maps, or never chosen, further ones change nothing.
    """

    within: str = ""
    """A field with the number of groups of consecutive ones, all of one size."""
    chosen_by: str = ""
    """The linear map with a logit for each, by which some are chosen for each row."""
