"""Which known names a misspelled one may have meant."""

from __future__ import annotations

from collections.abc import Iterable

MAX_LETTERS = 64
"""Letters of the longest word that may be a misspelled name."""

DID_YOU_MEAN = "did you mean "
"""How a hint begins that offers names."""
MIN_BEGINNING = 3
"""Letters from which the beginning of a name may mean it."""


def suggest(name: str, names: Iterable[str], limit: int = 3) -> list[str]:
    """Return the names that are few edits away or begin like this, nearest first.

    Capitals do not count, and a word like no name gets nothing.
    """
    word = name.lower()
    most = _max_edits(len(word))
    found: list[tuple[tuple[int, bool, bool], str]] = []
    for candidate in dict.fromkeys(names):
        spelling = candidate.lower()
        begun = len(word) >= MIN_BEGINNING and spelling.startswith(word)
        if len(word) > MAX_LETTERS or (abs(len(spelling) - len(word)) > most and not begun):
            continue
        edits = min(_edit_distance(word, spelling), most if begun else MAX_LETTERS)
        if edits <= most:
            # A letter is lost or swapped in one way and mistyped in 26, so of two equally near names the first kind is likelier.
            mistyped = len(spelling) <= len(word) and sorted(spelling) != sorted(word)
            found.append(((edits, mistyped, spelling[:1] != word[:1]), candidate))
    return [candidate for _, candidate in sorted(found, key=lambda pair: pair[0])[:limit]]


def did_you_mean(offered: Iterable[str]) -> str:
    """Return the hint that offers some names."""
    return f"{DID_YOU_MEAN}{' or '.join(offered)}?"


def _max_edits(letters: int) -> int:
    """Return how many edits are allowed in a word: two in a short one would reach most other short words."""
    if letters < 2:
        return 0
    return 1 if letters < 7 else 2


def _edit_distance(a: str, b: str) -> int:
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
