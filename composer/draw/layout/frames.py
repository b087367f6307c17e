"""Frames around flows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from composer.draw.diagram import Flow, Group, Leaf, Sink
from composer.draw.edges import Origin, PassOutput, maker
from composer.draw.geometry import Anchor, Area, PlacedIcon, Point, Swatch, Text
from composer.draw.layout.beside.borders import free_room, passages_of
from composer.draw.layout.boxes import MIN_COLUMN_WIDTH, needed
from composer.draw.layout.fragment import Fragment, in_the_way, moved, straightened, widen
from composer.draw.layout.outgoing_edges import OutgoingEdge, draw_outgoing, of_passes, past_cards, room
from composer.draw.layout.parallel_flows import BUS, FEW_BRANCHES, column_positions
from composer.draw.layout.references import SIDE_GAP
from composer.draw.layout.spacing import APART, GAP, MERGE_GAP
from composer.draw.layout.spine import LANE_SIDE
from composer.draw.layout.stations import stacked
from composer.draw.passes.merge_kinds import MAX_MAPPED_KINDS
from composer.draw.paths import belongs
from composer.draw.scene import CARD_ROOM, UNTOLD, Dot, Frame, Strip, WirePath
from composer.draw.style.text_metrics import wrapped
from composer.draw.style.typography import Typography

PADDING = 16.0
"""Between a border and what is inside: an arrow that starts at the border fits in."""
LINE = 13.0
"""From one line of a header, of 11 pixels, to the next."""
MANY_APART = 14.0
"""Between many flows of which each pass takes one, so that four frames fit on a page."""
EXITS_APART = 22.0
"""Between wires out of a map of layers: a name stands above each, or at its end."""
HEADER_LINES, WIDENED, WIDENINGS = 2, 32.0, 8
"""Lines of a header from which on a frame is made wider for it, by how much at most, and in how many steps."""
PILL_ROOM = 28.0
"""From the upper border of a frame to what stands below its pill, which ends 25 pixels below the border."""
INSIDE = 8.0
"""Before a border, where a wire forks of which others behind the border are said to be something else."""
GOES_ON = 10.0
"""How far a wire that only the next pass reads rises above all else in a frame; its words stand above its arrow."""
NEXT = 22.0
"""How far below its border a wire of a frame with several ends that only the next pass reads."""
MIN_LED, TURN, FAR = 5, 10.0, 100.0
"""Corners of a way that leads up in a lane beside a column; how far before the arrow there what stands above it begins, clear of
the column; and how many times farther than a wire begins the border is at least that it leads to.
"""
BEFORE_WORD = re.compile(r" (?![KMBT]\b)")
"""Between words of a header; a number and its unit stay together."""
MAX_TICK = 6
"""Letters of what the first pass is called below a map: layer, stage, step."""
STRIP_WIDTH, STRIP_GAP = 12.0, 12.0
"""Of the map of layers, and between it and the frame: wide enough to see a color, and narrower than a lane needs."""

LayInside: TypeAlias = Callable[[Flow, float, bool, int], Fragment]
Through: TypeAlias = Collection[Origin]
"""Values from inside that wires lead out of a frame."""


def frame(
    group: Group,
    width: float,
    narrow: bool,
    outgoing: Sequence[OutgoingEdge],
    lay: LayInside,
    side: int,
    typography: Typography,
    through: Through = (),
    sent: Through = (),
    aside: Through = (),
) -> Fragment:
    """Return a group with its border, its header, and the pill that says how often it is passed through; what leaves through the
    border starts where it is made, as far as what is `sent` out of its inside, or led `through` it. What goes `aside`, to columns
    at its right, leaves there.
    """
    alike = len(group.flows) == 1
    outgoing = [out_edge for out_edge in outgoing if not passages_of(group, [out_edge.origin])]
    inner = lay(group.flows[0], width, narrow, side) if alike else alternatives(group, lay, typography, made_once(group, sent))
    way = ended_way(inner, group.goes_on, typography) if group.goes_on and inner.out else ()
    high = bool(way) and way[-1][1] < -inner.height
    pill = group.pill
    pill_room = typography.width(pill, "pill") + 18 + 2 * 14 if pill else 0
    left = max(inner.left + PADDING, width / 2 + PADDING)
    right = max(inner.right + PADDING, width / 2 + PADDING, pill_room)
    written = (14 - left, -10.0)
    if inner.above:
        right = max(right, pill_room + max(points[-1][0] for points in inner.above.values()))
        written = free_room(inner.above, left, right - pill_room, typography.width(" · ".join(group.header), "header"))
    lines = header_lines(group.header, written[1] - written[0], typography)
    if len(lines) > HEADER_LINES and not (inner.above or group.count):
        wider = room_for_header(group.header, written[1] - written[0], typography)
        left, written = left + wider, (written[0] - wider, written[1])
        lines = header_lines(group.header, written[1] - written[0], typography)
    line_height = LINE * typography.scale
    head = 30.0 + line_height * (len(lines) - 1) + (GOES_ON + GAP * typography.scale if high else 0.0)
    under = [text.area for text in inner.pieces.texts if pill and text.area.right > right - pill_room]
    height = max([inner.height + head, *(PILL_ROOM - area.top for area in under)])
    texts = tuple(
        Text(written[0], 19 - height + line_height * number, line, "header", "start", typography.scale)
        for number, line in enumerate(lines)
    )
    label = (
        Text(right - 14 - (pill_room - 28) / 2, 15 + 4.5 * typography.scale - height, pill, "pill", scale=typography.scale)
        if pill
        else None
    )
    found = Fragment(left=left, right=right, height=height, top=-height)
    found.ends = {edge: ((-left if points[0][0] < 0 else right, points[0][1]), *points) for edge, points in inner.ends.items()}
    few = group.kinds and max(group.kinds) < MAX_MAPPED_KINDS and is_explained(group)
    # what starts on the spine leaves where no lanes are, but does not set out to the left to turn back
    rightward = {maker(origin) for origin in aside if origin.path == group.about.path}
    sides = {origin: points[-1][0] or (1 if origin in rightward else -side) for origin, points in inner.taps.items()}
    out = {origin: (*points, (right if sides[origin] > 0 else -left, points[-1][1])) for origin, points in inner.taps.items()}
    begun = sorted(
        (out_edge for out_edge in outgoing if maker(out_edge.origin) in out),
        key=lambda out_edge: out[maker(out_edge.origin)][-1][1],
    )
    levels: list[float] = []
    taken = -height
    for out_edge in begun:
        half = room(out_edge, typography) / 2
        x, y = out[maker(out_edge.origin)][-1]
        level = max(y, taken + half)
        for (edge_x, other), *_ in sorted(found.ends.values(), key=lambda points: -points[0][1], reverse=True):
            if isinstance(out_edge, Sink) and edge_x * x > 0 and abs(other - level) < half + 8:
                level = other + half + 8
        levels.append(level)
        taken = level + half + 8
    rest = [out_edge for out_edge in outgoing if maker(out_edge.origin) not in out]
    middle = max(-height / 2, taken + sum(room(out_edge, typography) for out_edge in rest) / 2) if begun else -height / 2
    beside = stacked([room(out_edge, typography) for out_edge in rest], middle)
    crossing = [points[-1] for points in out.values()]
    crossing += [(out[maker(out_edge.origin)][-1][0], level) for out_edge, level in zip(begun, levels, strict=True)]
    exits = [out_edge.origin.index for out_edge in rest if isinstance(out_edge.origin, PassOutput)]
    others = [room(out_edge, typography) for out_edge in rest if not isinstance(out_edge.origin, PassOutput)]
    low = stacked(others, -sum(others) / 2 - 8)  # these leave below the map
    right_low = [*crossing, *((right, y) for y in low)]
    strip = mapped_exits(group, left, right, height, found, right_low, typography, exits) if exits else None
    if strip is not None:
        starts = [strip.exit_of(one.origin.index) if isinstance(one.origin, PassOutput) else (right, low.pop(0)) for one in rest]
    else:
        starts = [(right, y) for y in beside]
        strip = layer_strip(group, left, right, height, found, [*crossing, *starts], typography) if few else None
    path = group.about.path
    placed = -left, -height, left + right, height, texts, label, strip, group.kinds
    border = Frame(group.about, *placed, key=path, parallel=group.is_many)
    found.right, found.height = max(found.right, right + CARD_ROOM * group.is_many), height + CARD_ROOM * group.is_many
    found.pieces.take(inner.pieces)
    found.pieces.enclose(border)
    if inner.out:
        outlet = group.flows[0].outlet
        source = outlet.path if len(group.flows) == 1 and outlet else ""
        led = way or (*inner.out[:-1], (0, -height))
        found.pieces.wires.append(WirePath(source, path, led, arrow=bool(way), to_inside=True))
        if way:
            found.pieces.texts.append(above_arrow(way, group.goes_on, typography))
    found.below = dict(inner.below)
    for one in group.passages:
        if one.made is not None:
            end = (inner.above[one.port][-1][0], -height if one.read else NEXT - height)
            rise = straightened((*inner.above[one.port], end))
            found.pieces.wires.append(WirePath(one.made.path, path, rise, arrow=not one.read, to_inside=True, passage=one.port))
            found.above[one.port] = (end,)
            if not one.read:
                found.pieces.texts.append(above_arrow((end,), group.next_pass, typography))
    found.taps = {origin: straightened(out.get(origin, ((right, -height / 2),))) for origin in through}
    forked: dict[Origin, set[str]] = {}
    for number, (out_edge, level) in enumerate(zip(begun, levels, strict=True)):
        made, said = maker(out_edge.origin), of_passes(out_edge)
        way = out[made]
        (x, y) = way[-1]
        told = forked.setdefault(made, set())
        if told - {said} and level != y:  # what stands at the wire of those before is not so of this one
            inner_x = x - (INSIDE if x > 0 else -INSIDE)
            found.pieces.dots.append(Dot(inner_x, y))
            led = past_cards(((inner_x, y), (inner_x, level), (x, level)), group.is_many)
            draw_outgoing(found, out_edge, led, typography, said)
            continue
        turn = x + (8 + 4 * number if x > 0 else -8 - 4 * number)
        bend = () if level == y else ((turn, y), (turn, level))
        if told and bend:  # it goes off from the way of the one before
            found.pieces.dots.append(Dot(*bend[0]))
            way = ()
        told.add(said)
        draw_outgoing(found, out_edge, past_cards(straightened((*way, *bend)), group.is_many), typography)
    for out_edge, start in zip(rest, starts, strict=True):
        draw_outgoing(found, out_edge, past_cards((start,), group.is_many), typography)
    return found


def ended_way(inner: Fragment, said: str, typography: Typography) -> tuple[Point, ...]:
    """Return how a value that only the next pass reads goes up to an arrow, with room for what is `said` there: from the last
    block above all else; from one on which others go on, a short way up beside these, or as far where something is in its way.
    """
    way, top = straightened(inner.out), -inner.height - GOES_ON
    if len(way) < MIN_LED or way[-4][1] != way[-5][1]:  # it goes into no lane
        return (*inner.out[:-1], (0, top))
    lane, level = way[-4]
    side = 1 if lane > 0 else -1
    found = (*way[:-3], (lane, level - SIDE_GAP))
    text, arrow = above_arrow(found, said, typography), Area(lane - 4, level - SIDE_GAP, lane + 4, level - 2)
    borders = [points[0] for points in inner.ends.values()] + [points[-1] for points in inner.taps.values()]
    led = [Area(min(x, x * FAR), y, max(x, x * FAR), y) for x, y in borders]
    if any(one.meets(area) for area in (*in_the_way(inner.pieces, 2), *led) for one in (text.area, arrow)):
        found = (*way[:-3], (lane, top))
    widen(inner, side, above_arrow(found, said, typography).area.reach(side))
    return found


def above_arrow(way: Sequence[Point], said: str, typography: Typography) -> Text:
    """Return what stands above an arrow that leads up: beside a column, no nearer to that than its lanes are."""
    x, y = way[-1]
    anchor: Anchor = "middle" if not x or len(way) == 1 else "start" if x > 0 else "end"
    return Text(x + (0 if anchor == "middle" else -TURN if x > 0 else TURN), y - 5, said, "note", anchor, typography.scale)


def is_explained(group: Group) -> bool:
    """Return whether something in a frame tells what the colors of its map of layers stand for: a row, a flow or a mixture."""
    return bool(group.cells) or any(
        row.kinds
        for leaf in (leaf for flow in group.flows for leaf in flow.leaves())
        for row in (leaf.rows if isinstance(leaf, Leaf) else (leaf.row, *(row for one in leaf.instead for row in one.rows)))
        if row is not None
    )


def header_lines(parts: Sequence[str], room: float, typography: Typography) -> list[str]:
    """Return the parts of a header in as few lines as have room for them."""

    def fits(line: str) -> bool:
        return typography.width(line, "header") <= room

    pieces = (BEFORE_WORD.split(part) for part in parts)
    lines = wrapped([line for words in pieces for line in wrapped(words, " ", fits)], " · ", fits)
    return [typography.fitted(line, "header", room) for line in lines]


def room_for_header(parts: Sequence[str], room: float, typography: Typography) -> float:
    """Return by how much wider a frame is to be so that its header has few lines; nothing where it would be too much."""
    wider = (WIDENED * part / WIDENINGS for part in range(1, WIDENINGS + 1))
    return next((more for more in wider if len(header_lines(parts, room + more, typography)) <= HEADER_LINES), 0.0)


def layer_strip(
    group: Group,
    left: float,
    right: float,
    height: float,
    found: Fragment,
    out: Sequence[Point],
    typography: Typography,
    exits: Sequence[int] = (),
) -> Strip:
    """Return a cell for each pass beside the frame, where no wire goes through its border; else where there is most room. Where
    wires start at cells, these are at the right.
    """
    crossing = [*(points[0] for points in found.ends.values()), *out]
    lefts = [y for x, y in crossing if x < 0]
    rights = [y for x, y in crossing if x > 0]
    side = 1 if exits or len(lefts) > len(rights) else -1
    wires = rights if side > 0 else lefts
    word = group.header[0].split()[-1].lower()
    named = f"{word if word.isalpha() and len(word) <= MAX_TICK else 'pass'} 0"  # as the language counts
    gap = max(STRIP_GAP, (typography.width(named, "tick") - STRIP_WIDTH) / 2 + 1)
    x = right + gap if side > 0 else -left - gap - STRIP_WIDTH
    count = len(group.kinds)
    bounds = sorted([-height - 2, *wires, 2])
    above, below = max(pairwise(bounds), key=lambda pair: pair[1] - pair[0])
    first = Text(x + STRIP_WIDTH / 2, below - 1 + 4 * typography.scale, named, "tick", scale=typography.scale)
    # the name of the first layer stands above a wire; at the border, it hangs into the gap no farther than others keep clear of
    raised = max(0.0, first.area.bottom - APART) if below == bounds[-1] else 14.0
    first = first.moved(0, -raised)
    foot = below - 8 - raised
    high = foot - above - 8
    cell = high / count
    rare = [index for index, kind in enumerate(group.kinds) if kind > 0]
    wanted = sorted({count - 1, *rare} - {0})
    ticks = [first]
    wires += [foot - cell * (index + 0.5) for index in exits]
    for index in wanted:
        y = foot - cell * (index + 0.5) + 3.5
        if all(abs(y - tick.y) > 11 for tick in ticks) and all(abs(y - 3.5 - wire) > 8 for wire in wires):
            at = x + STRIP_WIDTH + 5 if side > 0 else x - 5
            ticks.append(Text(at, y, str(index), "tick", "start" if side > 0 else "end", typography.scale))
    widen(found, side, max([abs(x) + STRIP_WIDTH, *(text.area.reach(side) for text in ticks)]))
    return Strip(x, foot - high, STRIP_WIDTH, high, group.kinds, tuple(ticks))


def mapped_exits(
    group: Group,
    left: float,
    right: float,
    height: float,
    found: Fragment,
    crossing: Sequence[Point],
    typography: Typography,
    exits: Sequence[int],
) -> Strip | None:
    """Return a map of layers from whose cells wires lead away; none where these are too near to each other for their names."""
    tried = Fragment(ends=found.ends)
    kinds = group.kinds or (0,) * int(group.count)
    few = max(kinds) < MAX_MAPPED_KINDS
    whole = replace(group, kinds=kinds if few else (UNTOLD,) * len(kinds))
    strip = layer_strip(whole, left, right, height, tried, crossing, typography, exits)
    heights = sorted(strip.exit_of(index)[1] for index in {*exits})
    if len(set(exits)) < len(exits) or any(high - low < EXITS_APART for low, high in pairwise(heights)):
        return None
    found.left, found.right = max(found.left, tried.left), max(found.right, tried.right)
    return strip


def alternatives(group: Group, lay: LayInside, typography: Typography, sent: Through = ()) -> Fragment:
    """Lay out flows of which each pass takes one; what is `sent` out of the outermost ones leaves there."""
    found = Fragment()
    columns = []
    for number, (flow, header) in enumerate(zip(group.flows, group.headers, strict=True)):
        width = max([MIN_COLUMN_WIDTH, *(needed(leaf, typography) for leaf in flow.leaves() if isinstance(leaf, Leaf))])
        inner = flow.items[0]
        cells = group.cells[number] if group.cells else ()
        if len(flow.items) > 1:
            alone = Group(group.about.with_parameters(0), header, (flow,))
            one = frame(alone, width, False, (), lay, LANE_SIDE, typography, made_in(flow, sent))
            marked = replace(one.pieces.frames[0], about=replace(group.about, parameters=0, path=""))
            one.pieces.frames[0] = _with_swatch(marked, cells)
        elif isinstance(inner, Group):  # which has a header of its own
            named = flow.with_items([replace(inner, header=(*header, *inner.header))])
            one = _passed_through(lay(named, width, False, LANE_SIDE), flow, group)
            number_of_frame = next(place for place, drawn in enumerate(one.pieces.frames) if drawn.about.path == inner.about.path)
            one.pieces.frames[number_of_frame] = _with_swatch(one.pieces.frames[number_of_frame], cells)
        else:
            one = lay(flow, width, False, LANE_SIDE)
            said = Text(8, -6, header[0], "note", "start", typography.scale)
            said = said.moved(0, max(0.0, 1 - MERGE_GAP - said.area.top))  # large letters stay below what the wire leads to
            one.pieces.texts.append(said)
            widen(one, 1, said.area.right)
            one = _passed_through(one, flow, group)
        one.pieces.number(number)
        columns.append(one)
    places, total = column_positions(columns, MANY_APART if len(columns) >= FEW_BRANCHES else 0)
    top = -2 * BUS - max(one.height for one in columns)
    for flow, one, middle in zip(group.flows, columns, places, strict=True):
        found.pieces.take(one.pieces, middle, -2 * BUS)
        if one is columns[0] or one is columns[-1]:  # from others a wire would cross their neighbors
            outer = -1 if one is columns[0] else 1
            taps = {origin: points for origin, points in one.taps.items() if points[-1][0] * outer > 0}
            found.taps |= {origin: moved(points, middle, -2 * BUS) for origin, points in taps.items()}
        if one is columns[0]:  # where values of other columns come in
            found.ends = {edge: moved(points, middle, -2 * BUS) for edge, points in one.ends.items()}
        low = ((0.0, 0.0), (0.0, -BUS), (middle, -BUS), (middle, -2 * BUS))
        high = ((middle, -2 * BUS - one.height), (middle, top - BUS), (0.0, top - BUS), (0.0, top - 2 * BUS))
        read = [*(edge.source for edge in flow.all_edges()), *([flow.outlet] if flow.outlet else [])]
        comes_in = any(source.origin == flow.entry for source in read)
        led = ((low, comes_in), (high, flow.outlet is not None))
        found.pieces.wires += [WirePath("", "", points, arrow=False, partial=True) for points, known in led if known]
    found.left = found.right = total / 2
    found.height = -top + 2 * BUS
    found.top = -found.height
    if any(flow.outlet for flow in group.flows):
        found.out = ((0.0, found.top), (0.0, found.top))
    return found


def made_once(group: Group, sent: Through) -> frozenset[Origin]:
    """Return what of some values one flow alone makes: in others, a block with the same path may give something else."""
    return frozenset(one for one in sent if sum(belongs(one.path, flow.by_path) for flow in group.flows) == 1)


def made_in(flow: Flow, sent: Through) -> frozenset[Origin]:
    """Return what of some values is made by blocks of a flow."""
    return frozenset(origin for origin in sent if belongs(origin.path, flow.by_path))


def _passed_through(one: Fragment, flow: Flow, group: Group) -> Fragment:
    """Return what a pass takes, with a wire from it out of the frame around it."""
    made = flow.outlet.path if flow.outlet and flow.outlet.path != group.about.path else ""
    one.pieces.wires.append(WirePath(made, made and group.about.path, one.out, arrow=False, to_inside=True))
    return one


def _with_swatch(drawn: Frame, cells: tuple[int, ...]) -> Frame:
    """Return a frame with the colors that its passes have in the map of layers, behind the first line of its header."""
    if not cells:
        return drawn
    first = drawn.texts[0]
    return replace(drawn, icons=(*drawn.icons, PlacedIcon(Swatch(cells), first.area.right + 10, first.y - 8.5)))
