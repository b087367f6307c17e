"""Which names an expression sees, and where each was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from composer.diagnostics import Source, Span
from composer.language.expressions.ast import Value
from composer.language.yaml.nodes import YamlNode

if TYPE_CHECKING:
    from blocks.core import Library, Part
    from composer.graph.passes.expand.builders import GraphBuilder
    from composer.language.recipe.ast import WrittenValue


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A name's value, known."""

    value: Value
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Deferred:
    """What a name holds until the field that uses it says how to read it; its own names are those of where it is written."""

    holds: YamlNode | WrittenValue | Part | None
    """A document's node, a field's value, a part that is a field's default, or nothing at all."""
    scope: Scope
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Broken:
    """A name whose value has a mistake, reported where it is written: what reads the name says nothing more."""

    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Extent:
    """An axis of the inputs of a block that a recipe defines: how long it is follows from what the block is given."""

    name: str
    part: type[Part]


Binding: TypeAlias = Bound | Deferred | Broken | Extent


class Declaration(Source):
    """A text that a block declares, such as its expansion: no recipe's author can mend it, so no mistake is located in it."""


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """A place in a recipe: the values in sight there, and the graphs whose nodes may be read."""

    graph: GraphBuilder
    values: Mapping[str, Binding]
    outer: Scope | None = None
    inside: str = ""
    """The node that is being written, which cannot mean itself."""
    library: Library | None = None
    """The blocks that may be named here, where they are not those of the recipe."""

    def with_values(self, more: Mapping[str, Binding]) -> Scope:
        """The same place with more names, which win."""
        return Scope(self.graph, {**self.values, **more}, self.outer, self.inside, self.library)

    def around(self) -> Iterator[Scope]:
        """This place, and those in whose graphs it lies, the nearest first."""
        place: Scope | None = self
        while place is not None:
            yield place
            place = place.outer

    def lacks(self, name: str) -> bool:
        """Whether a name is that of an optional input which the block around this place is not given."""
        for graph in (place.graph for place in self.around()):
            if name in graph.inputs or name in graph.nodes:
                return False
            if name in graph.absent:
                return True
        return False

    def within(self, graph: GraphBuilder, more: Mapping[str, Binding] | None = None) -> Scope:
        """The inside of a graph that is written here."""
        return Scope(graph, {**self.values, **(more or {})}, self, library=self.library)
