"""Repeats in stages: which of their passes have a frame, told by their place, since the numbers differ from stage to stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from composer.draw.diagram import Flow, Group


def by_place(groups: Sequence[Group], merge: Callable[[Sequence[Flow]], Flow | None]) -> Group | None:
    """Return repeats of several lengths as one, where each has the same frames at the same places: one for the first pass and one
    for the others, or one for the last; none where they have not. Flows of several are made one by `merge`.

    Before: {1 of 3: a(x) b(a) | 2 of 3: b(x)} / {1 of 4: a(x) b(a) | 3 of 4: b(x)}
    After:  {the first: a(x) b(a) | the others: b(x)}
    """
    first = groups[0]
    placed = [dict(zip(map(place, *_each(group)), group.flows, strict=True)) for group in groups]
    if any(one.keys() != placed[0].keys() or "" in one or len(one) < 2 for one in placed):
        return None
    flows = [merge([one[where] for one in placed]) for where in placed[0]]
    found = tuple(flow for flow in flows if flow is not None)
    if len(found) < len(flows):
        return None
    return replace(first, flows=found, headers=tuple((where,) for where in placed[0]), cells=(), kinds=())


def _each(group: Group) -> tuple[list[Group], Sequence[tuple[int, ...]]]:
    return [group] * len(group.flows), group.cells or [()] * len(group.flows)


def place(group: Group, kinds: Sequence[int]) -> str:
    """Return which passes of a repeat those of some kinds are, in words that hold for any number; nothing where none do."""
    count = len(group.kinds)
    passes = [number for number, kind in enumerate(group.kinds) if kind in kinds]
    words = {
        (0,): "the first",
        (count - 1,): "the last",
        (*range(1, count),): "after the first",
        (*range(count - 1),): "before the last",
    }
    return words.get(tuple(passes), "") if count > 2 else ""
