"""A formula as the operations that it consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from blocks.core import Formula, Piece
from composer.draw.build.blocks import add_each_piece
from composer.draw.build.captions import Captions, NodePlace
from composer.draw.build.flow_builder import FlowBuilder
from composer.draw.build.value_sources import NodeSources, Sources, ValueSources, sources
from composer.draw.diagram import Leaf
from composer.draw.wording import shape
from composer.graph.typed import TypedBlock

FORMULA = "compute"
"""The kind of block that is a formula."""


def operands_of(node: TypedBlock, values: ValueSources) -> Mapping[str, Sources]:
    """Return where each value that a formula reads comes from, by its name with a `$`; nothing where a name stands for several
    values, such as those of passes that differ, or two for one, which an operation would seem to read once.
    """
    formula = getattr(node.part, "formula", None)
    assert isinstance(formula, Formula)
    refs = [ref for wire in node.node.wires for ref in wire.refs]
    found = [sources((ref,), values) for ref in refs]
    single = len({one[0] for one in found if len(one) == 1}) == len(found) == len(formula.names)
    return {f"${name}": one for name, one in zip(formula.names, found, strict=True)} if single else {}


def add_operations(
    captions: Captions,
    node: TypedBlock,
    pieces: Sequence[Piece],
    operands: Mapping[str, Sources],
    place: NodePlace,
    out: FlowBuilder,
) -> NodeSources:
    """Add the operations of a formula; what the last one gives has the shape and the name of the value of the formula."""
    values = add_each_piece(captions, node, pieces, operands, place, out)
    (last,) = values[pieces[-1].name]
    (gives,) = (shape(type_) for type_ in node.outputs.values())
    whole, end = replace(last, shape=gives, called=place.path), out.items[-1]
    assert isinstance(end, Leaf)
    out.items[-1] = replace(end, shape=gives if gives != shape(node.first_input) else "")
    return NodeSources({"": (whole,), **dict.fromkeys(node.outputs, (whole,))})
