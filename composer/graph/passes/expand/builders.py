"""Graphs while they are being built: what `expand` fills, `resolve` connects and `freeze` turns into the graph; and the places in
a recipe that they are written from, with the names in sight there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from blocks.core import Library, Part
from composer.diagnostics import Span
from composer.graph.ir import FieldValue, GraphInput, InitPattern, PortType, Ref, Tie, Wire
from composer.language.expressions.ast import Expression, NoValue, Value
from composer.language.recipe.ast import NodeContent, NodeOptions, RepeatDecl, WrittenValue
from composer.language.yaml.nodes import YamlNode


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
    """A name whose value has a mistake, reported where it is written, so that uses of the name report nothing."""

    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Extent:
    """An axis of the inputs of a block that a recipe defines: how long it is follows from what the block is given."""

    name: str
    part: type[Part]


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """A list: what each of its items is."""

    items: tuple[Binding, ...]
    span: Span


Binding: TypeAlias = Bound | Deferred | Broken | Extent | Listed


def plain_value(binding: Binding) -> Value | None:
    """Return the value of a name, where it is one; items of a list that are none are counted only."""
    match binding:
        case Bound(value=value):
            return value
        case Listed(items=items):
            held = (plain_value(item) for item in items)
            return tuple(NoValue() if item is None or isinstance(item, tuple) else item for item in held)
    return None


def plain_values(bindings: Mapping[str, Binding]) -> dict[str, Value]:
    """Return those of some names that have a value."""
    return {name: value for name, binding in bindings.items() if (value := plain_value(binding)) is not None}


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """A place in a recipe: the values in sight there, and the graphs whose nodes may be read."""

    graph: GraphBuilder
    values: Mapping[str, Binding]
    outer: Scope | None = None
    inside: str = ""
    """The node that is being expanded, which cannot name itself."""
    library: Library | None = None
    """The blocks that may be named here, where they are not those of the recipe."""

    def with_values(self, more: Mapping[str, Binding]) -> Scope:
        """Return this place with more names, which win."""
        return Scope(self.graph, {**self.values, **more}, self.outer, self.inside, self.library)

    def around(self) -> Iterator[Scope]:
        """Yield this place, and those in whose graphs it lies, the nearest first."""
        place: Scope | None = self
        while place is not None:
            yield place
            place = place.outer

    def lacks(self, name: str) -> bool:
        """Return whether a name is that of an optional input which the block around this place is not given."""
        for graph in (place.graph for place in self.around()):
            if graph.names(name):
                return False
            if name in graph.absent:
                return True
        return False

    def within(self, graph: GraphBuilder, more: Mapping[str, Binding] | None = None) -> Scope:
        """Return the inside of a graph that is written here."""
        return Scope(graph, {**self.values, **(more or {})}, self, library=self.library)


class NamesSoFar(Mapping[str, Binding]):
    """The names in sight at one place in a list of names, each of which sees those before it. All places in the list share one
    table, so that a list of many names takes no longer for being long.
    """

    def __init__(self, outer: Mapping[str, Binding], table: Mapping[str, Sequence[tuple[int, Binding]]], place: int) -> None:
        self.outer, self.table, self.place = outer, table, place

    def __getitem__(self, name: str) -> Binding:
        found = next((binding for place, binding in reversed(self.table.get(name, ())) if place < self.place), None)
        return self.outer[name] if found is None else found

    def __iter__(self) -> Iterator[str]:
        yield from (name for name, found in self.table.items() if found[0][0] < self.place or name in self.outer)
        yield from (name for name in self.outer if name not in self.table)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(slots=True, eq=False)
class PendingEdge:
    """References that are written, or the implied one, before it is known what they name."""

    port: str
    references: tuple[Expression, ...]
    scope: Scope
    span: Span
    source: str = ""
    """The node above, or `input`, where the edge is implied."""
    each_one: bool = False
    """Whether each reference must give one value, as those in a formula."""
    failed: bool = False
    """Whether a reference could not be read, which has been reported."""


@dataclass(slots=True, eq=False)
class PendingTie:
    """A tie before it is known what it names."""

    parameter: str
    reference: Expression
    scope: Scope
    span: Span
    """The parameter's own name; the reference, where the tie names none."""


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """Where a node is written."""

    name: str
    home: GraphBuilder
    span: Span
    above: str
    """The node before it, or `input`: what it reads where it says nothing."""
    fed: bool = False
    """Whether it was written for a slot, whose first port the holder feeds."""
    given: tuple[tuple[NodeOptions, Scope, bool], ...] = ()
    """Options that are written at a name which stands for the node, each with whether it fills a slot there."""

    def implied(self, port: str) -> PendingEdge:
        """Return the edge from what stands above."""
        return PendingEdge(port, (), Scope(self.home, {}), self.span, self.above)

    def at(self, span: Span) -> Site:
        """Return this site with its mistakes shown elsewhere."""
        return replace(self, span=span)

    def filling(self) -> Site:
        """Return this site for what was written for a slot."""
        return replace(self, fed=True)

    def with_options(self, options: Iterable[tuple[NodeOptions, Scope]]) -> Site:
        """Return this site with the options that are written at a name which stands for the node."""
        return replace(self, given=(*self.given, *((each, scope, self.fed) for each, scope in options)))


@dataclass(slots=True, eq=False)
class NodeBuilder:
    """A node. `part` alone: a block; with `graph`: a group, or a scan along an axis; with `passes`: a repeat; with none of
    them: its input, passed on.
    """

    name: str
    home: GraphBuilder
    name_span: Span
    span: Span
    part: type[Part] | None = None
    graph: GraphBuilder | None = None
    passes: list[PassBuilder] | None = None
    fields: dict[str, FieldValue | NodeBuilder] = field(default_factory=dict)
    edges: dict[str, PendingEdge] = field(default_factory=dict)
    ties_pending: list[PendingTie] = field(default_factory=list)
    trainable: bool = True
    unfed: set[str] = field(default_factory=set)
    """Of a node with a graph of its own: ports at which something is written that comes to nothing here."""
    dropped: bool = False
    """Whether its `when` is false: it is not in the graph, and what reads it reads its one input instead."""
    when: str = ""
    """Its condition, as it is written."""
    broken: bool = False
    """Whether a field or an edge has a mistake, which has been reported."""
    wires: dict[str, Wire] = field(default_factory=dict)
    ties: list[Tie] = field(default_factory=list)
    requested_outputs: set[str] = field(default_factory=set)
    ports: tuple[PortType, ...] = ()
    """What a block that a recipe defines takes."""
    init: tuple[InitPattern, ...] = ()
    """How its parameters start: patterns over their names below the node."""
    read: bool = False
    axis: tuple[str, Span] | None = None
    """Of a scan: along what it goes, and where that is written."""
    share: Span | None = None
    """Of a repeat: where it is said that all passes have one set of weights."""
    index: str = ""
    """Of a repeat: what the number of a pass is called."""

    @property
    def fed(self) -> tuple[str, ...]:
        """The ports that read something."""
        return tuple(port for port in self.edges if port not in self.unfed)

    def every_wire(self) -> Iterator[Wire]:
        """Yield its wires, and those of what the graphs in it read from outside."""
        yield from self.wires.values()
        if self.graph is not None:
            yield from self.graph.capture_wires.values()
        for graph in dict.fromkeys(one.graph for one in self.passes or ()):
            yield from graph.capture_wires.values()

    @property
    def elided(self) -> bool:
        """Whether the node came to nothing: an empty slot, or a node that `when` leaves out."""
        return self.dropped or (self.part is None and self.graph is None and self.passes is None)

    @property
    def absent(self) -> bool:
        """Whether `when` leaves out the node, or one around it: of those, only names and kinds of values are checked."""
        return self.dropped or (self.home.holder is not None and self.home.holder.absent)


@dataclass(slots=True, eq=False)
class PassBuilder:
    """One pass of a repeat; passes that see the same values share a graph."""

    graph: GraphBuilder
    values: tuple[tuple[str, object], ...]


@dataclass(slots=True, eq=False)
class GraphBuilder:
    """A graph inside the node that holds it."""

    holder: NodeBuilder | None = None
    sealed: bool = False
    """Whether it fills the slot of a block that computes by itself, so that nothing else can be passed."""
    levels: int = 0
    """How many lists and mappings its text stands in, written out."""
    inputs: dict[str, GraphInput] = field(default_factory=dict)
    nodes: dict[str, NodeBuilder] = field(default_factory=dict)
    declared: dict[str, NodeContent | None] = field(default_factory=dict)
    """What is written for each of its nodes, those that are not there yet too."""
    absent: set[str] = field(default_factory=set)
    """Optional inputs that it is not given."""
    failed: set[str] = field(default_factory=set)
    """Nodes and inputs that are written here with a mistake, which has been reported."""
    outputs_pending: list[tuple[str, Span, Expression | str, Scope]] = field(default_factory=list)
    outputs: dict[str, Ref] = field(default_factory=dict)
    captures: dict[tuple[tuple[Ref, ...], bool], str] = field(default_factory=dict)
    capture_wires: dict[str, Wire] = field(default_factory=dict)
    pass_index: int | None = None
    """The first pass that this graph serves."""
    differing: tuple[RepeatDecl, Scope] | None = None
    """The outermost repeat, and where it stands, of which it is a pass that differs from the first, or stands in one."""

    @property
    def parent(self) -> GraphBuilder | None:
        """The graph in which the holder stands."""
        return self.holder.home if self.holder else None

    @property
    def within_sealed(self) -> bool:
        """Whether it, or a graph around it, is sealed."""
        return self.sealed or (self.parent is not None and self.parent.within_sealed)

    @property
    def in_used_recipe(self) -> bool:
        """Whether it belongs to a whole recipe that is used as a block."""
        around = self.holder
        return around is not None and (getattr(around.part, "whole_recipe", False) or around.home.in_used_recipe)

    @property
    def first_input(self) -> str:
        """Return what `input` means in it: the first input that it is handed; nothing where there is none."""
        return next((item.name for item in self.inputs.values() if not item.captured), "")

    def names(self, name: str) -> bool:
        """Return whether a reference can mean a node or an input of this graph by a name; captures are found where they are."""
        return name in self.nodes or self.is_handed(name)

    def is_handed(self, name: str) -> bool:
        """Return whether it is handed an input of this name."""
        return name in self.inputs and not self.inputs[name].captured

    def fresh(self, wanted: str) -> str:
        """Return a name that no node and no input has."""
        name, count = wanted, 1
        while name in self.inputs or name in self.nodes:
            count += 1
            name = f"{wanted}_{count}"
        return name
