"""Graph to typed graph: sizes flow along the wires, fields are computed, blocks are built and may say no."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from blocks.core import Block, Edge, Linear, Own, Part, Reject, Slot, Tensor, fields, ports
from blocks.core.fields import Field, FlagsBy
from blocks.core.weights import Init
from blocks.masks.mask import Mask
from composer.diagnostics import Diagnostic, Label, Span
from composer.graph.broadcast import concatenate, expand_axes
from composer.graph.dims import Symbolic, symbol
from composer.graph.dims import names as dim_names
from composer.graph.doubts import doubts
from composer.graph.ir import (
    AxisOf,
    BlockNode,
    EdgePort,
    FieldValue,
    Graph,
    GroupNode,
    Items,
    Known,
    Node,
    PartValue,
    Pending,
    Program,
    Ref,
    RepeatNode,
    ScanNode,
    SlotNode,
    Wire,
    wires_of,
)
from composer.graph.parameters import tie_mistakes
from composer.graph.patterns import Mismatch, Pattern, agree, declared, fill, match, pattern, size
from composer.graph.purpose import growing, purpose_mistakes
from composer.graph.report import labels
from composer.graph.scans import Unfit, carried, changes, inside, outside, walked
from composer.graph.scope import Declaration
from composer.graph.share import share_mistakes
from composer.graph.typed import Parameter, TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan
from composer.graph.types import UNKNOWN, Axis, TensorType, Type, Unknown
from composer.graph.values import convert
from composer.language.defined import is_defined
from composer.language.evaluate import as_int, evaluate
from composer.language.express import ExpressionError, names
from composer.language.expression import Expression, Path, Value
from composer.language.recipe import TypeDecl
from composer.language.unknown import unknown

Given = Mapping[str, "Type | tuple[Type, ...]"]


class Inline(Block):
    """A graph that fills a slot: to its holder, a block like any other."""


def infer(program: Program) -> tuple[TypedProgram | None, tuple[Diagnostic, ...]]:
    """The typed graph, and what is wrong with it, or doubtful where nothing is wrong; no graph where something is."""
    inference = Inference(program)
    inputs = inference.inputs()
    inference.grows = growing(program.recipe.task, inputs)
    root = inference.graph(program.graph, inputs)
    inference.whole(root)
    errors = [diagnostic for diagnostic in inference.diagnostics if diagnostic.severity == "error"]
    if errors or not program.sound:
        return None, tuple(errors)
    typed = TypedProgram(program, root, {name: type_ for name, type_ in inputs.items() if isinstance(type_, TensorType)})
    if mistakes := share_mistakes(typed) or tie_mistakes(typed):
        return None, mistakes
    return typed, (*inference.diagnostics, *doubts(typed))


class Inference:
    """One run of `infer`."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.diagnostics: list[Diagnostic] = []
        self.done: dict[tuple[Any, ...], TypedGraph] = {}
        self.reported: set[Span] = set()
        self.holders: list[GroupNode] = []
        """The blocks and groups around what is being typed."""
        self.extents: list[tuple[type[Part], Mapping[str, Any]]] = []
        """Those of them that the recipe defines, each with the lengths of its axes."""
        self.around: TypedGraph | None = None
        """The graph that is being typed, as far as it is."""
        self.root: TypedGraph | None = None
        """The whole model's graph, as far as it is typed."""
        self.losses = frozenset(program.losses.values())
        self.grows: Symbolic | None = None
        """The axis along which the model writes."""

    def inputs(self) -> dict[str, Type]:
        """The types of the model's inputs; an axis that no param names is a symbol of the model."""
        return {item.name: self._declared(item.type, optional=item.optional) for item in self.program.inputs}

    def _declared(self, type_: TypeDecl, *, optional: bool) -> Type:
        axes: list[Axis] = []
        for expression in type_.axes:
            free = names(expression) - self.program.params.keys()
            known: dict[str, Any] = {**self.program.params, **{name: symbol(name) for name in free}}
            text = expression.text if isinstance(expression, Path) else "axis"
            try:
                value = size(expression, known)
            except (ExpressionError, Mismatch, KeyError) as error:
                message = error.diagnostic.message if isinstance(error, ExpressionError) else str(error)
                self._report(Diagnostic("bad-type", message, expression.span))
                continue
            if isinstance(value, int) and value < 1:
                self._report(Diagnostic("bad-type", f"an axis is at least 1 long, not {value}", expression.span))
                continue
            axes.append(Axis(text, value))
        return TensorType(type_.dtype, tuple(axes), optional) if len(axes) == len(type_.axes) else UNKNOWN

    def whole(self, root: TypedGraph) -> None:
        """What concerns the model as a whole: its task, and the nodes that give positions."""
        recipe = self.program.recipe
        for axis, ref in self.program.positions:
            given = root.type_of(ref)
            span = next(span for name, span, _ in recipe.positions if name == axis)
            axes = sorted({str(axis) for type_ in root.inputs.values() if isinstance(type_, TensorType) for axis in type_.axes})
            if axis not in axes and UNKNOWN not in root.inputs.values():
                self._report(unknown("unknown-axis", span, "axis", axis, [name for name in axes if not name.isdigit()]))
            elif isinstance(given, TensorType) and (given.dtype != "int" or str(given.axes[-1] if given.axes else "") != axis):
                self._report(
                    Diagnostic("positions", f"positions of {axis} are int[batch, {axis}] or int[{axis}], not {given}", span)
                )
        if recipe.task and self.program.sound:
            for found in purpose_mistakes(root, recipe.task, recipe.task_span or recipe.name_scalar.span):
                self._report(found)

    # -- graphs

    def graph(self, graph: Graph, given: Given) -> TypedGraph:
        """A graph with the types that flow from its inputs."""
        types = {item.name: given.get(item.name, UNKNOWN) for item in graph.inputs}
        for item in graph.inputs:
            if item.many and not isinstance(types[item.name], tuple):
                types[item.name] = (_one(types[item.name]),)
        around = tuple((part, *sorted(sizes.items(), key=str)) for part, sizes in self.extents)
        key = (id(graph), tuple(types.values()), around)
        if key not in self.done:
            typed = TypedGraph(graph, types, (), {}, {})
            nodes: dict[str, TypedNode] = {}
            partial = TypedGraph(graph, types, (), {}, nodes)
            self.root = self.root or partial
            grows, writing = self.grows, self._writing(graph)
            for node in graph.nodes:
                self.around = partial
                self.grows = grows if node.name in writing else None  # what only a loss or a state reads writes no token
                nodes[node.name] = self.node(node, partial)
            self.grows = grows
            outputs = {name: _one(partial.type_of(ref)) for name, ref in graph.outputs}
            for _, ref in graph.outputs:
                self._not_final(ref, partial, None)
            typed = TypedGraph(graph, types, tuple(nodes.values()), outputs, nodes)
            self.done[key] = typed
        return self.done[key]

    def _writing(self, graph: Graph) -> frozenset[str]:
        """The nodes that what a graph returns depends on."""
        waiting = [ref.node for _, ref in (*graph.outputs, *(self.program.positions if graph is self.program.graph else ()))]
        reads = {node.name: {ref.node for wire in wires_of(node) for ref in wire.refs} for node in graph.nodes}
        found: set[str] = set()
        while waiting:
            if (name := waiting.pop()) not in found:
                found.add(name)
                waiting.extend(reads.get(name, ()))
        return frozenset(found)

    def node(self, node: Node, around: TypedGraph) -> TypedNode:
        """One node, its inputs typed before it."""
        match node:
            case BlockNode():
                given, marks = self._given(node.wires, around), ports(node.part)
                for port, type_ in given.items():
                    if marks.get(port) == "*" and not isinstance(type_, tuple):
                        given[port] = (type_,)
                typed: TypedNode = self._block(node, given)
            case GroupNode():
                typed = self._group(node, self._given(node.wires, around))
            case ScanNode():
                typed = self._scan(node, self._given(node.wires, around))
            case RepeatNode():
                return self._repeat(node, around)
        if node.dropped:
            self._passes_on(node, typed, around)
        return typed

    def _group(self, node: GroupNode, given: Given) -> TypedGroup:
        self.holders.append(node)
        defined = node.part is not None and is_defined(node.part)
        if defined:
            sizes = self._extents(node, given)
            self.extents.append((node.part, sizes or {}))  # type: ignore[arg-type]  # a block that a recipe defines
            given = given if sizes is not None else {}
        typed = TypedGroup(node, self.graph(node.graph, given))
        if defined:
            self.extents.pop()
        self.holders.pop()
        return typed

    def _extents(self, node: GroupNode, given: Given) -> dict[str, Any] | None:
        """The lengths of the axes that a block takes by what it declares; None where it is given something else."""
        sizes: dict[str, Any] = {}
        fits = True
        for port in node.ports:
            type_ = given.get(port.port)
            if isinstance(type_, Unknown):
                fits = False
            if not isinstance(type_, TensorType):
                continue
            fixed = dict(port.fixed)
            wanted = Pattern(port.type.dtype, port.type.leading, port.type.axes, port.type.text)
            declared_here = (Label(port.type.span, "declared here"),)
            try:
                if type_.optional and not port.optional:
                    raise Mismatch(f"takes {port.type.text}, and this is an optional input, which may be absent")
                match(wanted, type_, sizes, fixed)
                agree(wanted, type_, {**fixed, **sizes})
            except (Mismatch, KeyError) as wrong:
                message = wrong.message if isinstance(wrong, Mismatch) else f"needs {wrong}, which nothing here gives"
                what = f"port {port.port} of {node.part.kind if node.part else node.name} {message}"
                self._edge(node, port.port, "type-mismatch", what, more=declared_here)
                fits = False
        return sizes if fits else None

    def _repeat(self, node: RepeatNode, around: TypedGraph) -> TypedRepeat:
        passes: list[TypedGraph] = []
        nodes = dict(around.by_name)
        for one in node.passes:
            if passes:
                nodes[node.name] = TypedRepeat(node, tuple(passes))
            inside = TypedGraph(around.graph, around.inputs, (), {}, nodes)
            given = self._given(one.wires, inside)
            if passes and node.share is not None:
                given = {port: _as_before(type_, passes[0].inputs.get(port)) for port, type_ in given.items()}
            passes.append(self.graph(one.graph, given))
        return TypedRepeat(node, tuple(passes))

    def _scan(self, node: ScanNode, given: Given) -> TypedScan:
        handed = [one for type_ in given.values() for one in (type_ if isinstance(type_, tuple) else (type_,))]
        try:
            axis, steps = walked(node, given)
            back = carried(node, steps)
        except Unfit as wrong:
            if UNKNOWN not in handed:
                self._report(wrong.diagnostic)
            nothing = dict.fromkeys(given, UNKNOWN)
            graph = self.graph(node.graph, nothing)
            return TypedScan(node, graph, Axis(node.axis, 1), {}, {}, {}, dict.fromkeys(graph.outputs, UNKNOWN))
        types, widened = inside(given, steps, back)
        graph = self.graph(node.graph, types)
        for found in changes(node, types, graph.outputs, back):
            self._report(found)
        outputs = outside(graph.outputs, axis, next(iter(steps.values()))) if graph.outputs else {}  # a mistake leaves none
        return TypedScan(node, graph, axis, steps, back, widened, outputs)

    def _not_final(self, ref: Ref, around: TypedGraph, span: Span | None) -> None:
        """Refuses what the last step of a scan left, where steps are still to come while a text is written."""
        scan = around.by_name.get(ref.node)
        if not isinstance(scan, TypedScan) or self.grows is None or scan.axis.size != self.grows:
            return
        if ref.port and ref.port != next(iter(scan.outputs)):
            message = f"`{ref}` is what the last step along `{self.grows}` leaves, and causal_lm has not written that far"
            hint = f"the first output of `{scan.name}` has a value for each step"
            self._report(Diagnostic("not-causal", message, span or scan.node.name_span, hint=hint))

    def _given(self, wires: Iterable[Wire], around: TypedGraph) -> dict[str, Type | tuple[Type, ...]]:
        given: dict[str, Type | tuple[Type, ...]] = {}
        for wire in wires:
            found: list[Type] = []
            several = len(wire.refs) != 1
            for ref in wire.refs:
                type_ = around.type_of(ref)
                self._not_final(ref, around, wire.span)
                several = several or isinstance(type_, tuple)
                found.extend(type_ if isinstance(type_, tuple) else (type_,))
            given[wire.port] = tuple(found) if several or wire.port == "xs" else found[0]
        return given

    def _passes_on(self, node: BlockNode | GroupNode | ScanNode, typed: TypedNode, around: TypedGraph) -> None:
        """A dropped node is its input, which must be of the type of its output."""
        refs = [ref for wire in node.wires for ref in wire.refs]
        out = next(iter(typed.outputs.values()), UNKNOWN)
        if len(refs) != 1:
            self._report(
                Diagnostic(
                    "dropped-node",
                    f"`{node.name}` is dropped here and has {len(refs)} inputs, so it cannot pass one on",
                    node.name_span,
                )
            )
            return
        into = _one(around.type_of(refs[0]))
        if isinstance(into, TensorType) and isinstance(out, TensorType) and not into.agrees(out):
            message = f"`{node.name}` is dropped here and cannot pass its input on: {into} comes in, {out} is wanted"
            self._report(Diagnostic("dropped-node", message, node.name_span))

    # -- blocks

    def _block(self, node: BlockNode, given: dict[str, Type | tuple[Type, ...]]) -> TypedBlock:
        failed = TypedBlock(
            node, Inline(), {}, given, dict.fromkeys([*(n.rstrip("?") for n in node.part.outputs), "y"], UNKNOWN), (), {}, {}
        )
        if node.broken or any(
            isinstance(one, Unknown) for type_ in given.values() for one in (type_ if isinstance(type_, tuple) else (type_,))
        ):
            return failed
        try:
            return self._typed(node, given)
        except Reject as no:
            self._rejected(node, no)
        except ExpressionError as error:
            found = error.diagnostic
            self._report(replace(found, span=node.name_span) if isinstance(found.span.source, Declaration) else found)
        except _Reported:
            pass
        return failed

    def _typed(self, node: BlockNode, given: dict[str, Type | tuple[Type, ...]]) -> TypedBlock:
        part_class, known_fields = node.part, fields(node.part)
        wired = frozenset(given)
        symbols = self._symbols(node, given)
        values = self._fields(node, symbols)
        part = part_class.model_construct(**values)
        env = {**{name: value for name, value in values.items() if isinstance(value, int | float | str)}, **symbols}
        part.reject(env, wired)
        for name, field in known_fields.items():
            if field.derived and values.get(name) is None:
                values[name] = self._derive(node, field, {**env, **_numbers(values)})
                env = {**env, **_numbers({name: values[name]})}
        part = part_class.model_construct(**values)
        if any(field.derived for field in known_fields.values()):
            part.reject(env, wired)
        env = {**env, **part.known(given, env)}
        for port, type_ in given.items():
            text = _port_type(part_class, port)
            if text and not isinstance(type_, tuple) and isinstance(type_, TensorType):
                self._guard(node, port, lambda text=text, type_=type_: agree(pattern(text), type_, env))
        self._mask_edges(node, part, given, env)
        for no in part.warn(env, wired):
            self._rejected(node, no, "warning")
        outputs, expansions = self._outputs(node, part, given, env)
        self._while_writing(node, part, given, outputs, env)
        parameters, modules, slots = self._weights(node, part, given, env)
        kept = part.buffers() if callable(part.buffers) else part.buffers
        buffers = tuple(self._tensor(node, part, name, tensor, env) for name, tensor in kept.items())
        return TypedBlock(node, part, env, given, outputs, parameters, modules, slots, expansions, buffers=buffers)

    def _while_writing(self, node: BlockNode, part: Part, given: Given, outputs: Mapping[str, Type], env: dict[str, Any]) -> None:
        """Refuses what needs tokens that a model of texts has not written yet, or gives more or fewer values than tokens."""
        if self.grows is None or node.dropped:
            return
        kind, axis, task = self._kind(node), str(self.grows), self.program.recipe.task
        if self.grows in part.mixes(env):
            message = f"{kind} mixes the positions of `{axis}`, most of which are still to come while {task} writes a text"
            self._report(
                Diagnostic("not-causal", message, node.name_span, hint="use another axis, or a causal form where there is one")
            )
        for size_ in (size_ for type_ in outputs.values() if isinstance(type_, TensorType) for size_ in type_.sizes):
            if size_ != self.grows and dim_names(size_) & dim_names(self.grows):
                message = f"{kind} gives {size_} values for `{axis}` tokens, and {task} writes token by token"
                self._report(Diagnostic("not-causal", message, node.name_span, hint="every token needs a value of its own"))

    def _symbols(self, node: BlockNode, given: Given) -> dict[str, Any]:
        """The axis symbols of the block's inputs, bound by what is wired."""
        part, symbols = node.part, dict[str, Any]()
        fixed = fields(part)
        for port, type_ in given.items():
            text = _port_type(part, port)
            if not text:
                continue
            optional_port = port + "?" in part.inputs
            for index, one in enumerate(type_ if isinstance(type_, tuple) else (type_,)):
                assert isinstance(one, TensorType)
                place = index if isinstance(type_, tuple) else None
                if one.optional and not optional_port and node.name not in self.losses:
                    message = f"an optional input may be absent, and port {port} of {part.kind} cannot do without"
                    hint = "feed it to a mask or an optional port, or give the input a default"
                    self._edge(node, port, "optional-edge", message, hint, index=place)
                if not part.broadcasts and port + "*" not in part.inputs:
                    self._guard(node, port, lambda text=text, one=one: match(pattern(text), one, symbols, fixed))
                elif one.dtype != pattern(text).dtype:
                    self._edge(node, port, "type-mismatch", f"port {port} of {part.kind} takes {text}, not {one}", index=place)
        if "xs" in given:
            several = given["xs"]
            symbols["inputs"] = len(several) if isinstance(several, tuple) else 1
        for name, other in part.unbound.items():
            if name not in symbols and other in symbols:
                symbols[name] = symbols[other]
        for port, name in part.counts.items():
            if port not in given and isinstance(named := self._positions(str(symbols.get(name))), TensorType):
                symbols.setdefault("...", named.axes[:-1])
        return symbols

    def _positions(self, axis: str) -> Type | tuple[Type, ...] | None:
        """The type of what the recipe names as the positions of an axis, where that stands before what is being typed."""
        ref = dict(self.program.positions).get(axis)
        if ref is None or self.root is None or not {ref.node} & {*self.root.inputs, *self.root.by_name}:
            return None
        return self.root.type_of(ref)

    def _fields(self, node: BlockNode, symbols: Mapping[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        written = dict(node.fields)
        numbers: dict[str, Value] = {name: value for name, value in symbols.items() if isinstance(value, int)}
        for name, field in fields(node.part).items():
            if name in written:
                values[name] = self._value(written[name], field, numbers, symbols, node)
            elif not field.derived:
                values[name] = field.default
        return values

    def _value(
        self, value: FieldValue, field: Field, numbers: Mapping[str, Value], symbols: Mapping[str, Any], node: BlockNode
    ) -> Any:
        match value:
            case Known(value=plain):
                if isinstance(field.form, FlagsBy):
                    names_ = field.form.names
                    return plain if isinstance(plain, bool) else {**dict.fromkeys(names_, bool(field.default)), **dict(plain)}
                return Edge(plain.port) if isinstance(plain, EdgePort) else plain
            case Pending(expression=expression, bindings=bindings, span=span):
                known = self._sizes_known(bindings, expression.span)
                self._needs_sizes(expression, known, numbers, symbols)
                try:
                    number = evaluate(expression, {**numbers, **known})
                    return convert(number, field.form, field.name, span, expression)
                except ExpressionError as error:
                    raise ExpressionError(replace(error.diagnostic, labels=labels(value.origins, span))) from None
            case Items(items=items):
                inner = Field(field.name, field.form.item, False, None, "", False)  # type: ignore[union-attr]  # a list's form
                return tuple(self._value(item, inner, numbers, symbols, node) for item in items)
            case SlotNode(node=filled):
                return Inline() if not isinstance(filled, BlockNode) else _shell(filled)
            case PartValue(part=part, fields=written):
                specs, given = fields(part), dict(written)
                inner_values = {
                    name: self._value(given[name], spec, numbers, symbols, node) if name in given else spec.default
                    for name, spec in specs.items()
                }
                built = part.model_construct(**inner_values)
                try:
                    built.reject(symbols, frozenset())
                except Reject as no:
                    at = given.get(no.field or "")
                    self._report(
                        Diagnostic(no.code or "rejected", no.message, at.span if at is not None else value.span, hint=no.hint)
                    )
                    raise _Reported from None
                return built

    def _sizes_known(self, bindings: Iterable[tuple[str, Any]], span: Span) -> dict[str, Value]:
        """What the names in a number come to, lengths of axes of the blocks around it included."""
        known: dict[str, Value] = {}
        for name, bound in bindings:
            match bound:
                case AxisOf(part=part, name=axis):
                    length = next(sizes.get(axis) for holder, sizes in reversed(self.extents) if holder is part)
                    if not isinstance(length, int):
                        message = f"`{axis}` is {'not given here' if length is None else 'known only when the model runs'}"
                        raise ExpressionError(Diagnostic("not-a-number", message, span, hint="use a number or a param"))
                    known[name] = length
                case Pending(expression=inner, bindings=more, span=place):
                    known[name] = evaluate(inner, self._sizes_known(more, place))
                case _:
                    known[name] = bound
        return known

    def _needs_sizes(
        self, expression: Expression, bindings: Mapping[str, Any], numbers: Mapping[str, Value], symbols: Mapping[str, Any]
    ) -> None:
        for name in sorted(names(expression) - bindings.keys() - numbers.keys()):
            if name in symbols:
                length = f"`{name}`" if str(symbols[name]) == name else f"`{name}` is {symbols[name]}, which"
                message = f"{length} is known only when the model runs"
                raise ExpressionError(Diagnostic("not-a-number", message, expression.span, hint="use a number or a param"))

    def _derive(self, node: BlockNode, field: Field, known: Mapping[str, Any]) -> Any:
        try:
            value: Any = (
                size(declared(field.derived), known) if not _is_real(field) else evaluate(declared(field.derived), _plain(known))
            )
        except (KeyError, Mismatch, ExpressionError) as error:
            reason = error.diagnostic.message if isinstance(error, ExpressionError) else str(error)
            message = (
                f"`{field.name}` of {node.part.kind} is {field.derived} unless written, and here that is not known: {reason}"
            )
            self._report(Diagnostic("derived", message, node.name_span, hint=f"write `{field.name}`"))
            raise _Reported from None
        if isinstance(value, Symbolic):
            open_ = next(name for name in sorted(names(declared(field.derived))) if isinstance(known.get(name), Symbolic))
            message = f"`{field.name}` of {node.part.kind} is {field.derived} unless written, and `{open_}` is `{known[open_]}`"
            hint = f"that is known only when the model runs: write `{field.name}`, or give the axis a number"
            self._report(Diagnostic("derived", message, node.name_span, hint=hint))
            raise _Reported
        return float(value) if _is_real(field) else as_int(value, node.name_span) if not isinstance(value, int) else value

    def _outputs(
        self, node: BlockNode, part: Part, given: Given, env: dict[str, Any]
    ) -> tuple[dict[str, Type], tuple[tuple[int | None, ...], ...]]:
        several = given.get("xs")
        if type(part).broadcasts and several is not None:
            inputs = [one for one in (several if isinstance(several, tuple) else (several,)) if isinstance(one, TensorType)]
            try:
                out, expansions = expand_axes(inputs)
            except Mismatch as wrong:
                self._edge(node, "xs", "type-mismatch", f"{self._kind(node)} {wrong.message}", index=wrong.index)
                raise _Reported from None
            return {"y": out}, expansions
        if type(part).__name__ == "Concat" and isinstance(several, tuple):
            try:
                known = [one for one in several if isinstance(one, TensorType)]
                out, env["dim"] = concatenate(known, part.axis)  # type: ignore[attr-defined]  # concat's field
            except Mismatch as wrong:
                self._edge(node, "xs", "type-mismatch", f"{self._kind(node)} {wrong.message}", index=wrong.index)
                raise _Reported from None
            return {"y": out}, ()
        declared_types = part.types(given, env)
        table = declared_types if declared_types is not None else type(part).outputs
        outputs: dict[str, Type] = {}
        for name, text in table.items():
            outputs[name.rstrip("?")] = fill(pattern(text), env) if isinstance(text, str) else text
        return outputs, ()

    def _weights(
        self, node: BlockNode, part: Part, given: Given, env: Mapping[str, Any]
    ) -> tuple[tuple[Parameter, ...], dict[str, tuple[int, int, bool]], dict[str, TypedNode | None]]:
        weights = part.weights(env, frozenset(given)) if callable(part.weights) else part.weights
        parameters: list[Parameter] = []
        modules: dict[str, tuple[int, int, bool]] = {}
        slots: dict[str, TypedNode | None] = {}
        filled = {name: value for name, value in node.fields if isinstance(value, SlotNode)}
        for name, weight in weights.items():
            match weight:
                case Tensor(when=when):
                    if not when or getattr(part, when):
                        parameters.append(self._tensor(node, part, name, weight, env))
                case Linear(inputs=inputs, outputs=outputs, bias=bias):
                    width, out = self._shape(node, name, (inputs, outputs), env)
                    flag = bool(getattr(part, bias)) if isinstance(bias, str) else bias
                    modules[name] = (width, out, flag)
                    start = Init("uniform", width**-0.5)
                    parameters.append(Parameter(f"{name}.weight", (out, width), "matrix", start))
                    if flag:
                        parameters.append(Parameter(f"{name}.bias", (out,), "bias", start))
                case Slot(field=field, given=text, outputs=wanted, count=count):
                    grows, self.grows = self.grows, None if count else self.grows  # visits to experts are no tokens
                    slot = self._slot(node, filled.get(field), fill(pattern(text), env), fill(pattern(wanted or text), env))
                    self.grows = grows
                    if count and isinstance(slot, TypedBlock) and any(map(_learns, slot.slots.values())):
                        message = f"what fills {_first_learner(slot)} of an expert has parameters, which all experts would share"
                        place = filled[field].span if field in filled else node.name_span
                        self._report(Diagnostic("rejected", message, place, hint="such as silu, which has none"))
                        raise _Reported
                    slots[name] = copied(slot, self._shape(node, name, (count,), env)[0]) if count else slot
        for name, value in filled.items():
            if name not in slots and not any(isinstance(weight, Slot) and weight.field == name for weight in weights.values()):
                first = next(iter(given.values()))
                slots[name] = self._slot(node, value, _one(first), None)
        return tuple(parameters), modules, slots

    def _tensor(self, node: BlockNode, part: Part, name: str, tensor: Tensor, env: Mapping[str, Any]) -> Parameter:
        known = self._shape(node, name, tensor.shape, env)  # first, since the start is computed from the sizes
        start = tensor.init.value
        number = evaluate(declared(start), _plain(env)) if isinstance(start, str) else start
        zero = getattr(part, tensor.zero_row) if tensor.zero_row else None
        return Parameter(name, known, tensor.role, Init(tensor.init.how, float(number)), zero)

    def _slot(self, node: BlockNode, filled: SlotNode | None, given: Type, wanted: Type | None) -> TypedNode | None:
        if filled is None:
            return None
        inside = TypedGraph(Graph((), (), ()), {"input": given}, (), {}, {})
        typed = self.node(filled.node, inside)
        out = next(iter(typed.outputs.values()), UNKNOWN)
        if isinstance(out, Unknown):
            raise _Reported
        if isinstance(wanted, TensorType) and isinstance(out, TensorType) and not wanted.agrees(out):
            self._report(
                Diagnostic(
                    "type-mismatch", f"what fills this slot of {node.part.kind} returns {out}; {wanted} is wanted", filled.span
                )
            )
            raise _Reported
        return typed

    def _shape(self, node: BlockNode, name: str, shape: tuple[str | int, ...], env: Mapping[str, Any]) -> tuple[int, ...]:
        found = []
        for item in shape:
            value = item if isinstance(item, int) else size(declared(item), env)
            if not isinstance(value, int):
                self._report(
                    Diagnostic(
                        "unknown-size",
                        f"`{name}` of {node.part.kind} would be `{value}` wide, which is known only when the model runs",
                        node.name_span,
                        hint="give that axis a number, in `inputs` or by a node before this one",
                    )
                )
                raise _Reported
            found.append(value)
        return tuple(found)

    # -- reporting

    def _guard(self, node: BlockNode, port: str, work: Any) -> None:
        try:
            work()
        except Mismatch as wrong:
            self._edge(node, port, "type-mismatch", f"port {port} of {node.part.kind} {wrong.message}")
            raise _Reported from None
        except KeyError as missing:
            self._edge(node, port, "type-mismatch", f"port {port} of {node.part.kind} needs {missing}, which nothing here gives")
            raise _Reported from None

    def _mask_edges(self, node: BlockNode, part: Part, given: Given, env: Mapping[str, Any]) -> None:
        """What the node's masks read, held against the positions of its queries and keys."""
        for prepared in part.prepared(frozenset(given)).values():
            mask = dict(node.fields).get(prepared.slot)
            if not isinstance(mask, PartValue) or len(prepared.ports) < 2:
                continue
            query, key = (part.counts[port] for port in prepared.ports[:2])
            self._mask_axes(mask, env[query], env[key])
            for port, text in mask.wires():
                sizes = {"batch": env.get("batch"), "query": env.get(query), "key": env.get(key)}
                known = {name: size for name, size in sizes.items() if size is not None}
                type_ = given.get(port)
                if isinstance(type_, TensorType):
                    predicate = port.partition("_")[0]
                    try:
                        match(pattern(text), type_, known, {})
                    except Mismatch as wrong:
                        self._edge(node, port, "type-mismatch", f"the mask {predicate} {wrong.message}")
                        raise _Reported from None

    def _mask_axes(self, mask: PartValue, query: Any, key: Any) -> None:
        """What a mask needs to know of the axes of queries and keys."""
        writing = dim_names(self.grows) if self.grows is not None else frozenset()
        for one in mask.parts():
            if not issubclass(one.part, Mask):
                continue
            if one.part.needs_ends and writing & (dim_names(query) | dim_names(key)):
                message = f"`{one.part.kind}` asks which positions are the last ones, which is not known while a text is written"
                task = self.program.recipe.task
                hint = f"the axis {self.grows} of a {task} grows by each token; `first` and `chosen` do not look ahead"
                self._report(Diagnostic("unknown-end", message, one.span, hint=hint))
                raise _Reported
            if one.part.one_sequence and query != key:
                message = f"`{one.part.kind}` is about positions of one sequence; here queries are {query}, keys are {key}"
                hint = "`valid` and `given` are for a memory too"
                self._report(Diagnostic("two-sequences", message, one.span, hint=hint))
                raise _Reported

    def _kind(self, node: BlockNode) -> str:
        """The block that a recipe names: for a node of a block's own expansion, that block."""
        holder = next((held.part for held in reversed(self.holders) if held.part is not None), None)
        return holder.kind if holder is not None and isinstance(node.name_span.source, Declaration) else node.part.kind

    def _edge(
        self,
        node: BlockNode | GroupNode,
        port: str,
        code: str,
        message: str,
        hint: str = "",
        *,
        index: int | None = None,
        more: tuple[Label, ...] = (),
    ) -> None:
        """Reports a mistake of an edge where it is written, with what each of its sources gives."""
        wire = next((wire for wire in node.wires if wire.port == port), None)
        span, given = node.name_span, []
        if wire is not None:
            place = index if index is not None and len(wire.spans) > index else 0 if len(wire.spans) == 1 else None
            span = wire.span if place is None or wire.implied else wire.spans[place]
            given = list(self._sources(wire)) if code == "type-mismatch" else []
            if isinstance(span.source, Declaration) and place is not None:
                span = self._written_before(wire.refs[place]) or span
        span = self._own(span)
        seconds = {label.span: label for label in reversed(given) if label.span != span}
        self._report(Diagnostic(code, message, span, labels=(*reversed(seconds.values()), *more), hint=hint))

    def _written_before(self, ref: Ref) -> Span | None:
        """The author's own node that a value in a block's expansion comes from, through what the expansion puts behind it."""
        source = self.around.by_name.get(ref.node) if self.around is not None else None
        while source is not None and isinstance(source.node.name_span.source, Declaration):
            if not isinstance(source, TypedBlock) or [len(wire.refs) for wire in source.node.wires] != [1]:
                return None
            source = self.around.by_name.get(source.node.wires[0].refs[0].node) if self.around is not None else None
        return source.node.name_span if source is not None else None

    def _sources(self, wire: Wire) -> Iterable[Label]:
        """A label at each node that a wire comes from: `gives float[batch, time, 8]`."""
        for ref in wire.refs[:4]:
            source = self.around.by_name.get(ref.node) if self.around is not None else None
            type_ = self.around.type_of(ref) if self.around is not None and source is not None else None
            if source is not None and isinstance(type_, TensorType) and not isinstance(source.node.name_span.source, Declaration):
                yield Label(source.node.name_span, f"gives {type_}")

    def _own(self, span: Span) -> Span:
        """A span in what the author wrote: for a mistake inside a block's own expansion, that of the block."""
        for holder in reversed(self.holders):
            if not isinstance(span.source, Declaration):
                break
            span = holder.name_span
        return span

    def _rejected(self, node: BlockNode, no: Reject, severity: Any = "error") -> None:
        value = self._written(node, no.field or "")
        span, note, seconds = node.name_span, "", tuple[Label, ...]()
        if value is not None:
            span = value.span
            if isinstance(value, Known | Pending):
                seconds = labels(value.origins, span)
                if isinstance(value, Known) and value.origins:
                    note = str(value.value)
        code = no.code or "rejected"
        if no.port:
            self._edge(node, no.port, code, f"{self._kind(node)} {no.message}", no.hint, index=no.index)
            return
        self._report(Diagnostic(code, no.message, span, severity, note, seconds, no.hint))

    def _written(self, node: BlockNode, field: str) -> FieldValue | None:
        """What is written for a field, `positions.fraction` too; for one that is derived, what it is derived from."""
        first, _, rest = field.partition(".")
        written = dict(node.fields)
        value = written.get(first)
        if isinstance(value, PartValue) and rest:
            return dict(value.fields).get(rest, value)
        if value is None and first in (known := fields(node.part)) and known[first].derived:
            return next((written[name] for name in sorted(names(declared(known[first].derived))) if name in written), None)
        return value

    def _report(self, diagnostic: Diagnostic) -> None:
        """Takes a diagnostic down; a second one at a place is the first one's doing."""
        span = self._own(diagnostic.span)
        if span not in self.reported:
            self.reported.add(span)
            self.diagnostics.append(replace(diagnostic, span=span))


class _Reported(Exception):
    """A mistake that has been taken down."""


def copied(slot: TypedNode | None, count: int) -> TypedBlock:
    """An expert as so many of it: each parameter has them along a first axis."""
    assert isinstance(slot, TypedBlock)
    stacked = tuple(
        replace(each, shape=(count, *each.shape), role="experts" if each.role == "matrix" else each.role)
        for each in slot.parameters
    )
    return replace(slot, parameters=stacked, copies=count)


def _learns(node: TypedNode | None) -> bool:
    """Whether a block or a graph has parameters."""
    match node:
        case TypedBlock():
            return bool(node.parameters) or any(map(_learns, node.slots.values()))
        case TypedGroup():
            return any(map(_learns, node.graph.nodes))
        case TypedRepeat():
            return any(_learns(one) for graph in node.passes for one in graph.nodes)
    return False


def _first_learner(block: TypedBlock) -> str:
    """The slot of a block that has parameters."""
    return next(f"`{name}`" for name, slot in block.slots.items() if _learns(slot))


def _port_type(part: type[Part], port: str) -> str:
    return next((text for name, text in part.inputs.items() if name.rstrip("?*") == port), "")


def _one(type_: Type | tuple[Type, ...]) -> Type:
    return type_[0] if isinstance(type_, tuple) else type_


def _as_before(type_: Type | tuple[Type, ...], before: Type | tuple[Type, ...] | None) -> Type | tuple[Type, ...]:
    """A type by the names that its axes had before: for one set of weights, what agrees is one."""
    if isinstance(type_, TensorType) and isinstance(before, TensorType) and type_.agrees(before):
        return before
    return type_


def _numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if isinstance(value, int | float) and not isinstance(value, bool)}


def _plain(known: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in known.items() if isinstance(value, int | float | str)}


def _is_real(field: Field) -> bool:
    return type(field.form).__name__ == "Real"


def _shell(node: BlockNode) -> Part:
    """The block in a slot as its holder's field sees it."""
    plain = {name: value.value for name, value in node.fields if isinstance(value, Known)}
    return node.part.model_construct(**plain)


__all__ = ["Inference", "Inline", "Own", "infer"]
