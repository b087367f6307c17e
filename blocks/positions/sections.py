"""Sections of rotary pairs, each of which turns by a coordinate of its own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from blocks.core import BlockError, torch


def widths(sections: Sequence[int] | None, arrangement: str, pairs: int) -> Sequence[int]:
    """Return how many pairs have frequencies that fall from 1: all of them, or those of each section."""
    return sections if sections is not None and arrangement == "repeated" else (pairs,)


def section_of_pair(sections: Sequence[int], arrangement: str, device: Any) -> torch.Tensor:
    """Return the index of the section of each pair, in the order of falling frequencies, [n/2]; where each section has
    frequencies of its own, in the order of the sections.
    """
    index, count = torch.arange(sum(sections), device=device), len(sections)
    section = torch.zeros_like(index)
    if arrangement in ("consecutive", "repeated"):
        for start in list(accumulate(sections))[:-1]:
            section = section + (index >= start)
        return section
    for number in range(1, count):
        own = (index % count == number) & (index < count * sections[number])
        section = torch.where(own, number, section)
    return section


def check_sections(sections: Sequence[int] | None, arrangement: str, pairs: int) -> None:
    """Raise `BlockError` if the sections are not those of so many pairs."""
    if sections is None:
        if arrangement != "consecutive":
            hint = "set `sections`, the number of pairs for each coordinate"
            raise BlockError("there are no sections to arrange", field="arrangement", hint=hint)
        return
    if not sections:
        raise BlockError("there is no section", field="sections", hint="leave it out where all pairs turn by the position")
    if sum(sections) != pairs:
        raise BlockError(
            f"sections of {' + '.join(map(str, sections))} pairs are {sum(sections)}, and {pairs} pairs of channels are rotated",
            field="sections",
        )
    if arrangement in ("consecutive", "repeated"):
        return
    count = len(sections)
    for number, section in enumerate(sections[1:], 1):
        if (room := len(range(number, pairs, count))) < section:
            raise BlockError(
                f"the sections take turns, so that section {number} has {room} of {pairs} pairs at most, not {section}",
                field="sections",
                hint="sections are counted from 0, and section 0 has all pairs that are left",
            )
