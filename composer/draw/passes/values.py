"""What passes of a repeat say that differ, in words that hold for all: sets of values, lists, the largest number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from blocks.core import BlockIcon, Look
from composer.cost.units import THOUSANDS
from composer.draw.about import TIP_SEPARATOR
from composer.draw.diagram import Group, Leaf, Row
from composer.draw.series import NUMBER, REPEAT, as_series, in_whole, listed, of_passes, one_each, one_number, one_title, template

EACH = re.compile(r"up to \d\S*( [KMBTPE])?|\d\S*( [KMBTPE])? each")
"""How many parameters a pass has."""
OWN = re.compile(r"(up to )?\d\S*( [KMBTPE])?")
"""How many a frame has, in its header."""
MAX_ROWS = 3
"""Kinds of a block that are shown one by one."""
MAX_ENDS = 64
"""Letters of a row of a box, and of the first and the last of many kinds."""
CHANNELS = re.compile(r" \([^()]*→[^()]*\)")
"""From how many channels to how many, behind what computes."""


def of_each(descriptions: Sequence[str]) -> str:
    """Return the captions of each kind of pass; one where all are the same."""
    return " | ".join(dict.fromkeys(descriptions))


def tip_of(items: Sequence[Leaf | Group], passes: Sequence[Sequence[int]]) -> str:
    """Return what is said in one line, piece by piece, each piece that differs with all that it is."""
    split = [item.about.tip.split(TIP_SEPARATOR) for item in items]
    if len({*map(len, split)}) != 1:
        return of_each([item.about.tip for item in items])
    pieces = zip(*split, strict=True)
    return TIP_SEPARATOR.join(one_title(alike, passes) or each_value(alike, passes) for alike in pieces)


def each_value(facts: Sequence[str], passes: Sequence[Sequence[int]] = (), *, bare: bool = False) -> str:
    """Return all that is said of one thing in several kinds of passes; of numbers of parameters that passes have, the largest,
    and of many others with units, how many there are. Where it is `bare`, any number is one of parameters.
    """
    said = list(dict.fromkeys(facts))
    if len(said) > 1 and all(EACH.fullmatch(one) or (bare and OWN.fullmatch(one)) for one in said):
        return f"up to {max((one.removeprefix('up to ').removesuffix(' each') for one in said), key=_counted)}"
    if one_number(said) is None:
        return of_each(said)
    if not said[0].endswith((" parameter", " parameters")):
        return of_passes(facts, passes)
    return of_each(said) if len(said) <= MAX_ROWS else f"{len(said)} kinds by parameters"


def _counted(said: str) -> tuple[int, float]:
    """Return a key by which numbers with units are in order."""
    number, _, unit = said.partition(" ")
    return THOUSANDS.index(f" {unit}" if unit else ""), float(number)


def seen_in_all(looks: Sequence[Look]) -> tuple[BlockIcon | None, str, str, bool]:
    """Return the icon, the mask, its word and whether any is causal, for blocks of several kinds: an icon that all have, or all
    masks that there are. The picture of one mask does for others of the same words, such as random ones.
    """
    first, masks = looks[0], tuple(dict.fromkeys(seen.mask for seen in looks))
    causal = any(seen.causal for seen in looks)
    if len(masks) == 1:
        icon = first.icon if first.mask or all(seen.icon == first.icon for seen in looks) else None
        return icon, first.mask, first.known_mask, causal
    alike: dict[tuple[str, ...], list[str]] = {}
    for mask in masks:
        alike.setdefault(tuple(NUMBER.split(mask)[::2]), []).append(mask or "no mask")
    said = [one for found in alike.values() for one in ([listed(found)] if one_number(found) is not None else found)]
    return None, " or ".join(said) if len(said) <= MAX_ROWS else f"{len(masks)} masks", "", causal


def completed(looks: Sequence[Look]) -> list[Look]:
    """Return looks with what is usual, where others say that of themselves: the dilation of 1 beside those of 2 and 4."""
    said = {template(fact) for look in looks for fact in look.facts}

    def usual(look: Look) -> list[str]:
        own = {*map(template, look.facts)}
        return [fact for fact in look.unsaid if template(fact) in said - own]

    return [replace(look, facts=(*look.facts, *usual(look))) for look in looks]


def all_values(looks: Sequence[Look], passes: Sequence[Sequence[int]], *, whole: bool = True) -> tuple[str, ...]:
    """Return what all kinds say, each of some passes, and of the rest what the first pass and the last one say; a number that
    differs with all its values, as a `whole` those of each of a few passes, and how often it takes these in turn.
    """
    end = max(range(len(looks)), key=lambda number: max(passes[number]))
    first, last = looks[0].facts, looks[end].facts
    by_template = [{template(fact): fact for fact in seen.facts} for seen in looks]
    if all(len(one) == len(first) and one.keys() == by_template[0].keys() for one in by_template):
        turns = turns_of(passes)
        again = "" if turns == 1 else ", twice" if turns == 2 else f", {turns} times"
        alike = [[one[said] for one in by_template] for said in by_template[0]]
        told = (
            listed(one) + again if again and len({*one}) == len(one) else of_passes(one, passes, whole=whole) for one in alike
        )
        return (*told,) or (f"{len(looks)} kinds",)
    if all(len(seen.facts) == len(first) for seen in looks):
        said = (tuple(dict.fromkeys(alike)) for alike in zip(*(seen.facts for seen in looks), strict=True))
        return tuple(map(in_each_or, said)) or (f"{len(looks)} kinds",)
    common = [fact for fact in last if all(fact in seen.facts for seen in looks)]
    rest = [[fact for fact in seen.facts if fact not in common] for seen in looks]
    if all(len(own) <= 1 for own in rest) and (most := greatest([fact for own in rest for fact in own])):
        return (*common, most)
    own = dict.fromkeys(fact for fact in (*first, *last) if fact not in common)
    where = {(True, True): "the first and the last", (True, False): "the first", (False, True): "the last"}
    return (*common, *(f"{fact} in {where[fact in first, fact in last]}" for fact in own))


def in_runs(looks: Sequence[Look], passes: Sequence[Sequence[int]]) -> bool:
    """Return whether kinds, each of some of a few passes, differ in numbers alone, and the passes of each follow one another, and
    one line tells the numbers of all in their order.

    >>> in_runs([Look("Norm", ("32 groups",)), Look("Norm", ("64 groups",))], [(0, 1), (2, 3)])
    True
    >>> in_runs([Look("Norm", ("32 groups",)), Look("Norm", ("64 groups",))], [(0, 2), (1, 3)])
    False
    """
    alike = {(seen.title, seen.mask, seen.sides, tuple(map(template, seen.facts))) for seen in looks}
    if len(alike) > 1 or any(max(own) - min(own) + 1 > len(own) for own in passes):
        return False
    return all(len({*same}) == 1 or in_whole(same, passes) for same in zip(*(seen.facts for seen in looks), strict=True))


def in_each_or(said: Sequence[str]) -> str:
    """Return what kinds say in one place: all values of what differs in numbers alone, else the few there are, or how many."""
    if len({*map(template, said)}) == 1:
        return said[0] if len(said) == 1 else listed(said)
    return " or ".join(said) if len(said) <= MAX_ROWS else f"{len(said)} kinds"


def in_patterns(looks: Sequence[Look]) -> tuple[tuple[str, ...], dict[str, list[int]]]:
    """Return what kinds say of which some have a part that others lack, such as a stride: what all say, with the values of all,
    and by that part which kinds have it; nothing where kinds differ in numbers alone, or in too much for a few rows.

    >>> in_patterns([Look("", ("conv 3 × 3 (4 → 8)", "ReLU")), Look("", ("conv 3 × 3 (8 → 16), stride 2", "ReLU"))])
    (('conv 3 × 3 (4 → 8 … 8 → 16)', 'ReLU'), {'conv 3 × 3': [0], 'conv 3 × 3, stride 2': [1]})
    """
    if len({len(seen.facts) for seen in looks}) != 1:
        return (), {}
    common: list[str] = []
    own: list[list[str]] = [[] for _ in looks]
    for alike in zip(*(seen.facts for seen in looks), strict=True):
        if len({*map(template, alike)}) > 1:
            for said, fact in zip(own, alike, strict=True):
                said.append(CHANNELS.sub("", fact))
            alike = tuple(fact.partition(", ")[0] for fact in alike)
        if len({*map(template, alike)}) > 1:
            return (), {}
        common.append(in_each_or(tuple(dict.fromkeys(alike))))
    kinds: dict[str, list[int]] = {}
    for number, said in enumerate(own):
        kinds.setdefault(", ".join(said), []).append(number)
    return (tuple(common), kinds) if 1 < len(kinds) <= MAX_ROWS and max(map(len, kinds)) <= MAX_ENDS else ((), {})


def said_in_all(looks: Sequence[Look], *, in_order: bool) -> tuple[str, ...]:
    """Return what several kinds all say; of blocks `in_order`, as those of a closed box, also which one it is that others stand
    behind and that differs in its widths alone, as rows tell these.

    >>> said_in_all([Look("", ("BN", "conv (8 → 4)", "pool")), Look("", ("BN", "conv (4 → 2)", "pool"))], in_order=True)
    ('BN', 'conv', 'pool')
    """
    one = looks[0].facts
    common = tuple(fact for fact in one if all(fact in seen.facts for seen in looks))
    if not (in_order and common and len({len(seen.facts) for seen in looks}) == 1):
        return common
    alike = [*zip(*(seen.facts for seen in looks), strict=True)]
    bare = [facts[0] if len({*facts}) == 1 else CHANNELS.sub("", facts[0]) for facts in alike]
    known = all(
        CHANNELS.sub("", fact) == CHANNELS.sub("", said) for facts, said in zip(alike, bare, strict=True) for fact in facts
    )
    own = [facts[0] for facts in alike if len({*facts}) == 1]
    return tuple(bare) if known and one[: len(own)] != tuple(own) else common


def turns_of(kinds: Sequence[Sequence[int]]) -> int:
    """Return how often kinds follow one another in the same order, given the passes of each; 1 where they do not.

    >>> turns_of([(0, 2, 4), (1, 3, 5)]), turns_of([(0, 3), (1, 2)])
    (3, 1)
    """
    count, whole = len(kinds), sum(map(len, kinds))
    in_turn = all(sorted(own) == [*range(number, whole, count)] for number, own in enumerate(kinds))
    return whole // count if in_turn and whole % count == 0 else 1


def greatest(facts: Sequence[str]) -> str:
    """Return the facts that differ in their one number by the greatest, `dilation up to 32`; nothing for others."""
    split = {fact: re.fullmatch(r"(\D+ )(\d[\d.]*)", fact) for fact in facts}
    found = [(match[1], float(match[2]), match[2]) for match in split.values() if match]
    if len(found) < len(split) or len({name for name, _, _ in found}) != 1:
        return ""
    name, _, most = max(found, key=lambda one: one[1])
    return f"{name}up to {most}"


def in_each(forms: Sequence[str]) -> str:
    """Return what all kinds of a block say in a few letters, of one number that differs all values; nothing where more does."""
    said = [*dict.fromkeys(forms)]
    return said[0] if len(said) == 1 else listed(said) if one_number(said) is not None else ""


# -- repeats in repeats


def length_of(leaf: Leaf) -> int:
    """Return how many passes a box stands for that is a closed repeat; one for another."""
    found = REPEAT.fullmatch(leaf.look.title)
    return int(found[1]) if found else 1


def of_nested(first: Leaf, leaves: Sequence[Leaf], passes: Sequence[Sequence[int]], lengths: Sequence[int]) -> Leaf:
    """Return a block of a repeat in a repeat, whose kinds in the passes of the inner one, or of so many passes without kinds, are
    others in other passes of the outer one: all of them, each with its share of all passes.
    """
    common = said_in_all([leaf.look for leaf in leaves], in_order=first.closed)
    found: list[tuple[str, Look, int, Sequence[int]]] = []
    for leaf, own, alone in zip(leaves, passes, lengths, strict=True):
        said = ", ".join(fact for fact in leaf.look.facts if fact not in common)
        for row in leaf.rows or (Row(f": {said}", replace(leaf.look, facts=()), alone),):
            found.append((row.share.partition(": ")[2], row.look, len(own) * row.passes, own))
    whole = sum(count for _, _, count, _ in found)
    shares: dict[tuple[str, tuple[str, ...]], tuple[Look, int]] = {}
    for words, look, count, _ in found:
        shares[words, look.facts] = look, shares.get((words, look.facts), (look, 0))[1] + count
    kinds = {words: count for (words, _), (_, count) in shares.items()}
    looks = {words: look for (words, _), (look, _) in shares.items()}
    if len(shares) > MAX_ROWS or any(facts for _, facts in shares):
        kinds = {} if any(facts for _, facts in shares) else of_templates([(words, count, own) for words, _, count, own in found])
        if len(kinds) < 2:
            every = [words for words, _ in shares]
            alike = all(fact for fact in every) and len({*map(template, every)}) == 1
            told = next(iter(kinds), "") or (listed(every) if alike else f"{len(shares)} kinds")
            return replace(first, look=replace(first.look, facts=(*common, told)), rows=())
    rows = [Row(f"{count} of {whole}: {words}", looks.get(words, Look("")), count) for words, count in kinds.items()]
    return replace(first, look=replace(first.look, facts=common), rows=tuple(rows))


def of_templates(found: Sequence[tuple[str, int, Sequence[int]]]) -> dict[str, int]:
    """Return what kinds of passes say, those that differ in numbers alone as one with all values of each number, and how many
    passes are of it; nothing where these are still too many, or too long even without the channels.
    """
    for said in ([words for words, _, _ in found], [CHANNELS.sub("", words) for words, _, _ in found]):
        alike: dict[str, list[int]] = {}
        for number, words in enumerate(said):
            alike.setdefault(template(words), []).append(number)
        told: dict[str, int] = {}
        for numbers in alike.values():
            own = [found[number][2] for number in numbers]
            once = len({*map(tuple, own)}) == len(own)  # else, passes of the inner repeat differ in the number
            series = as_series([said[number] for number in numbers], own if once else one_each(len(own)))
            told[series] = sum(found[number][1] for number in numbers)
        if len(told) <= MAX_ROWS and "" not in told and max(map(len, told)) <= MAX_ENDS:
            return told
    return {}
