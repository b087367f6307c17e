"""Texts that differ in their numbers, as one text with all values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from composer.graph.passes.roll_layers.stacks import MAX_FIELD_VALUES

NUMBER = re.compile(r"(\d[\d.]*(?:\u00a0\d{3})*)")
"""With separated thousands."""


def listed(facts: Sequence[str]) -> str:
    """Return the facts that differ in one number with all its values, `dilation 1, 2, 4`, of many the first ones and the last;
    others from the first to the last.
    """
    place = one_number(facts)
    if place is None:
        return from_first_to_last(facts[0], facts[-1])
    split = [NUMBER.split(fact) for fact in facts]
    values = [parts[place] for parts in split]
    said = values if len(values) <= MAX_FIELD_VALUES else [*values[:3], f"… {values[-1]}"]
    return "".join([*split[0][:place], ", ".join(said), *split[0][place + 1 :]])


def from_first_to_last(first: str, last: str) -> str:
    """Return two facts as the ends of a series, words that both begin or end with once.

    >>> from_first_to_last("conv 3 × 3 (16 → 96)", "conv 3 × 3 (96 → 960)")
    'conv 3 × 3 (16 → 96 … 96 → 960)'
    """
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    common = "".join(letter for letter, _ in same)
    start = max(common.rfind(one) + len(one) if one in common else 0 for one in ("(", ", "))
    end = 1 if first[-1] == last[-1] == ")" and start else 0
    return f"{first[:start]}{first[start : len(first) - end]} … {last[start : len(last) - end]}{last[len(last) - end :]}"


def one_number(facts: Sequence[str]) -> int | None:
    """Return where facts have their one number that differs, among the pieces between and beside numbers; None for others."""
    split = [NUMBER.split(fact) for fact in facts]
    alike = list(zip(*split, strict=True)) if len({*map(len, split)}) == 1 else []
    differing = [place for place, parts in enumerate(alike) if len(set(parts)) > 1]
    return differing[0] if len(differing) == 1 and differing[0] % 2 else None


def template(fact: str) -> str:
    """Return a fact without its numbers."""
    return NUMBER.sub("#", fact)
