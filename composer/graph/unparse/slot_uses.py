"""One text for a node that fills a slot which a block uses several times, at other widths each.

Before:
    the norm of the queries, of 16 channels: {type: gated_ffn, hidden: 64}
    the norm of the keys, of 8 channels: {type: gated_ffn, hidden: 32}
After:
    qk_norm: {type: gated_ffn, hidden: 4 * dim}
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from blocks.core import fields
from composer.graph.ir import Graph
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode
from composer.graph.types import TensorType, each_given
from composer.graph.unparse.node_text import FormulaText, bare
from composer.graph.visit import Visit, every_node, every_pass, walk
from composer.language.recipe.defined_block import is_defined
from composer.language.recipe.free_names import IDENTIFIER
from composer.language.recipe.writer import YamlData

NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d*)?(?:e[+-]?\d+)?(?![\w.])")


class SlotUse(NamedTuple):
    """A node in one use of a slot."""

    node: TypedNode
    axes: Mapping[str, Any]
    """The lengths of the axes that are named by the outermost block definition around it in the slot."""


SlotUses: TypeAlias = Mapping[TypedNode, tuple[SlotUse, ...]]
"""Each node in a slot, with those that stand at its place in every use."""


def uses(filled: Sequence[SlotUse]) -> SlotUses:
    """Return the nodes of all uses of a slot, by their places; nothing where the uses have other places each."""
    each = [[*_inside(use)] for use in filled]
    found: dict[TypedNode, tuple[SlotUse, ...]] = {}
    for alike in zip(*each, strict=True) if len({*map(len, each)}) == 1 else ():
        if len({type(use.node) for use in alike}) == 1:
            for one in alike:
                found[one.node] = (*found.get(one.node, ()), *alike)
    return found


def _inside(use: SlotUse) -> Iterator[SlotUse]:
    alone = TypedGraph(Graph((), (), ()), {}, (use.node,), {}, {use.node.name: use.node})
    for visit in walk(alone, every_pass, every_node):
        yield SlotUse(visit.node, use.axes or _axes_around(visit))


def _axes_around(visit: Visit) -> dict[str, Any]:
    defined = [one.node for one in visit.around if isinstance(one.node, TypedGroup) and is_defined(one.node.node.part)]
    for group in reversed([node for node in defined if node is not visit.node]):
        types = (type_ for type_ in each_given(group.graph.inputs) if isinstance(type_, TensorType))
        return {axis.name: axis.size for type_ in types for axis in type_.axes if axis.name.isidentifier()}
    return {}


def lengths(several: Sequence[SlotUse], taken: Collection[str], *, defined: bool) -> dict[str, list[Any]]:
    """Return the lengths that axes have in each use, by the names that fields of a block may read.

    Args:
        several: A block in every use.
        taken: Names that stand for something else.
        defined: Whether the axes of the block definition around them can be read.
    """
    first = several[0].node
    if not isinstance(first, TypedBlock):
        return {}
    part = type(first.part)
    around = {*several[0].axes} - {*taken} if defined else set()
    words = {word for type_ in part.inputs.values() for word in IDENTIFIER.findall(type_)}
    own = words - fields(part).keys() - {*taken} - around  # a name in a definition is first of all one of its axes
    return {
        **{axis: [use.node.sizes.get(axis) for use in several if isinstance(use.node, TypedBlock)] for axis in sorted(own)},
        **{axis: [use.axes.get(axis) for use in several] for axis in sorted(around)},
    }


def by_axes(texts: Sequence[YamlData], own: YamlData, axes: Mapping[str, Sequence[Any]]) -> YamlData:
    """Return what is written in every use as one text, in which numbers that differ are formulas over axes; where there is none,
    what is written in one use.

    Args:
        texts: What is written in each use.
        own: What is written in one use.
        axes: The lengths that axes have in each use.
    """
    plain = [bare(text) for text in texts]
    match bare(own):
        case dict() as written if all(isinstance(one, dict) and [*one] == [*written] for one in plain):
            return {key: by_axes([one[key] for one in plain], inner, axes) for key, inner in written.items()}
        case list() as written if all(isinstance(one, list) and len(one) == len(written) for one in plain):
            return [by_axes([one[place] for one in plain], inner, axes) for place, inner in enumerate(written)]  # type: ignore[index]
        case str() as written if len({*map(str, plain)}) > 1:
            return _by_axes([str(one) for one in plain], written, axes)
    return own


def _by_axes(texts: Sequence[str], own: str, axes: Mapping[str, Sequence[Any]]) -> str:
    if len({NUMBER.sub("#", text) for text in texts}) > 1:
        return own
    found: list[str] = []
    for numbers in zip(*map(NUMBER.findall, texts), strict=True):
        formula = numbers[0] if len({*numbers}) == 1 else _formula([*map(_number, numbers)], axes)
        if formula is None:
            return own
        found.append(formula)
    whole = NUMBER.fullmatch(own) is not None
    formulas = iter(text if whole or " " not in text else f"({text})" for text in found)
    return FormulaText(NUMBER.sub(lambda _: next(formulas), own))


def _number(text: str) -> int | float:
    return int(text) if text.isdecimal() else float(text)


def _formula(values: Sequence[int | float], axes: Mapping[str, Sequence[Any]]) -> str | None:
    """Return the numbers of all uses as the shortest formula over one axis: a line where they are whole numbers on one."""
    found: list[tuple[bool, int, str]] = []
    for axis, known in axes.items():
        points = dict(zip(known, values, strict=True))
        if {*map(type, points)} != {int} or any(points[at] != value for at, value in zip(known, values, strict=True)):
            continue  # an open length, or one length with two values
        line = _line(axis, points)
        text = line or _through(axis, points)
        found.append((line is None, len(text), text))
    return min(found)[2] if found else None


def _line(axis: str, points: Mapping[int, int | float]) -> str | None:
    """Return the line through the values at these lengths of an axis; None where there is none of whole numbers."""
    (length, value), (further, other), *_ = pairs = sorted(points.items())
    if not all(isinstance(each, int) for each in points.values()):
        return None
    slope = Fraction(int(other - value), further - length)
    start = int(slope.denominator * value) - slope.numerator * length
    if any(slope.denominator * each != slope.numerator * at + start for at, each in pairs):
        return None
    term = {1: axis, -1: f"-{axis}"}.get(slope.numerator, f"{slope.numerator} * {axis}")
    line = f"{term} + {start}" if start > 0 else f"{term} - {-start}" if start else term
    if slope.denominator == 1:
        return line
    return f"({line}) // {slope.denominator}" if " " in line else f"{line} // {slope.denominator}"


def _through(axis: str, points: Mapping[int, int | float]) -> str:
    """Return a sum that is exactly each value at its length: every other summand is 0 there, and its own factor is 1."""
    terms = []
    for at, value in points.items():
        factors = [f"(({axis} - {each}) // {at - each})" if each < at else f"(({each} - {axis}) // {each - at})"
                   for each in points if each != at]  # fmt: skip
        terms.append(" * ".join([str(value), *factors]))
    return " + ".join(terms)
