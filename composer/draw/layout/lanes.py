"""The wires of a column: straight from a block to the next, and all others in lanes beside what they pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil

from composer.draw.diagram import Branches, Leaf
from composer.draw.edges import DiagramEdge, DiagramSource, FrameInput, Origin, maker
from composer.draw.geometry import Area, Point, Text
from composer.draw.layout.ends.port_names import AT_FIRST, name_of_state
from composer.draw.layout.fragment import extent, in_the_way, straightened, widen
from composer.draw.layout.outer_inputs import CLEAR, CORNER, OuterInput
from composer.draw.layout.spine import Spine, Station
from composer.draw.scene import Dot, Style, WirePath

LANE, LANES = 20.0, 13.0
"""From the blocks to the first lane, where a wire turns and ends in an arrowhead; and from lane to lane."""
NEAR, CLOSE = 15.0, 9.0
"""The same on a narrow page: no more than a corner of 8 pixels and an arrowhead of 7."""
FAR = 1000.0
"""A lane that is farther away than any box reaches, for a box without one."""


@dataclass(slots=True)
class Lane:
    """A wire beside the column: from where its value starts to where it is read."""

    origin: Origin
    """The value that goes along it."""
    side: int
    start: tuple[Point, ...]
    stops: list[tuple[float, DiagramEdge, tuple[Point, ...]]] = field(default_factory=list)
    """For each reader the height at which it turns off, and how it goes on."""
    x: float = 0.0

    @property
    def span(self) -> tuple[float, float]:
        """From the upper end to the lower."""
        ys = [self.start[-1][1], *(stop[0] for stop in self.stops)]
        return min(ys), max(ys)


def wire(spine: Spine) -> None:
    """Draw all wires between stations that stand where they belong."""
    lanes = Lanes(spine)
    for station in spine.stations:
        for edge, points in station.fragment.ends.items():
            if spine.local(edge.source):
                lanes.stop(edge, points)
            else:
                spine.found.ends[edge] = points
        if station.fed is not None:
            turned = (0, station.feed_y), (0, station.fragment.foot)
            if spine.local(station.fed.source):
                lanes.stop(station.fed, turned)
            else:
                spine.found.ends[station.fed] = turned
    lanes.stop_at_states()
    lanes.route()
    for below, above in zip(spine.stations, spine.stations[1:], strict=False):
        if above.straight is not None:
            draw_straight(spine, below, above, above.straight)


class Lanes:
    """The lanes at both sides of a column."""

    def __init__(self, spine: Spine) -> None:
        self.spine, self.found = spine, spine.found
        self.lanes: dict[tuple[Origin, int], Lane] = {}
        self.straight = {one.straight.source.origin for one in spine.stations if one.straight is not None}

    def stop(self, edge: DiagramEdge, points: tuple[Point, ...]) -> None:
        """End a wire out of a lane at some points."""
        side = self.spine.side_of(edge.source) if points[0][0] == 0 else (1 if points[0][0] > 0 else -1)
        key = (edge.source.origin, side)
        if key not in self.lanes:
            self.lanes[key] = Lane(edge.source.origin, side, self.start(edge.source))
        self.lanes[key].stops.append((points[0][1], edge, points))

    def stop_at_states(self) -> None:
        """End the wires back to states beside the column; where exactly, is known once these have their places."""
        sides = {origin.path: side for origin, side in self.lanes}
        for path, state in self.spine.outer_inputs.items():
            state.side = sides.get(path, -self.spine.options.side)
            for edge in state.wired:
                if self.spine.local(edge.source):
                    self.stop(edge, ((state.side, state.y),))

    def start(self, source: DiagramSource) -> tuple[Point, ...]:
        """Return how a value leaves for a lane."""
        if source.path in self.spine.outer_inputs:
            return ((0, self.spine.outer_inputs[source.path].top),)
        number = self.spine.number(source)
        assert number is not None
        station = self.spine.stations[number]
        if (source.port and station.item is not None) or source.path in self.spine.begun:
            return station.fragment.taps[source.origin]
        return ((0, station.fragment.top), (0, station.tap_y))

    def route(self) -> None:
        """Give every lane its place, the shortest ones nearest to the blocks, and draw it."""
        led = {lane.origin.path for lane in self.lanes.values()}
        for path, outer_input in self.spine.outer_inputs.items():
            if path not in led:  # those that read it call it by its name
                self.place_outer_input(outer_input, -self.spine.options.side * FAR)
        waiting = sorted(self.lanes.values(), key=lambda one: (one.span[1] - one.span[0], one.origin.path, one.origin.port))
        placed: list[Lane] = []
        while waiting:
            free = [one for one in waiting if not self.ends_at_any(one)]
            lane = next((one for one in free if not self.passes_any(one, waiting)), free[0])
            waiting.remove(lane)
            self.place(lane, placed)
            if one := self.spine.outer_inputs.get(lane.origin.path):
                lane.start = self.place_outer_input(one, lane.x)
            placed.append(lane)
            self.draw(lane)

    def passes_any(self, lane: Lane, waiting: Sequence[Lane]) -> bool:
        """Return whether a lane goes past a box that others of the lanes start from: it has to go around that box, wherever that
        will stand.
        """
        high, low = lane.span
        starts = (other.origin.path for other in waiting if other.side == lane.side and other.origin != lane.origin)
        boxes = (self.spine.outer_inputs[path] for path in starts if path in self.spine.outer_inputs)
        return any(one.top < low + CLEAR and one.top + one.height > high - CLEAR for one in boxes)

    def ends_at_any(self, lane: Lane) -> bool:
        """Return whether a lane leads to a state that has no place yet."""
        ends = (self.spine.outer_inputs.get(edge.target) for _, edge, _ in lane.stops)
        return any(one is not None and one.area is None for one in ends)

    def place_outer_input(self, one: OuterInput, x: float) -> tuple[Point, ...]:
        """Draw a box beside the spine, at the side where its lane is; return how its value goes on to that lane."""
        start = one.place(self.found, self.near(one, 1 if x > 0 else -1), x)
        assert one.area is not None
        self.spine.beside.append(one.area)
        ends = dict(one.ends)
        for lane in self.lanes.values():
            ways = [ends.pop(edge, points) for _, edge, points in lane.stops]
            lane.stops = [(way[0][1], edge, way) for way, (_, edge, _) in zip(ways, lane.stops, strict=True)]
        self.found.ends |= ends  # from elsewhere
        return start

    def place(self, lane: Lane, placed: Sequence[Lane]) -> None:
        """Put a lane beside everything along its way, and beside shorter lanes."""
        high, low = lane.span
        first, apart = (NEAR, CLOSE) if self.spine.options.alone else (LANE, LANES)
        reach = 0.0
        for station in self.spine.stations:
            if station.y > high - 2 and station.y - station.fragment.height < low + 2:
                reach = max(reach, extent(station.fragment, lane.side, high, low))
        for area in self.spine.beside:
            if area.top < low + 4 and area.bottom > high - 4:
                reach = max(reach, area.reach(lane.side) - first + 8)
        if one := self.spine.outer_inputs.get(lane.origin.path):  # it starts above the box, which stands beside others
            reach = max([reach, *(area.reach(lane.side) + CLEAR + CORNER - first for area in self.beside(one))])
            reach = max(reach, self.near(one, lane.side) + CORNER - first)  # no nearer to the spine than the box
        x = max(reach + first, *(abs(points[0][0]) for _, _, points in lane.stops))  # some turn on their way, beside names
        for other in sorted(abs(one.x) for one in placed if one.side == lane.side and overlap(one, high, low)):
            if abs(other - x) < apart:
                x += ceil(other + apart - x)
        lane.x = lane.side * x
        widen(self.found, lane.side, x)

    def near(self, one: OuterInput, side: int) -> float:
        """Return how near to the spine a box may come."""
        return max([self.spine.width / 2, *(area.reach(side) for area in self.beside(one))]) + CLEAR

    def beside(self, one: OuterInput) -> list[Area]:
        """Return what stands beside the spine at the height of a box."""
        return [area for area in self.spine.beside if area.top < one.top + one.height and area.bottom > one.top]

    def draw(self, lane: Lane) -> None:
        """Draw a wire for each reader; forks where they part."""
        start = lane.start
        if self.forks(lane):
            self.found.pieces.dots.append(Dot(*start[-1]))
            if not self.led_up(lane):
                stem = WirePath(maker(lane.origin).path, "", start, arrow=False, from_inside=isinstance(lane.origin, FrameInput))
                self.found.pieces.wires.append(stem)
            start = start[-1:]
        middle = lane.start[-1][1]
        above, below = ([y for y, *_ in lane.stops if (y < middle) == higher] for higher in (True, False))
        corners = (min(above, default=middle), max(below, default=middle))
        if (above and below) or (lane.origin.port and lane.origin in self.spine.sent):  # it goes on to another column
            self.found.pieces.dots.append(Dot(lane.x, middle))
        for y, edge, points in lane.stops:
            corner = ((lane.x, start[-1][1]), (lane.x, y))
            whole = straightened((*self.begun(lane, edge, y, (*start, *corner)), *points))
            if edge is self.spine.stations[-1].fed:
                self.found.out = whole
                continue
            self.found.pieces.wires.append(
                WirePath(
                    maker(lane.origin).path,
                    target_of(edge),
                    whole,
                    edge.port,
                    style_of(edge),
                    not (edge.forks or edge.passage),
                    partial=edge.partial,
                    from_inside=edge.source.from_inside,
                    passage=edge.passage,
                    place=edge.place,
                )
            )
            self.label(edge, whole)
            if y not in corners:
                self.found.pieces.dots.append(Dot(lane.x, y))

    def begun(self, lane: Lane, edge: DiagramEdge, y: float, way: tuple[Point, ...]) -> tuple[Point, ...]:
        """Return the way of a wire up to where it turns off its lane, at a height. One to a loss is dashed, and begins where no
        other wire of the lane goes along.
        """
        others = [lane.start[-1][1], *(at for at, other, _ in lane.stops if not other.trains)]
        if not edge.trains or len(others) == 1:
            return way
        return (lane.x, min(max(y, min(others)), max(others))), (lane.x, y)

    def label(self, edge: DiagramEdge, points: Sequence[Point]) -> None:
        """Write above the end of a wire what its target calls a state from the step before, where that is a letter as in
        formulas, and that only the first pass or step reads a value. Which passes a wire back comes from stands above its start.
        """
        end = AT_FIRST if edge.source.at_first else name_of_state(edge)
        if end:
            self.write(end, points[-2:])
        if edge.back and edge.source.passes:
            self.write(edge.source.passes, next(pair for pair in pairwise(points) if abs(pair[0][1] - pair[1][1]) < 0.01))

    def write(self, said: str, piece: Sequence[Point]) -> None:
        """Write something above a level piece of a wire, in its middle or nearer to its ends, where there is room for it."""
        (start, y), (end, _) = piece
        typography = self.spine.options.typography
        half = typography.width(said, "port") / 2 + 9
        low, high = min(start, end) + half, max(start, end) - half
        if low > high:
            return
        if any(f" {one.text}".endswith(f" {said}") and one.y == y - 3 for one in self.found.pieces.texts):
            return  # as a name of what the block reads
        middle = (start + end) / 2 - (3 if end > start else -3)  # beside the arrowhead
        for x in (middle, low, high):
            text = Text(x, y - 3, said, "port", scale=typography.scale)
            if not any(text.area.meets(area) for area in in_the_way(self.found.pieces, 2)):
                self.found.pieces.texts.append(text)
                return

    def forks(self, lane: Lane) -> bool:
        """Return whether the value of a lane goes elsewhere too from where the lane starts."""
        if lane.origin.port:
            return False
        measured = any(one.shape_only and one.shape_only.source.origin == lane.origin for one in self.spine.outer_inputs.values())
        return self.led_up(lane) or (lane.origin, -lane.side) in self.lanes or measured

    def led_up(self, lane: Lane) -> bool:
        """Return whether another wire leads up to where a lane starts: one that goes on from there, or that of the lane at the
        right.
        """
        number = self.spine.number(DiagramSource(lane.origin))
        leaves = bool(number and self.spine.stations[number].exit_y)
        return lane.origin in self.straight or leaves or (lane.side < 0 and (lane.origin, 1) in self.lanes)


def overlap(lane: Lane, high: float, low: float) -> bool:
    """Return whether a lane is beside some heights."""
    upper, lower = lane.span
    return upper < low + 6 and high < lower + 6


def draw_straight(spine: Spine, below: Station, above: Station, edge: DiagramEdge) -> None:
    """Draw the wire from one station up to the next."""
    points = ((0.0, below.fragment.top), (0.0, above.fragment.foot))
    if above.item is None:
        spine.found.out = points
        return
    into_box = isinstance(above.item, Leaf) or (isinstance(above.item, Branches) and above.item.base is not None)
    same = edge.source.path == edge.target  # one of several blocks in a frame that has the path of each
    target = "" if same else target_of(edge)
    spine.found.pieces.wires.append(
        WirePath(
            edge.source.path,
            target,
            points,
            edge.port,
            "loss" if edge.trains else "main",
            into_box,
            partial=edge.partial,
            from_inside=edge.source.from_inside,
            place=edge.place,
        )
    )


def target_of(edge: DiagramEdge) -> str:
    """Return where a wire is said to end: nowhere, if it forks into branches that go on."""
    return "" if edge.forks else edge.target


def style_of(edge: DiagramEdge, leaf: Leaf | None = None) -> Style:
    """Return how a wire is drawn, by where it goes."""
    if edge.trains:
        return "loss"
    if edge.back:
        return "loop"
    if edge.shape_only:
        return "measured"
    if edge.main or edge.source.state:
        return "main" if leaf is None or leaf.look.hue != "pos" else "side"
    return "cross" if edge.second_stream else "side"
