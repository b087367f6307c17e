"""Which known names a misspelled one may have meant."""

from __future__ import annotations

from collections.abc import Iterable

MAX_LETTERS = 64
"""Letters beyond which a word is no misspelled name."""


def suggest(name: str, names: Iterable[str], limit: int = 3) -> list[str]:
    """Return the names that few slips away, nearest first; capitals do not count, and a word like no name gets nothing."""
    word = name.lower()
    allowed = _allowed(len(word))
    found: list[tuple[tuple[int, bool, bool], str]] = []
    for candidate in dict.fromkeys(names):
        spelling = candidate.lower()
        if len(word) > MAX_LETTERS or abs(len(spelling) - len(word)) > allowed:
            continue
        slips = _slips(word, spelling)
        if slips <= allowed:
            # A letter is lost or swapped in one way and mistyped in 26, so of two equally near names the first kind is likelier.
            mistyped = len(spelling) <= len(word) and sorted(spelling) != sorted(word)
            found.append(((slips, mistyped, spelling[:1] != word[:1]), candidate))
    return [candidate for _, candidate in sorted(found, key=lambda pair: pair[0])[:limit]]


def _allowed(letters: int) -> int:
    """Return how many slips are forgiven in a word: two in a short one would reach most of the alphabet's words."""
    if letters < 2:
        return 0
    return 1 if letters < 7 else 2


def _slips(a: str, b: str) -> int:
    """Count the letters inserted, deleted, replaced or swapped with their neighbor on the way from a to
    b (optimal string alignment).
    """
    before: list[int] = []
    above = list(range(len(b) + 1))
    for i, letter in enumerate(a, start=1):
        row = [i]
        for j, other in enumerate(b, start=1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, above = above, row
    return above[-1]
