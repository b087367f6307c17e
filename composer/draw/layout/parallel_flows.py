"""Flows side by side, from the fork where they start to the join where they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from composer.draw.diagram import Branches, Flow, Group, Leaf, output_of
from composer.draw.edges import DiagramEdge, DiagramSource, Origin
from composer.draw.geometry import Area, Point, Text
from composer.draw.layout.boxes import needed
from composer.draw.layout.fragment import Fragment, moved, shift, straightened, stretch
from composer.draw.layout.outgoing_edges import OutgoingEdge
from composer.draw.layout.spacing import LABEL_GAP, STUB
from composer.draw.layout.stations import SideInput, block, circle
from composer.draw.scene import RADIUS, Box, Dot, WirePath
from composer.draw.style.typography import Typography

BUS, APART, NEAR = 14.0, 22.0, 10.0
"""From a fork to what it leads to, as from a block to a fork above it; between the flows, where no wires go; and between many."""
FEW_BRANCHES = 4
"""Branches that stand beside each other however wide they are."""
FED_BESIDE = 20.0
"""From what forks, where it comes into a block from below, to a value from elsewhere at the left of it."""
RISE = 20.0
"""From the highest of them to the join: as between two blocks."""
MAX_JOIN_WIDTH = 480.0
"""Flows that are less wide than this end in a box as wide as they are; under wider ones it would look like a bar."""
MAX_JOINED_IN_CIRCLE = 2
"""Values that are concatenated in a circle: more stand side by side in a box, as its parts do in what it gives."""
MAX_LIFT = 40.0
"""How much higher than it could a column begins, to be level with one that begins with a fork: as high as two of these."""
TURNS_OFF = 4
"""Points of a wire that turns off from a spine and goes on beside it."""
LEVEL = 1.0
"""How far a column may be from a fork that leads straight up to it."""
STRAIGHT_REACH = 12.0
"""How far from the middle of all the spine is moved onto that of a flow, whose wires are straight then."""
INSET = 30.0
"""From a wire to the end of the block that it leaves, at least."""
BASELINE = 9.0
"""From a block to what is written above it."""


def side_by_side(
    item: Branches,
    lanes: Sequence[SideInput],
    lefts: Sequence[SideInput],
    outgoing: Sequence[OutgoingEdge],
    lay: Callable[[Flow], Fragment],
    typography: Typography,
) -> Fragment:
    """Return the columns from a fork to a join: a circle where there is room for it, else a wide box."""
    if len(item.flows) > FEW_BRANCHES:
        item = item.map_flows(_without_shapes)
    columns = [lay(flow) for flow in item.flows]
    if item.join is None:
        _align_ends(columns)
    else:
        _level_last(item, columns)
    places, total = column_positions(columns)
    joined = [place for place, flow in zip(places, item.flows, strict=True) if flow.outlet is not None]
    alone = item.join is not None and len(joined) == 1  # beside it are values that nothing here reads
    reach = total / 8 if item.join is None and len(places) % 2 else STRAIGHT_REACH + max(one.named for one in columns) / 2
    middle_of_all = joined[0] if alone else _free_middle(columns, places) if item.bypass else _spine(places, reach)
    places = [place - middle_of_all for place in places]
    low = -BUS if item.fork is not None else 0.0
    far = [place for place, one in enumerate(columns) if item.join is not None and any(not edge.of_state for edge in one.ends)]
    values = dict.fromkeys(edge.source.origin for place in far for edge in columns[place].ends if not edge.of_state)
    base = low - BUS * len(values)
    levels = {origin: base + BUS * number for number, origin in enumerate(values)}  # that of the first column is highest
    begins = [_begins_at(flow, one) if item.fork is not None else 0.0 for flow, one in zip(item.flows, columns, strict=True)]
    entered = [
        middle + begin
        for flow, one, middle, begin in zip(item.flows, columns, places, begins, strict=True)
        if flow.owner and (begin or all(edge.back for edge in one.ends) or _goes_up(flow, one))
    ]
    forks = len(entered) > 1
    nested = item.fork is not None and any(isinstance(flow.items[0], Branches) for flow in item.flows)
    lifts = _lifts(columns) if nested else [0.0] * len(columns)
    found = Fragment(left=total / 2 + middle_of_all, right=total / 2 - middle_of_all, foot=low if forks else 0.0)
    for flow, one, middle, lift, begin in zip(item.flows, columns, places, lifts, begins, strict=True):
        at = base - lift
        if item.fork is not None and flow.owner:
            start = (-middle, found.foot - at), (-middle, low - at), (begin, low - at)
            one.pieces.wires = [_begun(wire, flow, start) for wire in one.pieces.wires]
        found.pieces.take(one.pieces, middle, at)
        found.taps |= {origin: moved(points, middle, at) for origin, points in one.taps.items()}
    if forks:  # where all turn off to one side, they part above the nearest
        around = min(entered) < LEVEL and max(entered) > -LEVEL
        found.pieces.dots.append(Dot(0 if around else min(entered, key=abs), low))
    incoming = _from_far(found, [(columns[place], places[place]) for place in far], levels, base, -found.left)
    incoming |= _from_border(
        found, [(one, middle, base - lift) for one, middle, lift in zip(columns, places, lifts, strict=True)], item
    )
    joined = [place - middle_of_all for place in joined]
    free = len(set(map(_side, joined))) == len(joined) and not (item.bypass and len(joined) > 2)
    highest = max(one.height + lift for one, lift in zip(columns, lifts, strict=True)) - base
    if item.join is None:
        found.height = highest
        found.top = -found.height
        found.ends = incoming
        return found
    beside = lanes or lefts or outgoing or item.join.look.sides
    y = -highest - RISE
    wide = item.join.look.sign == "‖" and len(columns) + bool(item.bypass) > MAX_JOINED_IN_CIRCLE
    narrow = alone and max(len(lefts), len(lanes)) <= 1 and not (outgoing or item.join.look.sides)
    if item.join.look.sign and free and (narrow or not (beside or wide)):
        end = circle(item.join, typography, lefts, lanes)
        ways = [_into_circle(middle, y) for middle in joined]
    else:
        join = replace(item.join, look=item.join.look.spelled)
        width = max(
            needed(join, typography), 2 * max(map(abs, joined)) + 60, total if total < MAX_JOIN_WIDTH and not alone else 0
        )
        end = block(join, width, typography, lefts, lanes, outgoing)
        ways = [((middle, y + end.foot),) for middle in joined]
    into = iter(ways)
    orders = item.places or ("",) * len(item.flows)
    for flow, one, middle, lift, port, order in zip(item.flows, columns, places, lifts, item.ports, orders, strict=True):
        if flow.outlet is not None:
            points = (*moved(one.out[:-1], middle, base - lift), *next(into))
            found.pieces.wires.append(WirePath(flow.outlet.path, item.join.about.path, points, port, place=order))
    if item.bypass is not None:
        edge = item.bypass
        way = (0.0, found.foot), (0.0, y + end.foot)
        found.pieces.wires.append(
            WirePath(edge.source.path, edge.target, way, edge.port, from_inside=edge.source.from_inside, place=edge.place)
        )
    shift(end, 0, y)
    found.pieces.take(end.pieces)
    found.ends, found.taps = end.ends | incoming, found.taps | end.taps
    found.left, found.right = max(found.left, end.left), max(found.right, end.right)
    found.top, found.height = end.top, -y + end.height
    return found


def above_outputs(
    item: Branches, below: Callable[[float], Fragment], lay: Callable[[Flow], Fragment], typography: Typography, *, shapes: bool
) -> Fragment:
    """Return a block, laid out by how wide it is, and columns that start at its outputs; each of these has its name and its shape
    at its start. What the columns give leaves above all of them to the right, that of the last one lowest.
    """
    columns = [lay(flow) for flow in item.flows]
    places, total = column_positions(columns)
    least = places[-1] - places[0] + 2 * INSET
    found = below(max(least, total) if total < MAX_JOIN_WIDTH else least)
    middle = (places[0] + places[-1]) / 2 if total >= MAX_JOIN_WIDTH else 0.0
    high = found.top
    for flow, one, place in zip(item.flows, columns, places, strict=True):
        x, foot = place - middle, max(area.bottom for area in solid(one))
        y = high - LABEL_GAP - foot
        begin = ((0.0, high - y),)
        one.pieces.wires = [
            wire.through(straightened((*begin, *wire.points)))
            if (wire.source, wire.points[0]) == (flow.owner, (0.0, 0.0))
            else wire
            for wire in one.pieces.wires
        ]
        shift(one, x, y)
        found.pieces.take(one.pieces)
        found.left, found.right = max(found.left, one.left - x), max(found.right, one.right + x)
    for source, place in zip(item.outputs, places, strict=True):
        found.pieces.texts += _named(item, source, place - middle, high - BASELINE, typography, shapes=shapes)
    top = min(one.out[-1][1] for one in columns)
    for number, (flow, one) in enumerate(zip(reversed(item.flows), reversed(columns), strict=True), 1):
        assert flow.outlet is not None
        level = top - STUB * number
        found.taps[flow.outlet.origin] = straightened((*one.out, (one.out[-1][0], level), (found.right, level)))
    found.top = top - STUB * len(columns)
    found.height = -found.top
    return found


def _named(item: Branches, source: DiagramSource, x: float, y: float, typography: Typography, *, shapes: bool) -> Iterator[Text]:
    """Yield what a block calls one of its outputs, at the left of the wire, and the shape of that."""
    assert item.base is not None
    if name := source.port or item.base.gives:
        yield Text(x - 6, y, name, "port", "end", typography.scale)
    if shapes and source.shape:
        yield Text(x + 8, y, source.shape, "shape", "start", typography.scale)


def with_aside(found: Fragment, aside: Fragment, fork: Origin) -> None:
    """Put a column beside a flow, at the right of all that is there; it begins at the height where a value of the flow forks."""
    start = found.taps[fork]
    x, y = found.right + APART + aside.left, start[-1][1]
    shift(aside, x, y)
    way = (*start, (x, y))
    aside.pieces.wires = [
        wire.through(straightened((*way, *wire.points))) if wire.source == fork.path and wire.points[0] == (x, y) else wire
        for wire in aside.pieces.wires
    ]
    found.pieces.take(aside.pieces)
    found.taps |= aside.taps
    found.right = x + aside.right
    if aside.height - y > found.height:
        found.height = aside.height - y
        found.top = -found.height
        found.out = (*found.out[:-1], (found.out[-1][0], found.top))


def _without_shapes(flow: Flow) -> Flow:
    """Return a column whose frames tell no shapes above them: many columns side by side have no room for these."""
    return flow.map_items(lambda item: replace(item, shape="") if isinstance(item, Group) else item)


def apart_for(count: int) -> float:
    """Return the distance between so many columns."""
    return APART if count <= FEW_BRANCHES else NEAR


def column_positions(columns: Sequence[Fragment], apart: float = 0.0) -> tuple[list[float], float]:
    """Return where the spine of each column stands, and how wide all are."""
    apart = apart or apart_for(len(columns))
    total = sum(one.left + one.right for one in columns) + apart * (len(columns) - 1)
    places, x = [], -total / 2
    for one in columns:
        places.append(x + one.left)
        x += one.left + one.right + apart
    return places, total


def _free_middle(columns: Sequence[Fragment], places: Sequence[float]) -> float:
    """Return the middle of what is free between the two columns in the middle."""
    half = len(columns) // 2
    return (places[half - 1] + columns[half - 1].right + places[half] - columns[half].left) / 2


def solid(found: Fragment) -> list[Area]:
    """Return what the boxes and the circles of a fragment cover."""
    return [box.area for box in found.pieces.boxes] + [merge.area for merge in found.pieces.merges]


def _lifts(columns: Sequence[Fragment]) -> list[float]:
    """Return how much higher each column begins than it could, so that the first blocks of all are level where some begin with
    another fork.
    """
    feet = [max(area.bottom for area in solid(one)) for one in columns]
    lifts = [foot - min(feet) for foot in feet]
    return [lift if lift <= MAX_LIFT and not one.ends else 0.0 for one, lift in zip(columns, lifts, strict=True)]


def _align_ends(columns: Sequence[Fragment]) -> None:
    """Stretch heads, so that losses beside their wires are level, and then what they end in."""
    _align(columns, [[box for box in one.pieces.boxes if box.hue == "loss"] for one in columns])
    _align(columns, [[box for box in one.pieces.boxes if box.hue in ("io", "loss") and _is_end(box, one)] for one in columns])


def _align(columns: Sequence[Fragment], boxes: Sequence[Sequence[Box]]) -> None:
    """Stretch heads, so that the lower ends of their highest ones of some boxes are level, above all frames."""
    feet = [min((box.area.bottom for box in above), default=0.0) for above in boxes]
    level = min(feet)
    for one, foot in zip(columns, feet, strict=True):
        room = min((frame.area.top for frame in one.pieces.frames), default=0.0)
        if foot < room and foot > level:
            stretch(one, foot + 0.1, foot - level)


def _level_last(item: Branches, columns: Sequence[Fragment]) -> None:
    """Stretch columns that end in blocks which say the same, so that these are level below the join."""
    alike: dict[tuple[str, tuple[str, ...]], list[tuple[Fragment, str]]] = {}
    for flow, one in zip(item.flows, columns, strict=True):
        last, outlet = flow.items[-1], flow.outlet
        alone = outlet is not None and outlet.origin == output_of(last) and not outlet.reference
        if isinstance(last, Leaf) and len(flow.items) > 1 and alone:
            alike.setdefault((last.look.title, last.look.facts), []).append((one, last.about.path))
    for several in alike.values():
        high = max(one.height for one, _ in several)
        for one, path in several:
            foot = next((box.area.bottom for box in one.pieces.boxes if box.about.path == path), 0.0)
            things = [*solid(one), *(frame.area for frame in one.pieces.frames)]
            below = min((area.top for area in things if area.bottom > foot), default=0.0)
            if one.height < high and foot < below:
                _raise(one, foot + 0.1, high - one.height)


def _raise(one: Fragment, y: float, by: float) -> None:
    """Move everything of a column above a height further up, and where it goes out."""
    stretch(one, y, by)
    one.top -= by


def _is_end(box: Box, column: Fragment) -> bool:
    """Return whether a wire leads up to a box of a column, and none goes on from it."""
    wires = column.pieces.wires
    up = any(wire.target == box.about.path and wire.points[-1][0] == wire.points[-2][0] for wire in wires)
    return up and not any(wire.source == box.about.path for wire in wires)


def _spine(places: Sequence[float], reach: float) -> float:
    """Return where the spine from the fork to the join stands: in the middle of all, unless the column in the middle is within
    reach of that, or it is beside every column's own.
    """
    near = min(places, key=abs)
    if abs(near) <= reach:
        return near
    return 0.0 if places[0] < 0 < places[-1] else (places[0] + places[-1]) / 2


def _side(middle: float) -> int:
    """Return the side at which a wire comes into a circle: left, right, or from below."""
    return (middle > 0) - (middle < 0)


def _begun(wire: WirePath, flow: Flow, start: Sequence[Point]) -> WirePath:
    """Return the first wire of a column, from the fork on."""
    first = wire.source == flow.owner and wire.points[0] == (0.0, 0.0)
    rest = wire.points if start[-1][0] == 0.0 else wire.points[-1:]
    return wire.through(straightened((*start, *rest))) if first else wire


def _goes_up(flow: Flow, one: Fragment) -> bool:
    """Return whether what forks goes straight up into the one block of a column."""
    wires = [wire for wire in one.pieces.wires if wire.source == flow.owner and wire.points[0] == (0.0, 0.0)]
    return len(flow.items) == 1 and len(wires) == 1 and all(x == 0.0 for x, _ in wires[0].points)


def _begins_at(flow: Flow, one: Fragment) -> float:
    """Return how far from its spine a column is entered: not at all, unless one wire alone goes in, which turns off at once. That
    begins where the column does then, and not above a stem.
    """
    below = [wire for wire in one.pieces.wires if wire.source == flow.owner and wire.points[0][0] == 0.0]
    stems = [wire for wire in below if not wire.target and wire.points[0] == (0.0, 0.0)]
    rest = [wire for wire in below if wire not in stems]
    if len(stems) > 1 or len(rest) != 1 or len(rest[0].points) != TURNS_OFF or rest[0].points[1][0] != 0.0:
        return 0.0
    whole = rest[0].through(((0.0, 0.0), *rest[0].points[1:]))
    one.pieces.wires = [whole if wire is rest[0] else wire for wire in one.pieces.wires if wire not in stems]
    return whole.points[-1][0]


def _from_far(
    found: Fragment, columns: Sequence[tuple[Fragment, float]], levels: Mapping[Origin, float], base: float, border: float
) -> dict[DiagramEdge, tuple[Point, ...]]:
    """Return how values of elsewhere come into columns, each at its level: below the block that reads them, instead of at its
    side; beside what comes up into that from a fork at the left of it.
    """
    incoming: dict[DiagramEdge, tuple[Point, ...]] = {}
    turns: dict[Origin, list[float]] = {}
    for one, middle in columns:
        foot = max(box.area.bottom for box in one.pieces.boxes)
        nested = [moved(points, middle, base)[-1] for points in one.ends.values() if len(points) > 1]  # below a block already
        beside = FED_BESIDE if any(wire.points[-1] == (0.0, foot) for wire in one.pieces.wires) else 0.0
        turn, end = nested[0] if nested else (middle - beside, base + foot)
        for edge in one.ends:
            if not edge.of_state:
                level = levels[edge.source.origin]
                incoming[edge] = (border, level), (turn, level), (turn, end)
                turns.setdefault(edge.source.origin, []).append(turn)
    found.pieces.dots += [Dot(turn, levels[origin]) for origin, several in turns.items() for turn in sorted({*several})[:-1]]
    return incoming


def _from_border(
    found: Fragment, columns: Sequence[tuple[Fragment, float, float]], item: Branches
) -> dict[DiagramEdge, tuple[Point, ...]]:
    """Return how what the step before gave comes in, and in heads what comes from below the fork: from the border nearest to
    where it is read.
    """
    incoming = {}
    for one, middle, base in columns:
        for edge, points in one.ends.items():
            if edge.of_state or item.join is None:
                way = moved(points, middle, base)
                incoming[edge] = ((-found.left if points[0][0] < 0 else found.right, way[0][1]), *way)
    return incoming


def _into_circle(middle: float, y: float) -> tuple[Point, ...]:
    """Return the end of a wire: from below near the spine, else at a side."""
    side = _side(middle)
    return ((middle, y - RADIUS), (side * RADIUS, y - RADIUS)) if side else ((middle, y),)
