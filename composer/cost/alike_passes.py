"""Rows of passes that differ only by numbers that a line can list: `index 0-11`."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import replace

from composer.cost.summary import Rows, SummaryRow
from composer.cost.units import ranges

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])|(?<=\.)\d+(?=\.)")
"""A number that is no part of a name, or the index of a pass in a path."""
MOST_LISTED = 6
"""Numbers that are listed, if they do not ascend one by one."""


def alike(passes: Sequence[Rows], *, shared: bool) -> list[tuple[list[int], Rows]]:
    """Return the rows of passes, in order: those that differ only by numbers are one, with the indices of all of them.

    Args:
        passes: The rows of each pass, none equal to another.
        shared: Whether they have one set of weights, which counts once.
    """
    groups: dict[Hashable, list[int]] = {}
    for index, rows in enumerate(passes):
        groups.setdefault(_without_numbers(rows), []).append(index)
    found = []
    for group in groups.values():
        together = _merged([passes[index] for index in group], shared)
        found += [([index], passes[index]) for index in group] if together is None else [(group, together)]
    return sorted(found, key=lambda pair: pair[0])


def _without_numbers(rows: Rows) -> Hashable:
    """Return all that rows say but for numbers, which those of alike passes have in common."""
    return tuple((_plain(row), _without_numbers(row.children)) for row in rows)


def _plain(row: SummaryRow) -> SummaryRow:
    return replace(row, detail=NUMBER.sub("#", row.detail), total=0, children=())


def _merged(several: Sequence[Rows], shared: bool) -> Rows | None:
    """Return the rows of several passes that differ by numbers alone as those of one, with these listed; None for too many."""
    found = [_row(alike_rows, shared) for alike_rows in zip(*several, strict=True)]
    known = tuple(row for row in found if row is not None)
    return known if len(known) == len(found) else None


def _row(several: Sequence[SummaryRow], shared: bool) -> SummaryRow | None:
    first = several[0]
    children, detail = _merged([row.children for row in several], shared), _detail([row.detail for row in several])
    if children is None or detail is None:
        return None
    return replace(first, detail=detail, total=first.total if shared else sum(row.total for row in several), children=children)


def _detail(texts: Sequence[str]) -> str | None:
    """Return a text for several that are equal but for numbers; None where the numbers at one place are too many to list."""
    places = zip(*(NUMBER.findall(text) for text in texts), strict=False)
    listed = [each[0] if len(set(each)) == 1 else _listed(each) for each in places]
    numbers = iter(listed)
    return NUMBER.sub(lambda _: next(numbers), texts[0]) if all(listed) else None


def _listed(numbers: Sequence[str]) -> str:
    """Return the numbers of passes in order, `0-11` or `4 | 8 | 16`; empty where they are too many."""
    whole = [int(number) for number in numbers if re.fullmatch(r"\d+", number)]
    if len(whole) == len(numbers) and whole == list(range(whole[0], whole[0] + len(whole))):
        return ranges(whole)
    return " | ".join(numbers) if len(numbers) <= MOST_LISTED else ""
