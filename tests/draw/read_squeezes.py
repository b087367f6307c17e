"""Axes of length 1 that are taken away or put in, which need no box: what gives a value, and what a formula calls it then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from composer.draw.paths import plain
from composer.graph.anatomy import regions, wires_of
from composer.graph.typed import TypedBlock, TypedGraph, TypedNode, TypedProgram
from composer.graph.types import TensorType


def is_squeeze(node: TypedNode) -> bool:
    """Return whether a node gives the numbers that it reads, with another number of axes."""
    if not isinstance(node, TypedBlock) or node.part.kind not in ("select", "new_axis"):
        return False
    before, after = node.first_input, next(iter(node.outputs.values()))
    if not isinstance(before, TensorType) or not isinstance(after, TensorType):
        return False
    more, fewer = Counter(map(str, before.sizes)), Counter(map(str, after.sizes))
    return [*(more - fewer).elements(), *(fewer - more).elements()] == ["1"]


def squeezed(typed: TypedProgram) -> dict[str, str]:
    """Return what gives the value of each squeeze that is all that reads it, by the path of the squeeze, without passes."""
    return dict(_in_graph(typed.root, ""))


def _in_graph(graph: TypedGraph, prefix: str) -> Iterator[tuple[str, str]]:
    read = Counter(ref.node for node in graph.nodes for wire in wires_of(node.node) for ref in wire.refs)
    read += Counter(ref.node for _, ref in graph.graph.outputs)
    for node in graph.nodes:
        if is_squeeze(node):
            (ref,) = (ref for wire in wires_of(node.node) for ref in wire.refs)
            if ref.node in graph.by_name and read[ref.node] == 1:
                yield plain(f"{prefix}{node.name}"), plain(f"{prefix}{ref.node}")
        for region in regions(node):
            yield from _in_graph(region.graph, f"{prefix}{node.name}.")
