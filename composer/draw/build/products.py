"""Boxes of outer products: how long each vector is that they multiply, and which of these end in an appended 1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from blocks.core import Formula, size
from blocks.core.look import ProductIcon, ProductSide
from composer.draw.build.texts.captions import NodePlace
from composer.draw.diagram import Item, Leaf
from composer.draw.style.looks import look
from composer.graph.ir import Ref
from composer.graph.typed import TypedBlock, TypedGraph, TypedNode
from composer.graph.types import TensorType

MAX_LENGTH = 8
"""Letters of the length of a vector that stands at the edge of a picture."""


def with_lengths(items: Iterable[Item], graph: TypedGraph, place: NodePlace) -> Iterator[Item]:
    """Yield boxes and frames of a graph, those of outer products with the lengths of all vectors, where these are known."""
    for item in items:
        if isinstance(item, Leaf) and isinstance(icon := item.look.icon, ProductIcon):
            node = graph.by_name.get(item.about.path.rpartition(".")[2])
            if isinstance(node, TypedBlock) and place.inner(node.name).path == item.about.path:
                item = replace(item, look=replace(item.look, icon=measured(icon, node, graph)))
        yield item


def measured(icon: ProductIcon, node: TypedBlock, graph: TypedGraph) -> ProductIcon:
    """Return the picture of a product with the lengths of all vectors; as it is where one is not known or is a long text."""
    formula = getattr(node.part, "formula", None)
    refs = [ref for wire in node.node.wires for ref in wire.refs]
    types = [one for given in node.inputs.values() for one in (given if isinstance(given, tuple) else (given,))]
    if not isinstance(formula, Formula) or not len(formula.names) == len(refs) == len(types):
        return icon
    read = dict(zip(formula.names, zip(refs, types, strict=True), strict=True))
    found = [of_side(side, *read[side.value], graph) for side in icon.sides]
    return replace(icon, sides=tuple(found)) if all(0 < len(one.length) <= MAX_LENGTH for one in found) else icon


def of_side(side: ProductSide, ref: Ref, type_: object, graph: TypedGraph) -> ProductSide:
    """Return an edge with the length of its vector, which is read from a node of a graph."""
    if not isinstance(type_, TensorType) or side.place >= len(type_.axes):
        return side
    own = type_.axes[side.place].size
    appended = isinstance(own, int) and appends_one(graph.by_name.get(ref.node), side.place - len(type_.axes))
    return replace(side, length=size(own), appended=appended)


def appends_one(node: TypedNode | None, axis: int) -> bool:
    """Return whether a node gives what it reads with a 1 behind it, along an axis that is counted from the last one."""
    return isinstance(node, TypedBlock) and look(node).appends == (axis, 1.0)
