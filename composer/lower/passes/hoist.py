"""What is computed once per call for many nodes: masks, rotary tables and positions, each in the outermost graph where what
it reads lives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, assert_never

from blocks.core import Part
from blocks.masks.mask import Mask
from blocks.masks.plans import Plan, plan
from blocks.positions.counted import Counted
from composer.graph.dims import Dim, Symbolic, names
from composer.graph.ir import Ref, Wire
from composer.graph.type_patterns import declared, size
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan
from composer.graph.types import TensorType
from composer.lower.passes.node_queries import takes
from composer.memo import Interned


@dataclass(frozen=True, slots=True)
class AxisPositions:
    """The positions of one of the model's own axes."""

    axis: Symbolic


@dataclass(frozen=True, slots=True)
class Need:
    """A part to prepare, with what its `prepare` takes."""

    label: str
    part: Part
    attributes: tuple[tuple[str, Any], ...]
    """What the part must know beside its fields."""
    arguments: tuple[HoistedSource, ...]
    keywords: tuple[tuple[str, HoistedSource], ...] = ()
    axis: Dim | None = None
    """Along which it reads: the positions that it counts, or a mask's keys."""

    @property
    def sources(self) -> tuple[HoistedSource, ...]:
        """All that `prepare` takes."""
        return (*self.arguments, *(source for _, source in self.keywords))


HoistedSource: TypeAlias = "Ref | AxisPositions | Need"


@dataclass(slots=True, eq=False)
class Hoisted:
    """What hoisting adds to a graph."""

    inputs: dict[str, Need] = field(default_factory=dict)
    """Values that it is given from outside, by name."""
    local: dict[str, Need] = field(default_factory=dict)
    """Values that it prepares itself; the sources are references in this graph."""
    arguments: dict[str, dict[str, Ref]] = field(default_factory=dict)
    """For each node, and each pass by its name of `pass_names`, the arguments beside its wires."""
    inner: dict[str, Hoisted] = field(default_factory=dict)
    """For each group, scan and pass, what is added inside."""


def pass_names(repeat: TypedRepeat) -> list[str]:
    """Return the name of each pass in `Hoisted`: `layers[0]`, `layers[1]` …"""
    return [f"{repeat.name}[{index}]" for index in range(len(repeat.passes))]


class Hoisting:
    """One run over a typed program."""

    def __init__(self, typed: TypedProgram) -> None:
        self.program = typed
        self.declared = dict(typed.program.positions)
        self.done: Interned[tuple[TypedGraph, frozenset[str], bool], Hoisted] = Interned()

    def root(self) -> Hoisted:
        """Return the steps that are prepared once for the whole model."""
        return self.graph(self.program.root, frozenset(), top=True)

    def graph(self, graph: TypedGraph, blocked: frozenset[str], *, top: bool = False) -> Hoisted:
        """Return what is added to a graph; `blocked` inputs differ from pass to pass, so what reads them stays inside."""
        return self.done.get((graph, blocked, top), lambda: self._graph(graph, blocked, top))

    def _graph(self, graph: TypedGraph, blocked: frozenset[str], top: bool) -> Hoisted:
        hoisted = Hoisted()
        place = _Place(self, graph, blocked, top, hoisted)
        for node in graph.nodes:
            if not node.node.dropped:
                place.node(node)
        return hoisted


class _Place:
    def __init__(self, run: Hoisting, graph: TypedGraph, blocked: frozenset[str], top: bool, hoisted: Hoisted) -> None:
        self.run, self.graph, self.blocked, self.top, self.hoisted = run, graph, blocked, top, hoisted
        self.captured = {item.name for item in graph.graph.inputs if item.captured} - blocked
        self.placed: dict[Any, str] = {}

    def node(self, node: TypedNode) -> None:
        match node:
            case TypedBlock():
                self.hoisted.arguments[node.name] = {name: self.put(source) for name, source in self._needs(node).items()}
            case TypedGroup():
                inner = self.run.graph(node.graph, frozenset())
                self.hoisted.inner[node.name] = inner
                self.hoisted.arguments[node.name] = self._given(inner, node.node.wires)
            case TypedScan():
                inner = self.run.graph(node.graph, frozenset({*node.steps, *node.carried}))
                self.hoisted.inner[node.name] = inner
                self.hoisted.arguments[node.name] = self._given(inner, node.node.wires)
            case TypedRepeat():
                wires = [{wire.port: wire.refs for wire in one.wires} for one in node.node.passes]
                own = frozenset(port for one in wires for port, refs in one.items() if any(ref.node == node.name for ref in refs))
                for name, one, graph in zip(pass_names(node), node.node.passes, node.passes, strict=True):
                    inner = self.run.graph(graph, own)
                    self.hoisted.inner[name] = inner
                    self.hoisted.arguments[name] = self._given(inner, one.wires)
            case _:
                assert_never(node)

    def _given(self, inner: Hoisted, wires: tuple[Wire, ...]) -> dict[str, Ref]:
        outside = {wire.port: wire.refs for wire in wires}
        return {name: self.put(_outside(need, outside)) for name, need in inner.inputs.items()}

    def _needs(self, block: TypedBlock) -> dict[str, HoistedSource]:
        """Return what is prepared for the block's forward, by keyword."""
        part, wired = block.part, {wire.port: wire.refs for wire in block.node.wires}
        needs: dict[str, HoistedSource] = {}
        for name, prepared in part.per_call(frozenset(wired)).items():
            held = getattr(part, prepared.slot)
            arguments = tuple(self._positions(block, port, wired) for port in prepared.ports)
            if isinstance(held, Mask):
                needs[name] = self._mask(block, held, arguments, prepared.ports, wired)
            else:
                sizes = tuple((key, _plain(block.sizes, expression)) for key, expression in prepared.sizes.items())
                needs[name] = Need(name, held, sizes, arguments)
        for port in type(part).position_inputs:
            if port not in wired and port in takes(type(part)):
                needs[port] = self._positions(block, port, wired)
        return needs

    def _mask(
        self,
        block: TypedBlock,
        mask: Mask,
        arguments: tuple[HoistedSource, ...],
        ports: tuple[str, ...],
        wired: Mapping[str, Any],
    ) -> Need:
        axes = [block.sizes.get(type(block.part).position_inputs[port]) for port in ports]
        counted = all(self._is_counted(source) for source in arguments)
        edges = [name for name in mask.edge_types() if name in wired]
        optional = frozenset(name for name in edges if getattr(block.inputs[name], "optional", False))
        chosen: Plan = plan(mask, optional)
        attributes = (("counted", counted), ("grows", axes[0] == axes[-1]))
        edges_read = tuple((name, wired[name][0]) for name in edges)
        return Need("mask", chosen, attributes, arguments, edges_read, axis=axes[-1])

    def _is_counted(self, source: HoistedSource) -> bool:
        if isinstance(source, AxisPositions):
            return str(source.axis) not in self.run.declared
        return isinstance(source, Need) and isinstance(source.part, Counted)

    def _positions(self, block: TypedBlock, port: str, wired: Mapping[str, tuple[Ref, ...]]) -> HoistedSource:
        if port in wired:
            return wired[port][0]
        axis: Dim = block.sizes[type(block.part).position_inputs[port]]
        if isinstance(axis, Symbolic) and self._is_input_axis(axis):
            return AxisPositions(axis)
        for name, given in block.inputs.items():
            if isinstance(given, TensorType) and axis in given.sizes:
                return Need("position_ids", Counted(axis=given.sizes.index(axis)), (), (wired[name][0],), axis=axis)
        raise AssertionError(f"no input of {block.name} has the axis {axis}")

    def _is_input_axis(self, axis: Symbolic) -> bool:
        return any(axis in given.sizes for given in self.run.program.inputs.values())

    # -- placing

    def put(self, source: HoistedSource) -> Ref:
        """Return the value as a reference in this graph, made here or taken from outside."""
        if isinstance(source, Ref):
            return source
        if self.top and isinstance(source, AxisPositions):
            source = self._root_positions(source)
            if isinstance(source, Ref):
                return source
        if source not in self.placed:
            if self.top or not self._lifts(source):
                assert isinstance(source, Need)
                arguments = tuple(self.put(one) for one in source.arguments)
                keywords = tuple((name, self.put(one)) for name, one in source.keywords)
                name = self._fresh(source.label)
                self.hoisted.local[name] = replace(source, arguments=arguments, keywords=keywords)
            else:
                name = self._fresh("position_ids" if isinstance(source, AxisPositions) else source.label)
                self.hoisted.inputs[name] = source  # type: ignore[assignment]  # positions travel like needs
            self.placed[source] = name
        return Ref(self.placed[source])

    def _lifts(self, source: HoistedSource) -> bool:
        match source:
            case AxisPositions():
                return True
            case Need():
                return all(self._lifts(one) for one in source.sources)
            case Ref():
                return source.node in self.captured

    def _root_positions(self, source: AxisPositions) -> HoistedSource:
        if str(source.axis) in self.run.declared:
            return self.run.declared[str(source.axis)]
        inputs = sorted(self.run.program.inputs.items(), key=lambda item: item[1].optional)
        name, given = next((name, given) for name, given in inputs if source.axis in given.sizes)
        label = "position_ids" if str(source.axis) == "time" else f"{'_'.join(sorted(names(source.axis)))}_position_ids"
        return Need(label, Counted(axis=given.sizes.index(source.axis)), (), (Ref(name),), axis=source.axis)

    def _fresh(self, label: str) -> str:
        nodes = {name.partition(".")[0] for name in self.graph.by_name}
        taken = {*self.graph.inputs, *nodes, *self.hoisted.inputs, *self.hoisted.local}
        name, count = label, 1
        while name in taken:
            count += 1
            name = f"{label}_{count}"
        return name


def _outside(source: HoistedSource, wires: Mapping[str, tuple[Ref, ...]]) -> HoistedSource:
    """Return a source in a graph's own terms, in terms of the graph around it."""
    match source:
        case Ref():
            return wires[source.node][0]
        case Need():
            arguments = tuple(_outside(one, wires) for one in source.arguments)
            keywords = tuple((name, _outside(one, wires)) for name, one in source.keywords)
            return replace(source, arguments=arguments, keywords=keywords)
        case _:
            return source


def _plain(sizes: Mapping[str, Any], expression: str) -> Any:
    return size(declared(expression), sizes)
