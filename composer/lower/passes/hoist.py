"""Hoisting: masks, rotary tables and positions that many nodes read are prepared once per call, in the outermost graph where
all that they are made from is available."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, assert_never

from blocks.core import Part
from blocks.core.folded import Folded
from blocks.masks.kept_keys import KeptKeys
from blocks.masks.mask import Mask
from blocks.masks.plans import Plan, plan
from blocks.positions.counted import Counted, OptionalPositions
from composer.graph.cache_slots import keys_in_reach
from composer.graph.dims import Dim, Symbolic, names, so_far
from composer.graph.ir import Ref, Wire
from composer.graph.leading_axes import declared_inputs, leading_part
from composer.graph.task_signature import growing
from composer.graph.type_patterns import declared, pattern, size
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan
from composer.graph.types import TensorType, Types
from composer.lower.passes.node_queries import folded_ports, may_be_absent, takes
from composer.memo import Interned


@dataclass(frozen=True, slots=True)
class AxisPositions:
    """The positions of one of the model's own axes."""

    axis: Symbolic
    counted: bool
    """Whether they are counted; otherwise they are what the recipe names as the positions of the axis, which may be absent."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """The call of a part's `prepare`: what gives a mask, a rotary table or positions."""

    label: str
    """What is prepared, from which its variable gets its name."""
    part: Part
    attributes: tuple[tuple[str, Any], ...]
    """What the part's object has beside its fields."""
    arguments: tuple[HoistedSource, ...]
    keywords: tuple[tuple[str, HoistedSource], ...] = ()
    axis: Dim | None = None
    """The axis of the positions that it counts, or of a mask's keys."""
    batch: tuple[Dim, ...] = ()
    """The axes that are the batch of what a mask reads, in order where several are folded into one."""
    kept: KeptKeys | None = None
    """Which keys of a growing text a mask needs of earlier calls; None for all of them."""

    @property
    def sources(self) -> tuple[HoistedSource, ...]:
        """All arguments of `prepare`."""
        return (*self.arguments, *(source for _, source in self.keywords))


HoistedSource: TypeAlias = "Ref | AxisPositions | Preparation"


@dataclass(slots=True, eq=False)
class Hoisted:
    """What hoisting adds to a graph."""

    inputs: dict[str, Preparation | AxisPositions] = field(default_factory=dict)
    """Values that are prepared outside and become inputs of the graph, by name."""
    local: dict[str, Preparation] = field(default_factory=dict)
    """Values that the graph prepares itself, by name; their sources are references in this graph."""
    arguments: dict[str, dict[str, Ref]] = field(default_factory=dict)
    """For each node, and each pass by its name of `pass_names`, the arguments beside its wires."""
    inner: dict[str, Hoisted] = field(default_factory=dict)
    """For each group, scan and pass, what is added inside."""


def pass_names(repeat: TypedRepeat) -> list[str]:
    """Return the name of each pass in `Hoisted`: `layers[0]`, `layers[1]` …"""
    return [f"{repeat.name}[{index}]" for index in range(len(repeat.passes))]


class Hoisting:
    """The hoisting of a program, graph by graph."""

    def __init__(self, typed: TypedProgram) -> None:
        self.program = typed
        self.declared_positions = dict(typed.untyped.positions)
        """For each axis whose positions are an input of the model, that input."""
        self.length = growing(typed.untyped.recipe.task, typed.inputs)
        sizes = {size for type_ in typed.inputs.values() for size in type_.sizes}
        self.axes = sizes if self.length is None else sizes - {so_far(self.length)}
        """The axes of the inputs along which positions are counted once for the whole model."""
        self.done: Interned[tuple[TypedGraph, frozenset[str], bool], Hoisted] = Interned()

    def as_of_call(self, axis: Dim) -> Dim:
        """Return an axis, that of the rows of one call for that of all rows so far."""
        return self.length if self.length is not None and axis == so_far(self.length) else axis

    def root(self) -> Hoisted:
        """Return what is added to the model's own graph."""
        return self.graph(self.program.root, frozenset(), top=True)

    def graph(self, graph: TypedGraph, blocked: frozenset[str], *, top: bool = False) -> Hoisted:
        """Return what is added to a graph; `blocked` inputs differ from pass to pass, so what reads them stays inside."""
        return self.done.get((graph, blocked, top), lambda: self._graph(graph, blocked, top))

    def _graph(self, graph: TypedGraph, blocked: frozenset[str], top: bool) -> Hoisted:
        hoisted = Hoisted()
        one = _GraphHoisting(self, graph, blocked, top, hoisted)
        for node in graph.nodes:
            one.node(node)
        return hoisted


class _GraphHoisting:
    def __init__(self, run: Hoisting, graph: TypedGraph, blocked: frozenset[str], top: bool, hoisted: Hoisted) -> None:
        self.run, self.graph, self.blocked, self.top, self.hoisted = run, graph, blocked, top, hoisted
        self.captured = {item.name for item in graph.graph.inputs if item.captured} - blocked
        self.names: dict[Preparation | AxisPositions, str] = {}
        """What is prepared here or outside, with its name in this graph."""

    def node(self, node: TypedNode) -> None:
        match node:
            case TypedBlock():
                self.hoisted.arguments[node.name] = {
                    name: self.reference(source) for name, source in self._preparations_of(node).items()
                }
            case TypedGroup():
                inner = self.run.graph(node.graph, frozenset())
                self.hoisted.inner[node.name] = inner
                self.hoisted.arguments[node.name] = self._inner_arguments(inner, node.node.wires)
            case TypedScan():
                inner = self.run.graph(node.graph, frozenset({*node.steps, *node.carried}))
                self.hoisted.inner[node.name] = inner
                self.hoisted.arguments[node.name] = self._inner_arguments(inner, node.node.wires)
            case TypedRepeat():
                wires = [{wire.port: wire.refs for wire in one.wires} for one in node.node.passes]
                own = frozenset(port for one in wires for port, refs in one.items() if any(ref.node == node.name for ref in refs))
                for name, one, graph in zip(pass_names(node), node.node.passes, node.passes, strict=True):
                    inner = self.run.graph(graph, own)
                    self.hoisted.inner[name] = inner
                    self.hoisted.arguments[name] = self._inner_arguments(inner, one.wires)
            case _:
                assert_never(node)

    def _inner_arguments(self, inner: Hoisted, wires: tuple[Wire, ...]) -> dict[str, Ref]:
        outside = {wire.port: wire.refs for wire in wires}
        return {name: self.reference(_in_outer_graph(source, outside)) for name, source in inner.inputs.items()}

    def _preparations_of(self, block: TypedBlock) -> dict[str, HoistedSource]:
        """Return what is prepared for the block's forward, by keyword."""
        part, wired = block.part, {wire.port: wire.refs for wire in block.node.wires}
        found: dict[str, HoistedSource] = {}
        for name, prepared in part.per_call(frozenset(wired)).items():
            held = getattr(part, prepared.slot)
            if isinstance(held, Mask):
                found[name] = self._mask(block, prepared.slot, prepared.ports, wired)
            else:
                arguments = tuple(self._positions(block, port, wired) for port in prepared.ports)
                sizes = tuple((key, size(declared(expression), block.sizes)) for key, expression in prepared.sizes.items())
                found[name] = Preparation(name, held, sizes, arguments)
        for port in type(part).position_inputs:
            if (port not in wired or may_be_absent(block, port)) and port in takes(type(part)):
                found[port] = self._positions(block, port, wired)
        for port, which in folded_ports(block).items():
            if port not in found and port in takes(type(part)) and (which != "all" or may_be_absent(block, port)):
                found[port] = self._folded(block, port, wired[port][0], wired)
        return found

    def _folded(self, block: TypedBlock, port: str, given: HoistedSource, wired: Mapping[str, Any]) -> HoistedSource:
        """Return what a block reads at a port, or as the positions there, with its axes in front folded into one."""
        text = declared_inputs(block.part)[port]
        type_ = block.inputs[port] if port in wired else self._named_type(block, port)
        if not block.leading or not isinstance(type_, TensorType):
            return given
        which = leading_part(text, type_, block.leading)
        if which == "none":
            return given
        has = len(type_.axes) - len(pattern(text).axes) + (not pattern(text).leading)
        part = Folded(count=len(block.leading), lacks=len(block.leading) - has, last=which == "last")
        first = wired[next(iter(type(block.part).inputs))][0]
        return Preparation(port, part, (), (given,) if which == "all" else (given, first))

    def _named_type(self, block: TypedBlock, port: str) -> Types | None:
        """Return the type of the positions that the recipe names for the axis of a port."""
        ref = self.run.declared_positions.get(str(block.sizes[type(block.part).position_inputs[port]]))
        return None if ref is None else self.run.program.root.type_of(ref)

    def _mask(self, block: TypedBlock, slot: str, ports: tuple[str, ...], wired: Mapping[str, Any]) -> Preparation:
        mask: Mask = getattr(block.part, slot)
        axes = [block.sizes[type(block.part).position_inputs[port]] for port in ports]
        edges = [name for name in mask.edge_types() if name in wired]
        optional = frozenset(name for name in edges if getattr(block.inputs[name], "optional", False))
        chosen: Plan = plan(mask, optional)
        one_sequence = len({self.run.as_of_call(axis) for axis in axes}) == 1
        edges_read = tuple((name, self._folded(block, name, wired[name][0], wired)) for name in edges)
        arguments = tuple(self._counted(block, axis) for axis in axes)
        read = [type_ for name in edges if isinstance(type_ := block.inputs[name], TensorType)]
        batch = tuple(axis.size for axis in block.leading) or tuple({type_.sizes[0] for type_ in read if type_.sizes})
        batch = batch if read else ()  # so that blocks whose masks read nothing share them
        kept = keys_in_reach(block, slot, axes[-1]) if axes[-1] == self.run.length and one_sequence else None
        return Preparation("mask", chosen, (("grows", one_sequence),), arguments, edges_read, axes[-1], batch, kept)

    def _positions(self, block: TypedBlock, port: str, wired: Mapping[str, tuple[Ref, ...]]) -> HoistedSource:
        if port not in type(block.part).position_inputs:
            return self._folded(block, port, wired[port][0], wired)
        axis: Dim = block.sizes[type(block.part).position_inputs[port]]
        if port in wired:
            given = self._folded(block, port, wired[port][0], wired)
            if not may_be_absent(block, port):
                return given
            others = {name: refs for name, refs in wired.items() if name != port}
            return Preparation("position_ids", OptionalPositions(), (), (given, self._positions(block, port, others)), axis=axis)
        if isinstance(axis, Symbolic) and str(axis) in self.run.declared_positions and axis in self.run.axes:
            named = self._folded(block, port, AxisPositions(axis, counted=False), wired)
            type_ = self._named_type(block, port)
            if not isinstance(type_, TensorType) or not type_.optional:
                return named
            return Preparation("position_ids", OptionalPositions(), (), (named, self._counted(block, axis)), axis=axis)
        return self._counted(block, axis)

    def _counted(self, block: TypedBlock, axis: Dim) -> HoistedSource:
        """Return the indices of an axis, counted from the first call on."""
        if isinstance(axis, Symbolic) and axis in self.run.axes:
            return AxisPositions(axis, counted=True)
        for name, type_ in block.inputs.items():
            if isinstance(type_, TensorType) and axis in type_.sizes and not type_.optional:
                read = next(wire.refs[0] for wire in block.node.wires if wire.port == name)
                return Preparation("position_ids", Counted(axis=type_.sizes.index(axis)), (), (read,), axis=axis)
        raise AssertionError(f"no input of {block.name} has the axis {axis}")

    def reference(self, source: HoistedSource) -> Ref:
        """Return a reference in this graph to a value, which is prepared here or outside."""
        if isinstance(source, Ref):
            return source
        if self.top and isinstance(source, AxisPositions):
            source = self._positions_of_axis(source)
            if isinstance(source, Ref):
                return source
        if source not in self.names:
            if isinstance(source, Preparation) and (self.top or not self._is_available_outside(source)):
                arguments = tuple(self.reference(one) for one in source.arguments)
                keywords = tuple((name, self.reference(one)) for name, one in source.keywords)
                name = self._fresh(source.label)
                self.hoisted.local[name] = replace(source, arguments=arguments, keywords=keywords)
            else:
                name = self._fresh("position_ids" if isinstance(source, AxisPositions) else source.label)
                self.hoisted.inputs[name] = source
            self.names[source] = name
        return Ref(self.names[source])

    def _is_available_outside(self, source: HoistedSource) -> bool:
        match source:
            case AxisPositions():
                return True
            case Preparation():
                return all(self._is_available_outside(one) for one in source.sources)
            case Ref():
                return source.node in self.captured

    def _positions_of_axis(self, source: AxisPositions) -> Ref | Preparation:
        return self._of_input(source.axis) if source.counted else self.run.declared_positions[str(source.axis)]

    def _of_input(self, axis: Symbolic) -> Preparation:
        """Return the indices of an axis of the model's inputs."""
        inputs = sorted(self.run.program.inputs.items(), key=lambda item: item[1].optional)
        name, given = next((name, given) for name, given in inputs if axis in given.sizes)
        label = "position_ids" if str(axis) == "time" else "_".join([*sorted(names(axis)), "position_ids"])
        return Preparation(label, Counted(axis=given.sizes.index(axis)), (), (Ref(name),), axis=axis)

    def _fresh(self, label: str) -> str:
        nodes = {name.partition(".")[0] for name in self.graph.by_name}
        taken = {*self.graph.inputs, *nodes, *self.hoisted.inputs, *self.hoisted.local}
        name, count = label, 1
        while name in taken:
            count += 1
            name = f"{label}_{count}"
        return name


def _in_outer_graph(source: HoistedSource, wires: Mapping[str, tuple[Ref, ...]]) -> HoistedSource:
    """Return a source of an inner graph with its references in terms of the graph around it, given the wires between them."""
    match source:
        case Ref():
            return wires[source.node][0]
        case Preparation():
            arguments = tuple(_in_outer_graph(one, wires) for one in source.arguments)
            keywords = tuple((name, _in_outer_graph(one, wires)) for name, one in source.keywords)
            return replace(source, arguments=arguments, keywords=keywords)
        case _:
            return source
