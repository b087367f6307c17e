"""Sizes of axes: whole numbers, and exact expressions of the model's own axes such as `time + 1`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd, prod
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Quotient:
    """A division of a symbolic size that has a remainder for some lengths."""

    numerator: Symbolic
    operator: Literal["//", "%"]
    denominator: Dim

    def __str__(self) -> str:
        return f"({self.numerator}) {self.operator} {self.denominator}"


@dataclass(frozen=True, slots=True)
class Symbolic:
    """A polynomial over axis names with whole coefficients, in one canonical form, so that equal sizes are equal objects."""

    terms: tuple[tuple[Monomial, int], ...]
    """Monomial to coefficient, sorted; `()` is the constant's monomial."""

    def __str__(self) -> str:
        match self.terms:
            case (((), less), ((Quotient(numerator, "//", int(by)),), 1)) if less < 0:
                return f"(({numerator + less * by}) // {by})"
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


Atom: TypeAlias = str | Quotient
Monomial: TypeAlias = tuple[Atom, ...]
Dim: TypeAlias = int | Symbolic


def symbol(name: str) -> Symbolic:
    """Return the size of an axis that is known only when the model runs."""
    return Symbolic((((name,), 1),))


def names(dim: Dim) -> frozenset[str]:
    """Return the axes that a size depends on."""
    if isinstance(dim, int):
        return frozenset()
    atoms = [atom for monomial, _ in dim.terms for atom in monomial]
    return frozenset().union(
        *({atom} if isinstance(atom, str) else names(atom.numerator) | names(atom.denominator) for atom in atoms)
    )


def substitute(dim: Dim, lengths: Mapping[str, int]) -> int:
    """Return the size for given lengths of the model's axes.

    Raises:
        KeyError: for an axis that has no length.
    """
    if isinstance(dim, int):
        return dim
    return sum(coefficient * prod(_value(atom, lengths) for atom in monomial) for monomial, coefficient in dim.terms)


def _value(atom: Atom, lengths: Mapping[str, int]) -> int:
    if isinstance(atom, str):
        return lengths[atom]
    numerator, denominator = substitute(atom.numerator, lengths), substitute(atom.denominator, lengths)
    return numerator // denominator if atom.operator == "//" else numerator % denominator


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
    product = "·".join(f"({atom})" if isinstance(atom, Quotient) else atom for atom in monomial)
    return product if coefficient == 1 else f"-{product}" if coefficient == -1 else f"{coefficient}·{product}"
