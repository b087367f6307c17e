"""One text for a node that fills a slot which a block uses several times, at other widths each.

Before:
    the norm of the queries, of 16 channels: {type: gated_ffn, hidden: 64}
    the norm of the keys, of 8 channels: {type: gated_ffn, hidden: 32}
After:
    qk_norm: {type: gated_ffn, hidden: 4 * dim}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from blocks.core import fields
from composer.graph.ir import Graph
from composer.graph.typed import TypedBlock, TypedGraph, TypedNode
from composer.graph.unparse.node_text import FormulaText
from composer.graph.visit import every_node, every_pass, walk
from composer.language.recipe.free_names import IDENTIFIER

SlotUses: TypeAlias = Mapping[TypedBlock, tuple[TypedBlock, ...]]
"""Each block in a slot, with the one that stands at its place in every use."""


def uses(filled: Sequence[TypedNode]) -> SlotUses:
    """Return the blocks of all uses of a slot, by their places; nothing where the uses have other places each."""
    each = [[visit.node for visit in walk(_alone(node), every_pass, every_node)] for node in filled]
    if len({len(nodes) for nodes in each}) > 1:
        return {}
    alike = [tuple(node for node in nodes if isinstance(node, TypedBlock)) for nodes in zip(*each, strict=True)]
    return {one: blocks for blocks in alike if len(blocks) == len(filled) for one in blocks}


def by_width(blocks: Sequence[TypedBlock], name: str, taken: Collection[str]) -> FormulaText | None:
    """Return the number that a field has in each use as a formula over an axis of what the block is given; None where it is the
    same in all, or no whole number, or follows from no axis. The names that are `taken` stand for something else.
    """
    values = [getattr(block.part, name) for block in blocks]
    if {*map(type, values)} != {int} or len({*values}) < 2:
        return None
    part = type(blocks[0].part)
    given = {word for type_ in part.inputs.values() for word in IDENTIFIER.findall(type_)} - fields(part).keys() - {*taken}
    found = (_over(axis, [block.sizes.get(axis) for block in blocks], values) for axis in sorted(given))
    return min((text for text in found if text is not None), key=len, default=None)


def _over(axis: str, lengths: Sequence[Any], values: Sequence[int]) -> FormulaText | None:
    """Return the line through the values at these lengths of an axis, as a formula; None where there is none."""
    pairs = sorted({*zip(lengths, values, strict=True)}) if {*map(type, lengths)} == {int} else []
    if len(pairs) != len({*lengths}) or len(pairs) < 2:
        return None
    (length, value), (further, other), *_ = pairs
    slope = Fraction(other - value, further - length)
    start = slope.denominator * value - slope.numerator * length
    if any(slope.denominator * each != slope.numerator * at + start for at, each in pairs):
        return None
    term = {1: axis, -1: f"-{axis}"}.get(slope.numerator, f"{slope.numerator} * {axis}")
    line = f"{term} + {start}" if start > 0 else f"{term} - {-start}" if start else term
    if slope.denominator == 1:
        return FormulaText(line)
    return FormulaText(f"({line}) // {slope.denominator}" if " " in line else f"{line} // {slope.denominator}")


def _alone(node: TypedNode) -> TypedGraph:
    return TypedGraph(Graph((), (), ()), {}, (node,), {}, {node.name: node})
