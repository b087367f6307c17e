"""Arithmetic in recipes: exact integers and fractions, within the sizes that a model can have."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import NoReturn

from composer.diagnostics import Span
from composer.language.expressions.ast import Binary
from composer.language.expressions.errors import refuse
from composer.language.expressions.functions import RealNumber
from composer.language.wording import format_value

MAX_BITS = 64
"""Integers, numerators and denominators are below 2 ** 64."""
SIZE_BITS = 63
"""Integers that fields, axes and counts of passes have are below 2 ** 63, as in torch; values on the way are larger."""
SIZE_HINT = f"integers, numerators and denominators must be below 2 ** {MAX_BITS}"

OPERATORS: dict[str, Callable[[RealNumber, RealNumber], RealNumber]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip


def compute(expression: Binary, left: RealNumber, right: RealNumber) -> RealNumber:
    """Apply an operator to its operands."""
    sign = expression.operator
    if sign == "**":
        return _power(expression, left, right)
    if sign in {"/", "//", "%"} and right == 0:
        refuse("division-by-zero", f"{format_value(left)} {sign} 0 is undefined", expression.right.span)
    if sign == "/" and isinstance(left, int) and isinstance(right, int):
        return bounded(Fraction(left, right), expression.span)
    try:
        return bounded(OPERATORS[sign](left, right), expression.span)
    except OverflowError:
        refuse_large(expression.span)


def _power(expression: Binary, base: RealNumber, exponent: RealNumber) -> RealNumber:
    """Return a power, refused before it is computed where its size is already known to be too large."""
    if base == 0 and exponent < 0:
        refuse("division-by-zero", f"0 ** {format_value(exponent)} is undefined", expression.span)
    if isinstance(exponent, int) and not isinstance(base, float):
        exact = Fraction(base)
        bits = max(abs(exact.numerator), exact.denominator).bit_length() - 1
        if bits * abs(exponent) > MAX_BITS:
            refuse("number-too-large", f"{format_value(base)} ** {exponent} is too large", expression.span, hint=SIZE_HINT)
        return bounded(exact**exponent, expression.span) if bits else _unit_power(exact, exponent)
    if base < 0 and not float(exponent).is_integer():
        refuse("no-real-value", f"a negative number has no real power of {format_value(exponent)}", expression.span)
    try:
        return bounded(math.pow(base, exponent), expression.span)
    except OverflowError:
        refuse_large(expression.span)


def _unit_power(base: Fraction, exponent: int) -> int:
    """Return a power of 0, 1 or -1, whatever the exponent."""
    return int(base) ** (exponent % 2 if exponent else 0) if base == -1 else int(base if exponent else 1)


def bounded(value: RealNumber, span: Span) -> RealNumber:
    """Return the value in its simplest type, if it is of a size that a model can have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else refuse_large(span)
    size = max(abs(value.numerator), value.denominator)
    if size.bit_length() > MAX_BITS:
        refuse_large(span, SIZE_HINT)
    return value if isinstance(value, int) or value.denominator != 1 else value.numerator


def refuse_large(span: Span, hint: str = "") -> NoReturn:
    """Raise the diagnostic of a result that is too large."""
    refuse("number-too-large", "the result is too large for a number", span, hint=hint)
