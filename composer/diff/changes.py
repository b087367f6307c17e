"""What differs between two models, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from composer.cost.costs import Costs
from composer.graph.typed import TypedProgram


@dataclass(frozen=True, slots=True)
class Nodes:
    """Where a change is in one of the models: a node, or the same one in several passes of a repeat or in several layers."""

    name: str
    """`layers.*.attn.norm` for all passes, `layers.(2-4).attn.norm` for some; `h0.norm … h11.norm`, the first and the last, for
    layers in a row that are written one by one."""
    kind: str
    """The type of the block; `graph`, `repeat` or `pass` for what holds several nodes, `input` for an input of the model."""
    detail: str
    """The values of its fields, in a few words."""
    paths: tuple[str, ...]
    """The paths of all these nodes."""
    line: int
    """The line of the recipe in which the first of them is written."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field with its values in both models, as a recipe would write them."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class PortChange:
    """A port with what it reads in each of the models."""

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
    """Nodes in whose place the second model has another block."""

    before: Nodes
    after: Nodes


@dataclass(frozen=True, slots=True)
class Altered:
    """Nodes whose fields have other values."""

    before: Nodes
    after: Nodes
    fields: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class Rewired:
    """Nodes that read something else. A value that only passes through added or removed nodes on its way is the same value."""

    before: Nodes
    after: Nodes
    ports: tuple[PortChange, ...]


@dataclass(frozen=True, slots=True)
class Tied:
    """Parameters that are tied in one model only, or to another tensor."""

    before: str
    """The name of the tensor; empty if the parameters are not tied."""
    after: str
    parameters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LearnedChange:
    """Parameters that are initialized in another way, or are trained in one model only."""

    what: str
    """`starts` or `trained`."""
    before: str
    after: str
    parameters: tuple[str, ...]
    """Their names in the first model, with stars and ranges as in the names of nodes."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A property of the model as a whole: its task, an output, a loss."""

    what: str
    before: str
    after: str


Change: TypeAlias = Added | Removed | Replaced | Altered | Rewired | Tied | LearnedChange | Stated


def nodes_of(change: Change) -> tuple[Nodes | None, Nodes | None]:
    """Return the nodes of a change in the first and in the second model."""
    match change:
        case Added():
            return None, change.after
        case Removed():
            return change.before, None
        case Replaced() | Altered() | Rewired():
            return change.before, change.after
        case Tied() | LearnedChange() | Stated():
            return None, None


@dataclass(frozen=True, slots=True)
class DifferenceData:
    """All that differs between two models, without the methods that print and draw it."""

    before: str
    """The name of the first model."""
    after: str
    changes: tuple[Change, ...]
    costs_before: Costs
    costs_after: Costs
    """At the lengths of the first."""
    models: tuple[TypedProgram, TypedProgram] = field(repr=False, compare=False)
    """Both models, for the figure."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Nodes that are the same under other paths. This is no change of the model, but parameters are saved under these names."""
    params: tuple[FieldChange, ...] = ()
    """Params of both recipes with other values; their effects are among the changes."""

    @property
    def equal(self) -> bool:
        """Whether both are the same model."""
        return not self.changes
