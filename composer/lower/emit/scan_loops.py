"""Scans as a loop over the steps, with variables of its own for what is carried, or as a call that gives all states at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from blocks.core import load_carry, store_carry
from blocks.linear_recurrences.elementwise import recurrence, running_sum, states_before
from composer.graph.ir import Ref
from composer.graph.typed import AlignedPort, LinearStep, TypedScan
from composer.graph.types import TensorType
from composer.lower.emit.identifiers import attribute
from composer.lower.emit.scope import ForwardScope, aligned
from composer.lower.emit.statements import Naming, ScanStatement, Statement
from composer.lower.passes.cache_layout import carry_is_cached, growing_axis
from composer.lower.passes.node_queries import Key


def scan(scope: ForwardScope, node: TypedScan) -> list[Statement]:
    """Return the statements of a scan."""
    return [*_recurrences(scope, node)] if node.linear else [_loop(scope, node)]


def _loop(scope: ForwardScope, node: TypedScan) -> Statement:
    texts = _Scan(scope, node)
    outputs = [name for name, _ in node.graph.graph.outputs]
    steps = ScanStatement(
        {texts.own[port]: "x_t" if port == "input" else f"{port.replace('.', '_')}_t" for port in node.steps},
        texts.walk,
        {texts.own[port]: (port, outputs.index(output)) for port, output in node.carried.items()},
        texts.start,
        texts.call,
        outputs,
        [node.place_in(type_) for type_ in list(node.outputs.values())[: node.stacked]],
        texts.end if texts.cached else None,
    )
    around = [key for argument in texts.arguments for key in argument.keys if key not in texts.own.values()]
    uses = [*texts.sources.values(), *around]
    results = scope.results(node.name, node.graph)
    return Statement(results, uses, texts.call, node.node.name_span, node.name, steps=steps)


class _Scan:
    """The source of one scan, given the names of values."""

    def __init__(self, scope: ForwardScope, node: TypedScan) -> None:
        self.scope, self.node = scope, node
        wires = {wire.port: wire.refs for wire in node.node.wires}
        extra = {name: (ref,) for name, ref in scope.hoisted_arguments(node.name).items()}
        ports = (*node.steps, *node.carried)
        self.own: dict[str, Key] = {port: (f"{node.name}:{port}", 0, None) for port in ports}
        """The values that have variables of the loop's own: one step of what is walked, and the carry."""
        self.sources = {port: scope.key(wires[port][0]) for port in ports}
        inside = {port: (Ref(key[0]),) for port, key in self.own.items()}
        self.arguments = scope.arguments(scope.instance_of(node.graph, node.name), {**wires, **extra, **inside})
        self.first, self.axis = next(iter(node.steps.items()))
        self.cached = carry_is_cached(node, growing_axis(scope.classes.program))
        self.module = attribute(node.name)

    def _shape(self, name: Naming, axis: int) -> str:
        return f"{name(self.sources[self.first])}.shape[{axis}]"

    def walk(self, name: Naming) -> list[str]:
        """Return what is iterated over: each input that is taken step by step, split into its steps."""
        rows = []
        for port, axis in self.node.steps.items():
            source = name(self.sources[port])
            row = f"{source}.unbind({axis})"
            if getattr(self.node.graph.inputs[port], "optional", False):
                row = f"[None] * {self._shape(name, self.axis)} if {source} is None else {row}"
            rows.append(row)
        return rows

    def start(self, port: str, name: Naming) -> str:
        """Return the initial value of the carry at a port."""
        text = name(self.sources[port])
        if lacking := self.node.widened[port]:
            before = ", ".join(self._shape(name, axis) for axis in range(lacking))
            text = f"{text}.expand({before}, *{text}.shape)"
        if not self.cached:
            return text
        return f"{self.scope.classes.copied.function(load_carry)}({self.module}, {port!r}, {text})"

    def call(self, name: Naming) -> str:
        """Return the call of one step."""
        return f"{self.module}({', '.join(self.scope.text(argument, name) for argument in self.arguments)})"

    def end(self, name: Naming) -> str:
        """Return the statement that caches the carry for the next call."""
        states = ", ".join(f"{port}={name(self.own[port])}" for port in self.node.carried)
        function = self.scope.classes.copied.function(store_carry)
        return f"{function}({self.module}, {self._shape(name, self.axis)}, {states})"


def _recurrences(scope: ForwardScope, node: TypedScan) -> Iterator[Statement]:
    """Yield the statements of a scan whose steps are linear in what is carried: for each state its start, its values after all
    steps, and before them where they are read, and the last; then what caches the last.
    """
    texts, copied = _Scan(scope, node), scope.classes.copied
    outputs, results = list(node.graph.graph.outputs), scope.results(node.name, node.graph)
    states = {output: ref for output, ref in outputs if output in node.carried.values()}
    ports = {wire.port: scope.key(wire.refs[0]) for wire in node.node.wires}
    places: dict[str, int] = {}
    every: dict[str, Key] = {}
    for carry, step in node.linear.items():
        state = node.graph.inputs[carry]
        assert isinstance(state, TensorType)
        place = places[carry] = min(texts.axis, len(state.axes))
        start = ports[carry]
        if texts.cached or node.widened[carry]:
            start = texts.own[carry]
            yield _statement(node, [start], [ports[carry], ports[texts.first]], partial(texts.start, carry))
        after: Key = (f"{node.name}:{carry}", 1, None)
        for index, (_, ref) in enumerate(outputs[: node.stacked]):
            if ref == states[node.carried[carry]]:
                after = results[index] or after
        every[carry] = after
        given = [ports[one.port] for one in (step.keep, step.add) if isinstance(one, AlignedPort)]
        function = copied.function(running_sum if step.keep == 1 else recurrence)
        yield _statement(node, [after], [start, *given], partial(_states, function, start, step, ports, place))
        for index, (output, ref) in enumerate(outputs):
            if index < node.stacked and ref.node == carry:
                write = partial(_before, copied.function(states_before), start, after, place)
                yield _statement(node, [results[index]], [start, after], write)
            elif index >= node.stacked and output == node.carried[carry] and results[index] is not None:
                yield _statement(node, [results[index]], [after], partial(_last, after, place))
    if texts.cached:

        def end(name: Naming) -> str:
            own = {key: carry for carry, key in texts.own.items() if carry in every}
            return texts.end(lambda key: _last(every[own[key]], places[own[key]], name) if key in own else name(key))

        ended = _statement(node, [], [*every.values(), ports[texts.first]], end)
        ended.caches = True
        yield ended


def _statement(node: TypedScan, results: list[Key | None], uses: list[Key], write: Callable[[Naming], str]) -> Statement:
    return Statement(results, uses, write, node.node.name_span, node.name)


def _states(function: str, start: Key, step: LinearStep, ports: Mapping[str, Key], place: int, name: Naming) -> str:
    """Return the call that gives the states after all steps."""
    given = [step.keep, step.add] if step.keep != 1 else [step.add]
    texts = [name(ports[one.port]) + aligned(one.way) if isinstance(one, AlignedPort) else repr(one) for one in given]
    rounded = f".to({name(start)}.dtype)" if step.rounded else ""
    return f"{function}({', '.join([name(start), *texts])}{_axis(place)}){rounded}"


def _before(function: str, start: Key, after: Key, place: int, name: Naming) -> str:
    """Return the call that gives the states before all steps."""
    return f"{function}({name(start)}, {name(after)}{_axis(place)})"


def _last(after: Key, place: int, name: Naming) -> str:
    """Return the state after the last step."""
    return f"{name(after)}[{':, ' * place}-1]"


def _axis(place: int) -> str:
    return "" if place == 1 else f", axis={place}"
