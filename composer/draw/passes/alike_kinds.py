"""Kinds of passes of a repeat: those that consist of the same nodes in one frame, the others in frames beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from composer.draw.diagram import Flow, Group, Item, Leaf, OpenMixture, Row
from composer.draw.passes.merge_kinds import MAX_MAPPED_KINDS, merge_passes
from composer.draw.series import one_each
from composer.draw.wording import places_in_words


@dataclass(frozen=True, slots=True)
class AlikeKinds:
    """Some kinds of passes as one flow."""

    flow: Flow
    kinds: tuple[int, ...]
    """Their numbers; the passes of kind 0 are the most."""
    passes: int
    """How many passes these are together."""


def merge_alike(flows: Sequence[Flow], passes: Sequence[Sequence[int]], *, inner: bool = False) -> tuple[AlikeKinds, ...]:
    """Return a flow for all kinds that consist of the same nodes, in the order of the first kind of each; of a repeat that is the
    `inner` one of two, with the kinds of blocks rather than the values of all passes.

    Before: a:wide(x) b(a) / a(x) / a:narrow(x) b(a)
    After:  a:wide|narrow(x) b(a) / a(x)
    """
    whole = merge_passes(flows, passes, inner=inner)
    if whole is not None:  # as most are, also a thousand
        return (AlikeKinds(whole, tuple(range(len(flows))), sum(map(len, passes))),)
    parts: list[list[int]] = []
    waiting = list(range(len(flows)))
    while waiting:
        part = _alike_with_first(flows, waiting)
        parts.append(part)
        waiting = sorted({*waiting}.difference(part))
    every = len(flows) <= MAX_MAPPED_KINDS
    merged, count = [], sum(map(len, passes))
    for part in parts:
        one = merge_passes([flows[number] for number in part], [passes[number] for number in part], inner=inner)
        assert one is not None
        if len(parts) > 1 and len(part) > 1:
            one = numbered_kinds(
                one if every else _placed(one, [passes[number] for number in part], count), part if every else ()
            )
        merged.append(AlikeKinds(one, tuple(part), sum(len(passes[number]) for number in part)))
    return tuple(merged)


def _alike_with_first(flows: Sequence[Flow], waiting: Sequence[int]) -> list[int]:
    """Return the numbers of the flows that consist of the same nodes as the first of those that wait, and that one."""
    first, *others = waiting
    fitting = [number for number in others if merge_passes([flows[first], flows[number]], one_each(2))]
    part = [first, *fitting]
    if merge_passes([flows[number] for number in part], one_each(len(part))):
        return part
    part = [first]
    for number in fitting:  # each goes with the first, and not all with each other
        if merge_passes([*(flows[one] for one in part), flows[number]], one_each(len(part) + 1)):
            part.append(number)
    return part


def _placed(flow: Flow, passes: Sequence[Sequence[int]], count: int) -> Flow:
    """Return a flow whose rows say which of so many passes they are about, where a few words tell that, given the passes of its
    kinds: no map of layers does.
    """

    def of_row(row: Row) -> Row:
        words = places_in_words([index for kind in row.kinds for index in passes[kind]], count) if row.kinds else ""
        _, colon, said = row.share.partition(": ")
        return replace(row, share=f"{words}: {said}") if words and colon else row

    return flow.map_items(lambda item: replace(item, rows=tuple(map(of_row, item.rows))) if isinstance(item, Leaf) else item)


def numbered_kinds(flow: Flow, numbers: Sequence[int]) -> Flow:
    """Return a flow whose rows have the colors of other kinds in a map of layers, of none where there are no numbers; but for
    those in a repeat with a map of its own.
    """

    def cells(own: Sequence[int]) -> tuple[int, ...]:
        return tuple(numbers[one] for one in own) if numbers else ()

    def of_row(row: Row) -> Row:
        return replace(row, kinds=cells(row.kinds))

    def of_item(item: Item) -> Item:
        match item:
            case Leaf():
                return replace(item, rows=tuple(map(of_row, item.rows)))
            case OpenMixture():
                instead = tuple(replace(one, rows=tuple(map(of_row, one.rows))) for one in item.instead)
                return replace(item, row=item.row and of_row(item.row), instead=instead)
            case Group(count="", cells=own):
                return replace(
                    item.map_flows(lambda inner: inner.map_items(of_item)), cells=tuple(map(cells, own)) if numbers else ()
                )
            case Group(kinds=()):
                return item.map_flows(lambda inner: inner.map_items(of_item))
            case _:  # with a map of its own, or found by later passes
                return item

    return flow.map_items(of_item)
