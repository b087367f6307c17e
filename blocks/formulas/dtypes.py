"""The dtypes of a formula, from those of the values that it reads: no conversion happens unless it is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias

from blocks.core.formula import AppliedFunction, Formula, FormulaTree, KnownNumber, ReadValue
from blocks.core.part import BlockError
from blocks.formulas.functions import FUNCTIONS, FormulaFunction

DTypeName: TypeAlias = Literal["int", "float", "bool"]
CONVERT = {
    frozenset({"int", "float"}): "convert the int: float(…)",
    frozenset({"bool", "int"}): "convert the boolean: int(…)",
    frozenset({"bool", "float"}): "convert the boolean: float(…)",
}

DIVISIONS = frozenset({"/", "//", "%"})


@dataclass(frozen=True, slots=True)
class TypedFormula:
    """A tree of a formula with its dtype."""

    tree: FormulaTree
    dtype: DTypeName
    literal: bool = False
    """Whether it is a number that is known before the model runs, which takes the dtype of what it meets."""
    float32: bool = False
    """Whether it is in float32 at least, whatever the dtype of the model."""
    arguments: tuple[TypedFormula, ...] = ()


def typed_formula(formula: Formula, dtypes: Sequence[DTypeName]) -> TypedFormula:
    """Return a formula with the dtype of every part of it.

    Args:
        formula: The formula.
        dtypes: The dtypes of the values that it reads, in order.

    Raises:
        BlockError: An argument has a dtype that its function does not take.

    Examples:
        >>> from blocks.core.formula import AppliedFunction, Formula, ReadValue
        >>> from blocks.formulas.dtypes import typed_formula
        >>> typed_formula(Formula(AppliedFunction("<", (ReadValue(0), ReadValue(1)))), ["int", "int"]).dtype
        'bool'
    """
    return _typed(formula.tree, formula, dtypes)


def _typed(tree: FormulaTree, formula: Formula, dtypes: Sequence[DTypeName]) -> TypedFormula:
    match tree:
        case ReadValue(index=index):
            return TypedFormula(tree, dtypes[index])
        case KnownNumber(index=index):
            value = formula.numbers[index]
            dtype: DTypeName = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "float"
            return TypedFormula(tree, dtype, literal=dtype != "bool")
        case AppliedFunction():
            arguments = tuple(_typed(argument, formula, dtypes) for argument in tree.arguments)
            return _applied(tree, FUNCTIONS[tree.function], arguments, formula)


def _applied(tree: AppliedFunction, row: FormulaFunction, arguments: tuple[TypedFormula, ...], formula: Formula) -> TypedFormula:
    for kind, argument in zip(row.takes, arguments, strict=True):
        _check_kind(row, kind, argument)
    compared = [argument for kind, argument in zip(row.takes, arguments, strict=True) if kind != "condition"]
    common = _common(tree, row, compared)
    island = any(argument.float32 for argument in arguments)
    match row.gives:
        case "same":
            dtype = common
        case "quotient" | "float32":
            dtype = "float"
        case "float" | "int" | "bool":
            dtype = row.gives
    if row.name in DIVISIONS:
        _check_divisor(arguments[1], formula)
    if row.name == "**" and common == "int":
        _check_power(tree, arguments[1], formula)
    stays = (island and row.name != "float") or row.gives == "float32"
    return TypedFormula(tree, dtype, float32=stays and dtype == "float", arguments=arguments)


def _check_kind(row: FormulaFunction, kind: str, argument: TypedFormula) -> None:
    """Refuse an argument of a dtype that the function does not take."""
    dtype, name = argument.dtype, f"`{row.name}`" if row.name != "negative" else "`-`"
    match kind:
        case "bool" | "condition" if dtype != "bool":
            hint = "compare it: `x > 0`, or convert it: `bool(x)`"
            _wrong(f"{name} takes a boolean here, not {_article(dtype)}", argument.tree, hint)
        case "number" if dtype == "bool":
            _wrong(f"{name} takes numbers, not booleans", argument.tree, "convert it: `int(…)` or `float(…)`")
        case "float" if dtype != "float" and not argument.literal:
            _wrong(f"{name} takes a float, not {_article(dtype)}", argument.tree, "convert it: `float(…)`")


def _common(tree: AppliedFunction, row: FormulaFunction, arguments: Sequence[TypedFormula]) -> DTypeName:
    """Return the one dtype of the arguments; a literal takes that of the others, as far as it can."""
    if not arguments:
        return "bool"
    firm = [argument for argument in arguments if not argument.literal]
    if not firm:
        return "float" if any(argument.dtype == "float" for argument in arguments) else "int"
    dtype = firm[0].dtype
    for argument in firm[1:]:
        if argument.dtype != dtype:
            pair = frozenset({dtype, argument.dtype})
            message = f"`{row.name}` takes two of one dtype, not {_article(dtype)} and {_article(argument.dtype)}"
            _wrong(message, tree, CONVERT[pair])
    for argument in arguments:
        if argument.literal and dtype == "bool":
            _wrong(f"`{row.name}` takes two of one dtype, not a boolean and a number", tree, "convert the boolean: int(…)")
        if argument.literal and dtype == "int" and argument.dtype == "float":
            _wrong("this number is a float and meets an int", argument.tree, "write a whole number, or convert the int: float(…)")
    return dtype


def _check_divisor(divisor: TypedFormula, formula: Formula) -> None:
    """Refuse a divisor that is known to be 0."""
    if isinstance(divisor.tree, KnownNumber) and formula.numbers[divisor.tree.index] == 0:
        raise BlockError("division by 0 is undefined", field="formula", code="division-by-zero", place=divisor.tree.place)


def _check_power(tree: AppliedFunction, exponent: TypedFormula, formula: Formula) -> None:
    """Refuse a power of ints that may not be an int."""
    known = formula.numbers[exponent.tree.index] if isinstance(exponent.tree, KnownNumber) else None
    if known is None or known < 0:
        what = "a power that is known when the model runs" if known is None else f"the power of {known}"
        _wrong(f"an int to {what} may be no int", tree, "convert the base, and the exponent if it is a value: float(…)")


def _article(dtype: str) -> str:
    return {"int": "an int", "float": "a float", "bool": "a boolean"}[dtype]


def _wrong(message: str, tree: FormulaTree, hint: str) -> NoReturn:
    place: Any = tree.place
    raise BlockError(message, field="formula", hint=hint, code="formula-type", place=place)
