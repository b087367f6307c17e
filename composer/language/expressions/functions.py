"""The functions of expressions, with the number of arguments of each."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

RealNumber: TypeAlias = int | float | Fraction
OF_LISTS = frozenset({"len"})
"""Functions whose argument is a list; that of all others is a number."""


def _ceil_to(value: RealNumber, multiple: RealNumber) -> int:
    """Return the least multiple that is no smaller than the value."""
    if multiple <= 0 or multiple != int(multiple):
        raise ValueError
    return math.ceil(Fraction(value) / int(multiple)) * int(multiple)


FUNCTIONS: dict[str, Callable[..., RealNumber]] = {
    "min": min, "max": max, "abs": abs, "sqrt": math.sqrt, "log": math.log, "exp": math.exp,
    "floor": math.floor, "ceil": math.ceil, "round": round, "ceil_to": _ceil_to, "len": len,
}  # fmt: skip
ARGUMENTS = {**dict.fromkeys(FUNCTIONS, (1, 1)), "min": (2, 32), "max": (2, 32), "ceil_to": (2, 2)}
"""The smallest and the largest number of arguments of each."""
USAGE = {**{name: f"{name}(x)" for name in FUNCTIONS}, "min": "min(a, b)", "max": "max(a, b)", "ceil_to": "ceil_to(x, multiple)",
         "len": "len(widths)"}  # fmt: skip
CONSTANTS: dict[str, RealNumber] = {"pi": math.pi}
"""Names of numbers, where nothing else has the name."""
DOMAINS = {
    "sqrt": "a square root needs a number that is at least 0",
    "log": "a logarithm needs a number above 0",
    "ceil_to": "the multiple must be an integer above 0",
}
