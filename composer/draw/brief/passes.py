"""What kinds of passes say in a closed box, together: each block once, with the numbers of all passes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from composer.draw.diagram import Flow
from composer.draw.series import MAX_IN_ORDER, NUMBER, REPEAT, as_chain, as_series, of_passes, one_each, one_number

CHAIN = re.compile(rf"{NUMBER.pattern}(?: → {NUMBER.pattern}){{2,}}")
"""The widths of maps one after the other."""


def by_first_pass(flows: Sequence[Flow], passes: Sequence[Sequence[int]]) -> tuple[Sequence[Flow], Sequence[Sequence[int]]]:
    """Return flows, each of some passes, with these, in the order of their first passes."""
    if len(flows) != len(passes):
        return flows, passes
    pairs = sorted(zip(flows, passes, strict=True), key=lambda pair: min(pair[1]))
    return [flow for flow, _ in pairs], [own for _, own in pairs]


def by_words(words: Sequence[tuple[str, ...]], passes: Sequence[Sequence[int]]) -> dict[tuple[str, ...], list[int]]:
    """Return what kinds of passes say, each once, with all passes that say it."""
    kinds: dict[tuple[str, ...], list[int]] = {}
    for said, own in zip(words, passes, strict=False):  # there may be no words
        kinds.setdefault(said, []).extend(own)
    return kinds


def with_series(words: Sequence[tuple[str, ...]], passes: Sequence[Sequence[int]]) -> Sequence[tuple[str, ...]]:
    """Return what flows say, each of some passes, with closed repeats that differ in numbers alone as one in each, which has all
    of these in the order of passes: `× 3, 4, 6, 3 Layer`.
    """
    if len(words) == 1 or len({*map(len, words)}) > 1:
        return words
    of_each = passes or one_each(len(words))
    series = [as_series(alike, of_each) if REPEAT.match(alike[0]) else "" for alike in zip(*words, strict=True)]
    return [tuple(both or said for both, said in zip(series, own, strict=True)) for own in words]


def all_widths(words: Sequence[tuple[str, ...]], passes: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """Return what flows say, each of some of a few passes, that differ in the widths of one block alone, with all of these in
    order.
    """
    every = sorted((index, said) for said, own in zip(words, passes, strict=True) for index in own)
    indices = [index for index, _ in every]
    if indices != [indices[0] + number for number in range(len(every))] or len(every) > MAX_IN_ORDER:
        return ()
    alike = [tuple(same) for same in zip(*(said for _, said in every), strict=True)]
    differ = [len({*same}) > 1 for same in alike]
    told = tuple(as_chain(same) if other else same[0] for same, other in zip(alike, differ, strict=True))
    return told if sum(differ) == 1 and all(told) else ()


def with_between(words: Sequence[tuple[str, ...]], passes: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """Return what passes say that have one map each, with all widths in order, what comes behind it in all, and in all but the
    last: `conv 3 × 3 (32 → 32 → 128), stride 2`, `BN`, `ReLU between`; nothing for others.
    """
    *before, last = (said for _, said in sorted((index, said) for said, own in zip(words, passes, strict=True) for index in own))
    behind = before[0][1:]
    if len({said[1:] for said in before}) != 1 or not last or last[1:] != behind[: len(last) - 1] or len(last) > len(behind):
        return ()
    chain, between = as_chain([said[0] for said in (*before, last)]), behind[len(last) - 1 :]
    return (chain, *last[1:], f"{' and '.join(between)} between") if chain else ()


def in_all(words: Sequence[tuple[str, ...]], passes: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """Return what flows say, each of some passes, each once; of what differs in one number, all values."""
    if len(words) == 1:
        return words[0]
    if len({*map(len, words)}) == 1:
        alike = [*zip(*words, strict=True)]
        if all(len({*same}) == 1 or one_number([*dict.fromkeys(same)]) is not None for same in alike):
            return tuple(of_passes(same, passes) for same in alike)
    return tuple(dict.fromkeys(said for own in words for said in own))
