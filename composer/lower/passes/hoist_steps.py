"""Scans relieved of what is not carried: formulas, sums and products that read no state are computed for all steps at once,
before the loop. Of a formula that reads the state, the largest parts that do not are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from blocks.core import Part, Sizes
from blocks.core.fields import formula_field, formula_of
from blocks.core.formula import AppliedFunction, Formula, FormulaTree, KnownNumber, ReadValue, subtrees
from composer.graph.anatomy import wires_of
from composer.graph.ir import BlockNode, Graph, GraphInput, Ref, Wire
from composer.graph.typed import TypedBlock, TypedGraph, TypedNode, TypedProgram, TypedScan
from composer.graph.types import Axis, TensorType, each_of
from composer.graph.visit import Map

ISLAND = "float32"
"""The function whose result stays in float32."""
CHOICE = "where"
"""The function that computes what it does not choose; in it, nothing is taken apart."""


def hoist_steps(typed: TypedProgram) -> TypedProgram:
    """Return the program in which scans do in each step only what depends on the steps before."""
    return replace(typed, root=Map(_relieved).graph(typed.root))


def _relieved(graph: TypedGraph) -> TypedGraph:
    """Return a graph in whose scans nothing is left that can be computed before."""
    if not any(isinstance(node, TypedScan) for node in graph.nodes):
        return graph
    nodes: list[TypedNode] = []
    for node in graph.nodes:
        nodes += _Relief(graph, node).nodes() if isinstance(node, TypedScan) and node.carried else [node]
    if len(nodes) == len(graph.nodes):
        return graph
    inner = Graph(graph.graph.inputs, tuple(node.node for node in nodes), graph.graph.outputs)
    return TypedGraph(inner, graph.inputs, tuple(nodes), graph.outputs, {node.name: node for node in nodes})


@dataclass(frozen=True, slots=True)
class _Outside:
    """A value that is known before the loop: what it is there, and where it has the axis of the steps, if it has."""

    ref: Ref
    type: TensorType
    place: int | None


@dataclass(slots=True)
class _Relief:
    """One scan, node by node."""

    around: TypedGraph
    scan: TypedScan
    known: dict[str, _Outside] = field(default_factory=dict)
    """By the name of an input or a node in the scan."""
    moved: list[TypedBlock] = field(default_factory=list)
    kept: list[TypedNode] = field(default_factory=list)

    def nodes(self) -> Iterator[TypedNode]:
        """Yield what stands before the scan, and the scan."""
        for wire in self.scan.node.wires:
            type_ = self.around.type_of(wire.refs[0])
            if (
                wire.port not in self.scan.carried
                and len(wire.refs) == 1
                and isinstance(type_, TensorType)
                and not type_.optional
            ):
                self.known[wire.port] = _Outside(wire.refs[0], type_, self.scan.steps.get(wire.port))
        for node in self.scan.graph.nodes:
            self._node(node)
        if not self.moved:
            yield self.scan
            return
        yield from self.moved
        yield self._rest()

    def _node(self, node: TypedNode) -> None:
        if isinstance(node, TypedBlock) and _is_pointwise(node):
            reads = [ref for wire in node.node.wires for ref in wire.refs]
            if all(self._knows(ref) for ref in reads):
                self.moved.append(self._before(node, node.name, reads, node.part, node.expansions))
                return
            node = self._taken_apart(node, reads)
        self.kept.append(node)

    def _knows(self, ref: Ref) -> bool:
        return ref.node in self.known and not ref.port and ref.index is None

    def _before(
        self, node: TypedBlock, name: str, reads: Sequence[Ref], part: Any, expansions: Sequence[tuple[int | None, ...]]
    ) -> TypedBlock:
        """Return a block that computes for all steps what `part` computes for one, of values that are known before."""
        given = [self.known[ref.node] for ref in reads]
        rank = len(expansions[0])
        steps = any(one.place is not None for one in given)
        place = min(self.scan.place, rank) if steps else None
        ways = tuple(_with_steps(way, one.place, place) for way, one in zip(expansions, given, strict=True))
        lengths: list[Axis] = [Axis("axis", 1)] * (rank + steps)
        for way, one in zip(ways, given, strict=True):
            for position, own in enumerate(way):
                if own is not None and lengths[position].size == 1:
                    lengths[position] = one.type.axes[own]
        types = tuple(one.type for one in given)
        sizes = {"inputs": len(types), **part.constants({"xs": types}, {}), "...": tuple(lengths)}
        first = replace(types[0], axes=tuple(lengths), depends=max(type_.depends for type_ in types))
        outputs = part.output_types({"xs": types}, sizes) or {"y": first}
        output = replace(next(iter(outputs.values())), depends=first.depends)
        fresh = f"{self.scan.name}.{name}"
        spot = node.node.wires[0]
        wires = (replace(spot, refs=tuple(one.ref for one in given), spans=()),)
        fields = node.node.fields if part is node.part else ()
        moved = BlockNode(fresh, type(part), fields, wires, span=node.node.span, name_span=node.node.name_span)
        self.known[name] = _Outside(Ref(fresh), output, place)
        return replace(node, node=moved, part=part, sizes=sizes, inputs={"xs": types}, outputs={"y": output}, expansions=ways)

    # -- formulas that read the state

    def _taken_apart(self, node: TypedBlock, reads: list[Ref]) -> TypedBlock:
        """Return a formula that reads what its parts are that can be computed before."""
        formula = formula_of(node.part)
        if formula is None:
            return node
        known = [self._knows(ref) for ref in reads]
        parts = list(_parts(formula.tree, known))
        typed = {id(one.tree): one for one in _all_typed(node.sizes["typed"])}
        refs, ways, types = list(reads), list(node.expansions), list(each_of(node.inputs["xs"]))
        swapped: dict[int, FormulaTree] = {}
        for part in parts:
            island = typed[id(part)].float32
            own, used = _alone(AppliedFunction(ISLAND, (part,)) if island else part, formula)
            block = _of_formula(type(node.part), own)
            places = [place for place in range(len(ways[0])) if any(ways[index][place] is not None for index in used)]
            inner = [tuple(ways[index][place] for place in places) for index in used]
            name = self._fresh(node.name)
            moved = self._before(node, name, [reads[index] for index in used], block, inner)
            if _needs_module(moved.part, moved.sizes):
                del self.known[name]
                continue
            self.moved.append(moved)
            value: FormulaTree = ReadValue(len(refs))
            swapped[id(part)] = AppliedFunction(ISLAND, (value,)) if island else value
            refs.append(Ref(name))
            order = iter(range(len(places)))
            ways.append(tuple(next(order) if place in places else None for place in range(len(ways[0]))))
            types.append(_one_step(self.known[name]))
        if not swapped:
            return node
        rest, used = _alone(_swapped(formula.tree, swapped), formula)
        block = _of_formula(type(node.part), rest)
        given = {"xs": tuple(types[index] for index in used)}
        sizes = {**node.sizes, "inputs": len(used), **block.constants(given, {})}
        if _needs_module(block, sizes):
            return node
        wires = (replace(node.node.wires[0], refs=tuple(refs[index] for index in used), spans=()),)
        return replace(
            node, node=replace(node.node, wires=wires, fields=()), part=block, sizes=sizes, inputs=given,
            expansions=tuple(ways[index] for index in used), buffers=(),
        )  # fmt: skip

    def _fresh(self, name: str) -> str:
        taken = {*self.known, *self.scan.graph.by_name, *self.scan.graph.inputs}
        return next(f"{name}_{count}" for count in range(1, len(taken) + 2) if f"{name}_{count}" not in taken)

    # -- the scan without them

    def _rest(self) -> TypedScan:
        """Return the scan, which reads what has been computed before."""
        scan, graph = self.scan, self.scan.graph
        read = {ref.node for node in self.kept for wire in wires_of(node) for ref in wire.refs}
        read |= {ref.node for _, ref in graph.graph.outputs}
        names = [block.name.removeprefix(f"{scan.name}.") for block in self.moved]
        new = {name: self.known[name] for name in names if name in read}
        steps = {**scan.steps, **{name: one.place for name, one in new.items() if one.place is not None}}
        first = next(iter(scan.steps))
        before = len(graph.inputs) and scan.steps[first]
        walked = [name for name in steps if name in read]
        lead = next((name for name in walked if name in scan.steps and scan.steps[name] == before), first)
        ordered = {name: steps[name] for name in (lead, *(name for name in walked if name != lead))}
        gone = {name for name in scan.steps if name not in ordered}
        gone |= {name for name in graph.inputs if name not in read and name not in scan.carried and name not in ordered}
        wires = (
            *(wire for wire in scan.node.wires if wire.port not in gone),
            *(Wire(name, (one.ref,), scan.node.name_span) for name, one in new.items()),
        )
        inputs = (*(item for item in graph.graph.inputs if item.name not in gone), *map(GraphInput, new))
        types = {name: type_ for name, type_ in graph.inputs.items() if name not in gone}
        types |= {name: _one_step(one) for name, one in new.items()}
        inner = Graph(inputs, tuple(node.node for node in self.kept), graph.graph.outputs)
        typed = TypedGraph(inner, types, tuple(self.kept), graph.outputs, {node.name: node for node in self.kept})
        return replace(scan, node=replace(scan.node, graph=inner, wires=wires), graph=typed, steps=ordered)


def _is_pointwise(block: TypedBlock) -> bool:
    """Return whether a block computes each number of its output from one number of each input, without parameters."""
    part = block.part
    plain = not block.parameters and not block.slots and not block.buffers and not block.node.ties
    several = [ref for wire in block.node.wires for ref in wire.refs]
    return plain and type(part).broadcasts and part.inline(block.sizes) is not None and len(several) == len(block.expansions)


def _of_formula(part: type[Part], formula: Formula) -> Part:
    """Return a block with a formula whose axes are matched already."""
    values: dict[str, Any] = {formula_field(part): formula, "axes": ()}
    return part.model_construct(**values)


def _needs_module(part: Part, sizes: Sizes) -> bool:
    """Return whether a block keeps tensors, so that it stays at its place in the `state_dict`."""
    return bool(part.buffers(sizes) if callable(part.buffers) else part.buffers)


def _with_steps(way: tuple[int | None, ...], own: int | None, place: int | None) -> tuple[int | None, ...]:
    """Return where the axes of a value stand, given where it has the axis of the steps, and where the result has it."""
    if place is None:
        return way
    shifted = tuple(axis if axis is None or own is None or axis < own else axis + 1 for axis in way)
    return (*shifted[:place], own, *shifted[place:])


def _one_step(one: _Outside) -> TensorType:
    """Return the type of one step of a value."""
    if one.place is None:
        return one.type
    return replace(one.type, axes=(*one.type.axes[: one.place], *one.type.axes[one.place + 1 :]))


def _parts(tree: FormulaTree, known: Sequence[bool]) -> Iterator[FormulaTree]:
    """Yield the largest parts of a formula that apply something to known values only."""
    if not isinstance(tree, AppliedFunction) or tree.function == CHOICE:
        return
    reads = [one.index for one in subtrees(tree) if isinstance(one, ReadValue)]
    if reads and all(known[index] for index in reads):
        yield tree
        return
    for argument in tree.arguments:
        yield from _parts(argument, known)


def _all_typed(typed: Any) -> Iterator[Any]:
    yield typed
    for argument in typed.arguments:
        yield from _all_typed(argument)


def _swapped(tree: FormulaTree, by: Mapping[int, FormulaTree]) -> FormulaTree:
    if id(tree) in by:
        return by[id(tree)]
    return (
        replace(tree, arguments=tuple(_swapped(one, by) for one in tree.arguments)) if isinstance(tree, AppliedFunction) else tree
    )


def _alone(tree: FormulaTree, whole: Formula) -> tuple[Formula, list[int]]:
    """Return a part of a formula as one of its own, with the values that it reads, by their indices in the whole."""
    reads = list(dict.fromkeys(one.index for one in subtrees(tree) if isinstance(one, ReadValue)))
    numbers = list(dict.fromkeys(one.index for one in subtrees(tree) if isinstance(one, KnownNumber)))

    def renumbered(one: FormulaTree) -> FormulaTree:
        match one:
            case ReadValue(index=index):
                return ReadValue(reads.index(index), one.place)
            case KnownNumber(index=index):
                return KnownNumber(numbers.index(index), one.place)
            case AppliedFunction():
                return replace(one, arguments=tuple(map(renumbered, one.arguments)))

    names = tuple(whole.names[index] if index < len(whole.names) else f"part_{index}" for index in reads)
    return Formula(renumbered(tree), tuple(whole.numbers[index] for index in numbers), names), reads
