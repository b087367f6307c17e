"""FLOPs of one forward pass in closed form: the declared costs of the blocks, summed over the graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, assert_never

from blocks.core import ports
from blocks.masks.count import visible
from blocks.masks.mask import Mask
from composer.graph.anatomy import TYPED
from composer.graph.dims import Symbolic, substitute
from composer.graph.passes.adapt import linear_maps
from composer.graph.type_patterns import declared
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat, TypedScan
from composer.graph.types import TensorType
from composer.graph.visit import Fold, Inside
from composer.language.expressions.ast import Binary, Expression, Number, RefPath, Unary

Amount = int | Fraction
ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "/": Fraction,
    "**": operator.pow,
}


@dataclass(frozen=True, slots=True)
class Flops:
    """Floating-point operations, where a multiply and an add count as two."""

    dense: int = 0
    """FLOPs of kernels that do not skip masked pairs."""
    masked: int = 0
    """FLOPs of kernels that skip all masked pairs."""

    def __add__(self, other: Flops) -> Flops:
        return Flops(self.dense + other.dense, self.masked + other.masked)

    def __mul__(self, times: int) -> Flops:
        return Flops(self.dense * times, self.masked * times)


class FlopCounter:
    """Counts FLOPs at given lengths; equal passes are one graph, which is counted once."""

    def __init__(self, lengths: Mapping[str, int]) -> None:
        self.lengths = lengths
        self.counted = Fold(TYPED, self._node, lambda graph, found: sum(found, Flops()))

    def graph(self, graph: TypedGraph) -> Flops:
        """Return the FLOPs of one forward pass of a graph."""
        return self.counted.graph(graph)

    def node(self, node: TypedNode) -> Flops:
        """Return the FLOPs of one forward pass of a node."""
        return self.counted.node(node, node.name)

    def _node(self, node: TypedNode, inside: Inside[TypedGraph, Flops, Flops]) -> Flops:
        """Return the FLOPs of one forward pass of a node, including the parts in its slots."""
        match node:
            case TypedBlock():
                return sum((flops for _, flops in inside.slots), self._block(node) + self._adapters(node))
            case TypedGroup() | TypedRepeat():
                return sum(inside.passes(), Flops())
            case TypedScan(axis=axis):
                return sum(inside.passes(), Flops()) * self._number(axis.size)
            case _:
                assert_never(node)

    def _block(self, block: TypedBlock) -> Flops:
        sizes = {name: self._number(value) for name, value in block.sizes.items() if isinstance(value, int | Symbolic)}
        cost = block.part.cost(block.sizes, frozenset(block.inputs))
        if cost is None:
            matrices = sum(prod(parameter.shape) for parameter in block.parameters if parameter.role == "matrix")
            matrices += sum(prod(parameter.shape[1:]) for parameter in block.parameters if parameter.role == "experts")
            every = 2 * matrices * self._positions(block) if matrices else 0
            return Flops(every, every)
        dense = whole(computed(cost.dense, sizes))
        if not cost.per_pair:
            return Flops(dense, dense)
        pairs = computed(cost.per_pair, sizes) * computed(cost.pairs, sizes)
        return Flops(dense, dense - whole(pairs * (1 - self._visible_share(block, sizes))))

    def _adapters(self, block: TypedBlock) -> Flops:
        """Return the FLOPs of what is added to linear maps."""
        maps = linear_maps(block) if block.adapters else {}
        every = 0
        for name, adapter in block.adapters.items():
            inputs, outputs, _, port, _ = maps[name]
            every += 2 * adapter.rank * (inputs + outputs) * self._positions(block, port)
        return Flops(every, every)

    def _positions(self, block: TypedBlock, port: str = "") -> int:
        """Return the number of vectors at a port, by default the first one, that the block's matrices are applied to."""
        wanted = [port] if port else ports(type(block.part))
        first = next((block.inputs[port] for port in wanted if port in block.inputs), None)
        axes = first.sizes[:-1] if isinstance(first, TensorType) else ()
        return prod(map(self._number, axes))

    def _visible_share(self, block: TypedBlock, sizes: Mapping[str, int]) -> Fraction:
        """Return the share of (query, key) pairs that the block's masks allow."""
        share = Fraction(1)
        for prepared in block.part.per_call(frozenset(block.inputs)).values():
            mask = getattr(block.part, prepared.slot)
            if isinstance(mask, Mask):
                queries, keys = (sizes[block.part.position_inputs[port]] for port in prepared.ports)
                if pairs := queries * keys:  # a text may be shorter than a kernel
                    share *= Fraction(visible(mask, queries, keys), pairs)
        return share

    def _number(self, size: int | Symbolic) -> int:
        return substitute(size, self.lengths)


def computed(text: str, sizes: Mapping[str, int]) -> Amount:
    """Evaluate a block's declared expression term by term, since the whole may exceed the length limit of expressions."""
    return sum(amount(declared(term), sizes) for term in terms(text))


def terms(text: str) -> list[str]:
    """Return the terms of a sum, split outside of parentheses."""
    found, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "+" and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [term.strip() for term in found]


def amount(expression: Expression, sizes: Mapping[str, int]) -> Amount:
    """Evaluate a declared amount, which unlike the numbers of a recipe has no upper bound."""
    match expression:
        case Number(value=int(value)):
            return value
        case RefPath(steps=(step,)):
            return sizes[step.name]
        case Unary(operator="-", operand=operand):
            return -amount(operand, sizes)
        case Binary(operator=sign, left=left, right=right) if sign in ARITHMETIC:
            result: Amount = ARITHMETIC[sign](amount(left, sizes), amount(right, sizes))
            return result
    raise ValueError(f"a block's cost is no sum of products: {expression.span!r}")


def whole(number: Amount) -> int:
    """Return the nearest integer; only shares of pairs make an amount a fraction."""
    return round(number)
