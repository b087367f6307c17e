"""The types of ports: a dtype and named axes, each of a known or symbolic size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Literal, TypeAlias

from composer.graph.dims import Dim

DType = Literal["int", "float", "bool"]


class Depends(IntEnum):
    """What of the text that a model generates a value depends on.

    With an axis of tokens, `PAST` says that row t depends on no row after t. With two, those of a call and all so far, row t and
    column s depend on no row after both.
    """

    NONE = 0
    PAST = 1
    ALL = 2


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis. Two axes agree where their sizes do; the name is the one that it has where it is made."""

    name: str
    size: Dim

    def __str__(self) -> str:
        return str(self.size)


@dataclass(frozen=True, slots=True)
class TensorType:
    """The type of a tensor."""

    dtype: DType
    axes: tuple[Axis, ...]
    optional: bool = False
    """Whether it may be absent: an input of the model that may be left out."""
    depends: Depends = Depends.NONE
    """What of the text that the model generates it depends on."""
    within: tuple[int, int] | None = None
    """The least and the greatest of its values, where they are known before the model runs: whole numbers of a constant."""

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(str(axis) for axis in self.axes)}]"

    @property
    def sizes(self) -> tuple[Dim, ...]:
        """The sizes alone."""
        return tuple(axis.size for axis in self.axes)

    def renamed(self, names: Mapping[str, str]) -> TensorType:
        """Return the type with other names of its axes."""
        return replace(self, axes=tuple(Axis(names.get(axis.name, axis.name), axis.size) for axis in self.axes))

    def agrees(self, other: TensorType) -> bool:
        """Return whether they have one dtype and equal sizes."""
        return self.dtype == other.dtype and self.sizes == other.sizes


@dataclass(frozen=True, slots=True)
class Unknown:
    """The type of a value that an earlier mistake leaves without one: it agrees with all, so that a mistake is reported once."""

    def __str__(self) -> str:
        return "?"


Type: TypeAlias = TensorType | Unknown
UNKNOWN = Unknown()
PortTypes: TypeAlias = Mapping[str, Type]
Types: TypeAlias = Type | tuple[Type, ...]
"""Of one value, or of each of a list."""
InputTypes: TypeAlias = Mapping[str, Types]
"""The types of inputs by port."""


def each_of(types: Types) -> tuple[Type, ...]:
    """Return a list of types, whether there is one or several."""
    return types if isinstance(types, tuple) else (types,)


def first_of(types: Types) -> Type:
    """Return the type of the one value, or of the first."""
    return each_of(types)[0]


def each_given(given: InputTypes) -> Iterator[Type]:
    """Yield the types of all inputs, those of lists one by one."""
    for types in given.values():
        yield from each_of(types)
