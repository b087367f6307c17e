"""Arithmetic computed back: the number that a name must have so that an expression has a value."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from composer.language.expressions.ast import Binary, Expression, If, RefPath, Unary
from composer.language.expressions.evaluator import as_bool, as_real, evaluate
from composer.language.expressions.functions import CONSTANTS, FUNCTIONS, RealNumber
from composer.language.expressions.parser import names
from composer.language.wording import BOOLEANS


class NoInverse(ValueError):
    """An expression that cannot be computed back."""


def key_for(expression: Expression, value: Any, known: Mapping[str, Any]) -> tuple[str, RealNumber] | None:
    """Return the only unknown name of an expression with the number that gives a value, or None without such a name.

    Args:
        expression: Sums, differences, products and quotients, whole ones too, in which the name stands once, also under a
            condition that is known.
        value: The value of the expression.
        known: The values of the other names.

    Raises:
        NoInverse: Several names are unknown, or one stands where it cannot be computed back.
        ExpressionError: A part of the expression that is known has no value.
    """
    while isinstance(expression, If) and not _unknown(expression.condition, known):
        taken = as_bool(evaluate(expression.condition, known), expression.condition.span)
        expression = expression.then if taken else expression.otherwise
    if not (missing := _unknown(expression, known)):
        return None
    if len(missing) > 1 or isinstance(value, bool | str | tuple):
        raise NoInverse(" and ".join(missing))
    return missing[0], _solved(expression, as_real(value, expression.span), known, missing[0])


def _unknown(expression: Expression, known: Mapping[str, Any]) -> list[str]:
    return sorted(names(expression) - FUNCTIONS.keys() - BOOLEANS.keys() - CONSTANTS.keys() - known.keys())


def _solved(expression: Expression, value: RealNumber, known: Mapping[str, Any], name: str) -> RealNumber:
    match expression:
        case RefPath(steps=[step]) if step.arguments is None and step.name == name:
            return value
        case Unary(operator="-", operand=operand):
            return _solved(operand, -value, known, name)
        case If(condition=condition, then=then, otherwise=otherwise) if name not in names(condition):
            return _solved(then if as_bool(evaluate(condition, known), condition.span) else otherwise, value, known, name)
        case Binary(left=left, right=right) if name not in names(right):
            other = as_real(evaluate(right, known), right.span)
            return _solved(left, _left(expression.operator, value, other, name), known, name)
        case Binary(left=left, right=right) if name not in names(left):
            other = as_real(evaluate(left, known), left.span)
            return _solved(right, _right(expression.operator, value, other, name), known, name)
    raise NoInverse(name)


def _left(operator: str, value: RealNumber, right: RealNumber, name: str) -> RealNumber:
    """Return the left operand of an operation."""
    match operator:
        case "+":
            return value - right
        case "-":
            return value + right
        case "*" if right != 0:
            return _quotient(value, right)
        case "/" if right != 0:
            return value * right
        case "//" if right > 0:  # the smallest of several, of which nothing is left over
            return value * right
    raise NoInverse(name)


def _right(operator: str, value: RealNumber, left: RealNumber, name: str) -> RealNumber:
    """Return the right operand of an operation."""
    match operator:
        case "+":
            return value - left
        case "-":
            return left - value
        case "*" if left != 0:
            return _quotient(value, left)
        case "/" if value != 0 and left != 0:
            return _quotient(left, value)
    raise NoInverse(name)


def _quotient(dividend: RealNumber, divisor: RealNumber) -> RealNumber:
    if isinstance(dividend, float) or isinstance(divisor, float):
        return float(dividend) / float(divisor)
    return Fraction(dividend) / Fraction(divisor)
