"""The normal form of masks: expressions by which the same queries see the same keys are equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, TypeAlias

from blocks.core import NodeRef
from blocks.core import fields as fields_of
from blocks.masks.mask import Mask
from composer.graph.describe import mask

MAX_PREDICATES = 10
"""The most predicates of a mask that is compared by its truth table."""
Predicate: TypeAlias = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class MaskForm:
    """A mask, compared as a Boolean function of its predicates."""

    mask: Mask

    def ports(self) -> Iterator[str]:
        """Yield the ports of its edges."""
        for one in _predicates(self.mask):
            yield from (value for value in _arguments(one) if isinstance(value, NodeRef))

    def key(self, source: Callable[[str], Any]) -> Any:
        """Return a key that is equal where two masks are the same function of the same predicates; `source` says
        what a port reads.
        """
        found = {id(one): _named(one, source) for one in _predicates(self.mask)}
        names = sorted(set(found.values()), key=repr)
        if len(names) > MAX_PREDICATES:
            return _sorted(self.mask, found)
        rows = [dict(zip(names, row, strict=True)) for row in product((False, True), repeat=len(names))]
        table = [self.mask.holds(partial(_seen, found, row)) for row in rows]
        matter = [name for place, name in enumerate(names) if _matters(table, len(names) - 1 - place)]
        kept = [row for row, seen in zip(rows, table, strict=True) if seen]
        return tuple(matter), tuple(sorted({tuple(row[name] for name in matter) for row in kept}))

    def shown(self, edges: Mapping[str, str]) -> str:
        """Return it as a recipe would write it, with what its edges read by name."""
        return mask(self.mask, edges)


def _predicates(mask: Mask) -> Iterator[Mask]:
    if operands := mask.operands():
        for one in operands:
            yield from _predicates(one)
    elif not mask.hides_nothing:
        yield mask


def _arguments(mask: Mask) -> list[Any]:
    return [getattr(mask, name) for name in fields_of(type(mask))]


def _named(mask: Mask, source: Callable[[str], Any]) -> Predicate:
    """Return the key of a predicate."""
    mask = mask.equivalent()
    return mask.kind, tuple(("edge", source(value)) if isinstance(value, NodeRef) else value for value in _arguments(mask))


def _seen(names: Mapping[int, Predicate], row: Mapping[Predicate, bool], mask: Mask) -> bool:
    return row[names[id(mask)]]


def _matters(table: list[bool], bit: int) -> bool:
    """Return whether the truth table depends on the predicate at a bit of the row's number."""
    return any(table[row] != table[row ^ (1 << bit)] for row in range(len(table)))


def _sorted(mask: Mask, names: dict[int, Predicate]) -> Any:
    """Return a key of a mask with too many predicates for a truth table: its operands sorted, without repetition."""
    if operands := mask.operands():
        return type(mask).__name__, tuple(sorted({_sorted(one, names) for one in operands}, key=repr))
    return None if mask.hides_nothing else names[id(mask)]
