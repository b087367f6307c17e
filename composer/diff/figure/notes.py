"""Notes on changes, a few lines each, in columns between the drawings."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TypeAlias

from composer.draw.style.typography import Role, Typography

NOTE = 236.0
"""The width of a note."""
LINE = 14.0
"""The height of a line."""
APART = 11.0
"""The gap between two notes."""
INDENT = 36.0
"""The indent of the text, which leaves room for the badge."""
Note: TypeAlias = list[tuple[str, Role]]
"""Lines of text."""


def note(name: str, words: str) -> Note:
    """Return the caption of a change in lines that fit."""
    said: Note = [(name, "row"), (words, "detail")]
    return [(line, role) for text, role in said for line in wrapped(text, role)]


def wrapped(text: str, role: Role) -> list[str]:
    """Return a text in lines that fit."""
    typography, room = Typography(), NOTE - INDENT
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and typography.width(longer, role) <= room:
            lines[-1] = longer
            continue
        while typography.width(word, role) > room:  # a path: broken at a dot
            end = max(cut for cut in range(1, len(word)) if typography.width(word[:cut], role) <= room)
            end = word.rfind(".", 1, end) if word.rfind(".", 1, end) > 0 else end
            lines.append(word[:end])
            word = word[end:]
        lines.append(word)
    return lines


def high(lines: Note) -> float:
    """Return the height of a note."""
    return LINE * len(lines)


# -- positions


def in_columns(heights: Sequence[float], room: float) -> list[list[int]]:
    """Return the indices of the notes in as few columns as fit, of about equal heights."""
    if not heights:
        return []
    share = sum(heights) / ceil(sum(heights) / room)
    columns: list[list[int]] = []
    above = 0.0
    for number, height in enumerate(heights):
        if not columns or above + height / 2 > share * len(columns):
            columns.append([])
        columns[-1].append(number)
        above += height
    return columns


def spread(heights: Sequence[float], wanted: Sequence[float], top: float, foot: float) -> list[float]:
    """Return the tops of the notes in a column, each as near to the wanted one as the others allow."""
    tops: list[float] = []
    y = top
    for want, height in zip(wanted, heights, strict=True):
        tops.append(max(y, want))
        y = tops[-1] + height + APART
    limit = foot
    for index in reversed(range(len(tops))):
        tops[index] = min(tops[index], limit - heights[index])
        limit = tops[index] - APART
    return tops
