"""Scans as statements: a loop over the steps, with what is carried in variables of its own."""

from __future__ import annotations

from blocks.core import load_carry, store_carry
from composer.graph.ir import Ref
from composer.graph.typed import TypedScan
from composer.lower.emit.identifiers import attribute
from composer.lower.emit.scope import Scope
from composer.lower.emit.statements import Naming, ScanStatement, Statement
from composer.lower.passes.cache_layout import goes_on, writes_along
from composer.lower.passes.node_queries import Key


def scan(scope: Scope, node: TypedScan) -> Statement:
    """Return the statement of one scan."""
    written = _Scan(scope, node)
    outputs = [name for name, _ in node.graph.graph.outputs]
    steps = ScanStatement(
        {written.own[port]: "x_t" if port == "input" else f"{port}_t" for port in node.steps},
        written.walk,
        {written.own[port]: (port, outputs.index(output)) for port, output in node.carried.items()},
        written.start,
        written.call,
        outputs,
        node.place,
        written.end if written.remembers else None,
    )
    around = [key for argument in written.arguments for key in argument.keys if key not in written.own.values()]
    uses = [*written.sources.values(), *around]
    gives = scope.results(node.name, node.graph)
    return Statement(gives, uses, written.call, node.node.name_span, node.name, steps=steps)


class _Scan:
    """The texts of one scan, given values' names."""

    def __init__(self, scope: Scope, node: TypedScan) -> None:
        self.scope, self.node = scope, node
        wires = {wire.port: wire.refs for wire in node.node.wires}
        extra = {name: (ref,) for name, ref in scope.hoisted_arguments(node.name).items()}
        ports = (*node.steps, *node.carried)
        self.own: dict[str, Key] = {port: (f"{node.name}:{port}", 0, None) for port in ports}
        """What goes by a name of the loop's own."""
        self.sources = {port: scope.key(wires[port][0]) for port in ports}
        inside = {port: (Ref(key[0]),) for port, key in self.own.items()}
        self.arguments = scope.arguments(scope.instance_of(node.graph, node.name), {**wires, **extra, **inside})
        self.first, self.axis = next(iter(node.steps.items()))
        self.remembers = goes_on(node, writes_along(scope.classes.program))
        self.module = attribute(node.name)

    def _shape(self, name: Naming, axis: int) -> str:
        return f"{name(self.sources[self.first])}.shape[{axis}]"

    def walk(self, name: Naming) -> list[str]:
        """Return what arrives step by step, cut into its steps."""
        rows = []
        for port, axis in self.node.steps.items():
            source = name(self.sources[port])
            row = f"{source}.unbind({axis})"
            if getattr(self.node.graph.inputs[port], "optional", False):
                row = f"[None] * {self._shape(name, self.axis)} if {source} is None else {row}"
            rows.append(row)
        return rows

    def start(self, port: str, name: Naming) -> str:
        """Return what is carried, before the first step."""
        text = name(self.sources[port])
        if lacking := self.node.widened[port]:
            before = ", ".join(self._shape(name, axis) for axis in range(lacking))
            text = f"{text}.expand({before}, *{text}.shape)"
        if not self.remembers:
            return text
        return f"{self.scope.classes.pasted.function(load_carry)}({self.module}, {port!r}, {text})"

    def call(self, name: Naming) -> str:
        """Return the code of one step."""
        return f"{self.module}({', '.join(self.scope.text(argument, name) for argument in self.arguments)})"

    def end(self, name: Naming) -> str:
        """Return what is left to the next call."""
        states = ", ".join(f"{port}={name(self.own[port])}" for port in self.node.carried)
        function = self.scope.classes.pasted.function(store_carry)
        return f"{function}({self.module}, {self._shape(name, self.axis)}, {states})"
