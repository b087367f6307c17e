"""A formula as the operations that papers draw: sums and products in circles, and activations in boxes with their curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from blocks.core import BlockView, Formula, Look, Piece, look_with_icon, standard
from blocks.core.formula import AppliedFunction, FormulaTree, KnownNumber, ReadValue, subtrees
from blocks.core.look import Sign, plotted

CIRCLES: Mapping[str, tuple[str, Sign]] = MappingProxyType({"+": ("Sum", "+"), "*": ("Product", "×")})
"""The operators that are drawn as circles."""
PIECE_NAMES = MappingProxyType({"-": "rest", "max": "relu"})
"""What pieces are called whose function has no name for one."""
CASTS = ("float32", "float")
"""The functions that change no value of a float, which a drawing leaves out."""
EXPONENTIAL = plotted(math.exp)
MIN_CIRCLES, MIN_VALUES, MAX_PIECES = 2, 3, 7
"""How many circles and values a formula has that is hard to read in a line, and the most pieces that are easier to see."""


def pieces_of(formula: Formula) -> tuple[Piece, ...]:
    """Return what a formula consists of, in the order in which it computes, each value that it reads under its name with a `$`;
    nothing for one that a line tells as well, or that has other operations or a value twice.

    >>> from blocks.core.formula import AppliedFunction, Formula, ReadValue
    >>> product = AppliedFunction("*", (ReadValue(1), AppliedFunction("tanh", (ReadValue(2),))))
    >>> pieces = pieces_of(Formula(AppliedFunction("+", (ReadValue(0), product)), (), ("x", "gate", "branch")))
    >>> [(piece.name, *(name for name, _ in piece.reads)) for piece in pieces]
    [('tanh', '$branch'), ('product', '$gate', 'tanh'), ('sum', '$x', 'product')]
    """
    read = [one.index for one in subtrees(formula.tree) if isinstance(one, ReadValue)]
    if len({*read}) < max(MIN_VALUES, len(read)):
        return ()
    found: list[Piece] = []
    last = _add(formula.tree, formula, found)
    circles = sum(piece.look.sign is not None for piece in found)
    if last is None or circles < MIN_CIRCLES or len(found) > MAX_PIECES:
        return ()
    *before, end = found
    return (*before, Piece(end.name, end.look, end.reads, gives=("y",), stream_ports=end.stream_ports))


def _add(tree: FormulaTree, formula: Formula, found: list[Piece]) -> str | None:
    """Add what a tree computes, and return the name of what gives its value; None where it has other operations."""
    if isinstance(tree, ReadValue):
        return f"${formula.names[tree.index]}"
    if isinstance(tree, AppliedFunction) and tree.function in CASTS:
        return _add(tree.arguments[0], formula, found)
    inner, look = _operation(tree, formula.numbers)
    reads = [_add(one, formula, found) for one in inner]
    names = [one for one in reads if one is not None]
    if look is None or len(names) < len(reads):
        return None
    stem = look.title.lower() if look.sign else tree.function if isinstance(tree, AppliedFunction) else ""
    alike = sum(piece.look == look for piece in found)
    name = f"{PIECE_NAMES.get(stem, stem)}{alike + 1 if alike else ''}"
    found.append(Piece(name, look, tuple((one, "xs") for one in names), stream_ports=("xs",)))
    return name


def _operation(tree: FormulaTree, numbers: Sequence[float]) -> tuple[Sequence[FormulaTree], Look | None]:
    """Return what an operation reads, and how it is drawn; nothing for one that a drawing of operations does not have."""
    match tree:
        case AppliedFunction(function="+" | "*" as function):
            title, sign = CIRCLES[function]
            return _in_a_row(tree, function), Look(title, hue="merge", sign=sign)
        case AppliedFunction(function="sigmoid" | "tanh" | "softplus" as function, arguments=inner):
            return inner, _curve(function, "σ" if function == "sigmoid" else function)
        case AppliedFunction(function="exp", arguments=inner):
            return inner, Look("exp", hue="ffn", icon=EXPONENTIAL)
        case AppliedFunction(function="max", arguments=(inner, KnownNumber(index=index))) if numbers[index] == 0:
            return (inner,), _curve("relu", "ReLU")
        case AppliedFunction(function="-", arguments=(KnownNumber(index=index), inner)) if numbers[index] == 1:
            return (inner,), Look("1 − x", hue="merge")
        case _:
            return (), None


def _curve(kind: str, title: str) -> Look:
    """Return the look of an activation that a formula writes as a function."""
    return replace(look_with_icon(standard()[kind](), BlockView(kind)), title=title)


def _in_a_row(tree: FormulaTree, function: str) -> Sequence[FormulaTree]:
    """Return the terms of a sum of sums, or the factors of a product of products, in their order."""
    if isinstance(tree, AppliedFunction) and tree.function == function:
        return [inner for one in tree.arguments for inner in _in_a_row(one, function)]
    return [tree]
