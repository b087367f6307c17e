"""`and`, `or` and `not` of masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from blocks.masks.areas import All, MaskArea, No, Some
from blocks.masks.mask import Mask, Structure
from blocks.masks.position_masks import Full

MAX_LETTERS = 48
"""Letters of more than three alternatives in a drawing."""
NEUTRAL: type[Mask] = Full
"""The mask that hides nothing: `and` with it changes nothing, and a mask becomes it when its optional input is absent."""


class And(Mask):
    """`and`: the masks that must all allow a pair."""

    left: Mask
    right: Mask

    precedence = 1

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return self.left.allows(q, k, **edges) & self.right.allows(q, k, **edges)

    def structure(self) -> Structure | None:
        left, right = self.left.structure(), self.right.structure()
        return left.meet(right) if left and right else None

    def area(self, queries: int, keys: int, unknown: bool) -> MaskArea:
        return All((self.left.area(queries, keys, unknown), self.right.area(queries, keys, unknown)))

    def without_edges(self) -> Mask | None:
        left, right = self.left.without_edges(), self.right.without_edges()
        return And(left=left, right=right) if left and right else left or right

    def expression(self) -> str:
        return f"{_operand(self.left, self)} and {_operand(self.right, self)}"

    def words(self) -> str:
        return " and ".join(_words(one, self) for one in self.operands())

    def operands(self) -> tuple[Mask, ...]:
        return (*_sides(self.left, And), *_sides(self.right, And))

    def conjuncts(self) -> list[Mask]:
        return self.left.conjuncts() + self.right.conjuncts()

    def holds(self, seen: Callable[[Mask], bool]) -> bool:
        return self.left.holds(seen) and self.right.holds(seen)


class Or(Mask):
    """`or`: the masks of which at least one must allow a pair."""

    left: Mask
    right: Mask

    precedence = 0

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return self.left.allows(q, k, **edges) | self.right.allows(q, k, **edges)

    def area(self, queries: int, keys: int, unknown: bool) -> MaskArea:
        return Some((self.left.area(queries, keys, unknown), self.right.area(queries, keys, unknown)))

    def without_edges(self) -> Mask | None:
        left, right = self.left.without_edges(), self.right.without_edges()
        return Or(left=left, right=right) if left and right else None

    def expression(self) -> str:
        return f"{_operand(self.left, self)} or {_operand(self.right, self)}"

    def words(self) -> str:
        first, *others = (_words(one, self) for one in self.operands())
        every = " or ".join((first, *others))
        return every if len(others) < 3 or len(every) <= MAX_LETTERS else f"{first} or {len(others)} others"

    def operands(self) -> tuple[Mask, ...]:
        return (*_sides(self.left, Or), *_sides(self.right, Or))

    def holds(self, seen: Callable[[Mask], bool]) -> bool:
        return self.left.holds(seen) or self.right.holds(seen)


class Not(Mask):
    """`not`: the mask that must not allow a pair."""

    mask: Mask

    precedence = 2

    def allows(self, q: Any, k: Any, **edges: Any) -> Any:
        return self.mask.allows(q, k, **edges) ^ True  # `~True` would be -2

    def area(self, queries: int, keys: int, unknown: bool) -> MaskArea:
        return No(self.mask.area(queries, keys, not unknown))

    def without_edges(self) -> Mask:
        return Not(mask=self.mask.without_edges() or Full())

    def expression(self) -> str:
        return f"not {_operand(self.mask, self)}"

    def words(self) -> str:
        return f"not {_words(self.mask, self)}"

    def operands(self) -> tuple[Mask, ...]:
        return (self.mask,)

    def holds(self, seen: Callable[[Mask], bool]) -> bool:
        return not self.mask.holds(seen)


def _words(mask: Mask, operator: Mask) -> str:
    return _in_parentheses(mask.words(), mask, operator)


def _operand(mask: Mask, operator: Mask) -> str:
    return _in_parentheses(mask.expression(), mask, operator)


def _in_parentheses(text: str, mask: Mask, operator: Mask) -> str:
    """Return the text of an operand, in parentheses where the operator would take it apart."""
    return f"({text})" if mask.precedence < operator.precedence else text


def _sides(mask: Mask, operator: type[Mask]) -> tuple[Mask, ...]:
    return mask.operands() if isinstance(mask, operator) else (mask,)
