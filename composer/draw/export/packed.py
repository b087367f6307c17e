"""Pictures that have much in common, with what they share written once: words, phrases, things made of them, and their places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

PackedItem: TypeAlias = tuple[int, ...]
"""The number of a phrase, a coordinate, a phrase, and so on: to the right and downwards in turn, in tenths of a pixel from where
the thing stands."""

NUMBER = r"-?(?!0[\d\"])\d{1,5}(?:\.[1-9])?"
PLACE = re.compile(
    rf'(?<=x=")({NUMBER})(" c?y=")({NUMBER})(?=")'
    rf"|(?<=M)({NUMBER})( )({NUMBER})(?=[a-z])"
    rf'|(?<![\d.])({NUMBER})(,)({NUMBER})(?=[ "])'
)
"""A point in what `svg` writes: of a shape, at the start of a path, at the corner of an arrowhead."""
WORD = re.compile(r'(?= fill=)|(?<=\n)|(?<=">)')
"""Where a phrase is cut: behind what says of which thing it is, and how large; and behind what says how that looks."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Pictures in pieces."""

    words: tuple[str, ...]
    phrases: tuple[tuple[int, ...], ...]
    """The numbers of their words."""
    things: tuple[PackedItem, ...]
    pictures: tuple[tuple[int, ...], ...]
    """Of each picture its things, three numbers each: which one, how far to the right, how far down."""


def packed(svgs: Sequence[str]) -> Packed:
    """Some pictures; put together again, they are the same text."""
    words: dict[str, int] = {}
    phrases: dict[tuple[int, ...], int] = {}
    things: dict[PackedItem, int] = {}
    pictures = []
    for svg in svgs:
        rows: list[int] = []
        for text in texts(svg):
            parts, x, y = parts_of(text)
            cut = (WORD.split(part) if isinstance(part, str) else part for part in parts)
            numbers = (tuple(words.setdefault(w, len(words)) for w in one) if isinstance(one, list) else one for one in cut)
            thing = tuple(phrases.setdefault(one, len(phrases)) if isinstance(one, tuple) else one for one in numbers)
            rows += [things.setdefault(thing, len(things)), x, y]
        pictures.append(tuple(rows))
    return Packed(tuple(words), tuple(phrases), tuple(things), tuple(pictures))


def texts(svg: str) -> Iterator[str]:
    """Lines, those of one block or wire together."""
    held, depth = "", 0
    for line in svg.splitlines(keepends=True):
        held += line
        depth += line.startswith("<g ") - line.startswith("</g>")
        if not depth:
            yield held
            held = ""


def parts_of(thing: str) -> tuple[list[str | int], int, int]:
    """A thing as if it stood at the corner of the page, in phrases and coordinates; and where its first point is."""
    parts: list[str | int] = []
    at, origin = 0, (0, 0)
    for found in PLACE.finditer(thing):
        x, between, y = (part for part in found.groups() if part is not None)
        point = tenths(x), tenths(y)
        if not parts:
            origin = point
        parts += [thing[at : found.start()], point[0] - origin[0], between, point[1] - origin[1]]
        at = found.end()
    return [*parts, thing[at:]], *origin


def tenths(number: str) -> int:
    """A coordinate without its point."""
    return round(10 * float(number))
