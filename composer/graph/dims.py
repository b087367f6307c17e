"""Sizes of axes: whole numbers, and exact expressions of the model's own axes such as `time + 1`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd, prod
from typing import Literal, TypeAlias, assert_never


@dataclass(frozen=True, slots=True)
class Quotient:
    """A division of a symbolic size that has a remainder for some lengths."""

    numerator: Symbolic
    operator: Literal["//", "%"]
    denominator: Dim

    def __str__(self) -> str:
        match self.numerator.terms:
            case (((str(axis),), 1),):
                return f"{axis} {self.operator} {self._divisor}"
        return f"({self.numerator}) {self.operator} {self._divisor}"

    @property
    def _divisor(self) -> str:
        match self.denominator:
            case int() | Symbolic(terms=(((str(),), 1),)):
                return str(self.denominator)
        return f"({self.denominator})"


@dataclass(frozen=True, slots=True)
class Capped:
    """The number that a recipe gives as the length of a generated text: each call of a session has fewer tokens, so that the axis
    grows as one without a number does.
    """

    text: str
    """The param that it is; something else for a number that is written."""
    length: int

    def __str__(self) -> str:
        return self.text if self.text.isidentifier() else f"≤{self.length}"


@dataclass(frozen=True, slots=True)
class TextRows:
    """A number of rows of a generated text that are not the rows of one call in their order: all rows until now, or those that
    are routed to experts.
    """

    count: Symbolic
    which: Literal["so far", "routed"]

    def __str__(self) -> str:
        return f"{self.count} so far" if self.which == "so far" else str(self.count)


@dataclass(frozen=True, slots=True)
class Symbolic:
    """A polynomial over axis names with whole coefficients, in one canonical form, so that equal sizes are equal objects."""

    terms: tuple[tuple[Monomial, int], ...]
    """Monomial to coefficient, sorted; `()` is the constant's monomial."""

    def __str__(self) -> str:
        match self.terms:
            case (((), less), ((Quotient(numerator, "//", int(by)),), 1)) if less < 0:
                return f"({numerator + less * by}) // {by}"
            case (((Quotient() as alone,), 1),):
                return str(alone)
        return " + ".join(_term(monomial, coefficient) for monomial, coefficient in reversed(self.terms)).replace("+ -", "- ")

    def __add__(self, other: Dim) -> Dim:
        return _dim(_sum(_terms(self), _terms(other)))

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim) -> Dim:
        return self + -other

    def __rsub__(self, other: Dim) -> Dim:
        return -self + other

    def __mul__(self, other: Dim) -> Dim:
        product: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in _terms(other).items():
                monomial = tuple(sorted(left + right, key=str))
                product[monomial] = product.get(monomial, 0) + a * b
        return _dim(product)

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        if not isinstance(other, int) or other <= 0:
            return Symbolic((((Quotient(self, "//", other),), 1),))
        whole, rest = self._divided(other)
        return whole + (rest // other if isinstance(rest, int) else _quotient(rest, other))

    def __mod__(self, other: Dim) -> Dim:
        if not isinstance(other, int) or other <= 0:
            return Symbolic((((Quotient(self, "%", other),), 1),))
        rest = self._divided(other)[1]
        return rest if isinstance(rest, int) else Symbolic((((Quotient(rest, "%", other),), 1),))

    def _divided(self, other: int) -> tuple[Dim, Dim]:
        """Divide as far as can be for every length; return the quotient, and what is left to divide."""
        whole = _dim({monomial: coefficient // other for monomial, coefficient in self.terms})
        return whole, _dim({monomial: coefficient % other for monomial, coefficient in self.terms})


def _quotient(numerator: Symbolic, denominator: int) -> Dim:
    """Return a quotient in its lowest terms; a quotient of a quotient is one."""
    terms = dict(numerator.terms)
    constant = terms.pop((), 0)
    common = gcd(denominator, *terms.values())
    if common > 1:
        return (_dim({monomial: coefficient // common for monomial, coefficient in terms.items()}) + constant // common) // (
            denominator // common
        )
    match list(terms.items()):
        case [((Quotient(inner, "//", int(by)),), 1)] if by > 0:
            return (inner + constant * by) // (by * denominator)
    return Symbolic((((Quotient(numerator, "//", denominator),), 1),))


Atom: TypeAlias = str | Quotient | Capped | TextRows
Monomial: TypeAlias = tuple[Atom, ...]
Dim: TypeAlias = int | Symbolic


def symbol(name: str) -> Symbolic:
    """Return the size of an axis that is known only when the model runs."""
    return Symbolic((((name,), 1),))


def capped(text: str, length: int) -> Symbolic:
    """Return the length of a generated text to which a recipe gives a number."""
    return Symbolic((((Capped(text, length),), 1),))


def so_far(length: Symbolic) -> Symbolic:
    """Return the number of all rows of a generated text until now, given that of one call."""
    return Symbolic((((TextRows(length, "so far"),), 1),))


def routed(count: Symbolic) -> Symbolic:
    """Return a number of rows of a generated text that stand in the order of experts."""
    return Symbolic((((TextRows(count, "routed"),), 1),))


def is_routed(size: Dim) -> bool:
    """Return whether a size is a number of rows in the order of experts."""
    match size:
        case Symbolic(terms=(((TextRows(which="routed"),), 1),)):
            return True
    return False


def as_written(size: Dim) -> Dim:
    """Return the size of an axis of a text as a recipe writes it: the number that it has there, and the same for all rows."""
    match size:
        case Symbolic(terms=(((Capped(length=length),), 1),)):
            return length
        case Symbolic(terms=(((TextRows(count=count),), 1),)):
            return as_written(count)
    return size


def names(dim: Dim) -> frozenset[str]:
    """Return the axes that a size depends on and that have no number."""
    return frozenset(leaf for leaf in leaves(dim) if isinstance(leaf, str))


def leaves(dim: Dim) -> frozenset[str | Capped]:
    """Return the axes that a size depends on."""
    match dim:
        case int():
            return frozenset()
        case Symbolic(terms=(((str(name),), 1),)):
            return frozenset((name,))
    return frozenset[str | Capped]().union(*(_leaves(atom) for monomial, _ in dim.terms for atom in monomial))


def _leaves(atom: Atom) -> frozenset[str | Capped]:
    match atom:
        case str() | Capped():
            return frozenset({atom})
        case TextRows(count=count):
            return leaves(count)
        case Quotient():
            return leaves(atom.numerator) | leaves(atom.denominator)
        case _:
            assert_never(atom)


def substitute(dim: Dim, lengths: Mapping[str, int]) -> int:
    """Return the size for given lengths of the model's axes.

    Raises:
        KeyError: for an axis that has no length.
    """
    if isinstance(dim, int):
        return dim
    return sum(coefficient * prod(_value(atom, lengths) for atom in monomial) for monomial, coefficient in dim.terms)


def _value(atom: Atom, lengths: Mapping[str, int]) -> int:
    match atom:
        case str():
            return lengths[atom]
        case Capped(length=length):
            return length
        case TextRows(count=count):
            return substitute(count, lengths)
        case Quotient():
            numerator, denominator = substitute(atom.numerator, lengths), substitute(atom.denominator, lengths)
            return numerator // denominator if atom.operator == "//" else numerator % denominator
        case _:
            assert_never(atom)


def _terms(dim: Dim) -> dict[Monomial, int]:
    return ({(): dim} if dim else {}) if isinstance(dim, int) else dict(dim.terms)


def _sum(left: dict[Monomial, int], right: dict[Monomial, int]) -> dict[Monomial, int]:
    return {monomial: left.get(monomial, 0) + right.get(monomial, 0) for monomial in [*left, *right]}


def _dim(terms: dict[Monomial, int]) -> Dim:
    kept = tuple(sorted(((m, c) for m, c in terms.items() if c), key=lambda term: (len(term[0]), str(term[0]))))
    if not kept:
        return 0
    return kept[0][1] if len(kept) == 1 and kept[0][0] == () else Symbolic(kept)


def _term(monomial: Monomial, coefficient: int) -> str:
    if not monomial:
        return str(coefficient)
    product = "·".join(f"({atom})" if isinstance(atom, Quotient) else str(atom) for atom in monomial)
    return product if coefficient == 1 else f"-{product}" if coefficient == -1 else f"{coefficient}·{product}"
