"""The graph: nodes, the references that wire them, and regions, which stay nested in every later stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from blocks.core import Init, Part
from blocks.core.formula import FormulaTree
from composer.diagnostics import Span
from composer.language.expressions.ast import Expression, NoValue, Value
from composer.language.expressions.parser import names
from composer.language.recipe.ast import InputDecl, ParsedRecipe, TypeDecl

Origins: TypeAlias = tuple[tuple[str, Span], ...]
"""The names that a value was computed from, and where each was set."""


class InitPattern(NamedTuple):
    """How parameters start whose names match a pattern."""

    pattern: str
    init: Init
    span: Span
    written: str
    """The pattern as it is written, over the names in what it stands in."""
    inside: str = ""
    """That of what it stands in: a pattern over what the names begin with; nothing for the recipe itself."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """What is added to a linear map: a product of two narrow ones (LoRA), `y = x Wᵀ + b + alpha / rank · x Aᵀ Bᵀ`."""

    rank: int
    alpha: float
    dropout: float = 0.0
    """Of what the addition reads, in training."""

    @property
    def scale(self) -> float:
        """The factor of the addition."""
        return self.alpha / self.rank


class AdapterPattern(NamedTuple):
    """How linear maps are trained whose names match a pattern, where a recipe has adapters."""

    pattern: str
    adapter: Adapter | None
    """What is added; None for all that is trained as a whole."""
    span: Span


@dataclass(frozen=True, slots=True)
class Ref:
    """Where a value comes from: a node of the same graph, or one of the graph's inputs."""

    node: str
    port: str = ""
    """The output port; nothing for the first. What is read from inside a region is a port named by its path: `attn.body.v`."""
    index: int | None = None
    """The pass, for a repeat."""

    def __str__(self) -> str:
        passes = "" if self.index is None else f"({self.index})"
        return f"{self.node}{passes}{'.' if self.port else ''}{self.port}"


@dataclass(frozen=True, slots=True)
class Wire:
    """What a port reads."""

    port: str
    refs: tuple[Ref, ...]
    """One, unless the port is variadic."""
    span: Span = field(compare=False)
    implied: bool = field(default=False, compare=False)
    """Whether nothing was written, and the node above is read."""
    spans: tuple[Span, ...] = field(default=(), compare=False)
    """Where each of the references is written."""


@dataclass(frozen=True, slots=True)
class Known:
    """A field's value."""

    value: Any
    span: Span = field(compare=False)
    origins: Origins = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class AxisOf:
    """The length of an axis of the inputs of an enclosing block that the recipe defines."""

    part: type[Part]
    name: str


@dataclass(frozen=True, slots=True)
class Pending:
    """A number that needs sizes: those of the node's input, such as `4 * dim`, or those of the block around it."""

    expression: Expression
    bindings: tuple[tuple[str, Computed], ...]
    span: Span = field(compare=False)
    origins: Origins = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Computations:
    """A list, of which some items need sizes."""

    items: tuple[Computed, ...]


Computed: TypeAlias = Value | NoValue | AxisOf | Pending | Computations
"""What a name in a number stands for."""


@dataclass(frozen=True, slots=True)
class PartValue:
    """A part that is no node, with its fields: a mask, rotary positions."""

    part: type[Part]
    fields: tuple[tuple[str, FieldValue], ...]
    span: Span = field(compare=False)

    def parts(self) -> Iterator[PartValue]:
        """Yield itself and all parts below."""
        yield self
        for _, value in self.fields:
            if isinstance(value, PartValue):
                yield from value.parts()

    def wires(self) -> Iterator[tuple[str, str]]:
        """Yield every edge field below: the port that carries it, and the type it takes."""
        for part in self.parts():
            for name, value in part.fields:
                if isinstance(value, Known) and isinstance(value.value, EdgePort):
                    yield value.value.port, part.part.node_refs[name]


@dataclass(frozen=True, slots=True)
class EdgePort:
    """The value of a field that names a node: the port of the holder that carries it."""

    port: str


@dataclass(frozen=True, slots=True)
class SlotNode:
    """A slot filled with something that computes; its first port is fed by the holder."""

    node: Node
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Items:
    """A list of numbers, some of which may need sizes."""

    items: tuple[FieldValue, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Entries:
    """Values by name, some of which may need sizes."""

    entries: tuple[tuple[str, FieldValue], ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class FormulaValue:
    """A formula, of whose numbers some may need sizes."""

    tree: FormulaTree
    numbers: tuple[Known | Pending, ...]
    names: tuple[str, ...] = field(compare=False)
    """What it calls the values that it reads."""
    text: str = field(compare=False)
    """The formula as it is written."""
    span: Span = field(compare=False)
    named_numbers: tuple[tuple[str, Value], ...] = field(default=(), compare=False)
    """The names that stand for one of the numbers, each with it."""


FieldValue: TypeAlias = Known | Pending | PartValue | SlotNode | Items | Entries | FormulaValue


@dataclass(frozen=True, slots=True)
class Tie:
    """A parameter that is shared with another node."""

    parameter: str
    """The own parameter's name below the node; nothing for all that the two have in common."""
    up: int
    """How many regions to leave to reach the one that holds the other node."""
    path: tuple[str | int, ...]
    """The way down from there: nodes, passes, and the parameter where one is named."""
    span: Span = field(compare=False)
    key: Span = field(compare=False)
    """Where the own parameter is named; the reference, where none is."""


@dataclass(frozen=True, slots=True)
class BlockNode:
    """A node that computes by its block's own forward."""

    name: str
    part: type[Part]
    fields: tuple[tuple[str, FieldValue], ...]
    wires: tuple[Wire, ...]
    requested_outputs: tuple[str, ...] = ()
    """The optional outputs that something reads."""
    ties: tuple[Tie, ...] = ()
    trainable: bool = True
    broken: bool = field(default=False, compare=False)
    """Whether a field or an edge has a mistake, so that its outputs have no types."""
    span: Span = field(default=None, compare=False)  # type: ignore[assignment]  # always given; a default must follow the others
    name_span: Span = field(default=None, compare=False)  # type: ignore[assignment]  # always given


@dataclass(frozen=True, slots=True)
class PortType:
    """The type of a port of a block that a recipe defines."""

    port: str
    type: TypeDecl
    optional: bool
    fixed: tuple[tuple[str, Value], ...] = field(compare=False)
    """The values of names in the type; every other is an axis."""


@dataclass(frozen=True, slots=True)
class GroupNode:
    """A node with a graph of its own: a group, a block that expands, or an inline graph in a slot."""

    name: str
    graph: Graph
    wires: tuple[Wire, ...]
    """One for each of the graph's inputs that is given."""
    part: type[Part] | None = None
    """The block that expanded to it."""
    ports: tuple[PortType, ...] = ()
    """Its ports, where a recipe defines the block."""
    init: tuple[InitPattern, ...] = field(default=(), compare=False)
    """How its parameters start, where a recipe defines the block: patterns over their names below it."""
    ties: tuple[Tie, ...] = ()
    trainable: bool = True
    span: Span = field(default=None, compare=False)  # type: ignore[assignment]  # always given
    name_span: Span = field(default=None, compare=False)  # type: ignore[assignment]  # always given


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of a repeat."""

    graph: Graph
    wires: tuple[Wire, ...]
    """What its inputs are, in terms of the graph around the repeat; the pass before is `Ref(the repeat, …, index - 1)`."""
    values: tuple[tuple[str, Any], ...] = field(default=(), compare=False)
    """The plain values of `each` in this pass, for people."""


@dataclass(frozen=True, slots=True)
class RepeatNode:
    """A graph that is passed through several times."""

    name: str
    passes: tuple[Pass, ...]
    ties: tuple[Tie, ...] = ()
    trainable: bool = True
    share: Span | None = None
    """Where `share` is written; None where each pass has its own weights."""
    index: str = field(default="", compare=False)
    """What the recipe calls the number of a pass; nothing where a repeat is made of nodes that are written one by one."""
    span: Span = field(default=None, compare=False)  # type: ignore[assignment]  # always given
    name_span: Span = field(default=None, compare=False)  # type: ignore[assignment]  # always given


@dataclass(frozen=True, slots=True)
class ScanNode:
    """A graph that is passed through once for each step along an axis, with one set of weights."""

    name: str
    axis: str
    graph: Graph
    wires: tuple[Wire, ...]
    """One for each of the graph's inputs: what is scanned, what is carried from step to step, what stays the same."""
    ties: tuple[Tie, ...] = ()
    trainable: bool = True
    axis_span: Span = field(default=None, compare=False)  # type: ignore[assignment]  # always given
    span: Span = field(default=None, compare=False)  # type: ignore[assignment]  # always given
    name_span: Span = field(default=None, compare=False)  # type: ignore[assignment]  # always given


Node: TypeAlias = BlockNode | GroupNode | RepeatNode | ScanNode


@dataclass(frozen=True, slots=True)
class GraphInput:
    """A named input of a graph."""

    name: str
    many: bool = False
    """Whether it is a list of values, such as a range of passes."""
    captured: bool = False
    """Whether it was not passed but read from an enclosing graph."""
    type: TypeDecl | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Nodes in topological order. Equal graphs that are written in the same places are one object."""

    inputs: tuple[GraphInput, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[tuple[str, Ref], ...]
    """The default first; then what is read from outside, under its path."""

    def __getitem__(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A recipe's graph, with its inputs, params and rules."""

    recipe: ParsedRecipe
    graph: Graph
    inputs: tuple[InputDecl, ...]
    params: Mapping[str, Value]
    origins: Mapping[str, Span]
    """Where each param's value is written."""
    positions: tuple[tuple[str, Ref], ...]
    init: tuple[InitPattern, ...]
    """How parameters start; the last match wins."""
    losses: Mapping[str, str]
    """The recipe's own losses, each with its node in the graph."""
    adapters: tuple[AdapterPattern, ...] = ()
    """What alone is trained, if there is any: of a linear map, the last match decides."""
    sound: bool = True
    """Whether the recipe has no mistakes, so that nothing is left out."""

    def origins_of(self, expression: Expression) -> Origins:
        """Return where the params that an expression reads were set."""
        return tuple((name, self.origins[name]) for name in sorted(names(expression)) if name in self.origins)
