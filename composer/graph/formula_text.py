"""A formula as a recipe writes it, its numbers worked out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blocks.core import Formula
from blocks.core.formula import AppliedFunction, FormulaTree, KnownNumber, ReadValue
from composer.language.expressions.parser import BINDING, NOT, POWER
from composer.language.wording import boolean

NEGATIVE = POWER - 1
"""The binding power of a minus before a value."""
ATOM = POWER + 1


def formula_text(formula: Formula, names: Sequence[str]) -> str:
    """Return the text of a formula, given what it calls the values that it reads."""
    return _text(formula.tree, formula, names)[0]


def written_axes(axes: Sequence[str], names: Sequence[str]) -> Mapping[str, str]:
    """Return the names of the axes of each value of a formula as a recipe writes them."""
    *_, last = axes or ("",)
    result = {last.split()[0]: last.partition(" ")[2]} if len(axes) > len(names) else {}
    return {**{name: text for name, text in zip(names, axes, strict=False) if text}, **result}


def _text(tree: FormulaTree, formula: Formula, names: Sequence[str]) -> tuple[str, int]:
    """Return the text of a part of a formula, and how tightly it binds."""
    match tree:
        case ReadValue(index=index):
            return names[index], ATOM
        case KnownNumber(index=index):
            value = formula.numbers[index]
            text = boolean(value) if isinstance(value, bool) else repr(value)
            return text, NEGATIVE if text.startswith("-") else ATOM
        case AppliedFunction(function="negative", arguments=(one,)):
            return f"-{_within(one, formula, names, POWER)}", NEGATIVE
        case AppliedFunction(function="not", arguments=(one,)):
            return f"not {_within(one, formula, names, NOT)}", NOT
        case AppliedFunction(function=function, arguments=(left, right)) if function in BINDING:
            own = BINDING[function]
            before, after = (own + 1, own) if function == "**" else (own, own + 1)
            before += 1 if own == NOT + 1 else 0  # comparisons are not chained
            return f"{_within(left, formula, names, before)} {function} {_within(right, formula, names, after)}", own
        case AppliedFunction(function=function, arguments=arguments):
            return f"{function}({', '.join(_text(one, formula, names)[0] for one in arguments)})", ATOM


def _within(tree: FormulaTree, formula: Formula, names: Sequence[str], binding: int) -> str:
    text, own = _text(tree, formula, names)
    return text if own >= binding else f"({text})"
