"""Patterns over parameter names, as `init` writes them: `*.(out|down).weight`."""

from __future__ import annotations

import re
from functools import cache

PIECE = re.compile(r"(?P<any>\*+)|\((?P<choice>[^()]*)\)|(?P<literal>[^*()]+)|(?P<bracket>[()])")


class Unbalanced(ValueError):
    """A bracket without its partner, or one inside another."""


@cache
def pieces(pattern: str) -> tuple[tuple[str, ...], ...]:
    """What a pattern consists of: each piece the words that may stand there, none of them for `*`, any run of characters.

    Raises:
        Unbalanced: where its brackets do not match.
    """
    found: list[tuple[str, ...]] = []
    for match in PIECE.finditer(pattern):
        if match.lastgroup == "bracket":
            raise Unbalanced(pattern)
        found.append(() if match["any"] else tuple((match["choice"] or match["literal"] or "").split("|")))
    return tuple(found)


def matches(pattern: str, name: str) -> bool:
    """Whether a name is one of the pattern's; `?` in it is any one character.

    All places that a prefix of the pattern may end at are followed at once, so that no pattern takes long.
    """
    ends = {0}
    for words in pieces(pattern):
        if not words:
            ends = set(range(min(ends), len(name) + 1))
        else:
            ends = {end + len(word) for end in ends for word in words if _stands(word, name, end)}
        if not ends:
            return False
    return len(name) in ends


def _stands(word: str, name: str, start: int) -> bool:
    if "?" not in word:
        return name.startswith(word, start)
    there = name[start : start + len(word)]
    return len(there) == len(word) and all(a in ("?", b) for a, b in zip(word, there, strict=True))
