"""What a node of a graph gives as a sum of products of others: `Σ c²` and `-2 Σ z c`, each entry with labels for its axes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TypeAlias

from blocks.core import Formula
from blocks.core.formula import AppliedFunction, FormulaTree, KnownNumber, ReadValue
from composer.graph.anatomy import wires_of
from composer.graph.ir import Ref
from composer.graph.typed import TypedBlock, TypedGraph, TypedNode
from composer.graph.types import TensorType

FORMULAS, SCALES, SUMS, CONTRACTIONS = (frozenset({kind}) for kind in ("compute", "scale", "sum", "einsum"))
"""Kinds of blocks that compute a formula, multiply by a number, add along axes, and multiply and add along axes."""
MAX_TERMS = 16
"""Products of a sum that is still looked at."""
CASTS = frozenset({"float32", "float", "stop_gradient"})
"""Functions that change no value."""
Labels: TypeAlias = tuple[int, ...]
"""What each axis of a value is called; those that a sum is taken over are negative."""
Factor: TypeAlias = tuple[Ref, Labels]
"""An entry of a value."""
Product: TypeAlias = tuple[Factor, ...]
"""Entries that are multiplied, and summed over the labels that are negative."""
Polynomial: TypeAlias = Mapping[Product, float]
"""Products with what each is multiplied by."""


@dataclass(slots=True)
class SumsOfProducts:
    """Expands what nodes of a graph give, as far as nothing else reads what is computed on the way."""

    graph: TypedGraph
    end: TypedNode
    """The node for which values are expanded."""
    private: frozenset[str] = field(init=False)
    """The nodes of which no value is read but on the way to the end."""
    _fresh: Iterator[int] = field(default_factory=lambda: count(1), init=False)

    def __post_init__(self) -> None:
        """Look up what is private."""
        self.private = private_below(self.end, self.graph)

    def labels(self, number: int) -> Labels:
        """Return so many new labels."""
        return tuple(next(self._fresh) for _ in range(number))

    def value(self, ref: Ref, labels: Labels) -> Polynomial | None:
        """Return a value whose axes have labels; itself where it is not seen how it is computed, and nothing for what is long."""
        node = self.graph.by_name.get(ref.node) if ref.node in self.private else None
        itself: Polynomial = {((ref, labels),): 1.0}
        found = self.of_block(node, labels) if isinstance(node, TypedBlock) else itself
        return found if found is None or len(found) <= MAX_TERMS else None

    def of_block(self, node: TypedBlock, labels: Labels) -> Polynomial | None:
        """Return what a block gives, whose axes have labels."""
        refs = refs_of(node)
        if node.part.kind in FORMULAS:
            return self.tree(formula_of(node).tree, node, labels)
        if node.part.kind in SCALES:
            (ref,) = refs
            return scaled(self.value(ref, labels), float(node.part.by))  # type: ignore[attr-defined]  # of a scale
        if node.part.kind in SUMS:
            (ref,) = refs
            new = self.labels(len(taken(node)))
            return summed(self.value(ref, with_summed(node, labels, new)), new)
        terms, out = contraction(node)
        every = [name for term in terms for name in term]
        named = {**dict(zip(every, self.labels(len(every)), strict=True)), **dict(zip(out, labels, strict=True))}
        values = [self.value(ref, tuple(named[name] for name in term)) for ref, term in zip(refs, terms, strict=True)]
        whole: Polynomial | None = {(): 1.0}
        for one in values:
            whole = multiplied(whole, one)
        return summed(whole, [label for name, label in named.items() if name not in out])

    def tree(self, tree: FormulaTree, node: TypedBlock, labels: Labels) -> Polynomial | None:
        """Return a part of the formula of a block, whose axes have labels; nothing for one with other functions."""
        match tree:
            case ReadValue(index=index):
                return self.value(refs_of(node)[index], labels_read(node, index, labels))
            case KnownNumber(index=index):
                return {(): float(formula_of(node).numbers[index])}
            case AppliedFunction(function=function, arguments=(one,)) if function in CASTS:
                return self.tree(one, node, labels)
            case AppliedFunction(function="negative", arguments=(one,)):
                return scaled(self.tree(one, node, labels), -1.0)
            case AppliedFunction(function="+" | "-" as sign, arguments=(one, other)):
                return added(self.tree(one, node, labels), scaled(self.tree(other, node, labels), 1.0 if sign == "+" else -1.0))
            case AppliedFunction(function="*", arguments=(one, other)):
                return multiplied(self.tree(one, node, labels), self.other_sums(self.tree(other, node, labels)))
            case AppliedFunction(function="/", arguments=(one, KnownNumber(index=index))):
                return scaled(self.tree(one, node, labels), 1.0 / formula_of(node).numbers[index])
            case AppliedFunction(function="**", arguments=(one, KnownNumber(index=index))) if (
                formula_of(node).numbers[index] == 2
            ):
                first = self.tree(one, node, labels)
                return multiplied(first, self.other_sums(first))
        return None

    def ordered(self, ref: Ref, labels: Labels) -> tuple[float, Polynomial | None]:
        """Return a value that grows where another one does, which may be its root, and 1; or where that shrinks, and -1."""
        node = self.graph.by_name[ref.node]
        if not isinstance(node, TypedBlock) or node.part.kind not in FORMULAS:
            return 1.0, self.value(ref, labels)
        sign, tree = 1.0, formula_of(node).tree
        while isinstance(tree, AppliedFunction) and tree.function in ("negative", "sqrt", *CASTS):
            sign *= -1.0 if tree.function == "negative" else 1.0
            tree = tree.arguments[0]
        if isinstance(tree, ReadValue) and refs_of(node)[tree.index].node in self.private:
            below, found = self.ordered(refs_of(node)[tree.index], labels_read(node, tree.index, labels))
            return sign * below, found
        return sign, self.tree(tree, node, labels)

    def other_sums(self, one: Polynomial | None) -> Polynomial | None:
        """Return the same with other labels of what is summed, so that it can be multiplied by what has the first ones."""
        if one is None:
            return None
        new = {label: -next(self._fresh) for product in one for _, labels in product for label in labels if label < 0}
        return {
            tuple((ref, tuple(new.get(label, label) for label in labels)) for ref, labels in product): times
            for product, times in one.items()
        }


def contraction(node: TypedBlock) -> tuple[list[str], str]:
    """Return a letter for each axis of each value that a contraction reads, and of what it gives."""
    left, _, right = node.sizes["equation"].partition("->")
    return left.split(","), right


def formula_of(node: TypedBlock) -> Formula:
    """Return the formula of a block that has one."""
    formula = node.part.formula  # type: ignore[attr-defined]  # of a formula
    assert isinstance(formula, Formula)
    return formula


def refs_of(node: TypedNode) -> list[Ref]:
    """Return what a node reads, in order."""
    return [ref for wire in wires_of(node.node) for ref in wire.refs]


def labels_read(node: TypedBlock, index: int, labels: Labels) -> Labels:
    """Return the labels of the axes of a value that a formula reads, given those of what it gives."""
    if not node.expansions:
        return labels
    places = {own: place for place, own in enumerate(node.expansions[index]) if own is not None}
    return tuple(labels[places[own]] for own in sorted(places))


def with_summed(node: TypedBlock, labels: Labels, new: Labels) -> Labels:
    """Return the labels of what a sum reads, given those of what it gives and of what it takes away."""
    whole = node.first_input
    assert isinstance(whole, TensorType)
    places = dict(zip(sorted(taken(node)), new, strict=True))
    others = iter(labels)
    return tuple(places[place] if place in places else next(others) for place in range(-len(whole.axes), 0))


def taken(node: TypedBlock) -> tuple[int, ...]:
    """Return the places of the axes that a reduction takes away, counted from the end."""
    dims = node.sizes["dim"]
    return dims if isinstance(dims, tuple) else (dims,)


def private_below(end: TypedNode, graph: TypedGraph) -> frozenset[str]:
    """Return the sums, products and formulas of a graph that nothing reads but what leads to one node."""
    readers: dict[str, set[str]] = {}
    for node in graph.nodes:
        for ref in refs_of(node):
            readers.setdefault(ref.node, set()).add(node.name)
    given = {ref.node for _, ref in graph.graph.outputs}
    found = {end.name}
    for node in reversed(graph.nodes):
        own = readers.get(node.name, set())
        if own and own <= found and node.name not in given and is_arithmetic(node):
            found.add(node.name)
    return frozenset(found - {end.name})


def is_arithmetic(node: TypedNode) -> bool:
    """Return whether a node adds and multiplies what it reads."""
    return isinstance(node, TypedBlock) and node.part.kind in FORMULAS | SCALES | SUMS | CONTRACTIONS


# -- sums of products


def added(one: Polynomial | None, other: Polynomial | None) -> Polynomial | None:
    """Return a sum."""
    if one is None or other is None:
        return None
    found = dict(one)
    for product, times in other.items():
        found[product] = found.get(product, 0.0) + times
    return {product: times for product, times in found.items() if times}


def scaled(one: Polynomial | None, by: float) -> Polynomial | None:
    """Return all products so many times."""
    return None if one is None else {product: by * times for product, times in one.items()}


def multiplied(one: Polynomial | None, other: Polynomial | None) -> Polynomial | None:
    """Return a product of two sums, of which no labels of what is summed are the same."""
    if one is None or other is None or len(one) * len(other) > MAX_TERMS:
        return None
    found: dict[Product, float] = {}
    for first, times in one.items():
        for second, more in other.items():
            product = in_order((*first, *second))
            found[product] = found.get(product, 0.0) + times * more
    return {product: times for product, times in found.items() if times}


def summed(one: Polynomial | None, over: Sequence[int]) -> Polynomial | None:
    """Return a sum over labels; nothing where a product lacks one of them, which would be counted."""
    if one is None or any(not {*over} <= {label for _, labels in product for label in labels} for product in one):
        return None
    found: dict[Product, float] = {}
    for product, times in one.items():
        marked = tuple((ref, tuple(-label if label in over else label for label in labels)) for ref, labels in product)
        found[in_order(marked)] = found.get(in_order(marked), 0.0) + times
    return found


def in_order(product: Product) -> Product:
    """Return a product with its entries in an order that depends on nothing but what they are, as far as names tell."""
    return tuple(sorted(product, key=lambda factor: (str(factor[0]), [max(label, 0) for label in factor[1]], factor[1])))


def label_counts(product: Product) -> Counter[int]:
    """Return how often each label occurs in a product."""
    return Counter(label for _, labels in product for label in labels)
