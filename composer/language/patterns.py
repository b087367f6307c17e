"""Patterns over names, as `init` writes them: `*.(out|down).weight`.

`*` is any run of characters, the empty one too; `?` is any one character; `(a|b)` is either, and so is `a|b` without brackets,
for the pattern as a whole. All else stands for itself, and a name is matched from its start to its end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

TOKEN = re.compile(r"\*+|[()|]|[^*()|]+")
PatternPiece: TypeAlias = "str | Choice"
"""`*`, a text in which `?` is any character, or a choice."""


class Unbalanced(ValueError):
    """An unmatched bracket, or one inside another."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several sequences of pieces."""

    ways: tuple[tuple[PatternPiece, ...], ...]


@lru_cache(maxsize=512)
def parsed(pattern: str) -> Choice:
    """Parse a pattern.

    Raises:
        Unbalanced: where its brackets do not match.
    """
    outer: list[list[PatternPiece]] = [[]]
    inner: list[list[PatternPiece]] | None = None
    for token in TOKEN.findall(pattern):
        ways = outer if inner is None else inner
        match token:
            case "(" if inner is None:
                inner = [[]]
            case ")" if inner is not None:
                outer[-1].append(Choice(tuple(map(tuple, inner))))
                inner = None
            case "(" | ")":
                raise Unbalanced(pattern)
            case "|":
                ways.append([])
            case _:
                ways[-1].append("*" if token[0] == "*" else token)
    if inner is not None:
        raise Unbalanced(pattern)
    return Choice(tuple(map(tuple, outer)))


def matches(pattern: str, name: str) -> bool:
    """Return whether a name is one of the pattern's.

    All places that a prefix of the pattern may end at are followed at once, so each piece looks at each place of the name once.
    """
    return len(name) in _ends(parsed(pattern), name, {0})


def below(prefix: str, pattern: str) -> str:
    """Return the pattern over names that start with a prefix, itself a pattern without `|`."""
    ways, depth = [prefix], 0
    for token in TOKEN.findall(pattern):
        depth += (token == "(") - (token == ")")
        if token == "|" and not depth:
            ways.append(prefix)
        else:
            ways[-1] += token
    return "|".join(ways)


def _ends(choice: Choice, name: str, starts: set[int]) -> set[int]:
    """Return where a choice may end that begins at one of some places."""
    found: set[int] = set()
    for way in choice.ways:
        ends = starts
        for piece in way:
            if not ends:
                break
            match piece:
                case Choice():
                    ends = _ends(piece, name, ends)
                case "*":
                    ends = set(range(min(ends), len(name) + 1))
                case text if "?" in text:
                    ends = {end + len(text) for end in ends if _stands(text, name, end)}
                case text:
                    ends = {end + len(text) for end in ends if name.startswith(text, end)}
        found |= ends
    return found


def _stands(text: str, name: str, start: int) -> bool:
    """Return whether a text stands at a place of a name, each `?` of it for any character."""
    there = name[start : start + len(text)]
    return len(there) == len(text) and all(a in ("?", b) for a, b in zip(text, there, strict=True))
