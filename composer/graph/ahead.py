"""Blocks that see the future, which a model that writes does not have."""

from __future__ import annotations

from collections.abc import Iterator

from blocks.core import Reject
from composer.graph.dims import Dim
from composer.graph.typed import TypedBlock, TypedGraph, TypedNode, TypedRepeat, along, children


def looking_ahead(root: TypedGraph, axis: Dim) -> Iterator[tuple[TypedBlock, Reject]]:
    """Every block along an axis whose output depends on later positions whatever masks there are, with its reason."""
    for node in root.nodes:
        if not node.node.dropped:
            yield from _below(node, axis)


def _below(node: TypedNode, axis: Dim) -> Iterator[tuple[TypedBlock, Reject]]:
    if isinstance(node, TypedBlock) and (no := node.part.looks_ahead()) is not None and along(node, axis):
        yield node, no
    if isinstance(node, TypedRepeat):  # equal passes are one graph
        for one in {id(graph): graph for graph in node.passes}.values():
            yield from looking_ahead(one, axis)
        return
    for _, child in children(node):
        yield from _below(child, axis)
