"""A model in the form of a U: its way down at the left, turned over, its way up at the right, and skip connections across."""

from __future__ import annotations

from collections.abc import Sequence

from composer.draw.diagram import Flow, Leaf
from composer.draw.edges import Origin
from composer.draw.layout.beside.on_skips import make_room, put_on_skips, skip_room
from composer.draw.layout.boxes import MAX_BOX_WIDTH, needed
from composer.draw.layout.column import column
from composer.draw.layout.fragment import Fragment, flip
from composer.draw.layout.parallel_columns import align_height, place_columns
from composer.draw.layout.spine import LANE_SIDE, LayoutOptions
from composer.draw.passes.heads import with_end_boxes
from composer.draw.passes.order import sort_topologically, split_u
from composer.draw.passes.skips import SkipBlock, lift_skip_blocks
from composer.draw.passes.split_columns import name_from_others, sent_from
from composer.draw.style.typography import Typography


def u_on_page(columns: Sequence[Flow], width: float, typography: Typography, *, shapes: bool) -> Fragment | None:
    """Return the columns of a page, of which the last one is a U, beside each other; what that reads of the others goes by its
    name, as do inputs, since it is read at both ways. None if it is none, or something reads it.
    """
    *towers, last = columns
    named = name_from_others(last, {path for one in towers for path in one.by_path})
    towers = [with_end_boxes(one) for one in towers]
    if any(sent_from(one, (*towers, named)) for one in (*towers, named)):
        return None
    u = u_shape(sort_topologically(named), width, typography, shapes=shapes)
    if u is None or not towers:
        return u
    sides = LayoutOptions(typography, -LANE_SIDE, shapes)
    laid = [column(one, width, sides) for one in towers]
    return place_columns([*laid, u], typography)


def u_shape(flow: Flow, width: float, typography: Typography, *, shapes: bool) -> Fragment | None:
    """Return a flow, in order, in the form of a U, with its skip connections level; blocks that these go through stand between
    its two ways. None for a flow of any other form.
    """
    halves = split_u(flow)
    if halves:
        return _placed(halves, (), width, typography, shapes=shapes)
    bare, skips = lift_skip_blocks(flow)
    halves = split_u(bare) if skips else None
    up = halves[1].by_path if halves else {}
    over = all(one.out.target in up and one.skip.source.path not in up for one in skips)
    if halves is None or not over or any(edge.source.path not in up for one in skips for edge in one.others):
        return None
    return _placed(halves, skips, width, typography, shapes=shapes)


def _placed(
    halves: tuple[Flow, Flow], skips: Sequence[SkipBlock], width: float, typography: Typography, *, shapes: bool
) -> Fragment | None:
    """Return the two ways beside each other; none where a skip connection with a block is not level."""
    first, second = halves
    order = [*first.by_path]
    across = sorted(second.edges, key=lambda edge: order.index(edge.source.path) if edge.source.path in order else len(order))
    laid = []
    halves = first, second.with_edges(across)  # what leaves the way down further up comes in above
    for one in halves:
        wide = min(max([width, *(needed(leaf, typography) for leaf in one.leaves() if isinstance(leaf, Leaf))]), MAX_BOX_WIDTH)
        out = -1 if any(e.trains for sink in one.sinks for e in sink.edges) else 1
        given = frozenset[Origin]() if one is first else sent_from(first, halves)
        laid.append(column(one, wide, LayoutOptions(typography, LANE_SIDE, shapes, out=out, given=given), sent_from(one, halves)))
    down, up = laid
    turn = second.items[0].about.path
    into_frame = (e for e in across if e.target == turn and e.source.path in order and e not in up.ends)
    up.ends |= dict.fromkeys(into_frame, ((0.0, 0.0),))
    flip(down)
    align_height(down, up, turn)
    if not skips:
        return place_columns(laid, typography, turn)
    make_room(down, up, skips, typography)
    apart = skip_room(skips, typography)
    whole = place_columns(laid, typography, turn, apart)
    return whole if put_on_skips(whole, skips, down.left + down.right + apart / 2, typography) else None
