"""Scans as a loop over the steps, with variables of its own for what is carried."""

from __future__ import annotations

from blocks.core import load_carry, store_carry
from composer.graph.ir import Ref
from composer.graph.typed import TypedScan
from composer.lower.emit.identifiers import attribute
from composer.lower.emit.scope import ForwardScope
from composer.lower.emit.statements import Naming, ScanStatement, Statement
from composer.lower.passes.cache_layout import carry_is_cached, growing_axis
from composer.lower.passes.node_queries import Key


def scan(scope: ForwardScope, node: TypedScan) -> Statement:
    """Return the statement of a scan."""
    texts = _Scan(scope, node)
    outputs = [name for name, _ in node.graph.graph.outputs]
    steps = ScanStatement(
        {texts.own[port]: "x_t" if port == "input" else f"{port}_t" for port in node.steps},
        texts.walk,
        {texts.own[port]: (port, outputs.index(output)) for port, output in node.carried.items()},
        texts.start,
        texts.call,
        outputs,
        node.place,
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
