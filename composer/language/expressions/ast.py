"""The one expression language of numbers, conditions, edges and masks, as a tree with places."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from composer.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Number:
    """A literal: an int, or a float where a point or an exponent is written."""

    value: int | float
    span: Span


@dataclass(frozen=True, slots=True)
class Slice:
    """`2:5`, `:layer` or `:` between the brackets of a call: a range of passes."""

    start: Expression | None
    stop: Expression | None
    span: Span


@dataclass(frozen=True, slots=True)
class PathStep:
    """One dotted part of a path, with the arguments of its brackets (None where it has no brackets)."""

    name: str
    arguments: tuple[Expression | Slice, ...] | None
    span: Span
    """The step with its brackets."""
    name_span: Span


@dataclass(frozen=True, slots=True)
class RefPath:
    """`n_heads`, `embed.weight`, `window(1024)`, `ceil_to(x, 8)`, `layers(:layer)`: who uses it decides what it is."""

    steps: tuple[PathStep, ...]
    span: Span

    @property
    def text(self) -> str:
        """The path as it is written, without the arguments of its brackets."""
        return ".".join([step.name for step in self.steps])


@dataclass(frozen=True, slots=True)
class Unary:
    """`-x` or `not x`."""

    operator: Literal["-", "not"]
    operand: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic, a comparison, which `x in LIST` is too, or `and` and `or`."""

    operator: Literal["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
    left: Expression
    right: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class If:
    """`then if condition else otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression
    span: Span


Expression: TypeAlias = Number | RefPath | Unary | Binary | If


class ChoiceWord(str):
    """The value of a param with a choice of words, which knows the others: a comparison with a word that is none of them is a
    mistake.
    """

    of: tuple[str, ...]

    def __new__(cls, word: str, of: tuple[str, ...] = ()) -> ChoiceWord:
        made = super().__new__(cls, word)
        made.of = of
        return made


PlainValue: TypeAlias = bool | int | float | Fraction | str
"""A single value: `str` is a bare word, `Fraction` the exact quotient of two integers."""


@dataclass(frozen=True, slots=True)
class NoValue:
    """An item of a list that is no plain value, such as a block: it is counted, and cannot be computed with."""


Value: TypeAlias = PlainValue | tuple[PlainValue | NoValue, ...]
"""The value of an expression: a single one, or the list that a param holds."""
