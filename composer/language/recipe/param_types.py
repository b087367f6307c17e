"""The type of a param that is declared by its default alone, in the short form `width: 8`."""

from __future__ import annotations

from collections.abc import Container

from composer.language.expressions.ast import Binary, Expression, If, RefPath, Unary, Value
from composer.language.expressions.parser import COMPARISONS
from composer.language.recipe.ast import ParamType
from composer.language.wording import BOOLEANS

COMPARED = frozenset({*COMPARISONS, "and", "or"})
"""Operators that give a boolean."""


def type_of_default(default: Expression, known: Container[str]) -> ParamType | None:
    """Return the type that a default gives its param; None where the value of a `known` name decides it."""
    match default:
        case RefPath(steps=(step,)) if step.arguments is None and step.name in BOOLEANS:
            return "bool"
        case RefPath(steps=(step,)) if step.arguments is None:
            return None if step.name in known else "str"
        case Binary(operator=operator) if operator in COMPARED:
            return "bool"
        case Unary(operator="not"):
            return "bool"
        case If():
            return None
    return "float"


def type_of_value(value: Value) -> ParamType:
    """Return the type that the value of a default gives its param."""
    return "bool" if isinstance(value, bool) else "str" if isinstance(value, str) else "float"
