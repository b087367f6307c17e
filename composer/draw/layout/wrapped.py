"""A column that is higher than a page, wrapped: the stream goes on from the top of each part to the bottom of the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil

from composer.draw.diagram import Flow, output_of
from composer.draw.edges import Origin
from composer.draw.layout.fragment import Fragment, areas, shift, straightened
from composer.draw.layout.parallel_columns import COLUMN_GAP
from composer.draw.layout.parallel_flows import BUS
from composer.draw.passes.order import sort_topologically
from composer.draw.passes.side_inputs import split_side_inputs
from composer.draw.paths import above, lies_in
from composer.draw.scene import Box, Frame, MergeCircle, WirePath

MAX_PARTS = 12
"""Columns of one drawing."""
MAX_RATIO = 3.0
"""How many times higher than another one of them may be: a few blocks beside a column are no column."""
LayPart = Callable[[Flow, frozenset[Origin]], Fragment]
"""Lays out a flow, of which some values are sent on."""


def wrapped(flow: Flow, whole: Fragment, high: float, lay: LayPart) -> Fragment | None:
    """Return a flow, in order, in columns that are no higher, given how it looks in one; none where it cannot be cut so."""
    parts = fitting_parts(flow, whole, high, lay)
    return beside_each_other([one for one, _ in parts], [entry for _, entry in parts]) if parts else None


def fitting_parts(flow: Flow, whole: Fragment, high: float, lay: LayPart) -> list[tuple[Fragment, Origin | None]]:
    """Return the columns by themselves, each with what comes in from below; none where the flow cannot be cut so."""
    tops = tops_of(whole)
    places = {path: -tops[path] for path in cuts(flow) if path in tops}
    for count in range(ceil(whole.height / high), MAX_PARTS + 1) if places else ():
        wanted = (whole.height * part / count for part in range(1, count))
        chosen = dict.fromkeys(min(places, key=lambda path: abs(places[path] - height)) for height in wanted)
        heights = [0.0, *sorted(places[path] for path in chosen), whole.height]
        sizes = [above - below for below, above in pairwise(heights)]
        if max(sizes) > min(high, MAX_RATIO * min(sizes)):
            continue
        parts = parts_between(flow, chosen)
        laid = [lay(part, sent) for part, sent in parts]
        if max(one.height for one in laid) + 2 * BUS <= high:
            return [(one, part.entry) for one, (part, _) in zip(laid, parts, strict=True)]
    return []


class NoColumnEnd(Exception):
    """A column that cannot end above a node: the node, and those above which one can."""

    def __init__(self, path: str, possible: Sequence[str]) -> None:
        super().__init__(path)
        self.path, self.possible = path, possible


def broken(flow: Flow, after: Sequence[str], lay: LayPart) -> Fragment:
    """Return a flow, in order, in columns that end above some nodes.

    Raises:
        NoColumnEnd: if more than what it gives goes on above a node, or nothing does.
    """
    possible = cuts(flow)
    chosen = []
    for path in after:
        ends = [one for one in possible if lies_in(one, path)]
        if not ends:
            raise NoColumnEnd(path, possible)
        chosen.append(ends[-1])
    parts = parts_between(flow, dict.fromkeys(chosen))
    return beside_each_other([lay(part, sent) for part, sent in parts], [part.entry for part, _ in parts])


def cuts(flow: Flow) -> list[str]:
    """Return the blocks above which nothing but what they give goes on."""
    spine = split_side_inputs(flow).flow.items
    number = {item.about.path: index for index, item in enumerate(spine)}
    keep_together(flow, number)
    crossing = []
    for edge in flow.all_edges():
        target = next((number[path] for path in above(edge.target) if path in number), None)
        source = next((number[path] for path in above(edge.source.path) if path in number), None)
        if edge.source.origin == flow.entry:
            source = -1
        if source is not None and target is not None and source != target and not edge.source.reference:
            crossing.append((min(source, target), max(source, target), edge.source.origin))
    return [
        item.about.path
        for index, item in enumerate(spine[:-1])
        if {origin for source, target, origin in crossing if source <= index < target} == {output_of(item)}
    ]


def keep_together(flow: Flow, places: dict[str, int]) -> None:
    """Add what stands beside a block, or beside what is in it, to the places of blocks."""
    for edge in reversed([*flow.all_edges()]):
        place = next((places[path] for path in above(edge.target) if path in places), None)
        if place is not None and edge.source.path in flow.by_path:
            places.setdefault(edge.source.path, place)


def tops_of(whole: Fragment) -> dict[str, float]:
    """Return how high each block reaches with all that is in it, which is negative."""
    found: dict[str, float] = {}
    things: list[Box | MergeCircle | Frame] = [*whole.pieces.boxes, *whole.pieces.merges, *whole.pieces.frames]
    for thing in things:
        for path in above(thing.about.path):
            found[path] = min(found.get(path, 0.0), thing.area.top)
    return found


def parts_between(flow: Flow, chosen: Iterable[str]) -> list[tuple[Flow, frozenset[Origin]]]:
    """Return the parts of a flow up to each of some blocks, with what each sends on."""
    spine = [item.about.path for item in split_side_inputs(flow).flow.items]
    ends = sorted(spine.index(path) + 1 for path in chosen)
    part_of = {path: sum(index >= end for end in ends) for index, path in enumerate(spine)}
    keep_together(flow, part_of)
    found = []
    for number in range(len(ends) + 1):
        part = flow.only({path for path, own in part_of.items() if own == number})
        entry = output_of(flow.by_path[spine[ends[number - 1] - 1]]) if number else flow.entry
        last = [output_of(flow.by_path[spine[ends[number] - 1]])] if number < len(ends) else []
        found.append((replace(part, entry=entry), frozenset(last)))
    return found


def beside_each_other(laid: Sequence[Fragment], entries: Sequence[Origin | None]) -> Fragment:
    """Return columns from the left, with the wire from the top of each to the bottom of the next."""
    whole = Fragment(height=max(one.height for one in laid) + BUS)
    x, spines = 0.0, list[float]()
    for one in laid:
        spines.append(x + one.left)
        shift(one, spines[-1], -BUS)
        x += one.left + one.right + COLUMN_GAP
    for (before, one), entry, spine in zip(pairwise(laid), entries[1:], spines[1:], strict=True):
        assert entry is not None
        start = before.taps[entry]
        gutter = spine - one.left - COLUMN_GAP / 2
        way = (*start, (gutter, start[-1][1]), (gutter, 0.0), (spine, 0.0))
        one.pieces.wires = [led_in(wire, entry, way) for wire in one.pieces.wires]
    for one in laid:
        whole.pieces.take(one.pieces)
    whole.right = max([x - COLUMN_GAP, *(area.right for one in laid for area in areas(one))])
    return whole


def in_columns(flow: Flow, high: float, lay: LayPart) -> Fragment | None:
    """Return a flow in a frame in columns that are no higher: the stream comes in below the first and goes on above that, out of
    the last. None where it cannot be cut so, or wires lead into it from beside the frame.
    """
    flow = sort_topologically(flow)
    parts = fitting_parts(flow, lay(flow, frozenset()), high, lay) if flow.entry else []
    laid, entries = [one for one, _ in parts], [entry for _, entry in parts]
    if not parts or any(one.ends for one in laid) or not laid[-1].out:
        return None
    spine = laid[0].left
    whole = beside_each_other(laid, entries)
    assert flow.entry is not None
    whole.pieces.wires = [led_in(wire, flow.entry, ((spine, BUS), (spine, -BUS))) for wire in whole.pieces.wires]
    last, level = laid[-1].out[0], -whole.height - BUS
    whole.out = (last, (last[0], level), (spine, level), (spine, level - BUS))
    shift(whole, -spine, -BUS)  # wires to the next columns turn up above the lower border
    whole.height += 3 * BUS
    whole.left, whole.right, whole.top = spine, whole.right - spine, -whole.height
    return whole


def led_in(wire: WirePath, entry: Origin, way: Sequence[tuple[float, float]]) -> WirePath:
    """Return a wire that starts at the bottom of a column from where its value is made."""
    begins = wire.source == entry.path and wire.points[0] == (way[-1][0], -BUS)
    return wire.through(straightened((*way, *wire.points))) if begins else wire
