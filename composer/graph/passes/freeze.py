"""Builders to the graph: nodes in order, cycles refused, equal graphs of equal places made one object."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

from composer.diagnostics import Diagnostic, Label, Span
from composer.graph.ir import (
    BlockNode,
    Entries,
    FieldValue,
    Graph,
    GroupNode,
    Items,
    Node,
    PartValue,
    Pass,
    Program,
    Ref,
    RepeatNode,
    ScanNode,
    SlotNode,
    Wire,
)
from composer.graph.passes.compilation import Compilation
from composer.graph.passes.error_report import ErrorReport, TooMuch
from composer.graph.passes.expand.adapter_rules import evaluated_adapters
from composer.graph.passes.expand.builders import Extent, GraphBuilder, NodeBuilder, plain_values
from composer.graph.passes.expand.expansion import MAX_EDGES
from composer.graph.passes.expand.init_rules import block_rules, evaluated_rules
from composer.graph.passes.resolve.idle_states import reached
from composer.graph.passes.written_places import WrittenPlaces
from composer.memo import Interned, Memo


def freeze(state: Compilation) -> Compilation:
    """Put nodes in an order in which each comes after what it reads, and make graphs one that are equal and written in the
    same places.

    Before:
        graph:
          sum: {type: add, in: [up, x]}
          up: {type: linear, out: 8, in: x}
    After:
        up, sum
    """
    recipe, expansion = state.parsed, state.expansion
    assert recipe is not None
    assert expansion is not None
    try:
        rules = tuple(evaluated_rules(recipe.init, expansion.scope, expansion.values))
        adapters = tuple(evaluated_adapters(recipe.adapters, expansion.scope, expansion.values))
        graph = _Freezer(expansion.report, expansion.root, {ref.node for _, ref in expansion.positions}).graph(expansion.root)
    except (CycleError, TooMuch):
        return state.reported(stopped=True)
    if recipe.definitions:
        rules = (*block_rules(graph), *rules)
    values = plain_values(expansion.params)
    origins = {name: binding.span for name, binding in expansion.params.items() if not isinstance(binding, Extent)}
    positions, losses, sound = tuple(expansion.positions), expansion.losses, expansion.sound
    program = Program(recipe, graph, recipe.inputs, values, origins, positions, rules, losses, adapters, sound)
    return replace(state, program=program).reported()


class _Freezer:
    def __init__(self, report: ErrorReport, root: GraphBuilder, positions: Set[str]) -> None:
        self.report, self.root, self.positions = report, root, positions
        """Of the whole model; the nodes of it that give axes their positions, which others read without a wire."""
        self.edges = 0
        """What the passes so far are given."""
        self.done: Memo[GraphBuilder, Graph] = Memo()
        self.equal: Interned[Any, Graph] = Interned()
        """The first of equal graphs."""
        self.elsewhere: Interned[tuple[Graph, Any], Graph] = Interned()
        """Those that are equal to the first and written in other places."""
        self.places = WrittenPlaces()

    def graph(self, builder: GraphBuilder) -> Graph:
        return self.done.get(builder, lambda: self._graph(builder))

    def _graph(self, builder: GraphBuilder) -> Graph:
        if builder.in_used_recipe:
            builder.nodes = _read(builder)
        nodes = tuple(self.node(builder.nodes[name]) for name in self._order(builder))
        graph = Graph(tuple(builder.inputs.values()), nodes, tuple(builder.outputs.items()))
        first = self.equal.get((graph.inputs, graph.nodes, graph.outputs), lambda: graph)
        if first is graph or self.places.of(first) == (places := self.places.of(graph)):
            return first
        return self.elsewhere.get((first, places), lambda: graph)

    def _order(self, builder: GraphBuilder) -> list[str]:
        sorter: TopologicalSorter[str] = TopologicalSorter()
        for node in builder.nodes.values():
            if not node.elided:
                handed = [ref.node for wire in node.wires.values() for ref in wire.refs]
                inside = [ref.node for wire in node.every_wire() for ref in wire.refs]
                if node.passes is not None:  # a pass may read those before it
                    inside = [name for name in inside if name != node.name]
                sorter.add(node.name, *(name for name in (*handed, *inside) if name in builder.nodes))
        try:
            order = list(sorter.static_order())
        except CycleError as error:
            path = list(error.args[1])  # each node is read by the next
            start = path.index(min(path[:-1], key=list(builder.nodes).index))
            path = [*path[start:-1], *path[:start], path[start]]
            first = builder.nodes[path[0]]
            wires: list[tuple[str, Wire]] = [
                (name, next(w for w in builder.nodes[after].every_wire() if any(r.node == name for r in w.refs)))
                for name, after in pairwise(path)
            ]
            self.report.add(
                Diagnostic(
                    "cycle",
                    f"{' → '.join(path)} is a cycle",
                    _place(wires[-1][1], wires[-1][0]),
                    labels=tuple(Label(_place(w, n), f"reads {n}") for n, w in wires[:-1]),
                    hint=f"`{first.name}` reads itself"
                    if len(path) == 2
                    else "an earlier pass can be read inside a repeat: layers(layer - 1)"
                    if _in_repeat(builder)
                    else _mark(builder, dict(wires)) or "remove one of these edges",
                )
            )
            raise
        reads = {n: {r.node for w in builder.nodes[n].every_wire() for r in w.refs} - {n} for n in order}
        early: set[str] = set()
        for name in reversed(order) if builder is self.root else ():
            if name in self.positions or name in early:
                early |= {name, *reads[name]}
        written = {name: (name not in early, position) for position, name in enumerate(builder.nodes)}
        return _stable(order, reads, written)

    def node(self, node: NodeBuilder) -> Node:
        span, name_span = node.span, node.name_span
        wires = tuple(node.wires.values())
        if node.passes is not None:
            passes, ties = self._passes(node), tuple(node.ties)
            return RepeatNode(node.name, passes, ties, node.trainable, node.share, node.index, span, name_span)
        if node.graph is not None:
            wires = (*wires, *node.graph.capture_wires.values())
            if node.axis is not None:
                inner, ties = self.graph(node.graph), tuple(node.ties)
                axis, axis_span = node.axis
                return ScanNode(node.name, axis, inner, wires, ties, node.trainable, axis_span, span, name_span)
            return GroupNode(
                node.name,
                self.graph(node.graph),
                wires,
                node.part,
                node.ports,
                node.init,
                tuple(node.ties),
                node.trainable,
                span,
                name_span,
            )
        assert node.part is not None
        fields = tuple((name, self._field(value)) for name, value in node.fields.items())
        return BlockNode(
            node.name,
            node.part,
            fields,
            wires,
            tuple(sorted(node.requested_outputs)),
            tuple(node.ties),
            node.trainable,
            node.broken,
            span,
            name_span,
        )

    def _field(self, value: FieldValue | NodeBuilder) -> FieldValue:
        match value:
            case NodeBuilder():
                return SlotNode(self.node(value), value.span)
            case PartValue():
                return PartValue(value.part, tuple((name, self._field(inner)) for name, inner in value.fields), value.span)
            case Items():
                return Items(tuple(self._field(item) for item in value.items), value.span)
            case Entries():
                return Entries(tuple((name, self._field(item)) for name, item in value.entries), value.span)
            case _:
                return value

    def _passes(self, node: NodeBuilder) -> tuple[Pass, ...]:
        """Return every pass with its inputs: the first takes what the repeat is given, the others what
        the pass before returned.

        Raises:
            TooMuch: where the passes are given too much, which is reported.
        """
        passes: list[Pass] = []
        given = list(node.wires.values())
        for index, one in enumerate(node.passes or ()):
            wires = (*given, *one.graph.capture_wires.values())
            self.edges += len(wires)
            if self.edges > MAX_EDGES:
                message = f"the passes of the model have more than {MAX_EDGES:,} edges"
                self.report.too_much(node.home, node.name_span, message)
            passes.append(Pass(self.graph(one.graph), wires, one.values))
            given = _carried(node.name, given, one.graph, index)
        return tuple(passes)


def _carried(name: str, given: list[Wire], returning: GraphBuilder, index: int) -> list[Wire]:
    """Return what the pass after `index` is given: outputs go to inputs of their name, else the first output
    to the first input.
    """
    returned = [output for output, *_ in returning.outputs_pending if output]
    matched = any(wire.port in returned for wire in given)
    carried = []
    for position, wire in enumerate(given):
        if wire.port in returned:
            carried.append(Wire(wire.port, (Ref(name, wire.port, index),), wire.span))
        elif position == 0 and not matched:
            carried.append(Wire(wire.port, (Ref(name, "", index),), wire.span))
        else:
            carried.append(wire)
    return carried


def _place(wire: Wire, name: str) -> Span:
    """Return where a wire names a node."""
    places = (span for ref, span in zip(wire.refs, wire.spans, strict=False) if ref.node == name)
    return next(places, wire.span)


def _mark(builder: GraphBuilder, wires: Mapping[str, Wire]) -> str:
    """Return the hint that a node of a recipe that extends another stands behind the one that is to read it, and so reads that;
    nothing if none does.

    Args:
        builder: The graph of a cycle.
        wires: What is read in the cycle, by the node that gives it.
    """
    nodes = list(builder.nodes)
    for (name, wire), (after, _) in pairwise([*wires.items(), *wires.items()]):
        if wire.implied and (place := nodes.index(name)):
            before = nodes[place - 1]
            if builder.nodes[after].span.source != builder.nodes[before].span.source:
                return (
                    f"`{after}` stands behind `{name}`, which reads it: `{before}: {{}}` above `{after}` puts it before `{name}`"
                )
    return ""


def _in_repeat(graph: GraphBuilder) -> bool:
    holder = graph.holder
    return holder is not None and (holder.passes is not None or _in_repeat(holder.home))


def _read(graph: GraphBuilder) -> dict[str, NodeBuilder]:
    """Return the nodes that what a graph returns depends on, and what states among them become."""
    found = reached(graph, (ref.node for ref in graph.outputs.values()))
    return {name: node for name, node in graph.nodes.items() if name in found}


def _stable(order: list[str], reads: dict[str, set[str]], written: dict[str, tuple[bool, int]]) -> list[str]:
    """Return the names in a topological order that is as near to an order of places as can be."""
    waiting = {name: len(reads[name] & reads.keys()) for name in order}
    readers: dict[str, list[str]] = {name: [] for name in order}
    for name in order:
        for source in reads[name] & reads.keys():
            readers[source].append(name)
    ready = [(written[name], name) for name in order if not waiting[name]]
    heapify(ready)
    done: list[str] = []
    while ready:
        _, name = heappop(ready)
        done.append(name)
        for reader in readers[name]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heappush(ready, (written[reader], reader))
    return done
