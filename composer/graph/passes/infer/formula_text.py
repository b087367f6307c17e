"""A formula over axes as text: its numbers computed, its axes left as they are called."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import NoReturn, assert_never

from blocks.along_axes.axis_formulas import CHOICE
from composer.diagnostics import Diagnostic, Span
from composer.language.expressions.ast import Binary, Expression, If, Number, RefPath, Slice, Unary, Value
from composer.language.expressions.evaluator import as_bool, evaluate
from composer.language.expressions.functions import CONSTANTS, FUNCTIONS
from composer.language.expressions.parser import BINDING, COMPARISONS, NOT, ExpressionError, names
from composer.language.recipe.keys import VALUE_WORDS

SIGN = 7
"""The binding power of a sign, between `*` and `**`."""
ATOM = 9
ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "**"})


def formula_text(expression: Expression, known: Mapping[str, Value], axes: Collection[str]) -> str:
    """Return a formula with every part that reads no axis as a number; other names are left for the block to judge.

    Raises:
        ExpressionError: for a part that is no number, and a condition that reads an axis.
    """
    if both := sorted(known.keys() & set(axes)):
        message = f"`{both[0]}` is an axis of this formula, and a param or the length of an axis here: {known[both[0]]}"
        _refuse(message, expression.span, "call the axis of the formula by another name")
    constants = {name: value for name, value in CONSTANTS.items() if name not in axes}
    return _written(expression, {**constants, **known}, 0)


def _written(expression: Expression, known: Mapping[str, Value], least: int) -> str:
    """Return an expression, in parentheses where it binds less than `least`."""
    if not names(expression) - known.keys() - FUNCTIONS.keys() - VALUE_WORDS and not _compares(expression):
        return _number(evaluate(expression, known), expression.span, least)
    match expression:
        case Number(value=value):
            return _number(value, expression.span, least)
        case RefPath(steps=steps):
            if len(steps) > 1:
                _refuse("a formula over axes reads no node", expression.span, "write a node that computes with its values")
            name, arguments = steps[0].name, steps[0].arguments
            return name if arguments is None else f"{name}({', '.join(_argument(each, known) for each in arguments)})"
        case If():
            if names(expression.condition) - known.keys() - FUNCTIONS.keys() - VALUE_WORDS:
                message = "`if` is decided before the model runs, so its condition reads no axis"
                _refuse(message, expression.condition.span, CHOICE)
            taken = as_bool(evaluate(expression.condition, known), expression.condition.span)
            return _written(expression.then if taken else expression.otherwise, known, least)
        case Unary(operator=operator, operand=operand):
            power = NOT if operator == "not" else SIGN
            text = f"{operator}{' ' * (operator == 'not')}{_written(operand, known, power)}"
        case Binary(operator="in" | "not in"):
            _refuse(
                "`in` is decided before the model runs, and is no number", expression.span, "write it in the condition of an `if`"
            )
        case Binary(operator=operator, left=left, right=right):
            power = BINDING[operator]
            on_left, on_right = (power + 1, power) if operator == "**" else (power, power + 1)
            on_left += operator in COMPARISONS  # which are not chained
            text = f"{_written(left, known, on_left)} {operator} {_written(right, known, on_right)}"
        case _:
            assert_never(expression)
    return f"({text})" if power < least else text


def _compares(expression: Expression | Slice) -> bool:
    """Return whether an expression has a comparison, which is a number in a formula and none elsewhere."""
    match expression:
        case Unary(operator=operator, operand=operand):
            return operator == "not" or _compares(operand)
        case Binary(operator=operator, left=left, right=right):
            return operator not in ARITHMETIC or _compares(left) or _compares(right)
        case If(then=then, otherwise=otherwise):
            return _compares(then) or _compares(otherwise)
        case RefPath(steps=steps):
            return any(_compares(argument) for step in steps for argument in step.arguments or ())
    return False


def _argument(argument: Expression | Slice, known: Mapping[str, Value]) -> str:
    if isinstance(argument, Slice):
        _refuse("a range is not a number", argument.span, "")
    return _written(argument, known, 0)


def _number(value: Value, span: Span, least: int) -> str:
    """Return a number as it is written in a formula; a comparison is 0 or 1."""
    match value:
        case bool():
            return str(int(value))
        case Fraction(denominator=1) | int():
            text, power = str(int(value)), SIGN if value < 0 else ATOM
        case Fraction():
            text, power = f"{value.numerator} / {value.denominator}", BINDING["/"]
        case float():
            text, power = repr(value), SIGN if value < 0 else ATOM
        case str():
            _refuse(f"`{value}` is a string, not a number", span, "")
        case tuple():
            _refuse("this is a list, not a number", span, "an item of a list is read by its index, such as `sizes(0)`")
        case _:
            assert_never(value)
    return f"({text})" if power < least else text


def _refuse(message: str, span: Span, hint: str) -> NoReturn:
    raise ExpressionError(Diagnostic("not-a-number", message, span, hint=hint))
