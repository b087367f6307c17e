"""A pointwise formula as a tree over the values that it reads and the numbers in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class ReadValue:
    """One of the values that the formula reads."""

    index: int
    """Its index among them."""
    place: Any = field(default=None, compare=False, repr=False)
    """Where it is written, for whoever reports a mistake there."""


@dataclass(frozen=True, slots=True)
class KnownNumber:
    """A number or a boolean that is known before the model runs."""

    index: int
    """Its index among the formula's numbers."""
    place: Any = field(default=None, compare=False, repr=False)
    """Where it is written."""


@dataclass(frozen=True, slots=True)
class AppliedFunction:
    """A function or an operator with its arguments."""

    function: str
    """A key of the table of functions: `exp`, `+`, `where`."""
    arguments: tuple[FormulaTree, ...]
    place: Any = field(default=None, compare=False, repr=False)
    """Where it is written."""


FormulaTree: TypeAlias = ReadValue | KnownNumber | AppliedFunction


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula with its numbers. Two of the same tree and numbers are equal, however they and what they read are called."""

    tree: FormulaTree
    numbers: tuple[bool | int | float, ...] = ()
    names: tuple[str, ...] = field(default=(), compare=False)
    """What it calls the values that it reads, in order."""
    text: str = field(default="", compare=False)
    """The formula as it is written."""
    named_numbers: tuple[tuple[str, bool | int | float], ...] = field(default=(), compare=False)
    """The names that stand for one of the numbers, each with it, but for sizes, which shapes tell."""


def subtrees(tree: FormulaTree) -> Iterator[FormulaTree]:
    """Yield a tree and every tree in it, arguments first.

    Args:
        tree: The tree of a formula.

    Examples:
        >>> from blocks.core.formula import AppliedFunction, ReadValue, subtrees
        >>> [type(one).__name__ for one in subtrees(AppliedFunction("exp", (ReadValue(0),)))]
        ['ReadValue', 'AppliedFunction']
    """
    if isinstance(tree, AppliedFunction):
        for argument in tree.arguments:
            yield from subtrees(argument)
    yield tree


def without_ones(text: str) -> str:
    """Return a formula as it is drawn once its numbers are known, without what divides by one.

    Args:
        text: The formula.

    Examples:
        >>> from blocks.core.formula import without_ones
        >>> without_ones("i / 1 + p"), without_ones("i / 16 + p / 1.5")
        ('i + p', 'i / 16 + p / 1.5')
    """
    return re.sub(r" / 1(?![\w.])", "", text)
