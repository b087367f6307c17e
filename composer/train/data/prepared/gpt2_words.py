"""The words of a text as GPT-2 cuts it before pairs of bytes are joined: those of the `tokenizers` library, but faster.

The library cuts by a pattern over categories of Unicode. Here the same pattern is one of Python, over the characters whose
category was the same in Unicode 3.2 and is today, so that no version of either side can tell them otherwise; a line with any
other character is cut by the library.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby

import tokenizers

SPACES = " \t-\r\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space, as the inside of a pattern's class."""
MOST_WORDS = 1 << 17
"""Words that are remembered at most."""
LINES = re.compile(r"(?<=\S)\n(?=\S)")
"""Ends of lines where the pattern cuts in any case."""


@dataclass(frozen=True)
class Patterns:
    """The pattern that cuts a text, and that of a character for which it may be false."""

    word: re.Pattern[str]
    other: re.Pattern[str]


@cache
def patterns() -> Patterns:
    """Return the patterns over the characters whose category is known for good, of the first 2¹⁶ code points."""
    kinds: dict[str, list[int]] = {"L": [], "N": []}
    known = []
    for point in range(1 << 16):
        character = chr(point)
        category = unicodedata.category(character)
        if category == unicodedata.ucd_3_2_0.category(character) and category not in ("Cn", "Cs"):
            known.append(point)
            if category[0] in kinds:
                kinds[category[0]].append(point)
    letters, numbers = class_of(kinds["L"]), class_of(kinds["N"])
    other = f" ?[^{SPACES}{letters}{numbers}]+"
    word = rf"'(?:[stmd]|re|ve|ll)| ?[{letters}]+| ?[{numbers}]+|{other}|[{SPACES}]+(?![^{SPACES}])|[{SPACES}]+"
    return Patterns(re.compile(word), re.compile(f"[^{class_of(known)}]"))


def class_of(points: list[int]) -> str:
    """Return code points in rising order as the inside of a pattern's class."""
    runs = [[point for _, point in run] for _, run in groupby(enumerate(points), key=lambda pair: pair[1] - pair[0])]
    return "".join(f"\\u{run[0]:04x}-\\u{run[-1]:04x}" for run in runs)


def words_of(text: str) -> list[str]:
    """Return the words of a text, which joined are the text."""
    known = patterns()
    if text.isascii() or known.other.search(text) is None:
        return known.word.findall(text)
    words: list[str] = []
    for strange, lines in groupby(lines_of(text), key=lambda line: known.other.search(line) is not None):
        part = "".join(lines)
        words += library_words(part) if strange else known.word.findall(part)
    return words


def lines_of(text: str) -> Iterator[str]:
    """Yield a text in lines that no word crosses."""
    start = 0
    for found in LINES.finditer(text):
        yield text[start : found.end()]
        start = found.end()
    yield text[start:]


def library_words(text: str) -> list[str]:
    """Return the words of a text as the library cuts it."""
    cut = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)
    return [text[start:stop] for _, (start, stop) in cut]


class ByteSpelling(dict[str, str]):
    """Words as the library spells them: a visible character for each of their bytes; spelled when they are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.table = str.maketrans(byte_characters())

    def __missing__(self, word: str) -> str:
        if len(self) >= MOST_WORDS:
            self.clear()
        spelled = word.encode("utf-8").decode("latin-1").translate(self.table)
        self[word] = spelled
        return spelled


def byte_characters() -> dict[str, str]:
    """Return the character that stands for each byte (Radford et al. 2019): itself if it is visible, else one from 256 on."""
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): chr(byte) for byte in visible} | {chr(byte): chr(256 + place) for place, byte in enumerate(hidden)}
