"""Typed program to flat graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from blocks.core import Init
from composer.diagnostics import Declaration, Diagnostic, RecipeError, Span
from composer.diff.flat_graph import (
    INPUT,
    NEXT_STATE,
    SLOT,
    SLOT_FEED,
    STATE,
    STEP,
    FlatModel,
    FlatNode,
    FlatParameter,
    FlatSource,
    FlatValues,
    Place,
    Read,
    commutes,
    readers,
)
from composer.diff.init_formulas import with_layer
from composer.diff.normal_forms import NormalForm, forms, ways
from composer.graph.anatomy import TYPED
from composer.graph.describe import kind_of
from composer.graph.initial_values import layer_of, start_of
from composer.graph.ir import Ref, Wire
from composer.graph.parameters import parameters
from composer.graph.state_update import SUFFIX
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan, is_renewal
from composer.graph.visit import Fold, Inside
from composer.memo import Memo

MAX_BLOCKS = 100_000
"""The most blocks, every pass counted, of a model that can be compared."""


def flatten(typed: TypedProgram) -> FlatModel:
    """Return the flat graph of a model.

    Raises:
        RecipeError: The model has more than `MAX_BLOCKS` blocks.
    """
    if (count := size(typed.root)) > MAX_BLOCKS:
        message = f"{typed.name} has {count:,} blocks; models of at most {MAX_BLOCKS:,} are compared"
        raise RecipeError([Diagnostic("too-many-nodes", message, typed.untyped.recipe.name_scalar.span)])
    return _Flattener(typed).model()


def size(graph: TypedGraph) -> int:
    """Return the number of blocks in a graph, every pass counted. Equal graphs are visited once."""
    return Fold(TYPED, _size, lambda graph, found: sum(found), lambda graph: graph.nodes).graph(graph)


def _size(node: TypedNode, inside: Inside[TypedGraph, int, int]) -> int:
    return isinstance(node, TypedBlock) + sum(inside.passes()) + sum(count for _, count in inside.slots)


@dataclass(frozen=True, slots=True)
class Location:
    """The place of a node in the model."""

    path: str
    home: str
    """The path in the `state_dict`, where passes that share their weights are one."""
    span: Span | None

    def below(self, name: str) -> Location:
        """Return the place of a node in a graph, or of a part in a slot, one level below."""
        above = self.path and f"{self.path}."
        return Location(above + name, (self.home and f"{self.home}.") + name, self.span)


@dataclass(slots=True)
class _Flattener:
    program: TypedProgram
    nodes: list[FlatNode] = field(default_factory=list)
    places: dict[str, Place] = field(default_factory=dict)
    forms: Memo[TypedBlock, Mapping[str, NormalForm]] = field(default_factory=Memo)
    learned: dict[str, list[FlatParameter]] = field(default_factory=dict)
    top: Mapping[str, list[FlatValues]] = field(default_factory=dict)
    """The outputs of the nodes of the outermost graph."""
    positions: dict[str, FlatSource] = field(default_factory=dict)
    """The nodes that give axes their positions, by axis."""
    feeds: list[FlatSource] = field(default_factory=list)
    """What the blocks read whose slots contain the node that is being flattened, outermost first."""

    def model(self) -> FlatModel:
        self._parameters()
        given: dict[str, tuple[FlatSource, ...]] = {}
        spans = {item.name: item.span for item in self.program.untyped.inputs}
        for name in self.program.inputs:
            given[name] = (FlatSource(len(self.nodes), 0),)
            self.places[name] = Place(INPUT, spans[name], len(self.nodes), len(self.nodes) + 1)
            self.nodes.append(FlatNode(name, INPUT, {}, (), {}, (), None))
        count = len(self.nodes)
        outputs = self.graph(self.program.root, given, Location("", "", None))
        losses = {name: self.resolved(Ref(node), given, self.top) for name, node in self.program.untyped.losses.items()}
        return FlatModel(self.program, tuple(self.nodes), tuple(range(count)), outputs, losses, self.places, readers(self.nodes))

    def _parameters(self) -> None:
        """Collect the parameters of each node, by its path in the `state_dict`."""
        table = parameters(self.program)
        starts: dict[str, tuple[Init, bool]] = {}
        for entry in table:
            if not entry.tied_to:
                rule = start_of(self.program.untyped, entry)
                starts[entry.name] = with_layer(rule or entry.parameter.init, layer_of(entry.name)), rule is not None
        for entry in table:
            start, set_by_recipe = starts[entry.owner]
            path = entry.name.removesuffix(f".{entry.parameter.name}")
            one = FlatParameter(entry.parameter.name, entry.name, entry.owner, entry.trainable, start, set_by_recipe)
            self.learned.setdefault(path, []).append(one)

    # -- graphs

    def graph(self, graph: TypedGraph, given: FlatValues, around: Location) -> FlatValues:
        """Add the nodes of a graph, and return its outputs."""
        inside: dict[str, list[FlatValues]] = {}
        for node in graph.nodes:
            inside[node.name] = self.node(node, given, inside, around.below(node.name))
            if not around.path:
                self.top = inside
                self._positions(given)
        return {name: self.resolved(ref, given, inside) for name, ref in graph.graph.outputs}

    def _positions(self, given: FlatValues) -> None:
        for axis, ref in self.program.untyped.positions:
            if axis not in self.positions and (ref.node in given or ref.node in self.top):
                (self.positions[axis],) = self.resolved(ref, given, self.top)

    def resolved(self, ref: Ref, given: FlatValues, inside: Mapping[str, list[FlatValues]]) -> tuple[FlatSource, ...]:
        """Return the values that a reference in a graph stands for."""
        if ref.node not in inside:
            return given[ref.node]
        outputs = inside[ref.node][-1 if ref.index is None else ref.index]
        return outputs[ref.port] if ref.port else next(iter(outputs.values()))

    def node(self, node: TypedNode, given: FlatValues, inside: dict[str, list[FlatValues]], spot: Location) -> list[FlatValues]:
        """Add a node, and return its outputs for each pass; only a repeat has more than one."""
        read = self._wired(node.node.wires, given, inside) if not isinstance(node, TypedRepeat) else {}
        start, path = len(self.nodes), spot.path
        span = spot.span if isinstance(node.node.name_span.source, Declaration) else node.node.name_span
        spot = Location(path, spot.home, span)
        self.places[path] = Place("", span, start, start)  # a node stands before what is in it
        passes = 0
        match node:
            case TypedBlock():
                if is_renewal(node):
                    read = {**read, STATE: self.resolved(Ref(node.name.removesuffix(SUFFIX)), given, inside)}
                returned: list[FlatValues] = [self.block(node, read, spot)]
            case TypedGroup(graph=graph):
                returned = [self.graph(graph, read, spot)]
            case TypedScan():
                returned = [self.scan(node, read, spot)]
            case TypedRepeat():
                returned, passes = inside.setdefault(node.name, []), len(node.passes)
                for index, (one, graph) in enumerate(zip(node.node.passes, node.passes, strict=True)):
                    first = len(self.nodes)
                    self.places[f"{path}.{index}"] = Place("pass", span, first, first, index)
                    read = self._wired(one.wires, given, inside)
                    home = f"{spot.home}.{node.prefix(index)}".removesuffix(".")
                    returned.append(self.graph(graph, read, Location(f"{path}.{index}", home, span)))
                    self.places[f"{path}.{index}"] = Place("pass", span, first, len(self.nodes), index)
            case _:
                assert_never(node)
        self.places[path] = Place(kind_of(node), span, start, len(self.nodes), passes=passes)
        return returned

    def _wired(self, wires: Iterable[Wire], given: FlatValues, inside: Mapping[str, list[FlatValues]]) -> FlatValues:
        return {wire.port: tuple(s for ref in wire.refs for s in self.resolved(ref, given, inside)) for wire in wires}

    def scan(self, scan: TypedScan, read: FlatValues, spot: Location) -> FlatValues:
        """Add a scan: a node for what each step begins with, the nodes of one step, and a node for the outputs."""
        begin, walked = len(self.nodes), [*scan.steps, *scan.carried]
        ports = {port: f"step {scan.steps[port]}" if port in scan.steps else "start" for port in walked}
        reads = tuple(Read(ports[port], read[port][0]) for port in walked)
        self.places[f"{spot.path}.{STEP}"] = Place(STEP, spot.span, begin, begin + 1)
        self.nodes.append(FlatNode(f"{spot.path}.{STEP}", STEP, {}, reads, {}, (), None))
        returned = self.graph(scan.graph, {**read, **{port: (FlatSource(begin, k),) for k, port in enumerate(walked)}}, spot)
        ends = [Read(f"output {k}", sources[0]) for k, sources in enumerate(returned.values())]
        back = [Read("carried", returned[output][0]) for output in scan.carried.values()]
        self.nodes.append(FlatNode(spot.path, "scan", {}, (*ends, *back, Read(STEP, FlatSource(begin, 0))), {}, (), None))
        return {port: (FlatSource(len(self.nodes) - 1, k),) for k, port in enumerate(returned)}

    # -- blocks

    def block(self, block: TypedBlock, read: FlatValues, spot: Location) -> FlatValues:
        """Add a block, after the parts in its slots."""
        slots: list[Read] = []
        for name, filled in block.slots.items():
            if filled is not None:
                first = next((sources[0] for sources in read.values()), SLOT_FEED)
                self.feeds.append(self.feeds[-1] if first == SLOT_FEED and self.feeds else first)
                (outputs,) = self.node(filled, {INPUT: (SLOT_FEED,)}, {}, spot.below(name))
                self.feeds.pop()
                slots.append(Read(f"{SLOT}{name}", next(iter(outputs.values()))[0]))
        fields = self.forms.get(block, lambda: forms(block))
        masked = {port for form in fields.values() for port in form.ports()}
        reads = [Read(port, source) for port, sources in read.items() for source in sources if port not in masked]
        for port, axis in type(block.part).position_inputs.items():
            source = self.positions.get(str(block.sizes.get(axis)))
            if port not in read and source is not None:
                reads.append(Read(port, source))
        if block.expansions and (expansions := ways(block)):
            reads = [Read(one.port, one.source, way) for one, way in zip(reads, expansions, strict=True)]
        edges = {port: sources[0] for port, sources in read.items() if port in masked}
        node = FlatNode(
            spot.path,
            NEXT_STATE if is_renewal(block) else block.part.kind,
            fields,
            (*reads, *slots),
            edges,
            tuple(self.learned.get(spot.home, ())),
            block,
            commutes(block),
            self.feeds[-1] if self.feeds else None,
        )
        self.nodes.append(node)
        return {port: (FlatSource(len(self.nodes) - 1, index),) for index, port in enumerate(block.outputs)}
