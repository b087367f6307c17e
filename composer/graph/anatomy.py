"""What a node consists of: the graphs inside, what fills its slots, what it reads; and the node with something of it changed.

A node holds graphs (`regions`: one of a group or a scan, one for each pass of a repeat) and nodes that fill its slots (`slots`).
This is all that most of the code has to know of kinds of nodes. `composer.graph.visit` goes through graphs with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar, assert_never

from composer.graph.ir import BlockNode, Graph, GroupNode, Node, RepeatNode, ScanNode, SlotNode, Wire
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat, TypedScan

G = TypeVar("G")
N = TypeVar("N")


class Region(NamedTuple, Generic[G]):
    """A graph inside a node."""

    graph: G
    wires: tuple[Wire, ...]
    """What its inputs are, in terms of the graph around the node."""
    number: int | None = None
    """The pass, for a repeat."""
    name: str = ""
    """What the `state_dict` has between the node's name and the names in the graph, with a dot behind it: `3.` for a pass."""
    owner: bool = True
    """Whether it has parameters of its own; of a repeat with one set of weights, only the first pass has."""

    @property
    def key(self) -> str:
        """The pass as a step of a path: `3.`; nothing for what has no passes."""
        return "" if self.number is None else f"{self.number}."


def regions(node: TypedNode) -> tuple[Region[TypedGraph], ...]:
    """Return the graphs inside a node."""
    match node:
        case TypedBlock():
            return ()
        case TypedGroup(graph=graph) | TypedScan(graph=graph):
            return (Region(graph, node.node.wires),)
        case TypedRepeat(passes=passes):
            shared = node.node.share is not None
            return tuple(
                Region(graph, one.wires, index, node.prefix(index), not (shared and index))
                for index, (one, graph) in enumerate(zip(node.node.passes, passes, strict=True))
            )
        case _:
            assert_never(node)


def slots(node: TypedNode) -> Iterator[tuple[str, TypedNode]]:
    """Yield the nodes that fill the slots of a block, each with the name that it has there."""
    if isinstance(node, TypedBlock) and node.slots:
        yield from ((name, slot) for name, slot in node.slots.items() if slot is not None)


def optional_output(block: TypedBlock, name: str) -> bool:
    """Return whether an output is computed only where something reads it."""
    return name + "?" in type(block.part).outputs


def ir_regions(node: Node) -> tuple[Region[Graph], ...]:
    """Return the graphs inside a node of the IR."""
    match node:
        case BlockNode():
            return ()
        case GroupNode(graph=graph) | ScanNode(graph=graph):
            return (Region(graph, node.wires),)
        case RepeatNode(passes=passes, share=share):
            return tuple(
                Region(one.graph, one.wires, index, f"{index}." if share is None else "", share is None or not index)
                for index, one in enumerate(passes)
            )
        case _:
            assert_never(node)


def ir_slots(node: Node) -> Iterator[tuple[str, Node]]:
    """Yield the nodes that fill the slots of a block of the IR, each with the name of its field."""
    if isinstance(node, BlockNode):
        yield from ((name, value.node) for name, value in node.fields if isinstance(value, SlotNode))


def wires_of(node: TypedNode | Node) -> Iterator[Wire]:
    """Yield everything that a node reads, in any pass."""
    plain = node.node if isinstance(node, TypedBlock | TypedGroup | TypedRepeat | TypedScan) else node
    match plain:
        case BlockNode() | GroupNode() | ScanNode():
            yield from plain.wires
        case RepeatNode(passes=passes):
            for one in passes:  # passes that share a graph differ in what they are given
                yield from one.wires
        case _:
            assert_never(plain)


@dataclass(frozen=True, slots=True)
class Anatomy(Generic[G, N]):
    """How to access the parts of nodes: of typed ones, or of those of the IR."""

    nodes: Callable[[G], Sequence[N]]
    name: Callable[[N], str]
    regions: Callable[[N], tuple[Region[G], ...]]
    slots: Callable[[N], Iterable[tuple[str, N]]]


TYPED: Anatomy[TypedGraph, TypedNode] = Anatomy(lambda graph: graph.nodes, lambda node: node.name, regions, slots)
IR: Anatomy[Graph, Node] = Anatomy(lambda graph: graph.nodes, lambda node: node.name, ir_regions, ir_slots)


# -- the same with something changed


def with_nodes(graph: TypedGraph, nodes: Sequence[TypedNode]) -> TypedGraph:
    """Return the graph with other nodes of the same names; the graph itself where none is another."""
    if all(ours is theirs for ours, theirs in zip(nodes, graph.nodes, strict=True)):
        return graph
    return replace(graph, nodes=tuple(nodes), by_name={node.name: node for node in nodes})


def rebuilt(node: TypedNode, graphs: Sequence[TypedGraph], filled: Mapping[str, TypedNode] | None = None) -> TypedNode:
    """Return the node with other graphs inside and other nodes in its slots; the node itself where all are the same."""
    match node:
        case TypedBlock():
            changed = {name: slot for name, slot in (filled or {}).items() if slot is not node.slots[name]}
            return replace(node, slots={**node.slots, **changed}) if changed else node
        case TypedGroup() | TypedScan():
            (graph,) = graphs
            return node if graph is node.graph else replace(node, graph=graph)
        case TypedRepeat(passes=passes):
            same = all(ours is theirs for ours, theirs in zip(graphs, passes, strict=True))
            return node if same else replace(node, passes=tuple(graphs))
        case _:
            assert_never(node)


def with_wires(node: TypedNode, change: Callable[[Wire, int], Wire]) -> TypedNode:
    """Return the node with what `change` makes of each of its wires, given with the pass, which is 0 in all but a repeat."""
    match node:
        case TypedBlock() | TypedGroup() | TypedScan():
            wires = tuple(change(wire, 0) for wire in node.node.wires)
            return replace(node, node=replace(node.node, wires=wires))  # type: ignore[arg-type]  # each kind with its own
        case TypedRepeat():
            passes = tuple(
                replace(one, wires=tuple(change(wire, index) for wire in one.wires)) for index, one in enumerate(node.node.passes)
            )
            return replace(node, node=replace(node.node, passes=passes))
        case _:
            assert_never(node)


def renamed(node: TypedNode, name: str) -> TypedNode:
    """Return the node under another name."""
    return replace(node, node=replace(node.node, name=name))  # type: ignore[arg-type]  # each kind with its own
