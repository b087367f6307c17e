"""Scans relieved of what is not carried: what reads no state is computed for all steps at once before the loop, and what only
reads states after it. Of a formula that reads the state, the largest parts that do not are computed before. Where a step is
linear in what is carried, the states of all steps are computed at once too, and there is no loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from blocks.core.fields import formula_of
from blocks.core.formula import AppliedFunction, FormulaTree, ReadValue
from composer.graph.anatomy import wires_of, with_wires
from composer.graph.ir import Graph, GraphInput, Ref, Wire
from composer.graph.scans.formula_parts import ISLAND, alone, block_of, known_parts, needs_module, swapped, typed_subtrees
from composer.graph.scans.lifted import Outside, is_pointwise, lifted, may_be_lifted, pointwise, with_steps
from composer.graph.scans.linear_steps import LinearSteps, NotLinear, is_float
from composer.graph.scans.sink_steps import Sunk, needed, read_by, sink, value_of
from composer.graph.typed import AlignedPort, LinearStep, TypedBlock, TypedGraph, TypedNode, TypedProgram, TypedScan
from composer.graph.types import TensorType, each_of
from composer.graph.visit import Map


def hoist_steps(typed: TypedProgram) -> TypedProgram:
    """Return the program in which scans do in each step only what depends on the steps before."""
    positions = frozenset(ref.node for _, ref in typed.untyped.positions)
    return replace(typed, root=Map(partial(_relieved, positions)).graph(typed.root))


def _relieved(positions: frozenset[str], graph: TypedGraph) -> TypedGraph:
    """Return a graph in whose scans nothing is left that can be computed before or after, but for those whose outputs are read as
    `positions`, by name and not by a wire.
    """
    if not any(isinstance(node, TypedScan) for node in graph.nodes):
        return graph
    nodes: list[TypedNode] = []
    elsewhere: dict[Ref, Ref] = {}
    """First outputs of scans that are computed after them."""

    def read(wire: Wire, _: int) -> Wire:
        return replace(wire, refs=tuple(elsewhere.get(ref, ref) for ref in wire.refs))

    for node in graph.nodes:
        if any(ref in elsewhere for wire in wires_of(node) for ref in wire.refs):
            node = with_wires(node, read)
        if isinstance(node, TypedScan) and node.carried and node.name not in positions:
            around = replace(graph, nodes=tuple(nodes), by_name={**graph.by_name, **{one.name: one for one in nodes}})
            relief = _Relief(around, node)
            nodes += relief.nodes()
            if relief.sunk is not None:
                first = next(iter(node.outputs))
                elsewhere |= dict.fromkeys((Ref(node.name), Ref(node.name, first)), relief.sunk.value)
        else:
            nodes.append(node)
    if all(ours is theirs for ours, theirs in zip(nodes, graph.nodes, strict=False)) and len(nodes) == len(graph.nodes):
        return graph
    outputs = tuple((name, elsewhere.get(ref, ref)) for name, ref in graph.graph.outputs)
    inner = Graph(graph.graph.inputs, tuple(node.node for node in nodes), outputs)
    return TypedGraph(inner, graph.inputs, tuple(nodes), graph.outputs, {node.name: node for node in nodes})


@dataclass(slots=True)
class _Relief:
    """One scan, node by node."""

    around: TypedGraph
    scan: TypedScan
    known: dict[str, Outside] = field(default_factory=dict)
    """By the name of an input or a node in the scan."""
    moved: list[TypedBlock] = field(default_factory=list)
    kept: list[TypedNode] = field(default_factory=list)
    islands: set[str] = field(default_factory=set)
    """What is known and in float32 whatever the dtype of the model."""
    sunk: Sunk | None = None
    """What stands after the scan."""

    def nodes(self) -> Iterator[TypedNode]:
        """Yield what stands before the scan, the scan, and what stands after it."""
        for wire in self.scan.node.wires:
            type_ = self.around.type_of(wire.refs[0])
            if (
                wire.port not in self.scan.carried
                and len(wire.refs) == 1
                and isinstance(type_, TensorType)
                and not type_.optional
            ):
                self.known[wire.port] = Outside(wire.refs[0], type_, self.scan.steps.get(wire.port))
        for node in self.scan.graph.nodes:
            self._node(node)
        linear = self._linear()
        if not linear:
            self.sunk = sink(self.scan, self.kept, self.known, widening=False)
        if not (self.moved or self.sunk or linear):
            yield self.scan
            return
        yield from self.moved
        yield self._rest(linear)
        if self.sunk is not None:
            yield from self.sunk.blocks

    def _node(self, node: TypedNode) -> None:
        if isinstance(node, TypedBlock):
            reads = read_by(node)
            if reads and may_be_lifted(node) and all(self._knows(ref) for ref in reads):
                found = lifted(self.scan, node, [self.known[ref.node] for ref in reads])
                if found is not None:
                    self.moved.append(found[0])
                    self.known[node.name] = found[1]
                    return
            if is_pointwise(node) and not node.buffers:
                node = self._taken_apart(node, reads)
        self.kept.append(node)

    def _knows(self, ref: Ref) -> bool:
        return ref.node in self.known and not ref.port and ref.index is None

    # -- formulas that read the state

    def _taken_apart(self, node: TypedBlock, reads: list[Ref]) -> TypedBlock:
        """Return a formula that reads what its parts are that can be computed before."""
        formula = formula_of(node.part)
        if formula is None:
            return node
        known = [self._knows(ref) for ref in reads]
        parts = list(known_parts(formula.tree, known))
        typed = {id(one.tree): one for one in typed_subtrees(node.sizes["typed"])}
        refs, ways, types = list(reads), list(node.expansions), list(each_of(node.inputs["xs"]))
        by: dict[int, FormulaTree] = {}
        for part in parts:
            island = typed[id(part)].float32
            own, used = alone(AppliedFunction(ISLAND, (part,)) if island else part, formula)
            block = block_of(type(node.part), own)
            places = [place for place in range(len(ways[0])) if any(ways[index][place] is not None for index in used)]
            inner = [tuple(ways[index][place] for place in places) for index in used]
            name = self._fresh(node.name)
            given = [self.known[reads[index].node] for index in used]
            moved, result = pointwise(self.scan, node, name, given, block, inner)
            if needs_module(moved.part, moved.sizes):
                continue
            self.moved.append(moved)
            self.known[name] = result
            if island:
                self.islands.add(name)
            value: FormulaTree = ReadValue(len(refs))
            by[id(part)] = AppliedFunction(ISLAND, (value,)) if island else value
            refs.append(Ref(name))
            order = iter(range(len(places)))
            ways.append(tuple(next(order) if place in places else None for place in range(len(ways[0]))))
            types.append(result.one_step())
        if not by:
            return node
        rest, used = alone(swapped(formula.tree, by), formula)
        block = block_of(type(node.part), rest)
        given_types = {"xs": tuple(types[index] for index in used)}
        sizes = {**node.sizes, "inputs": len(used), **block.constants(given_types, {})}
        if needs_module(block, sizes):
            return node
        wires = (replace(node.node.wires[0], refs=tuple(refs[index] for index in used), spans=()),)
        return replace(
            node, node=replace(node.node, wires=wires, fields=()), part=block, sizes=sizes, inputs=given_types,
            expansions=tuple(ways[index] for index in used), buffers=(),
        )  # fmt: skip

    def _fresh(self, name: str) -> str:
        taken = {*self.known, *self.scan.graph.by_name, *self.scan.graph.inputs}
        return next(f"{name}_{count}" for count in range(1, len(taken) + 2) if f"{name}_{count}" not in taken)

    # -- steps that are linear in what is carried

    def _linear(self) -> dict[str, LinearStep]:
        """Return each carried input as a linear function of itself; nothing where one of them is not, or where something but
        the states would have to be computed step by step."""
        scan = self.scan
        outputs = dict(scan.graph.graph.outputs)
        (_, wanted), *others = outputs.items()
        if not all(is_float(scan, name) for name in scan.carried) or any(name not in scan.carried.values() for name, _ in others):
            return {}
        states = {name: outputs[output] for name, output in scan.carried.items()}
        core = needed(states.values(), self.kept)
        steps = LinearSteps(scan, self.known, frozenset(self.islands))
        try:
            for node in self.kept:
                if node.name in core:
                    steps.node(node)
            found = {name: self._linear_step(name, ref, steps) for name, ref in states.items()}
        except NotLinear:
            return {}
        self.sunk = sink(scan, self.kept, self.known, widening=True)
        read = {*self.sunk.stacked.values()} if self.sunk else {wanted}
        if any(ref not in states.values() and ref.node not in scan.carried for ref in read):
            self.sunk = None
            return {}
        self.moved += [block for _, blocks in found.values() for block in blocks]
        return {name: step for name, (step, _) in found.items()}

    def _linear_step(self, carry: str, ref: Ref, steps: LinearSteps) -> tuple[LinearStep, list[TypedBlock]]:
        value = steps.found.get(ref.node)
        if value is None or ref.port or value.carry != carry or value.keep is None:
            raise NotLinear
        blocks: list[TypedBlock] = []
        keep, add = (self._beside(carry, tree, steps, blocks) for tree in (value.keep, value.add))
        if all(self.known[one.port].place is None for one in (keep, add) if isinstance(one, AlignedPort)):
            raise NotLinear
        node = next(one for one in self.kept if one.name == ref.node)
        assert isinstance(node, TypedBlock)
        typed, formula = node.sizes.get("typed"), formula_of(node.part)
        whole = formula is not None and getattr(formula.tree, "function", "") == ISLAND
        return LinearStep(keep, add, bool(typed is not None and typed.float32 and not whole)), blocks

    def _beside(self, carry: str, tree: FormulaTree | None, steps: LinearSteps, blocks: list[TypedBlock]) -> AlignedPort | float:
        """Return a value that is free of states as a number, or as it stands beside the states of all steps."""
        number = 0.0 if tree is None else steps.number(tree)
        if tree is None or number is not None:
            return number or 0.0
        return self._aligned(carry, tree, steps, blocks)

    def _aligned(self, carry: str, tree: FormulaTree, steps: LinearSteps, blocks: list[TypedBlock]) -> AlignedPort:
        """Return a value that is free of states, as it stands beside the states of all steps; what computes it is added to the
        blocks before the scan.
        """
        formula, reads = steps.formula(tree)
        if isinstance(formula.tree, ReadValue):
            (name, way) = reads[0]
            return AlignedPort(name, self._way(carry, way, name))
        node = next((one for one in self.kept if isinstance(one, TypedBlock) and formula_of(one.part) is not None), None)
        if node is None or not reads:
            raise NotLinear
        rank = len(reads[0][1])
        places = [place for place in range(rank) if any(way[place] is not None for _, way in reads)]
        inner = [tuple(way[place] for place in places) for _, way in reads]
        given = [self.known[name] for name, _ in reads]
        name, part = self._fresh(node.name), block_of(type(node.part), formula)
        moved, result = pointwise(self.scan, node, name, given, part, inner)
        if moved.sizes["typed"].float32 and getattr(formula.tree, "function", "") != ISLAND:
            part = block_of(type(node.part), replace(formula, tree=AppliedFunction(ISLAND, (formula.tree,))))
            moved, result = pointwise(self.scan, node, name, given, part, inner)
        if needs_module(moved.part, moved.sizes):
            raise NotLinear
        blocks.append(moved)
        self.known[name] = result
        order = iter(range(len(places)))
        return AlignedPort(name, self._way(carry, tuple(next(order) if p in places else None for p in range(rank)), name))

    def _way(self, carry: str, way: tuple[int | None, ...], name: str) -> tuple[int | None, ...]:
        """Return where the axes of a value stand among those of the states of all steps."""
        type_ = self.scan.graph.inputs[carry]
        assert isinstance(type_, TensorType)
        if len(way) != len(type_.axes):
            raise NotLinear
        place = min(next(iter(self.scan.steps.values())), len(way))
        return with_steps(way, self.known[name].place, place)

    # -- the scan without them

    def _rest(self, linear: Mapping[str, LinearStep]) -> TypedScan:
        """Return the scan, which reads what has been computed before and gives what is read after."""
        scan, graph = self.scan, self.scan.graph
        gone = {block.name for block in self.sunk.blocks} if self.sunk else set()
        kept = [node for node in self.kept if f"{scan.name}.{node.name}" not in gone]
        outputs, types, stacked = graph.graph.outputs, graph.outputs, 1
        if self.sunk is not None:
            new = {port: value_of(scan, kept, ref, port) for port, ref in self.sunk.stacked.items()}
            outputs = (*self.sunk.stacked.items(), *outputs[1:])
            stacked = len(new)
            after = {port: one.type for port, one in new.items() if one is not None} | dict([*scan.outputs.items()][1:])
            types = {port: one.one_step() for port, one in new.items() if one is not None} | dict([*types.items()][1:])
        else:
            after = dict(scan.outputs)
        read = {ref.node for node in kept for ref in read_by(node)} | {ref.node for _, ref in outputs}
        read |= {one.port for step in linear.values() for one in step[:2] if isinstance(one, AlignedPort)}
        names = [block.name.removeprefix(f"{scan.name}.") for block in self.moved]
        fresh = {name: self.known[name] for name in names if name in read}
        steps = {**scan.steps, **{name: one.place for name, one in fresh.items() if one.place is not None}}
        first = next(iter(scan.steps))
        before = len(graph.inputs) and scan.steps[first]
        walked = [name for name in steps if name in read]
        lead = next((name for name in walked if name in scan.steps and scan.steps[name] == before), first)
        ordered = {name: steps[name] for name in (lead, *(name for name in walked if name != lead))}
        left = {name for name in scan.steps if name not in ordered}
        left |= {name for name in graph.inputs if name not in read and name not in scan.carried and name not in ordered}
        wires = (
            *(wire for wire in scan.node.wires if wire.port not in left),
            *(Wire(name, (one.ref,), scan.node.name_span) for name, one in fresh.items()),
        )
        inputs = (*(item for item in graph.graph.inputs if item.name not in left), *map(GraphInput, fresh))
        given = {name: type_ for name, type_ in graph.inputs.items() if name not in left}
        given |= {name: one.one_step() for name, one in fresh.items()}
        inner = Graph(inputs, tuple(node.node for node in kept), outputs)
        typed = TypedGraph(inner, given, tuple(kept), types, {node.name: node for node in kept})
        node = replace(scan.node, graph=inner, wires=wires)
        return replace(scan, node=node, graph=typed, steps=ordered, outputs=after, stacked=stacked, linear=linear)
