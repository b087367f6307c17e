"""The types of ports: a dtype and named axes, each of a known or symbolic size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from composer.graph.dims import Dim

DType = Literal["int", "float", "bool"]


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis. Two axes agree where their sizes do; the name is what the one who made it calls it."""

    name: str
    size: Dim

    def __str__(self) -> str:
        return str(self.size)


@dataclass(frozen=True, slots=True)
class TensorType:
    """What flows on an edge."""

    dtype: DType
    axes: tuple[Axis, ...]
    optional: bool = False
    """Whether there may be nothing: an input of the model that may be left out."""

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(str(axis) for axis in self.axes)}]"

    @property
    def sizes(self) -> tuple[Dim, ...]:
        """The sizes alone."""
        return tuple(axis.size for axis in self.axes)

    def agrees(self, other: TensorType) -> bool:
        """Return whether one may stand for the other."""
        return self.dtype == other.dtype and self.sizes == other.sizes


@dataclass(frozen=True, slots=True)
class Unknown:
    """The type of what an earlier mistake left untyped: agrees with all, so that one mistake is reported once."""

    def __str__(self) -> str:
        return "?"


Type: TypeAlias = TensorType | Unknown
UNKNOWN = Unknown()
PortTypes: TypeAlias = Mapping[str, Type]
Types: TypeAlias = Type | tuple[Type, ...]
"""Of one value, or of each of a list."""
InputTypes: TypeAlias = Mapping[str, Types]
"""What arrives at ports."""


def each_of(types: Types) -> tuple[Type, ...]:
    """Return a list of types, whether there is one or several."""
    return types if isinstance(types, tuple) else (types,)


def first_of(types: Types) -> Type:
    """Return the type of the one value, or of the first."""
    return each_of(types)[0]


def each_given(given: InputTypes) -> Iterator[Type]:
    """Yield all that arrives, the values of lists one by one."""
    for types in given.values():
        yield from each_of(types)
