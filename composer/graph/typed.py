"""The graph with its types: what every later stage reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from blocks.core import Init, ParameterRole, Part, ports
from composer.graph.dims import as_written
from composer.graph.ir import Adapter, BlockNode, Graph, GroupNode, Program, Ref, RepeatNode, ScanNode
from composer.graph.state_update import Renewal
from composer.graph.types import UNKNOWN, Axis, InputTypes, PortTypes, TensorType, Type, Types, first_of
from composer.language.expressions.ast import Value
from composer.memo import Memo


@dataclass(frozen=True, slots=True)
class TypedParameter:
    """A tensor that is learned."""

    name: str
    """Below its node: `weight`, `q.weight`."""
    shape: tuple[int, ...]
    role: ParameterRole
    init: Init
    zero_row: int | None = None
    """A row that is initialized to zero."""


class LinearMap(NamedTuple):
    """An `nn.Linear` inside of a block."""

    inputs: int
    outputs: int
    bias: bool
    rows: str
    """The port whose vectors it maps."""
    adaptable: bool = True
    """Whether the block always calls it."""


@dataclass(frozen=True, slots=True, eq=False)
class TypedBlock:
    """A block with its fields computed, its sizes bound and its ports typed."""

    node: BlockNode
    part: Part
    """The block, every number in it computed; slots that compute hold their own block, or `Inline` for a graph."""
    sizes: Mapping[str, Any]
    """Axis symbols and numeric fields by name."""
    inputs: InputTypes
    outputs: PortTypes
    parameters: tuple[TypedParameter, ...]
    """Its own, without those of its slots."""
    modules: Mapping[str, LinearMap]
    """Every `nn.Linear` inside, by its name."""
    slots: Mapping[str, TypedNode | None]
    """Every sub-module that fills a slot, by its name; None where the slot is empty."""
    expansions: tuple[tuple[int | None, ...], ...] = ()
    """For blocks that broadcast: for each input, which of its axes stands at each axis of the output, or none."""
    leading: tuple[Axis, ...] = ()
    """The axes that its inputs have in place of the batch, which is all of them folded into one; nothing where there is one."""
    copies: int | None = None
    """For an expert, the number of copies that its parameters hold along their first axis."""
    buffers: tuple[TypedParameter, ...] = ()
    """What it keeps from call to call and does not learn."""
    adapters: Mapping[str, Adapter] = field(default_factory=dict)
    """What is added to linear maps, by the name of the map; nothing for the name of one that is the whole block."""

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def first_input(self) -> Type:
        """The type of its first input, of the first value where there are several; unknown where there is none."""
        return first_of(self.inputs.get(next(iter(ports(type(self.part))), ""), UNKNOWN))


@dataclass(frozen=True, slots=True, eq=False)
class TypedGroup:
    """A group with its graph typed."""

    node: GroupNode
    graph: TypedGraph
    axis_names: Mapping[str, str] = field(default_factory=dict)
    """Of a block that the recipe defines: the names that it gives axes, each with the one that the axis has outside."""

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def outputs(self) -> PortTypes:
        """The types of what it returns."""
        if not self.axis_names:
            return self.graph.outputs
        return {
            port: type_.renamed(self.axis_names) if isinstance(type_, TensorType) else type_
            for port, type_ in self.graph.outputs.items()
        }


@dataclass(frozen=True, slots=True, eq=False)
class TypedRepeat:
    """A repeat with every pass typed; equal passes are one object."""

    node: RepeatNode
    passes: tuple[TypedGraph, ...]

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def owners(self) -> tuple[TypedGraph, ...]:
        """The passes that have weights of their own."""
        return self.passes if self.node.share is None else self.passes[:1]

    def prefix(self, index: int) -> str:
        """Return what stands before the names below a pass in the `state_dict`, after the name of the repeat."""
        return f"{index}." if self.node.share is None else ""

    @property
    def outputs(self) -> PortTypes:
        """The types of what the last pass returns."""
        return self.passes[-1].outputs


class AlignedPort(NamedTuple):
    """A value at a port of a scan, beside the states of all steps."""

    port: str
    way: tuple[int | None, ...]
    """Which of its axes stands at each axis of the states, or none."""


class LinearStep(NamedTuple):
    """What a step makes of a state by itself: `keep · state + add`."""

    keep: AlignedPort | float
    add: AlignedPort | float
    rounded: bool
    """Whether the state is rounded to the dtype of the model, though what it is computed from may be in float32."""


@dataclass(frozen=True, slots=True, eq=False)
class TypedScan:
    """A scan with its graph typed for one step."""

    node: ScanNode
    graph: TypedGraph
    axis: Axis
    steps: Mapping[str, int]
    """Each input that arrives one step at a time, with the place of the axis in it."""
    carried: Mapping[str, str]
    """Each input that is what the step before returned, with the output that it is."""
    widened: Mapping[str, int]
    """For each carried input, how many axes its start lacks, such as the batch: it starts the same in each row."""
    outputs: PortTypes
    """The first with the axis; the others are what the last step returned."""
    stacked: int = 1
    """How many outputs, from the first on, have the axis."""
    linear: Mapping[str, LinearStep] = field(default_factory=dict)
    """The carried inputs where all are linear in themselves: the states of all steps are then computed at once, and those before
    each step, where they are among the outputs."""

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def place(self) -> int:
        """Where the axis stands in the first output."""
        return self.place_in(next(iter(self.outputs.values())))

    def place_in(self, stacked: Type) -> int:
        """Return where the axis stands in an output that has it."""
        return min(next(iter(self.steps.values()), 0), len(stacked.axes) - 1) if isinstance(stacked, TensorType) else 0


TypedNode: TypeAlias = TypedBlock | TypedGroup | TypedRepeat | TypedScan


@dataclass(frozen=True, slots=True, eq=False)
class TypedGraph:
    """A graph in which every value has a type."""

    graph: Graph
    inputs: InputTypes
    nodes: tuple[TypedNode, ...]
    outputs: PortTypes
    by_name: Mapping[str, TypedNode] = field(default_factory=dict)

    def __getitem__(self, name: str) -> TypedNode:
        return self.by_name[name]

    def type_of(self, ref: Ref) -> Types:
        """Return the type of what a reference in this graph names; several for a list."""
        if ref.node in self.inputs and ref.node not in self.by_name:
            return self.inputs[ref.node]
        node = self.by_name[ref.node]
        if isinstance(node, TypedRepeat):
            return output(node.passes[-1 if ref.index is None else ref.index].outputs, ref.port)
        return output(node.outputs, ref.port)


@dataclass(frozen=True, slots=True, eq=False)
class TypedProgram:
    """A whole recipe, typed."""

    untyped: Program
    root: TypedGraph
    inputs: Mapping[str, TensorType]
    defaults: Mapping[str, Value]
    """The values of the inputs that may be left out and have a default."""
    found: Memo[str, Any] = field(default_factory=Memo, init=False)
    """What is found out about it as a whole, by what it is."""

    def __repr__(self) -> str:
        return f"TypedProgram({self.name!r})"

    @property
    def name(self) -> str:
        """The recipe's name."""
        return self.untyped.recipe.name

    @property
    def written_inputs(self) -> Mapping[str, TensorType]:
        """The types of the inputs as the recipe writes them: the axis of a text may have a number."""
        return {
            name: replace(type_, axes=tuple(replace(axis, size=as_written(axis.size)) for axis in type_.axes))
            for name, type_ in self.inputs.items()
        }


def output(outputs: PortTypes, port: str) -> Type:
    """Return an output by its name; the first for no name."""
    return outputs.get(port, UNKNOWN) if port else next(iter(outputs.values()), UNKNOWN)


def is_renewal(node: TypedNode) -> bool:
    """Return whether a node is the update of a state: it is written with the state, and has no outputs."""
    return isinstance(node, TypedBlock) and isinstance(node.part, Renewal)
