"""What differs between two models, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from composer.cost.costs import Costs
from composer.graph.typed import TypedProgram


@dataclass(frozen=True, slots=True)
class Nodes:
    """Where a change is found in one of the models: a node, or the same one in several passes of a repeat."""

    name: str
    """`layers.*.attn.norm` for all passes, `layers.(2-4).attn.norm` for some."""
    kind: str
    """Its block; `graph`, `repeat` or `pass` for what holds several, `input` for an input of the model."""
    detail: str
    """What is set in it, in a few words."""
    paths: tuple[str, ...]
    """Every node that is meant, by its path."""
    line: int
    """Where the first of them is written."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field with its two values, as they would be written."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class PortChange:
    """A port with what it reads in either model."""

    port: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Added:
    """Nodes that only the second model has."""

    after: Nodes


@dataclass(frozen=True, slots=True)
class Removed:
    """Nodes that only the first model has."""

    before: Nodes


@dataclass(frozen=True, slots=True)
class Replaced:
    """Nodes of another block in the same place."""

    before: Nodes
    after: Nodes


@dataclass(frozen=True, slots=True)
class Altered:
    """Nodes with other values of their fields."""

    before: Nodes
    after: Nodes
    fields: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class Rewired:
    """Nodes that read something else, other than through what was added or removed between."""

    before: Nodes
    after: Nodes
    ports: tuple[PortChange, ...]


@dataclass(frozen=True, slots=True)
class Tied:
    """Parameters that are one tensor in one model only."""

    before: str
    """The name of the tensor; nothing where the parameters are not tied."""
    after: str
    parameters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LearnedChange:
    """Parameters that start otherwise, or are trained in one model only."""

    what: str
    """`starts` or `trained`."""
    before: str
    after: str
    parameters: tuple[str, ...]
    """By their names in the first model."""


@dataclass(frozen=True, slots=True)
class Stated:
    """What a recipe says of the model as a whole: its task, an output."""

    what: str
    before: str
    after: str


Change: TypeAlias = Added | Removed | Replaced | Altered | Rewired | Tied | LearnedChange | Stated


@dataclass(frozen=True, slots=True)
class DifferenceData:
    """All that differs between two models, without the methods that print and draw it."""

    before: str
    """The name of the first model."""
    after: str
    changes: tuple[Change, ...]
    costs_before: Costs
    costs_after: Costs
    """At the same lengths as those of the first."""
    models: tuple[TypedProgram, TypedProgram] = field(repr=False, compare=False)
    """The two, which are drawn."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Nodes that are the same and have other paths, which is no change of the model but one of the names of its parameters."""
    params: tuple[FieldChange, ...] = ()
    """Params of both recipes with other values; what follows from them stands among the changes."""

    @property
    def equal(self) -> bool:
        """Whether the two are one model."""
        return not self.changes
