"""Formulas over axes: their trees, and what they come to, for numbers and for tensors."""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from blocks.core import BlockError

OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.And: "and", ast.Or: "or", ast.USub: "negative", ast.Not: "not",
}  # fmt: skip
FUNCTIONS = {"min": 2, "max": 2, "abs": 1, "floor": 1, "ceil": 1, "round": 1, "exp": 1, "log": 1, "sqrt": 1, "sin": 1, "cos": 1}
"""The functions of a formula over axes, with the number of their arguments."""

LONGEST = 4096
"""Bits of an int above which its power is too large for any dtype."""
CHOICE = "a comparison is 0 or 1: `(y >= 2) * a + (y < 2) * b`"
"""How to choose between numbers, where there is neither `where` nor `if`."""
MARK = "ß"
"""No name of a recipe has this letter."""
KEYWORD = re.compile(rf"\b({'|'.join({*keyword.kwlist} - {'and', 'or', 'not', 'if', 'else'})})\b")
"""Names that are keywords of Python, and none of a recipe."""


def parsed(text: str) -> Any:
    """Return a formula as a tree of plain values: a number, the name of an axis, or a tuple of an operator and its operands.

    Args:
        text: The formula, with its numbers computed.

    Raises:
        BlockError: It has a function that there is not, or one with another number of arguments.

    Examples:
        >>> from blocks.along_axes.axis_formulas import parsed
        >>> parsed("2 * (i - j)")
        ('*', 2, ('-', 'i', 'j'))
    """
    return _tree(ast.parse(KEYWORD.sub(rf"{MARK}\g<0>", text), mode="eval").body)


def _tree(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return name.removeprefix(MARK)
        case ast.UnaryOp(op=operator, operand=operand):
            return OPERATORS[type(operator)], _tree(operand)
        case ast.BinOp(op=operator, left=left, right=right):
            return OPERATORS[type(operator)], _tree(left), _tree(right)
        case ast.Compare(ops=[operator], left=left, comparators=[right]):
            return OPERATORS[type(operator)], _tree(left), _tree(right)
        case ast.BoolOp(op=operator, values=[first, *others]):
            tree = _tree(first)
            for other in others:
                tree = OPERATORS[type(operator)], tree, _tree(other)
            return tree
        case ast.Call(func=ast.Name(id=marked), args=arguments):
            name = marked.removeprefix(MARK)
            if FUNCTIONS.get(name) != len(arguments):
                known = ", ".join(FUNCTIONS)
                words = CHOICE if name == "where" else f"there are {known}"
                message = f"`{name}` is no function over axes" if name not in FUNCTIONS else f"`{name}` takes {FUNCTIONS[name]}"
                raise BlockError(message, field="value", hint=words)
            return (name, *map(_tree, arguments))
    raise BlockError(f"`{ast.unparse(node).replace(MARK, '')}` cannot be in a formula over axes", field="value")


def names_in(tree: Any) -> frozenset[str]:
    """Return the names of axes that a formula reads.

    Args:
        tree: The formula.
    """
    if isinstance(tree, str):
        return frozenset({tree})
    return frozenset().union(*map(names_in, tree[1:])) if isinstance(tree, tuple) else frozenset()


def is_whole(tree: Any) -> bool:
    """Return whether all values of a formula are ints.

    Args:
        tree: The formula.
    """
    if not isinstance(tree, tuple):
        return not isinstance(tree, float)
    if tree[0] in ("==", "!=", "<", "<=", ">", ">=", "and", "or", "not", "floor", "ceil", "round"):
        return True
    if tree[0] in ("/", "exp", "log", "sqrt", "sin", "cos"):
        return False
    if tree[0] == "**" and not (isinstance(tree[2], int) and tree[2] >= 0):
        return False
    return all(is_whole(operand) for operand in tree[1:])


def has_floats(tree: Any) -> bool:
    """Return whether a formula computes with floats anywhere.

    Args:
        tree: The formula.
    """
    if not isinstance(tree, tuple):
        return isinstance(tree, float)
    return not is_whole(tree) or any(has_floats(operand) for operand in tree[1:])


def evaluated(tree: Any, values: Mapping[str, Any], bounded: Callable[[Any], Any] = lambda value: value) -> Any:
    """Return what a formula comes to; a comparison is 0 or 1.

    Args:
        tree: The formula.
        values: Numbers or tensors by name.
        bounded: What each value in the formula goes through, such as a check.
    """
    if isinstance(tree, str):
        return values[tree]
    if not isinstance(tree, tuple):
        return bounded(tree)
    name, first = tree[0], evaluated(tree[1], values, bounded)
    return bounded(_of_two(name, first, evaluated(tree[2], values, bounded)) if len(tree) == 3 else _of_one(name, first))


def constants_in(tree: Any) -> Iterator[Any]:
    """Yield the parts of a formula that read no axis, the largest ones.

    Args:
        tree: The formula.
    """
    if not names_in(tree):
        yield tree
    elif isinstance(tree, tuple):
        for operand in tree[1:]:
            yield from constants_in(operand)


def _of_two(name: str, a: Any, b: Any) -> Any:
    if name == "+":
        return a + b
    if name == "-":
        return a - b
    if name == "*":
        return a * b
    if name == "/":
        return a / b
    if name == "//":
        return a // b
    if name == "%":
        return a % b
    if name == "**":
        return _power(a, b)
    if name == "and":
        return _flag(a != 0) * _flag(b != 0)
    if name == "or":
        return _flag(_flag(a != 0) + _flag(b != 0) > 0)
    if name in ("min", "max"):
        return _extreme(name, a, b)
    return _flag(_compared(name, a, b))


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and abs(a) > 1 and b * a.bit_length() > LONGEST:
        raise OverflowError("the result is too large")
    power = a**b
    if isinstance(power, complex):
        raise ValueError(f"{a} ** {b} is no real number")
    return power


def _compared(name: str, a: Any, b: Any) -> Any:
    if name == "==":
        return a == b
    if name == "!=":
        return a != b
    if name == "<":
        return a < b
    if name == "<=":
        return a <= b
    return a > b if name == ">" else a >= b


def _flag(value: Any) -> Any:
    """Return a truth value as 0 or 1."""
    return value * 1


def _extreme(name: str, a: Any, b: Any) -> Any:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return min(a, b) if name == "min" else max(a, b)
    if isinstance(a, int | float):
        a, b = b, a
    return a.clamp(max=b) if name == "min" else a.clamp(min=b)


def _of_one(name: str, a: Any) -> Any:
    if name == "negative":
        return -a
    if name == "not":
        return _flag(a == 0)
    if name == "abs":
        return abs(a)
    if isinstance(a, int | float):
        return (
            round(a)
            if name == "round"
            else float(getattr(math, name)(a))
            if name not in ("floor", "ceil")
            else getattr(math, name)(a)
        )
    return getattr(a, name)()
