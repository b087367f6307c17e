"""Axes of length 1 that are taken away or put in: no blocks of their own, as the shapes at wires tell them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from composer.draw.build.blocks import is_identity
from composer.draw.build.levels import Depth
from composer.draw.build.simpler.everywhere import EveryGraph, graph_of
from composer.draw.build.simpler.reductions import Merged, readers_in
from composer.draw.build.texts.descriptions import whole
from composer.draw.build.texts.node_names import names_in, read_by_name
from composer.draw.paths import plain
from composer.graph.anatomy import wires_of, with_wires
from composer.graph.ir import Ref, Wire
from composer.graph.typed import TypedBlock, TypedGraph, TypedNode
from composer.graph.types import TensorType

TAKING = frozenset({"select"})
"""Kinds of blocks that take away an axis by taking one place of it."""
PUTTING = frozenset({"new_axis"})
"""Kinds of blocks that put an axis in."""


@dataclass(frozen=True, slots=True)
class Squeezed:
    """A graph without squeezes."""

    graph: TypedGraph
    merged: Mapping[str, Merged]
    """Which of them blocks stand for, by the paths of these without passes."""
    names: Mapping[str, str]
    """What formulas call such blocks, by their paths without passes."""


def without_squeezes(graph: TypedGraph, depth: Depth, merged: Mapping[str, Merged]) -> Squeezed:
    """Return a graph of a model in which nothing but takes away an axis of length 1 or puts one in: a block that nothing else
    reads gives that itself, and others are read as they are, where no formula calls the result by a name. `merged` is what blocks
    stand for already. What an option names stays, and so does what a graph gives.
    """
    finder = _Finder(depth, dict(merged))
    return Squeezed(finder.changed(graph, ""), finder.merged, finder.names)


@dataclass(slots=True)
class _Finder(EveryGraph):
    """Looks for squeezes in a graph and in all that it holds."""

    merged: dict[str, Merged]
    names: dict[str, str] = field(default_factory=dict, kw_only=True)

    def own(self, graph: TypedGraph, prefix: str) -> TypedGraph:
        """Return a graph without those among its own nodes."""
        for node in graph.nodes:
            if not isinstance(node, TypedBlock) or not is_squeeze(node) or self.depth.points_at(plain(f"{prefix}{node.name}")):
                continue
            ref = node.node.wires[0].refs[0]
            maker = graph.by_name.get(ref.node)
            named = node.name in read_by_name(graph)
            if (
                isinstance(maker, TypedBlock)
                and gives_alone(maker, graph)
                and not self.depth.points_at(plain(f"{prefix}{maker.name}"))
            ):
                path = plain(f"{prefix}{maker.name}")
                before = self.merged.get(path, Merged((), f"{maker.name} is {whole(maker)}"))
                said = f"{before.description}; {node.name} is {whole(node)}"
                self.merged[path] = Merged((*before.names, node.name), said)
                self.names |= {path: node.name} if named else {}
                (port,) = maker.outputs
                given = replace(maker, outputs={port: next(iter(node.outputs.values()))})
                graph = _read_in_place(node, Ref(maker.name), graph, given)
            elif not named and node.name not in {one.node for _, one in graph.graph.outputs}:
                graph = _read_in_place(node, ref, graph)
        return graph


def is_squeeze(node: TypedBlock) -> bool:
    """Return whether a node does nothing but take away an axis of length 1, or put one in."""
    if node.part.kind in TAKING:
        given = node.first_input
        return isinstance(given, TensorType) and given.axes[node.sizes["dim"]].size == 1
    return node.part.kind in PUTTING and node.sizes["of"] is None and node.sizes["length"] == 1


def gives_alone(maker: TypedBlock, graph: TypedGraph) -> bool:
    """Return whether one value is all that a block gives, and one reference all that reads it. What may be no box itself, as a
    dropout, an identity or a formula of which each operation is one, can have no other name.
    """
    alone = len(maker.outputs) == 1 and readers_in(graph)[maker.name] == 1
    return alone and maker.part.drop_rate() is None and not is_identity(maker) and not names_in(maker)


def _read_in_place(node: TypedBlock, ref: Ref, graph: TypedGraph, maker: TypedBlock | None = None) -> TypedGraph:
    """Return a graph in which what reads a node reads another value, maybe of a block that is changed."""

    def led(wire: Wire, _: int) -> Wire:
        return replace(wire, refs=tuple(ref if one.node == node.name else one for one in wire.refs))

    reading = {one.name for one in graph.nodes for wire in wires_of(one.node) for own in wire.refs if own.node == node.name}
    changed = [with_wires(one, led) if one.name in reading else one for one in graph.nodes if one is not node]
    nodes: list[TypedNode] = [maker if maker is not None and one.name == maker.name else one for one in changed]
    outputs = [(port, ref if one.node == node.name else one) for port, one in graph.graph.outputs]
    return graph_of(graph, nodes, outputs)
