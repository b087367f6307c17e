"""Which nodes are alike, whatever they are called and whatever they read."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, assert_never

from blocks.core import Part
from blocks.losses.loss import Loss
from composer.graph.anatomy import TYPED, with_wires
from composer.graph.ir import Ref, Wire
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat, TypedScan, is_renewal
from composer.graph.visit import Fold, Inside, every_node
from composer.memo import Numbering

Port: TypeAlias = tuple[Hashable, int]
"""A port, and which one of a list."""


class Kinds:
    """A number for each kind of node."""

    def __init__(self, *, bare: bool = False) -> None:
        self.bare = bare
        """Whether only the types of blocks count, not their fields."""
        self.numbers: Numbering[Hashable] = Numbering()
        self.numbered = Fold(TYPED, self._node, self._graph, every_node)

    def of(self, node: TypedNode) -> int:
        """Return a number that is equal for nodes that compute the same and give the same shapes; whose parameters they
        have does not count.
        """
        return self.numbers.of(node) if _alone(node) else self.numbered.node(node, node.name)

    def similar(self, node: TypedNode) -> int:
        """Return a number that is equal for blocks of one type, with one name but for the numbers in it, that
        give the same shapes.
        """
        part = node.part if isinstance(node, TypedBlock) else None
        if _alone(node) or not re.search(r"\d", node.name):
            return self.numbers.of(node)
        return self.numbers.of((type(node), type(part), re.sub(r"\d+", "#", node.name), tuple(node.outputs.items())))

    def _node(self, node: TypedNode, inside: Inside[TypedGraph, int, int]) -> int:
        return self.numbers.of(self._key(node, inside))

    def _key(self, node: TypedNode, inside: Inside[TypedGraph, int, int]) -> Hashable:
        held = node.node.trainable
        graphs = {passes[0].graph: number for passes, number in inside.regions}
        match node:
            case TypedBlock(part=part, slots=slots):
                filled = tuple((name, dict(inside.slots).get(name)) for name in slots)
                ports = tuple(node.inputs.items()), tuple(node.outputs.items()), node.node.requested_outputs
                return (
                    "block",
                    type(part) if self.bare else settings(part),
                    ports,
                    filled,
                    node.copies,
                    held,
                    tuple(node.adapters.items()),
                )
            case TypedGroup(graph=graph):
                return "group", node.node.part, graphs[graph], held
            case TypedScan(graph=graph):
                walked = tuple(node.steps.items()), tuple(node.carried.items()), tuple(node.outputs.items())
                return "scan", str(node.axis), graphs[graph], walked, held
            case TypedRepeat(passes=passes):
                return "repeat", node.node.share is not None, tuple(graphs[graph] for graph in passes), held
            case _:
                assert_never(node)

    def _graph(self, graph: TypedGraph, found: list[int]) -> int:
        """Return a number that is equal for graphs of equal nodes with the same names; what they are given goes by its place."""
        inputs = {one.name: number for number, one in enumerate(graph.graph.inputs)}
        given = tuple((graph.inputs[one.name], one.many) for one in graph.graph.inputs)
        nodes = tuple(
            (node.name, number, tuple((port, from_(ref, inputs)) for port, ref in reads(node)))
            for node, number in zip(graph.nodes, found, strict=True)
        )
        outputs = tuple((name, from_(ref, inputs)) for name, ref in graph.graph.outputs)
        return self.numbers.of((given, nodes, outputs))


def from_(ref: Ref, inputs: dict[str, int]) -> Hashable:
    """Return a reference in a graph, to an input by its place."""
    return inputs.get(ref.node, ref.node), ref.port, ref.index


def _alone(node: TypedNode) -> bool:
    """Return whether a node is equal to no other beside it: a state belongs with its update, and a loss is the model's. In graphs
    that are equal, each has its own.
    """
    if not isinstance(node, TypedBlock):
        return False
    return is_renewal(node) or isinstance(node.part, Loss) or bool(node.part.renewed_by)


def settings(value: Any) -> Hashable:
    """Return a field's value, a part's with all its fields, so that it can be compared."""
    match value:
        case Part():
            own = vars(value)  # what fills a slot with a graph is no field's value
            return type(value), tuple((name, settings(own[name])) for name in type(value).model_fields if name in own)
        case list() | tuple():
            return tuple(map(settings, value))
        case dict():
            return tuple((name, settings(inner)) for name, inner in value.items())
    return type(value), value


def reads(node: TypedNode) -> Iterator[tuple[Port, Ref]]:
    """Yield what a node reads at each of its ports."""
    for number, wire in wires(node):
        for nth, ref in enumerate(wire.refs):
            if ref.node != node.name:
                yield (port(node, number, wire.port), nth), ref


def rewired(node: TypedNode, change: Callable[[Port, Ref], Ref]) -> TypedNode:
    """Return the node with other references."""

    def changed(wire: Wire, number: int) -> Wire:
        name = port(node, number, wire.port)
        return replace(wire, refs=tuple(change((name, nth), ref) for nth, ref in enumerate(wire.refs)))

    return with_wires(node, changed)


def wires(node: TypedNode) -> Iterator[tuple[int, Wire]]:
    """Yield everything a node reads, by the pass where it is a repeat."""
    for number, one in enumerate(node.node.passes if isinstance(node, TypedRepeat) else (node.node,)):
        yield from ((number, wire) for wire in one.wires)


def port(node: TypedNode, number: int, name: str) -> Hashable:
    """Return a port by its name; of what has a graph, by its place there, since what is read from around is called
    as it is there.
    """
    match node:
        case TypedBlock():
            return name
        case TypedGroup() | TypedScan():
            return place(node.graph, name)
        case TypedRepeat(passes=passes):
            return number, place(passes[number], name)
        case _:
            assert_never(node)


def place(graph: TypedGraph, name: str) -> int:
    """Return where an input stands among those of a graph."""
    return next(index for index, one in enumerate(graph.graph.inputs) if one.name == name)


def boxes(graph: TypedGraph) -> Sequence[int]:
    """Return how many blocks each node of a graph is drawn as, repeats folded and blocks that a recipe defines closed."""

    def drawn(node: TypedNode, inside: Inside[TypedGraph, int, int]) -> int:
        part = node.node.part if isinstance(node, TypedGroup) else None
        closed = isinstance(node, TypedBlock) or (part is not None and not part.dissolved)
        return 1 if closed else sum(count for _, count in inside.regions[:1])

    counts = Fold(TYPED, drawn, lambda _, found: sum(found), every_node)
    return [counts.node(node, node.name) for node in graph.nodes]
