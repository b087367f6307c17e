"""Which steps are linear in what is carried: `h = keep · h' + add`, with `keep` and `add` free of it and each number of the state
for itself. Then no step has to wait for the one before.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeAlias

from blocks.core.fields import formula_of
from blocks.core.formula import AppliedFunction, Formula, FormulaTree, KnownNumber, ReadValue, subtrees
from composer.graph.ir import Ref
from composer.graph.scans.formula_parts import CHOICE, ISLAND, by_itself
from composer.graph.scans.lifted import Outside, is_pointwise
from composer.graph.scans.sink_steps import read_by
from composer.graph.typed import TypedBlock, TypedNode, TypedScan
from composer.graph.types import TensorType

AxisOrder: TypeAlias = tuple[int | None, ...]
"""Where the axes of a value stand among those of another."""
_JOINED = re.compile(r"\{xs: ([+*]) \}")
"""The forward of a sum or a product of all inputs."""
OF_NUMBERS: Mapping[str, Callable[..., float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "negative": operator.neg,
}  # fmt: skip
ONE = KnownNumber(-1)
"""The factor of a state that is only added to."""


@dataclass(frozen=True, slots=True)
class Affine:
    """A value as `keep · state + add`; both are trees over the leaves and numbers of a `LinearSteps`."""

    carry: str | None
    """The input that is the state; None for a value that is free of any."""
    keep: FormulaTree | None
    add: FormulaTree | None
    """None for 0."""


class NotLinear(Exception):
    """A value is no linear function of one state."""


@dataclass(slots=True)
class LinearSteps:
    """The values in a loop, each as a linear function of a state."""

    scan: TypedScan
    known: Mapping[str, Outside]
    islands: frozenset[str]
    """What is known outside and in float32 whatever the dtype of the model."""
    leaves: list[tuple[str, AxisOrder]] = field(default_factory=list)
    """Values from outside of the loop, with the way of their axes."""
    numbers: list[bool | int | float] = field(default_factory=list)
    found: dict[str, Affine] = field(default_factory=dict)

    def node(self, node: TypedNode) -> Affine:
        """Return what a node gives, once those that it reads are found.

        Raises:
            NotLinear: It is no linear function of one state.
        """
        if not isinstance(node, TypedBlock) or not is_pointwise(node):
            raise NotLinear
        reads = read_by(node)
        values = [self._read(ref, way) for ref, way in zip(reads, node.expansions, strict=True)]
        formula = formula_of(node.part)
        if formula is not None:
            value = self._tree(formula.tree, formula, values)
        elif joined := _JOINED.fullmatch(node.part.inline(node.sizes) or ""):
            value = reduce(lambda one, other: self._applied(joined[1], (one, other)), values)
        else:
            raise NotLinear
        self.found[node.name] = value
        return value

    def _read(self, ref: Ref, way: AxisOrder) -> Affine:
        if ref.port or ref.index is not None:
            raise NotLinear
        if ref.node in self.known:
            self.leaves.append((ref.node, way))
            return Affine(None, None, ReadValue(len(self.leaves) - 1))
        if way != tuple(range(len(way))):  # a state must keep its place, or its numbers would be mixed
            raise NotLinear
        if ref.node in self.scan.carried:
            return Affine(ref.node, ONE, None)
        if ref.node in self.found:
            return self.found[ref.node]
        raise NotLinear

    def _tree(self, tree: FormulaTree, formula: Formula, values: Sequence[Affine]) -> Affine:
        match tree:
            case ReadValue(index=index):
                return values[index]
            case KnownNumber(index=index):
                return Affine(None, None, self._number(formula.numbers[index]))
            case AppliedFunction(function=function, arguments=arguments):
                return self._applied(function, tuple(self._tree(one, formula, values) for one in arguments))

    def _applied(self, function: str, arguments: tuple[Affine, ...]) -> Affine:
        states = {one.carry for one in arguments} - {None}
        if not states:
            return Affine(None, None, self._call(function, *(one.add for one in arguments)))
        if len(states) > 1:
            raise NotLinear
        (carry,) = states
        match function, arguments:
            case "+" | "-", (one, other):
                keep, add = (self._sum(function, a, b) for a, b in ((one.keep, other.keep), (one.add, other.add)))
            case "*", (one, other) if None in (one.carry, other.carry):
                state, factor = (one, other) if other.carry is None else (other, one)
                keep, add = (self._product(each, factor.add) for each in (state.keep, state.add))
            case "/", (state, divisor) if divisor.carry is None:
                keep, add = (each and self._call("/", each, divisor.add) for each in (state.keep, state.add))
            case ("negative", (state,)) | ("float32", (state,)):
                keep, add = (self._of_one(function, each) for each in (state.keep, state.add))
            # a branch without the state forgets even infinity and NaN, which no product with 0 does
            case "where", (condition, one, other) if condition.carry is None and one.carry == other.carry:
                pairs = ((one.keep, other.keep), (one.add, other.add))
                keep, add = (self._call(CHOICE, condition.add, a, b) if a or b else None for a, b in pairs)
            case _:
                raise NotLinear
        return Affine(carry, keep, add)

    def _call(self, function: str, *arguments: FormulaTree | None) -> FormulaTree:
        """Return a function of trees; a number where these are numbers."""
        trees = tuple(self._number(0.0 if one is None else 1.0) if one in (None, ONE) else one for one in arguments)
        numbers = [self.number(one) for one in trees]
        if function in OF_NUMBERS and None not in numbers:
            if function == "/" and not numbers[1]:
                raise NotLinear
            return self._number(OF_NUMBERS[function](*numbers))
        if function == CHOICE and numbers[1] is not None and numbers[1] == numbers[2]:
            return trees[1]
        return AppliedFunction(function, trees)

    def _number(self, value: bool | int | float) -> KnownNumber:
        self.numbers.append(value)
        return KnownNumber(len(self.numbers) - 1)

    def _sum(self, function: str, one: FormulaTree | None, other: FormulaTree | None) -> FormulaTree | None:
        if other is None:
            return one
        if one is None:
            return other if function == "+" else self._call("negative", other)
        return self._call(function, one, other)

    def _product(self, one: FormulaTree | None, factor: FormulaTree | None) -> FormulaTree | None:
        if one is None or factor is None:
            return None
        return factor if one == ONE else self._call("*", one, factor)

    def _of_one(self, function: str, tree: FormulaTree | None) -> FormulaTree | None:
        if tree is None or (function == ISLAND and self.number(tree) is not None):
            return tree
        if function == ISLAND and isinstance(tree, ReadValue) and self.leaves[tree.index][0] in self.islands:
            return tree
        return self._call(function, tree)

    # -- what is found as values

    def number(self, tree: FormulaTree) -> float | None:
        """Return the value of a tree that is a number."""
        if tree == ONE:
            return 1.0
        return float(self.numbers[tree.index]) if isinstance(tree, KnownNumber) else None

    def formula(self, tree: FormulaTree) -> tuple[Formula, list[tuple[str, AxisOrder]]]:
        """Return a tree as a formula of its own, with the values that it reads."""
        read = dict.fromkeys(one.index for one in subtrees(tree) if isinstance(one, ReadValue))
        reads = list(dict.fromkeys(self.leaves[index] for index in read))
        names = tuple(f"part_{index}" for index in range(len(reads)))
        return by_itself(tree, {index: reads.index(self.leaves[index]) for index in read}, self.numbers, names), reads


def is_float(scan: TypedScan, carry: str) -> bool:
    """Return whether a carried value is a tensor of floats."""
    type_ = scan.graph.inputs[carry]
    return isinstance(type_, TensorType) and type_.dtype == "float"
