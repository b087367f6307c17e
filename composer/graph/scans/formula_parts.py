"""Formulas taken apart: parts of a tree as formulas of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from blocks.core import Part, Sizes
from blocks.core.fields import formula_field
from blocks.core.formula import AppliedFunction, Formula, FormulaTree, KnownNumber, ReadValue, subtrees

ISLAND = "float32"
"""The function whose result stays in float32."""
CHOICE = "where"
"""The function that computes what it does not choose; in it, nothing is taken apart."""


def block_of(part: type[Part], formula: Formula) -> Part:
    """Return a block with a formula whose axes are matched already."""
    values: dict[str, Any] = {formula_field(part): formula, "axes": ()}
    return part.model_construct(**values)


def needs_module(part: Part, sizes: Sizes) -> bool:
    """Return whether a block keeps tensors, so that it stays at its place in the `state_dict`."""
    return bool(part.buffers(sizes) if callable(part.buffers) else part.buffers)


def known_parts(tree: FormulaTree, known: Sequence[bool]) -> Iterator[FormulaTree]:
    """Yield the largest parts of a formula that apply something to known values only."""
    if not isinstance(tree, AppliedFunction) or tree.function == CHOICE:
        return
    reads = [one.index for one in subtrees(tree) if isinstance(one, ReadValue)]
    if reads and all(known[index] for index in reads):
        yield tree
        return
    for argument in tree.arguments:
        yield from known_parts(argument, known)


def typed_subtrees(typed: Any) -> Iterator[Any]:
    """Yield a typed tree and every one in it."""
    yield typed
    for argument in typed.arguments:
        yield from typed_subtrees(argument)


def swapped(tree: FormulaTree, by: Mapping[int, FormulaTree]) -> FormulaTree:
    """Return a tree with others in place of some in it, given by their identities."""
    if id(tree) in by:
        return by[id(tree)]
    return (
        replace(tree, arguments=tuple(swapped(one, by) for one in tree.arguments)) if isinstance(tree, AppliedFunction) else tree
    )


def alone(tree: FormulaTree, whole: Formula) -> tuple[Formula, list[int]]:
    """Return a part of a formula as one of its own, with the values that it reads, by their indices in the whole."""
    reads = list(dict.fromkeys(one.index for one in subtrees(tree) if isinstance(one, ReadValue)))
    names = tuple(whole.names[index] if index < len(whole.names) else f"part_{index}" for index in reads)
    return by_itself(tree, {index: place for place, index in enumerate(reads)}, whole.numbers, names), reads


def by_itself(
    tree: FormulaTree, reads: Mapping[int, int], numbers: Sequence[bool | int | float], names: tuple[str, ...]
) -> Formula:
    """Return a tree as a formula of its own.

    Args:
        tree: The tree.
        reads: The indices of the values that it reads, each with that in the formula.
        numbers: Those among which the numbers of the tree are, by their indices.
        names: What the values are called in the formula.
    """
    kept = list(dict.fromkeys(one.index for one in subtrees(tree) if isinstance(one, KnownNumber)))

    def renumbered(one: FormulaTree) -> FormulaTree:
        match one:
            case ReadValue(index=index):
                return ReadValue(reads[index], one.place)
            case KnownNumber(index=index):
                return KnownNumber(kept.index(index), one.place)
            case AppliedFunction():
                return replace(one, arguments=tuple(map(renumbered, one.arguments)))

    return Formula(renumbered(tree), tuple(numbers[index] for index in kept), names)
