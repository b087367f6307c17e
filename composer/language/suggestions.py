"""Which known names a misspelled one may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

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
    if len(word) > MAX_LETTERS:
        return []
    letters = _letters(word)
    found: list[tuple[tuple[int, bool, bool], str]] = []
    for candidate in dict.fromkeys(names):
        spelling = candidate.lower()
        begun = len(word) >= MIN_BEGINNING and spelling.startswith(word)
        if not begun and (abs(len(spelling) - len(word)) > most or _differ(letters, _letters(spelling), most)):
            continue
        edits = min(_edit_distance(word, spelling, most), most if begun else MAX_LETTERS)
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


@lru_cache(maxsize=1 << 16)
def _letters(word: str) -> int:
    """Return which letters are in a word, each a bit that others may share."""
    bits = 0
    for letter in word:
        bits |= 1 << (ord(letter) & 63)
    return bits


def _differ(a: int, b: int, most: int) -> bool:
    """Return whether two words are more edits apart, by their letters alone: an edit gives or takes one at most."""
    return (a & ~b).bit_count() > most or (b & ~a).bit_count() > most


def _edit_distance(a: str, b: str, most: int) -> int:
    """Count the letters inserted, deleted, replaced or swapped with their neighbor on the way from a to
    b (optimal string alignment); where they are more than `most`, that they are more.

    The letters that both begin and end with are no edits, and a way that is still short has made no detour, so only the lengths
    near the diagonal are looked at.
    """
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    a, b = a[start : len(a) - end], b[start : len(b) - end]
    more = most + 1
    before: dict[int, int] = {}
    above = {j: j for j in range(min(len(b), most) + 1)}
    for i, letter in enumerate(a, start=1):
        row: dict[int, int] = {0: i} if i <= most else {}
        for j in range(max(1, i - most), min(len(b), i + most) + 1):
            cost = min(above.get(j, more) + 1, row.get(j - 1, more) + 1, above.get(j - 1, more) + (letter != b[j - 1]))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == b[j - 1]:
                cost = min(cost, before.get(j - 2, more) + 1)
            row[j] = cost
        if min(row.values(), default=more) > most and min(above.values(), default=more) > most:
            return more
        before, above = above, row
    return min(above.get(len(b), more), more)
