"""Graph to typed graph: sizes flow along the wires, fields are computed, blocks are built and may reject what they are given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, assert_never

from blocks.core import ports
from blocks.core.matched_axes import NUMBER
from composer.diagnostics import Diagnostic
from composer.graph.anatomy import regions
from composer.graph.dims import symbol
from composer.graph.ir import BlockNode, Graph, GroupNode, Node, Program, RepeatNode, ScanNode, Wire
from composer.graph.passes.check_causality import check_causality, without_text
from composer.graph.passes.compilation import Compilation
from composer.graph.passes.error_report import labels
from composer.graph.passes.infer.axis_lengths import defined_axis_lengths, unknown_lengths
from composer.graph.passes.infer.axis_names import made_inside, named_as_declared
from composer.graph.passes.infer.block_types import BlockTyper, are_positions
from composer.graph.passes.infer.input_defaults import default_values, shape_mistakes
from composer.graph.passes.infer.scan_types import (
    ScanMismatch,
    carried_inputs,
    carry_mismatches,
    scan_outputs,
    scanned_axis,
    step_types,
    unscanned,
)
from composer.graph.passes.infer.text_dependence import at_least, each_at_least, input_type, most_of, text_of
from composer.graph.passes.infer.type_errors import Surroundings
from composer.graph.task_signature import input_mistakes, output_mistakes
from composer.graph.type_patterns import Mismatch, is_name, size
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan
from composer.graph.types import (
    UNKNOWN,
    Axis,
    Depends,
    InputTypes,
    PortTypes,
    TensorType,
    Type,
    Types,
    each_given,
    each_of,
    first_of,
)
from composer.graph.visit import every_node, every_pass, walk
from composer.language.expressions.ast import Value
from composer.language.expressions.parser import ExpressionError, names
from composer.language.recipe.ast import InputDecl
from composer.language.recipe.defined_block import is_defined
from composer.language.tasks import TASKS
from composer.language.unknown_names import unknown
from composer.memo import Interned


def infer(state: Compilation) -> Compilation:
    """Give every value a type: sizes flow along the wires, fields are computed, blocks are built and may reject what they get.

    Before:
        graph:
          up: {type: linear, out: 2 * width}
    After:
        up: float[batch, time, 16]
    """
    program = state.program
    assert program is not None
    inference = Inference(program)
    inputs = {item.name: inference.input(item) for item in program.inputs}
    root = inference.graph(program.graph, inputs, inference.top)
    inference.whole(root)
    defaults = inference.defaults(inputs) if program.sound else {}
    found = inference.found
    errors = [diagnostic for diagnostic in found if diagnostic.severity == "error"]
    if errors or not program.sound:
        return state.stop(errors)
    unknowns = tuple(_untyped(root))
    assert not unknowns, f"no mistake was reported, and no type is known of {', '.join(unknowns)}"
    types = {name: type_ for name, type_ in inputs.items() if isinstance(type_, TensorType)}
    return replace(state, typed=TypedProgram(program, root, types, defaults), warnings=tuple(found))


class Inference:
    """One run of `infer`."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.found: list[Diagnostic] = []
        self.top = Surroundings(self.found)
        """What is around the whole model."""
        self.done: Interned[tuple[Any, ...], TypedGraph] = Interned()
        task = TASKS.get(program.recipe.task)
        text = next((item for item in program.inputs if task is not None and item.name == task.text), None)
        self.text = text_of(program.recipe.task, self._written(text)) if text is not None else None
        self.whole_inputs = task.inputs.keys() - {task.text} if task is not None else frozenset()
        """The inputs that the task reads as a whole, before it generates."""
        self.axis_names = {str(name) for item in program.inputs for size in item.type.axes for name in names(size)}
        """Those that the inputs of the model declare."""
        self.blocks = BlockTyper(program, self.text, self.node)

    def input(self, item: InputDecl) -> Type:
        """Return the type of one of the model's inputs."""
        type_ = self._written(item)
        if self.text is None or not isinstance(type_, TensorType):
            return type_
        return input_type(type_, self.text, whole=item.name in self.whole_inputs)

    def _written(self, item: InputDecl) -> Type:
        """Return the type of an input as it is written; an axis that no param names is a symbol of the model."""
        axes: list[Axis] = []
        for expression in item.type.axes:
            free = names(expression) - self.program.params.keys()
            known: dict[str, Any] = {**self.program.params, **{name: symbol(name) for name in free}}
            set_here = labels(self.program.origins_of(expression), expression.span)
            try:
                length = size(expression, known)
            except (ExpressionError, Mismatch, KeyError) as error:
                self.top.report(Diagnostic("bad-type", str(error), expression.span, labels=set_here))
                continue
            if isinstance(length, int) and length < 1:
                message = f"an axis must have a length of at least 1, not {length}"
                self.top.report(Diagnostic("bad-type", message, expression.span, labels=set_here))
                continue
            axes.append(Axis(expression.text if is_name(expression) else NUMBER, length))
        return TensorType(item.type.dtype, tuple(axes), item.optional) if len(axes) == len(item.type.axes) else UNKNOWN

    def defaults(self, types: Mapping[str, Type]) -> dict[str, Value]:
        """Return the defaults of the inputs that are not given."""
        inputs = {item.name: item for item in self.program.inputs}
        values, wrong = default_values(inputs, self.program)
        for found in (*wrong, *shape_mistakes(inputs, types)):
            self.top.report(found)
        return values

    def whole(self, root: TypedGraph) -> None:
        """Report what concerns the model as a whole: its task, and the nodes that give positions."""
        recipe = self.program.recipe
        axes = sorted({str(axis) for type_ in root.inputs.values() if isinstance(type_, TensorType) for axis in type_.axes})
        for axis, ref in self.program.positions:
            given = root.type_of(ref)
            span = next(span for name, span, _ in recipe.positions if name == axis)
            if axis not in axes and UNKNOWN not in root.inputs.values():
                self.top.report(unknown("unknown-axis", span, "axis", axis, [name for name in axes if not name.isdigit()]))
            elif isinstance(given, TensorType) and not are_positions(given, axis):
                message = f"positions of {axis} must be int[batch, {axis}] or int[{axis}], not {given}"
                self.top.report(Diagnostic("positions", message, span))
        # What reads an optional input is marked as one, and a node that has the name of one is not there.
        follows = not self.program.sound or any(found.severity == "error" for found in self.found)
        for name, type_ in root.outputs.items():
            if isinstance(type_, TensorType) and type_.optional and not follows:
                span = next((span for known, span, _ in recipe.body.outputs if known == name), recipe.name_scalar.span)
                message = f"the output `{name}` is an optional input, which may be absent"
                self.top.report(Diagnostic("optional-edge", message, span, hint="give the input a default"))
        if recipe.task and self.program.sound:
            self._task(root, recipe.task)

    def _task(self, root: TypedGraph, task: str) -> None:
        """Report what the task requires and the model has not; where a node loses the axis of the text, that node."""
        recipe = self.program.recipe
        span = recipe.task_span or recipe.name_scalar.span
        inputs = {item.name: item.type.span for item in self.program.inputs}
        outputs = {name: span for name, span, _ in recipe.body.outputs}
        wrong = list(input_mistakes(root, task, span, inputs))
        known = all(root.inputs.get(name) is not UNKNOWN for name in TASKS[task].inputs)
        lost = self.text is not None and without_text(root, self.text)
        if known and not wrong and not lost:
            wrong = list(output_mistakes(root, task, span, outputs))
        for found in wrong:
            self.top.report(found)
        if self.text is not None and not wrong:
            check_causality(root, self.program, self.text, self.top)

    def graph(self, graph: Graph, given: InputTypes, here: Surroundings) -> TypedGraph:
        """Return a graph with the types that flow from its inputs."""
        types = {item.name: given.get(item.name, UNKNOWN) for item in graph.inputs}
        types |= {item.name: each_of(types[item.name]) for item in graph.inputs if item.many}
        around = tuple((part, *sorted(sizes.items(), key=str)) for part, sizes in here.extents)
        positions = tuple(self.blocks.positions(axis, here.root) for axis, _ in self.program.positions)
        key = (graph, tuple(types.values()), around, positions, here.outside)
        return self.done.get(key, lambda: self._graph(graph, types, here))

    def _graph(self, graph: Graph, types: InputTypes, here: Surroundings) -> TypedGraph:
        nodes: dict[str, TypedNode] = {}
        partial = TypedGraph(graph, types, (), {}, nodes)
        inside = here.within(partial)
        for node in graph.nodes:
            nodes[node.name] = self.node(node, partial, inside)
        outputs = {name: first_of(partial.type_of(ref)) for name, ref in graph.outputs}
        return TypedGraph(graph, types, tuple(nodes.values()), outputs, nodes)

    def node(self, node: Node, around: TypedGraph, here: Surroundings) -> TypedNode:
        """Type one node, whose inputs are typed before it."""
        if isinstance(node, RepeatNode):
            return self._repeat(node, around, here)
        given = self._given(node.wires, around)
        match node:
            case BlockNode():
                marks = ports(node.part)
                several = {port: each_of(types) for port, types in given.items() if marks.get(port) == "*"}
                return self.blocks.block(node, given | several, here)
            case GroupNode():
                return self._group(node, given, here)
            case ScanNode():
                return self._scan(node, given, here)
            case _:
                assert_never(node)

    def _given(self, wires: Iterable[Wire], around: TypedGraph) -> dict[str, Types]:
        given: dict[str, Types] = {}
        for wire in wires:
            found = [around.type_of(ref) for ref in wire.refs]
            alone = len(found) == 1 and wire.port != "xs"
            given[wire.port] = found[0] if alone else tuple(one for types in found for one in each_of(types))
        return given

    # -- nodes with a graph of their own

    def _group(self, node: GroupNode, given: InputTypes, here: Surroundings) -> TypedGroup:
        here = here.inside(node)
        if node.part is None or not is_defined(node.part):
            return TypedGroup(node, self.graph(node.graph, given, here))
        sizes = defined_axis_lengths(node, given, here)
        if sizes is None:
            return TypedGroup(node, self.graph(node.graph, {}, here.sized(node.part, unknown_lengths(node))))
        types, names = named_as_declared(node, given)
        graph = self.graph(node.graph, types, here.sized(node.part, sizes))
        return TypedGroup(node, graph, {**names, **made_inside(graph, types, names)})

    def _repeat(self, node: RepeatNode, around: TypedGraph, here: Surroundings) -> TypedRepeat:
        typed, found = self._passes(node, around, here, {})
        least: dict[str, Depends] = {}
        while node.share is not None and found != least:  # one set of weights has one type, that of the pass that depends on most
            least = found
            typed, found = self._passes(node, around, here, least)
        return typed

    def _passes(
        self, node: RepeatNode, around: TypedGraph, here: Surroundings, least: Mapping[str, Depends]
    ) -> tuple[TypedRepeat, dict[str, Depends]]:
        """Return a repeat whose passes are given what depends on no less than `least`, with what they are given at most."""
        passes: list[TypedGraph] = []
        found = dict(least)
        nodes = dict(around.by_name)
        for one in node.passes:
            if passes:
                nodes[node.name] = TypedRepeat(node, tuple(passes))
            given = self._given(one.wires, TypedGraph(around.graph, around.inputs, (), {}, nodes))
            if node.share is not None:
                found |= {port: max(found.get(port, Depends.NONE), most_of([types])) for port, types in given.items()}
                given = {port: each_at_least(types, least.get(port, Depends.NONE)) for port, types in given.items()}
            if passes and node.share is not None:
                given = {port: _as_before(types, passes[0].inputs.get(port)) for port, types in given.items()}
            passes.append(self.graph(one.graph, given, here))
        return TypedRepeat(node, tuple(passes)), found

    def _scan(self, node: ScanNode, given: InputTypes, here: Surroundings) -> TypedScan:
        try:
            axis, steps = scanned_axis(node, given)
            back = carried_inputs(node, steps)
        except ScanMismatch as wrong:
            if UNKNOWN not in each_given(given):
                here.report(wrong.diagnostic)
            graph = self.graph(node.graph, {}, here)
            return TypedScan(node, graph, Axis(node.axis, 1), {}, {}, {}, dict.fromkeys(graph.outputs, UNKNOWN))
        for found in unscanned(node, given, axis, steps, self.axis_names):
            here.report(found)
        types, widened = step_types(given, steps, back)
        along = self.text is not None and self.text.touches(axis.size)
        if along:
            types |= {name: each_at_least(types[name], Depends.PAST) for name in (*steps, *back) if name in types}
        graph = self.graph(node.graph, types, here)
        while (more := _carried_on(types, graph.outputs, back)) != types:
            types = more
            graph = self.graph(node.graph, types, here)
        for found in carry_mismatches(node, types, graph.outputs, back):
            here.report(found)
        outputs = scan_outputs(graph.outputs, axis, next(iter(steps.values()))) if graph.outputs else {}  # a mistake leaves none
        if along:
            assert self.text is not None
            others = list(outputs)[0 if not self.text.grows(axis.size) else 1 :]
            outputs = {name: at_least(type_, Depends.ALL if name in others else Depends.PAST) for name, type_ in outputs.items()}
        return TypedScan(node, graph, axis, steps, back, widened, outputs)


def _untyped(root: TypedGraph) -> Iterator[str]:
    """Yield the inputs and outputs whose types are not known."""
    yield from _unknown("", root.inputs, root.outputs)
    for visit in walk(root, every_pass, every_node, once=True):
        graphs = [region.graph for region in regions(visit.node)]
        inputs = [visit.node.inputs] if isinstance(visit.node, TypedBlock) else [graph.inputs for graph in graphs]
        yield from _unknown(f"{visit.path}.", *inputs, visit.node.outputs, *(graph.outputs for graph in graphs))


def _unknown(prefix: str, *given: InputTypes) -> Iterator[str]:
    for types in given:
        for name, each in types.items():
            if UNKNOWN in each if isinstance(each, tuple) else each is UNKNOWN:
                yield prefix + name


def _carried_on(types: Mapping[str, Types], returned: PortTypes, back: Mapping[str, str]) -> dict[str, Types]:
    """Return the types of the inputs of a step, where what is carried depends on what the steps before it return."""
    return dict(types) | {
        name: each_at_least(types[name], most_of([returned[output]])) for name, output in back.items() if name in types
    }


def _as_before(types: Types, before: Types | None) -> Types:
    """Return a type by the names that its axes had before: for one set of weights, what agrees is one."""
    if isinstance(types, TensorType) and isinstance(before, TensorType) and types.agrees(before):
        return replace(before, depends=types.depends)
    return types
