"""What passes of a repeat say that differ, in words that hold for all: sets of values, lists, the largest number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from blocks.core import BlockIcon, Look
from composer.cost.units import THOUSANDS
from composer.draw.about import TIP_SEPARATOR
from composer.draw.diagram import Group, Leaf
from composer.draw.series import NUMBER, listed, one_number, template

EACH = re.compile(r"up to \d\S*( [KMBTPE])?|\d\S*( [KMBTPE])? each")
"""How many parameters a pass has."""
OWN = re.compile(r"(up to )?\d\S*( [KMBTPE])?")
"""How many a frame has, in its header."""
MAX_ROWS = 3
"""Kinds of a block that are shown one by one."""


def of_each(descriptions: Sequence[str]) -> str:
    """Return the captions of each kind of pass; one where all are the same."""
    return " | ".join(dict.fromkeys(descriptions))


def tip_of(items: Sequence[Leaf | Group]) -> str:
    """Return what is said in one line, piece by piece, each piece that differs with all that it is."""
    tips = list(dict.fromkeys(item.about.tip for item in items))
    split = [tip.split(TIP_SEPARATOR) for tip in tips]
    if len({*map(len, split)}) != 1:
        return of_each(tips)
    return TIP_SEPARATOR.join(each_value(list(dict.fromkeys(alike))) for alike in zip(*split, strict=True))


def each_value(said: Sequence[str], *, bare: bool = False) -> str:
    """Return all that is said of one thing in several passes; of numbers of parameters that passes have, the largest, and of many
    others with units, how many there are. Where it is `bare`, any number is one of parameters.
    """
    if len(said) > 1 and all(EACH.fullmatch(one) or (bare and OWN.fullmatch(one)) for one in said):
        return f"up to {max((one.removeprefix('up to ').removesuffix(' each') for one in said), key=_counted)}"
    if one_number(said) is None:
        return of_each(said)
    if not said[0].endswith((" parameter", " parameters")):
        return listed(said)
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


def all_values(looks: Sequence[Look]) -> tuple[str, ...]:
    """Return what all kinds say, and of the rest what the first and the last say; a number that differs with all its values."""
    first, last = looks[0].facts, looks[-1].facts
    by_template = [{template(fact): fact for fact in seen.facts} for seen in looks]
    if all(len(one) == len(first) and one.keys() == by_template[0].keys() for one in by_template):
        alike = [tuple(dict.fromkeys(one[said] for one in by_template)) for said in by_template[0]]
        return tuple(one[0] if len(one) == 1 else listed(one) for one in alike) or (f"{len(looks)} kinds",)
    if all(len(seen.facts) == len(first) for seen in looks):
        said = (tuple(dict.fromkeys(alike)) for alike in zip(*(seen.facts for seen in looks), strict=True))
        return tuple(alike[0] if len(alike) == 1 else listed(alike) for alike in said) or (f"{len(looks)} kinds",)
    common = [fact for fact in last if all(fact in seen.facts for seen in looks)]
    rest = [[fact for fact in seen.facts if fact not in common] for seen in looks]
    if all(len(own) <= 1 for own in rest) and (most := greatest([fact for own in rest for fact in own])):
        return (*common, most)
    only_last = [f"{fact} in the last" for fact in last if fact not in common]
    return (*common, *(f"{fact} in the first" for fact in first if fact not in common), *only_last)


def greatest(facts: Sequence[str]) -> str:
    """Return the facts that differ in their one number by the greatest, `dilation up to 32`; nothing for others."""
    split = {fact: re.fullmatch(r"(\D+ )(\d[\d.]*)", fact) for fact in facts}
    found = [(match[1], float(match[2]), match[2]) for match in split.values() if match]
    if len(found) < len(split) or len({name for name, _, _ in found}) != 1:
        return ""
    name, _, most = max(found, key=lambda one: one[1])
    return f"{name}up to {most}"
