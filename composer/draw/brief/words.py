"""The blocks of closed boxes in the order in which they run, in ever fewer letters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeAlias

from composer.draw.brief.block import BETWEEN, DROPOUT, LETTERS, MAPS, MOVES, NORMS, OPERATIONS, VECTORS, Brief
from composer.draw.style.line_breaks import has_room

MORE = "…"
"""What stands behind the last block that is named, where something else in the box computes, too."""
SKIP = " + skip"
"""What stands behind all blocks around which the input goes."""
TIMES = re.compile(r"^\d+ × ")
"""How often a block is there."""
MAX_TURN, MAX_TURN_LETTERS = 4, 50
"""Blocks of what a box counts as one that comes several times, and letters of these, which no line breaks."""
MAX_MAPS = 4
"""Maps that are told beside operations, where there is no room for all that stands between them."""
HasRoom: TypeAlias = Callable[[Sequence[str]], bool]
"""Whether there is room for what is told of blocks."""


def in_one_line(room: int) -> HasRoom:
    """Return whether there is room for what is told of blocks in a line of so many letters, beside a sign that there are more."""
    return lambda told: len(" · ".join(one for one in told if one != MORE)) <= room


def in_few_lines(beside: Sequence[str] = ()) -> HasRoom:
    """Return whether there is room in the lines of a box for what is told of blocks, and for what stands behind it."""
    return lambda told: has_room([one for one in told if one != MORE], beside)


def cut(told: tuple[str, ...], fits: HasRoom) -> tuple[str, ...]:
    """Return the first ones of blocks for which there is room, and a sign that there are more."""
    end = f"{MORE}{SKIP}" if any(said.endswith(SKIP) for said in told) else MORE
    told = tuple(said for said in told if not said.startswith(MORE))
    while told and not fits((*told, end)):
        told = told[:-1]
    return (*told, end) if told else ()


def as_said(kept: Sequence[Brief], by: Mapping[str, int], every: Sequence[Brief], around: bool) -> tuple[str, ...]:
    """Return what the blocks that are kept of all say in the order in which they run, those with an input that goes around them
    before those behind the sum.
    """
    said = as_run([one for one in kept if not (around and one.behind)], by)
    more = sum(one.weight > BETWEEN for one in every) > sum(one.weight > BETWEEN for one in kept)
    whole = (*said, *[MORE] * more)
    return (*with_skip(whole), *as_run([one for one in kept if one.behind], by)) if around else whole


def with_less(every: Sequence[Sequence[Brief]]) -> Iterator[tuple[list[list[Brief]], Mapping[str, int]]]:
    """Yield which blocks are kept of all, and by how much their kinds are shortened."""
    weights = {one.weight for own in every for one in own}
    if not weights:
        return
    if max(weights) > NORMS:  # what moves values says nothing beside what computes
        every, weights = [[in_short(one) for one in own if one.weight > MOVES] for own in every], weights - {MOVES}
    common = set.intersection(*({one.forms[-1] for one in own} for own in every))
    if any(one.then or one.shortcut or one.branched for own in every for one in own):
        weights |= {NORMS, BETWEEN}
    maps = max(sum(one.weight == MAPS for one in own) for own in every)
    idle = {VECTORS} if max(weights) > MAPS else set()
    if max(weights) > MAPS:
        if any(DROPOUT in one.then for own in every for one in own):
            yield [[one for one in own if one.weight >= min(weights - idle)] for own in every], {}  # where there is room for all
        every = [[replace(one, then=one.then.partition(DROPOUT)[0].removesuffix(" · ")) for one in own] for own in every]
    idle |= {MAPS} if max(weights) == OPERATIONS and maps > MAX_MAPS else set()
    for least in sorted(weights - idle):
        kept = [[one for one in own if one.weight >= least or (one.computes and one.forms[-1] not in common)] for own in every]
        by: dict[str, int] = {}
        if least > NORMS:
            kept = [[one.without_norms() for one in own] for own in kept]
        if least > BETWEEN:
            kept = [[replace(one, then="", branched=()) for one in own] for own in kept]
        if branched := max(len(forms) for own in kept for one in own for forms in (*one.branched[:1], ())):
            yield from (([[one.with_branched(less) for one in own] for own in kept], by) for less in range(branched))
            continue
        yield kept, by
        while least >= min(MAPS, max(weights)) and (longest := longest_kind(kept, by)):
            by[longest] = by.get(longest, 0) + 1
            yield kept, by


def in_short(one: Brief) -> Brief:
    """Return a block of several, norms by their letters."""
    letters = LETTERS.get(one.forms[-1], "") if one.weight == NORMS else ""
    return replace(one, forms=(letters,)) if letters else one


def with_skip(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return what is told of blocks with the skip connection around them."""
    return (*words[:-1], words[-1] + SKIP) if words else ()


def longest_kind(blocks: Sequence[Sequence[Brief]], by: Mapping[str, int]) -> str:
    """Return the kind of blocks that takes most letters of those that can be shortened, of those that matter least; nothing where
    none can be.
    """
    lengths: dict[tuple[int, str], int] = {}
    for one in {one for own in blocks for one in own}:
        if by.get(one.kind, 0) < one.shortest:
            of_kind = -one.weight, one.kind
            lengths[of_kind] = lengths.get(of_kind, 0) + len(" · ".join(one.said(by.get(one.kind, 0))))
    _, longest = max(lengths, key=lambda one: (one[0], lengths[one], one[1]), default=(0, ""))
    return longest


def as_run(blocks: Sequence[Brief], by: Mapping[str, int]) -> tuple[str, ...]:
    """Return what blocks say in the order in which they run, as often as each follows itself; those of a repeat in each pass."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for turn, own in groupby(blocks, key=lambda one: (one.turn, one.times)):
        said = [(each, () if number else one.sides) for one in own for number, each in enumerate(one.said(by.get(one.kind, 0)))]
        found += said * turn[1]
    return tuple(runs(found))


def runs(blocks: Sequence[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    """Yield what blocks say, as often as each or a few follow themselves, and their positions where they first act.

    >>> [*runs([(said, ()) for said in ("conv", "conv", "ReLU", "conv", "ReLU", "pool")])]
    ['conv', '2 × (conv · ReLU)', 'pool']
    """
    placed: set[str] = set()
    words, at = [said for said, _ in blocks], 0
    while at < len(words):
        length, count = turns(words, at)
        if count == 2 and length == 1 and turns(words, at + 1)[0] > 1:  # as a block before others that come in turns
            count = 1
        yield several(words[at : at + length], count)
        for side in dict.fromkeys(side for _, sides in blocks[at : at + length] for side in sides):
            if side not in placed:
                yield side
                placed.add(side)
        at += length * count


def turns(words: Sequence[str], at: int) -> tuple[int, int]:
    """Return how many blocks from a place on come again behind themselves, and how often they are there: those that tell most."""
    best = 1, 1
    for length in range(1, MAX_TURN + 1):
        turn, count = words[at : at + length], 1
        if length > 1 and (len(" · ".join(turn)) > MAX_TURN_LETTERS or any(said.startswith("× ") for said in turn)):
            break
        while words[at + length * count : at + length * (count + 1)] == turn:
            count += 1
        if count > 1 and length * count > best[0] * best[1]:
            best = length, count
    return best


def several(turn: Sequence[str], count: int) -> str:
    """Return what blocks say that come so often, one after the other."""
    if len(turn) > 1:
        return f"{count} × ({' · '.join(runs([(said, ()) for said in turn]))})"
    (said,) = turn
    if count == 1:
        return said
    return f"{said} {count} times" if said.startswith("× ") or said[:1].isdigit() else f"{count} × {said}"
