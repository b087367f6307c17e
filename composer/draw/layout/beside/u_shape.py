"""A model in the form of a U: its way down at the left, turned over, its way up at the right, and skip connections across."""

from __future__ import annotations

from collections.abc import Sequence

from composer.draw.diagram import Flow, Leaf
from composer.draw.layout.beside.on_skips import make_room, put_on_skips, skip_room
from composer.draw.layout.boxes import MAX_BOX_WIDTH, needed
from composer.draw.layout.column import column
from composer.draw.layout.fragment import Fragment, flip
from composer.draw.layout.parallel_columns import align_height, place_columns
from composer.draw.layout.spine import LANE_SIDE, LayoutOptions
from composer.draw.passes.order import split_u
from composer.draw.passes.skips import SkipBlock, lift_skip_blocks
from composer.draw.passes.split_columns import sent_from
from composer.draw.style.typography import Typography


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
    laid = []
    for one, side in zip(halves, (-LANE_SIDE, LANE_SIDE), strict=True):
        wide = min(max([width, *(needed(leaf, typography) for leaf in one.leaves() if isinstance(leaf, Leaf))]), MAX_BOX_WIDTH)
        out = -1 if any(e.trains for sink in one.sinks for e in sink.edges) else 1
        given = sent_from(halves[0], halves) if one is halves[1] else frozenset()
        laid.append(column(one, wide, LayoutOptions(typography, side, shapes, out=out, given=given), sent_from(one, halves)))
    down, up = laid
    turn = halves[1].items[0].about.path
    flip(down)
    align_height(down, up, turn)
    if not skips:
        return place_columns(laid, typography, turn)
    make_room(down, up, skips, typography)
    apart = skip_room(skips, typography)
    whole = place_columns(laid, typography, turn, apart)
    return whole if put_on_skips(whole, skips, down.left + down.right + apart / 2, typography) else None
