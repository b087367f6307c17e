"""Rows of passes that differ only by numbers that a line can list: `index 0-11`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from composer.cost.summary import Rows, SummaryRow
from composer.cost.units import ranges

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
"""A number that is no part of a name or a path."""
MOST_LISTED = 6
"""Numbers that are listed, if they do not ascend one by one."""


def alike(passes: Sequence[Rows]) -> list[tuple[list[int], Rows]]:
    """Return the rows of passes, in order: those that differ only by numbers are one, with the indices of all of them.

    Args:
        passes: The rows of each pass, none equal to another.
    """
    groups: list[list[int]] = []
    for index, rows in enumerate(passes):
        near = (group for group in groups if merged([passes[group[0]], rows]) is not None)
        group = next(near, None)
        if group is None:
            groups.append([index])
        else:
            group.append(index)
    found = []
    for group in groups:
        together = merged([passes[index] for index in group])
        found += [([index], passes[index]) for index in group] if together is None else [(group, together)]
    return sorted(found, key=lambda pair: pair[0])


def merged(several: Sequence[Rows]) -> Rows | None:
    """Return the rows of several passes as those of one, with their numbers listed; None where they differ in anything else.

    Args:
        several: The rows of each pass, in order.
    """
    if len({len(rows) for rows in several}) > 1:
        return None
    found = [_row([rows[place] for rows in several]) for place in range(len(several[0]))]
    known = tuple(row for row in found if row is not None)
    return known if len(known) == len(found) else None


def _row(alike: Sequence[SummaryRow]) -> SummaryRow | None:
    first = alike[0]
    plain = {replace(row, detail=NUMBER.sub("#", row.detail), total=0, children=()) for row in alike}
    children = merged([row.children for row in alike])
    detail = _detail([row.detail for row in alike])
    if len(plain) > 1 or children is None or detail is None:
        return None
    return replace(first, detail=detail, total=sum(row.total for row in alike), children=children)


def _detail(texts: Sequence[str]) -> str | None:
    """Return a text for several that differ in one number; None where they differ in more, or the numbers are too many."""
    numbers = list(zip(*(NUMBER.findall(text) for text in texts), strict=False))
    different = [place for place, each in enumerate(numbers) if len(set(each)) > 1]
    if not different:
        return texts[0]
    place, listed = different[0], _listed(numbers[different[0]])
    if len(different) > 1 or not listed:
        return None
    count = iter(range(len(numbers)))
    return NUMBER.sub(lambda number: listed if next(count) == place else number[0], texts[0])


def _listed(numbers: Sequence[str]) -> str:
    """Return the numbers of passes in order, `0-11` or `4 | 8 | 16`; empty where they are too many."""
    whole = [int(number) for number in numbers if re.fullmatch(r"\d+", number)]
    if len(whole) == len(numbers) and whole == list(range(whole[0], whole[0] + len(whole))):
        return ranges(whole)
    return " | ".join(numbers) if len(numbers) <= MOST_LISTED else ""
