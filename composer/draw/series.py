"""Texts that differ in their numbers, as one text with all values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise, takewhile

from composer.graph.passes.roll_layers.stacks import MAX_FIELD_VALUES

NUMBER = re.compile(r"(\d[\d.]*(?:\u00a0\d{3})*)")
"""With separated thousands."""
OF = " · "
"""Between what a part of a model is called and the closed repeat that it is."""
REPEAT = re.compile(rf"(?:[^·]+{OF})?(?:× |(?=\d+ parallel ))(\d+) (.*)")
"""A closed repeat: how many passes it has, and what these are called."""
WIDTHS = re.compile(rf"{NUMBER.pattern} → {NUMBER.pattern}")
"""From which width to which other one a block maps."""
TIMES = " × "
"""Between the sizes of a shape."""
MAX_SIZES = 3
"""Passes whose sizes are all told in a shape."""
SECOND = re.compile(r", \S+, … ")
"""The second one of sizes of which each is as many times the one before."""
IN_PARENTHESES = re.compile(r"\([^()]*\)")
"""What a function of sizes takes."""
MAX_WIDTHS = 4
"""Widths to which a block maps that are all told."""
MAX_IN_ORDER = 8
"""Passes whose values are listed one by one."""
LIST = re.compile(rf"{NUMBER.pattern}(?:(?:, | → ){NUMBER.pattern}){{3,}}")
"""The values of so many passes that a line may have no room for what else is told of these."""


def without_repeat(title: str) -> str:
    """Return the title of a box without the closed repeat that it is around.

    >>> without_repeat("Branch · × 4 Unit"), without_repeat("× 4 Unit")
    ('Branch', '× 4 Unit')
    """
    return title.partition(f"{OF}× ")[0]


def listed(facts: Sequence[str]) -> str:
    """Return the facts that differ in one number with all its values, `dilation 1, 2, 4`; of many widths that only grow or shrink
    the first and the last, of many others the first ones and the last if they do, else the greatest, since the last one that
    differs need not be that of the last pass; facts that differ in more from the first to the last.

    >>> listed([f"Linear 512 → {width}" for width in (1024, 512, 256, 128, 64)])
    'Linear 512 → 1024 … 64'
    """
    place = one_number(facts)
    if place is None:
        return from_first_to_last(facts[0], facts[-1])
    split = [NUMBER.split(fact) for fact in facts]
    values = [parts[place] for parts in split]
    if len(values) > MAX_WIDTHS and split[0][place - 1].endswith("→ ") and is_monotonic(values):
        said = f"{values[0]} … {values[-1]}"
    elif len(values) <= MAX_FIELD_VALUES:
        said = ", ".join(values)
    elif is_monotonic(values):
        said = first_and_last(values)
    else:
        said = f"up to {max(values, key=as_number)}"
    return "".join([*split[0][:place], said, *split[0][place + 1 :]])


def of_passes(facts: Sequence[str], passes: Sequence[Sequence[int]], *, whole: bool = False) -> str:
    """Return the facts of kinds, each of some passes, that differ in one number, as one with all its values: each once where they
    come in this order, `dilation 1, 2, 4`, or in turns, or where nothing is known of passes; else one for each pass. As a `whole`
    it is one for each of a few passes, if they do not come in turns; and all widths from and to which passes map, too.

    >>> of_passes(["conv (3 → 8)", "conv (3 → 16)"], [(0, 3), (1, 2)])
    'conv (3 → 8, 16, 16, 8)'
    >>> of_passes(["window 8", "window 16"], [(0, 1), (2, 3)])
    'window 8, 16'
    >>> of_passes(["window 8", "window 16"], [(0, 1), (2, 3)], whole=True)
    'window 8, 8, 16, 16'
    """
    different = list(dict.fromkeys(facts))
    if whole and len(different) > 1 and (said := in_whole(facts, passes)):
        return said
    place = one_number(different)
    if place is None or len(passes) != len(facts):
        return different[0] if len(different) == 1 else listed(different)
    pieces = [NUMBER.split(fact) for fact in facts]
    every = one_for_each([parts[place] for parts in pieces], passes)
    in_turn = every == list(dict.fromkeys(every)) * (len(every) // len(different))
    if is_monotonic(every) or (len(different) <= MAX_FIELD_VALUES and (in_turn or len(every) > MAX_IN_ORDER)):
        return listed(different)
    return "".join([*pieces[0][:place], at_length(every), *pieces[0][place + 1 :]])


def in_whole(facts: Sequence[str], passes: Sequence[Sequence[int]]) -> str:
    """Return the facts of kinds, each of some of a few passes, as one with the values of all passes in their order: what differs
    in one number, the widths of maps of which each reads what the one before gives, or those of maps that keep them; nothing for
    others, and where values grow or shrink from each to the next and are few, or come in turns, which is told in other words.

    >>> in_whole(["64 → 64", "64 → 32", "32 → 16"], [(0, 1), (2,), (3,)])
    '64 → 64 → 64 → 32 → 16'
    >>> in_whole(["64 → 64 + bias", "32 → 32 + bias"], [(0, 1), (2,)])
    'in and out 64, 64, 32 + bias'
    """
    if len(passes) != len(facts):
        return ""
    every = one_for_each(facts, passes)
    different = list(dict.fromkeys(every))
    in_turn = every == different * (len(every) // len(different)) and len(every) > len(different)
    if len(every) > MAX_IN_ORDER or in_turn:
        return ""
    if chain := as_chain(every):
        return chain
    pairs = [WIDTHS.findall(fact) for fact in every]
    if all(len(own) == 1 and own[0][0] == own[0][1] for own in pairs) and len({WIDTHS.sub("#", fact) for fact in every}) == 1:
        return WIDTHS.sub(f"in and out {', '.join(own[0][0] for own in pairs)}", every[0], count=1)
    place = one_number(different)
    if place is None:
        return ""
    pieces = [NUMBER.split(fact) for fact in every]
    return "".join([*pieces[0][:place], ", ".join(parts[place] for parts in pieces), *pieces[0][place + 1 :]])


def one_for_each(values: Sequence[str], passes: Sequence[Sequence[int]]) -> list[str]:
    """Return the value of each pass in the order of these, given which passes have which one."""
    return [value for _, value in sorted((index, value) for value, own in zip(values, passes, strict=True) for index in own)]


def is_monotonic(values: Sequence[str]) -> bool:
    """Return whether numbers grow from each to the next, or shrink."""
    numbers = [*map(as_number, values)]
    return numbers in (sorted(numbers), sorted(numbers, reverse=True))


def as_number(said: str) -> float:
    """Return the number that is written with separated thousands."""
    return float(said.replace("\u00a0", ""))


def at_length(values: Sequence[str]) -> str:
    """Return values in their order, of many the first ones and the last."""
    return ", ".join(values) if len(values) <= MAX_IN_ORDER else first_and_last(values)


def first_and_last(values: Sequence[str]) -> str:
    """Return many values as the first ones and the last."""
    return ", ".join([*values[:3], f"… {values[-1]}"])


def one_each(count: int) -> list[tuple[int]]:
    """Return the passes of kinds that each stand for one."""
    return [(number,) for number in range(count)]


def in_order(values: Sequence[str], passes: Sequence[Sequence[int]]) -> str:
    """Return the value of each pass in the order of these, given which passes have it: one where all have the same, of many the
    first ones and the last.

    >>> in_order(["3", "4", "6"], [(0, 3), (1,), (2,)])
    '3, 4, 6, 3'
    """
    every = one_for_each(values, passes)
    return every[0] if len({*every}) == 1 else at_length(every)


def shapes_in_order(shapes: Sequence[str], passes: Sequence[Sequence[int]]) -> str:
    """Return the shapes of kinds, each of some passes, as one with the sizes of all passes in their order: of up to three all, of
    more the first and the last, if none in between is larger or smaller than both, with the second one where each is as many
    times the one before; nothing for others.

    >>> shapes_in_order(["B × 64 × 32", "B × 128 × 16"], [(0,), (1,)])
    'B × 64, 128 × 32, 16'
    >>> shapes_in_order(["B × 64 × 32", "B × 32 × 32", "B × 16 × 32"], [(0, 1), (2,), (3,)])
    'B × 64 … 16 × 32'
    >>> shapes_in_order([f"B × 16 × {8 * 2**stage}" for stage in range(5)], [(stage,) for stage in range(5)])
    'B × 16 × 8, 16, … 128'
    """
    pairs = sorted((index, shape) for shape, own in zip(shapes, passes, strict=True) for index in own)
    every = [shape.split(TIMES) for _, shape in pairs]
    if not all(shapes) or len({*map(len, every)}) > 1:
        return ""
    told = [size_of_passes(axis) for axis in zip(*every, strict=True)]
    return TIMES.join(told) if all(told) else ""


def size_of_passes(sizes: Sequence[str]) -> str:
    """Return the sizes of one axis in the order of passes as one; nothing where they cannot be told in a few letters."""
    if len({*sizes}) == 1:
        return sizes[0]
    if any(map(is_series, sizes)):  # of a repeat in this one
        return ""
    if len(sizes) <= MAX_SIZES:
        return ", ".join(sizes)
    numbers = [[*map(as_number, NUMBER.findall(size))] for size in sizes]
    if len({*map(template, sizes)}) > 1 or numbers not in (sorted(numbers), sorted(numbers, reverse=True)):
        return ""
    ratios = {after[0] / before[0] for before, after in pairwise(numbers) if len(before) == 1 and before[0]}
    second = f", {sizes[1]}," if all(map(NUMBER.fullmatch, sizes)) and len(ratios) == 1 else ""
    return f"{sizes[0]}{second} … {sizes[-1]}"


def shortened(shape: str) -> str:
    """Return a shape of several passes with the ends alone of sizes of which it tells the second, too.

    >>> shortened("B × 16 × 8², 16², … 128²")
    'B × 16 × 8² … 128²'
    """
    return SECOND.sub(" … ", shape)


def is_series(shape: str) -> bool:
    """Return whether a shape tells the sizes of several passes.

    >>> is_series("B × 64 … 16"), is_series("B × max(T, 4)")
    (True, False)
    """
    bare = shape
    while (found := IN_PARENTHESES.sub("", bare)) != bare:
        bare = found
    return " … " in bare or ", " in bare


def squared(shape: str) -> str:
    """Return a shape of several passes in fewer letters: two axes that have the same sizes in each as a square.

    >>> squared("B × 512 … 16 × 8 … 1024 × 8 … 1024")
    'B × 512 … 16 × 8² … 1024²'
    >>> squared("512 … 16")
    '512 … 16'
    """
    *axes, high, wide = ("", "", *shape.split(TIMES))
    if high != wide or not is_series(high) or template(high).strip("#…, "):
        return shape
    return TIMES.join([*axes[2:], NUMBER.sub(r"\1²", high)])


def as_series(facts: Sequence[str], passes: Sequence[Sequence[int]]) -> str:
    """Return facts that differ in numbers alone as one, with all values of each in the order of passes; nothing for others.

    >>> as_series(["× 3 Layer (64 → 256)", "× 4 Layer (256 → 512)"], [(0,), (1,)])
    '× 3, 4 Layer (64, 256 → 256, 512)'
    """
    if len({*map(template, facts)}) > 1:
        return ""
    pieces = zip(*map(NUMBER.split, facts), strict=True)
    return "".join(in_order(alike, passes) if place % 2 else alike[0] for place, alike in enumerate(pieces))


def as_chain(facts: Sequence[str]) -> str:
    """Return facts that differ in the widths alone from and to which they map, each from that to which the one before does, as
    one with all widths in order; nothing for others.

    >>> as_chain(["conv 3 × 3 (3 → 32), stride 2", "conv 3 × 3 (32 → 64), stride 2"])
    'conv 3 × 3 (3 → 32 → 64), stride 2'
    >>> as_chain(["Linear 8 → 16", "Linear 8 → 16"])
    ''
    """
    found = [WIDTHS.findall(fact) for fact in facts]
    if any(len(widths) != 1 for widths in found) or len({WIDTHS.sub("#", fact, count=1) for fact in facts}) > 1:
        return ""
    pairs = [pair for ((*pair,),) in found]
    if any(before[1] != after[0] for before, after in pairwise(pairs)):
        return ""
    return WIDTHS.sub(" → ".join([pairs[0][0], *(after for _, after in pairs)]), facts[0])


def is_list(said: str) -> bool:
    """Return whether a text tells the values of several passes one by one.

    >>> is_list("64 → 64 → 32 → 16 · kernel 3 × 3"), is_list("64 → 32 · kernel 3 × 3")
    (True, False)
    """
    return LIST.search(said) is not None


def one_title(titles: Sequence[str], passes: Sequence[Sequence[int]]) -> str:
    """Return the titles of a closed repeat whose number of passes is another one in other passes of the one around it as one,
    with all numbers in order; nothing for other titles.
    """
    called = {found[2] if (found := REPEAT.fullmatch(title)) else "" for title in titles}
    return as_series(titles, passes) if len(called) == 1 and called != {""} else ""


def from_first_to_last(first: str, last: str) -> str:
    """Return two facts as the ends of a series, words that both begin or end with once.

    >>> from_first_to_last("conv 3 × 3 (16 → 96)", "conv 3 × 3 (96 → 960)")
    'conv 3 × 3 (16 → 96 … 96 → 960)'
    >>> from_first_to_last("conv (64 → 64)", "conv (64 → 128), stride 2")  # the first has no stride
    'conv (64 → 64) … conv (64 → 128), stride 2'
    >>> from_first_to_last("conv 4 × 4 (512 → 512), stride 2", "conv 4 × 4 (256 → 64), stride 2")
    'conv 4 × 4 (512 → 512 … 256 → 64), stride 2'
    """
    if first.count(",") != last.count(",") or first[-1] != last[-1]:
        return f"{first} … {last}"
    common = _alike(first, last)
    start = max(common.rfind(one) + len(one) if one in common else 0 for one in ("(", ", "))
    opened = first[:start].count("(") > first[:start].count(")")
    after = _alike(first[start:][::-1], last[start:][::-1])[::-1]
    end = len(after) - after.find(")") if opened and ")" in after else 0
    if opened and not end:
        return f"{first} … {last}"
    return f"{first[:start]}{first[start : len(first) - end]} … {last[start : len(last) - end]}{last[len(last) - end :]}"


def _alike(first: str, last: str) -> str:
    """Return the letters with which both of two texts begin."""
    return "".join(letter for letter, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))


def one_number(facts: Sequence[str]) -> int | None:
    """Return where facts have their one number that differs, among the pieces between and beside numbers; None for others."""
    split = [NUMBER.split(fact) for fact in facts]
    alike = list(zip(*split, strict=True)) if len({*map(len, split)}) == 1 else []
    differing = [place for place, parts in enumerate(alike) if len(set(parts)) > 1]
    return differing[0] if len(differing) == 1 and differing[0] % 2 else None


def template(fact: str) -> str:
    """Return a fact without its numbers."""
    return NUMBER.sub("#", fact)
