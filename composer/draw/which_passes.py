"""Which passes of a repeat something is about, in words."""

from __future__ import annotations

from collections.abc import Sequence

MAX_PLACES = 2
"""Passes of a kind that are told one by one, where they do not follow one another."""


def shares_of(kinds: Sequence[Sequence[int]]) -> list[str]:
    """Return which passes of a repeat are of each kind, where some words tell that, else how many.

    >>> shares_of([(0,), (1, 2, 3)]), shares_of([(0, 1, 3, 5), (2, 4)]), shares_of([(0, 1), (2, 3, 4), (5,)])
    (['first', 'other 3'], ['4 of 6', '3rd and 5th'], ['first 2', '3rd – 5th', 'last'])
    """
    whole = sum(map(len, kinds))
    found = []
    for own in kinds:
        first, *others = sorted(own)
        count = f" {len(own)}" if others else ""
        if [first, *others] != [*range(first, first + len(own))]:
            few = len(own) <= MAX_PLACES
            found.append(" and ".join(map(ordinal, sorted(own))) if few else f"{len(own)} of {whole}")
        elif first == 0:
            found.append(f"first{count}")
        elif first + len(own) == whole:
            found.append(f"{'other' if len(kinds) == 2 and others else 'last'}{count}")
        else:
            found.append(f"{ordinal(first)} – {ordinal(others[-1])}" if others else ordinal(first))
    return found


def ordinal(place: int) -> str:
    """Return a place, counted from zero, as one says it: `1st`."""
    number = place + 1
    teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
