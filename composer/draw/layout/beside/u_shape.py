"""A model in the form of a U: its way down at the left, turned over, its way up at the right, and skip connections across."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from composer.draw.diagram import Flow, Leaf
from composer.draw.edges import DiagramEdge, Origin
from composer.draw.geometry import Point
from composer.draw.layout.beside.on_skips import make_room, put_on_skips, skip_room
from composer.draw.layout.boxes import MAX_BOX_WIDTH, TWO_COLUMNS_WIDTH, needed
from composer.draw.layout.fragment import Fragment, flip, shift, straightened
from composer.draw.layout.parallel_columns import COLUMN_GAP, align_height, place_columns
from composer.draw.layout.spine import LANE_SIDE, LayoutOptions
from composer.draw.passes.heads import with_end_boxes
from composer.draw.passes.order import sort_topologically, split_u
from composer.draw.passes.skips import SkipBlock, lift_skip_blocks
from composer.draw.passes.split_columns import name_from_others, sent_from
from composer.draw.style.typography import Typography

LayColumn: TypeAlias = Callable[[Flow, float, LayoutOptions, frozenset[Origin]], Fragment]
"""Lays out a flow as a column, of which some values are sent to others."""
LANE = 16.0
"""Beside and above the ways of a U in a frame, to the wires that lead to its beginning and on from its end: two corners."""


def u_on_page(columns: Sequence[Flow], typography: Typography, lay: LayColumn, *, shapes: bool) -> Fragment | None:
    """Return the columns of a page, of which the last one is a U, beside each other; what that reads of the others goes by its
    name, as do inputs, since it is read at both ways. None if it is none, or something reads it.
    """
    *towers, last = columns
    named = name_from_others(last, {path for one in towers for path in one.by_path})
    towers = [with_end_boxes(one) for one in towers]
    if any(sent_from(one, (*towers, named)) for one in (*towers, named)):
        return None
    u = u_shape(sort_topologically(named), typography, lay, shapes=shapes)
    if u is None or not towers:
        return u
    sides = LayoutOptions(typography, -LANE_SIDE, shapes)
    laid = [lay(one, TWO_COLUMNS_WIDTH, sides, frozenset()) for one in towers]
    return place_columns([*laid, u], typography)


def u_in_frame(flow: Flow, options: LayoutOptions, lay: LayColumn) -> Fragment | None:
    """Return what is in a frame in the form of a U, into which only its stream leads: around the way down to the upper end of
    that, and on from the upper end of the way up. None for any other form.
    """
    first, last = _read_at_border(flow), flow.outlet
    if first is None or last is None or last.reference or last.port or flow.sinks or flow.exits or options.narrow:
        return None
    flow = sort_topologically(flow)
    if (flow.items[0].about.path, flow.items[-1].about.path) != (first.target, last.path):
        return None
    whole = u_shape(flow, options.typography, lay, shapes=options.shapes)
    return _between_borders(whole, first) if whole is not None else None


def _read_at_border(flow: Flow) -> DiagramEdge | None:
    """Return the one edge in a frame that reads something around it, by a wire; none where others do."""
    made = flow.by_path
    wires = [edge for edge in flow.all_edges() if not edge.source.reference and (edge.back or edge.source.path not in made)]
    inner = {edge.target for edge in wires} - made.keys()
    return wires[0] if len(wires) == 1 and not inner and wires[0].source.origin == flow.entry and wires[0].main else None


def _between_borders(whole: Fragment, first: DiagramEdge) -> Fragment:
    """Return a U whose stream comes in from below the middle between its ways, and goes out above that."""
    low = max(y for wire in whole.pieces.wires for _, y in wire.points) + LANE
    shift(whole, 0, -low)
    whole.height += low + LANE
    begun = next(wire for wire in whole.pieces.wires if wire.target == first.target and wire.source == first.source.path)
    (start, _), (end, _), level = begun.points[0], whole.out[0], -whole.height
    middle = (start + end) / 2
    way: tuple[Point, ...] = ((middle, 0.0), (middle, -LANE / 2), (-LANE, -LANE / 2), (-LANE, level), (start, level))
    whole.pieces.wires = [one.through(straightened((*way, *one.points))) if one is begun else one for one in whole.pieces.wires]
    whole.height += LANE
    whole.out = straightened((*whole.out, (end, level), (middle, level), (middle, -whole.height)))
    shift(whole, -middle, 0)
    whole.left, whole.right, whole.top = middle + LANE, whole.right - middle, -whole.height
    return whole


def u_shape(flow: Flow, typography: Typography, lay: LayColumn, *, shapes: bool) -> Fragment | None:
    """Return a flow, in order, in the form of a U, with its skip connections level; blocks that these go through stand between
    its two ways. None for a flow of any other form.
    """
    halves = split_u(flow)
    if halves:
        return _placed(halves, (), typography, lay, shapes=shapes)
    bare, skips = lift_skip_blocks(flow)
    halves = split_u(bare) if skips else None
    up = halves[1].by_path if halves else {}
    over = all(one.out.target in up and one.skip.source.path not in up for one in skips)
    if halves is None or not over or any(edge.source.path not in up for one in skips for edge in one.others):
        return None
    return _placed(halves, skips, typography, lay, shapes=shapes)


def _placed(
    halves: tuple[Flow, Flow], skips: Sequence[SkipBlock], typography: Typography, lay: LayColumn, *, shapes: bool
) -> Fragment | None:
    """Return the two ways beside each other; none where a skip connection with a block is not level."""
    first, second = replace(halves[0], outlet=None), replace(halves[1], entry=None)
    order = [*first.by_path]
    across = sorted(second.edges, key=lambda edge: order.index(edge.source.path) if edge.source.path in order else len(order))
    laid = []
    halves = first, second.with_edges(across)  # what leaves the way down further up comes in above
    for one in halves:
        wide = min(
            max([TWO_COLUMNS_WIDTH, *(needed(leaf, typography) for leaf in one.leaves() if isinstance(leaf, Leaf))]),
            MAX_BOX_WIDTH,
        )
        out = -1 if any(e.trains for sink in one.sinks for e in sink.edges) else 1
        given = frozenset[Origin]() if one is first else sent_from(first, halves)
        laid.append(lay(one, wide, LayoutOptions(typography, LANE_SIDE, shapes, out=out, given=given), sent_from(one, halves)))
    down, up = laid
    turn = second.items[0].about.path
    into_frame = (e for e in across if e.target == turn and e.source.path in order and e not in up.ends)
    up.ends |= dict.fromkeys(into_frame, ((0.0, 0.0),))
    flip(down)
    align_height(down, up, turn)
    if not skips:
        return _placed_beside(laid, turn, COLUMN_GAP, typography)
    make_room(down, up, skips, typography)
    apart = skip_room(skips, typography)
    whole = _placed_beside(laid, turn, apart, typography)
    return whole if put_on_skips(whole, skips, down.left + down.right + apart / 2, typography) else None


def _placed_beside(laid: Sequence[Fragment], turn: str, apart: float, typography: Typography) -> Fragment:
    """Return the two ways beside each other, with where the way up goes out."""
    whole = place_columns(laid, typography, turn, apart)
    whole.out = laid[-1].out[:1]
    return whole
