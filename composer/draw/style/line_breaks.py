"""What a box says below its title, in one line or in a few."""

from __future__ import annotations

import re
from collections.abc import Sequence

from composer.draw.style.text_metrics import wrapped

ONE_LINE, LINE, LONGEST_FACT = 52, 58, 64
"""Letters of a line that stands alone, of each line where there are more, and of one fact."""
LONGEST_ROW = 72
"""Letters of a row of a box in one line: it has room for a bottleneck with its stride and its shortcut."""
MAX_LINES = 3
"""Lines in which a closed box tells what is in it."""
BETWEEN = " · "
"""What stands between two facts."""
SHORTCUT = re.compile(r"(?=(?<=[\w)]) \+ shortcut )(?![^(]*\))")
"""Before a shortcut that stands in no brackets."""
END = ";"
"""What stands behind a fact where the dot would seem to multiply: at both sides of a formula."""


def in_lines(facts: Sequence[str]) -> tuple[str, ...]:
    """Return facts in as few lines as there is room for, which are about equally long; a long fact in one of its own, and a
    sentence that is longer than any fact before all others, broken between words.

    >>> in_lines(["conv 3 × 3 (64 → 64), stride 2", "ReLU", "conv 3 × 3 (64 → 128)", "ReLU", "upsample 2"])
    ('conv 3 × 3 (64 → 64), stride 2 · ReLU', 'conv 3 × 3 (64 → 128) · ReLU · upsample 2')
    >>> in_lines(["2 × Linear;", "σ(gate)·value;", "softmax"])
    ('2 × Linear; σ(gate)·value; softmax',)
    """
    return without_last_end([*map(with_ends, _in_lines(facts))])


def with_ends(line: str) -> str:
    """Return a line in which no dot stands behind the end of a fact."""
    return line.replace(f"{END}{BETWEEN}", f"{END} ")


def without_last_end(lines: Sequence[str]) -> tuple[str, ...]:
    """Return lines without the end of the last fact, behind which nothing stands."""
    return (*lines[:-1], *(line.removesuffix(END) for line in lines[-1:]))


def _in_lines(facts: Sequence[str]) -> tuple[str, ...]:
    whole = BETWEEN.join(facts)
    parts = with_single_words(apart(whole))
    if parts and len(parts[0]) > LONGEST_FACT:
        return (*evenly(parts[0].split(), " ", LINE), *_in_lines(parts[1:]))
    if len(with_ends(whole)) <= ONE_LINE or len(parts) == 1:
        return (whole,) if whole else ()

    longest = LINE if len(wrapped(parts, BETWEEN, lambda line: len(with_ends(line)) <= LINE)) <= MAX_LINES else LONGEST_FACT
    return evenly(parts, BETWEEN, longest)


def evenly(parts: Sequence[str], between: str, longest: int) -> tuple[str, ...]:
    """Return parts in lines of so many letters, about equally long: as few as there can be, or two where one would do."""

    def broken(room: int) -> list[str]:
        return wrapped(parts, between, lambda line: len(with_ends(line)) <= room)

    fewest = max(2, len(broken(longest)))
    shortest = len(with_ends(between.join(parts))) // fewest
    room = next((room for room in range(shortest, longest) if len(broken(room)) <= fewest), longest)
    return tuple(broken(room))


def row_lines(said: str) -> tuple[str, ...]:
    """Return what a row of a box says in one line, or in a few that are about equally long; a shortcut may begin one.

    >>> row_lines("first: conv 3 × 3 (64 → 128), stride 2 · BN · ReLU · conv 3 × 3 · BN + shortcut 1 × 1 (64 → 128), BN")
    ('first: conv 3 × 3 (64 → 128), stride 2 · BN · ReLU', 'conv 3 × 3 · BN + shortcut 1 × 1 (64 → 128), BN')
    """
    if len(said) <= LONGEST_ROW:
        return (said,)
    first, *others = with_single_words(apart(said))
    pieces = [piece for part in (first, *(f"{BETWEEN}{part}" for part in others)) for piece in SHORTCUT.split(part)]
    return tuple(line.removeprefix(BETWEEN).strip() for line in evenly(pieces, "", LONGEST_FACT))


def has_room(facts: Sequence[str], beside: Sequence[str] = ()) -> bool:
    """Return whether a closed box has room for facts, and for what is told beside them, in lines of the usual length; around
    repeats, which are more than a box can tell, in one line less, of which the last one may be as long as one fact.
    """
    parts = apart(BETWEEN.join((*facts, *beside)))
    repeats = any(part.startswith("× ") for part in parts)

    def fits(longest: int) -> bool:
        lines = wrapped(with_single_words(parts), BETWEEN, lambda line: len(line) <= longest)
        return len(lines) <= MAX_LINES - repeats and all(len(line) <= LONGEST_FACT for line in lines)

    return fits(LINE) or (repeats and fits(LONGEST_FACT))


def with_single_words(parts: Sequence[str]) -> list[str]:
    """Return facts with single words, such as an activation or a sign that there is more, in one with what they stand behind.

    >>> with_single_words(["conv 3 × 3", "ReLU", "conv 3 × 3", "…"])
    ['conv 3 × 3 · ReLU', 'conv 3 × 3 · …']
    """
    found: list[str] = []
    for part in parts:
        if found and " " not in part and len(found[-1]) + len(BETWEEN) + len(part) <= LONGEST_FACT:
            found[-1] += BETWEEN + part
        else:
            found.append(part)
    return found


def apart(text: str) -> list[str]:
    """Return the facts of a text; what stands in brackets stays together.

    >>> apart("2 × (conv · ReLU) · pool")
    ['2 × (conv · ReLU)', 'pool']
    """
    found: list[str] = []
    depth = 0
    for part in text.split(BETWEEN):
        if depth:
            found[-1] += BETWEEN + part
        else:
            found.append(part)
        depth += part.count("(") - part.count(")")
    return found
