"""Which of two layouts is taken: columns, as usual, or layers, if these are easier to follow."""

from __future__ import annotations

from dataclasses import replace

from composer.draw.diagram import Flow, Group
from composer.draw.layout.beside.borders import with_border_ends
from composer.draw.layout.beside.in_layers import in_layers, layered_frame
from composer.draw.layout.beside.layered import find_parallel_streams, with_output_boxes
from composer.draw.layout.beside.measure import CLEARLY, clearer
from composer.draw.layout.boxes import WIDTH
from composer.draw.layout.column import column, items_of
from composer.draw.layout.fragment import Fragment, shift
from composer.draw.layout.spine import LayoutOptions
from composer.draw.passes.order import sort_topologically
from composer.draw.passes.passages import Opens, open_passages

MIN_UNREAD = 2
"""Streams beside the first that only the next pass reads, from which on wires back say less than these as lanes."""
MIN_WINDING = 2
"""Wires with corners from which on a model is laid out in layers too: one alone is a skip connection."""


MAX_MORE = 2.0
"""How many times as much room layers take at most, where columns do."""


def once(options: LayoutOptions) -> Opens:
    """Return what says of each repeat, once, whether its inside is clearly easier to follow in layers."""
    known: dict[tuple[str, ...], bool] = {}
    plain = replace(options, names=False)

    def opens(usual: Group, entered: Group) -> bool:
        key = (usual.about.path, *(one.port for one in entered.passages))
        if key not in known:
            found = layered_frame(entered, plain, items_of) if _may_open(entered, plain) else None
            known[key] = found is not None and clearer(column(usual.flows[0], WIDTH, plain), found)
        return known[key]

    return opens


def _may_open(entered: Group, options: LayoutOptions) -> bool:
    """Return whether what is around a frame reads what it carries, or its streams exchange values; else a wire back says more."""
    carried = [one for one in entered.passages if one.port and one.made and one.enters]
    if not carried or any(one.read for one in carried):
        return True
    if len(carried) < MIN_UNREAD:
        return False
    ends = with_border_ends(entered)
    within = replace(options, inputs=tuple(ends.entries), ends=tuple(ends.exits))
    return find_parallel_streams(sort_topologically(ends.flow), within)[1] is not None


def clearest(usual: Fragment, flow: Flow, opens: Opens, options: LayoutOptions) -> Fragment:
    """Return a model as it is laid out in columns; or in layers, counted from the left border, if these are clearly easier to
    follow, or at all where a repeat with passages makes the columns unusual, or several streams exchange values. That is tried
    where wires between its items wind.
    """
    flow = with_output_boxes(open_passages(flow, opens))
    paths = flow.by_path
    winding = (wire for wire in usual.pieces.wires if len(wire.points) > 2 and wire.source in paths and not wire.from_inside)
    if sum(1 for _ in winding) < MIN_WINDING:
        return usual
    found = in_layers(flow, replace(options, names=False), items_of)  # which make some wires longer, and all easier to follow
    passages = any(isinstance(item, Group) and item.passages for item in flow.items)
    unusual = passages or find_parallel_streams(sort_topologically(flow), options)[1] is not None
    if found is None or not clearer(usual, found, 1.0 if unusual else CLEARLY):
        return usual
    if not unusual and size(found) > MAX_MORE * size(usual):
        return usual
    found = in_layers(flow, options, items_of) or found
    shift(found, found.left, 0)
    found.left, found.right = 0.0, found.left + found.right
    return found


def size(found: Fragment) -> float:
    """Return how much of a page a drawing takes."""
    return (found.left + found.right) * found.height
