"""Columns beside each other, and the wires between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from blocks.core import spoken
from composer.draw.edges import OUTPUT, DiagramEdge, DiagramSource, InnerOutput, Origin, PassOutput, maker
from composer.draw.geometry import Area, Point, Text
from composer.draw.layout.fragment import Fragment, areas, extent, lines, moved, shift, straightened, stretch
from composer.draw.paths import node_beside
from composer.draw.scene import Dot, Style, WirePath
from composer.draw.style.typography import Typography

COLUMN_GAP, MIN_COLUMN_GAP = 56.0, 28.0
"""Between columns where wires go between them, in tracks 10 pixels apart around the middle; and half of it elsewhere."""
TRACK, TRACKS = 10.0, 44.0
"""Between tracks of a gutter, and from the first to the last at most: beside it are boxes."""
NEAR = 8.0
"""Between wires that do not look like one."""
LEVEL = 0.1
"""What two heights differ by at most that are one."""
OVER, OVER_NAME, OVERS = 16.0, 24.0, 8.0
"""Of a wire over columns between those that it leads from and to; the same where what leaves there is labeled below it; and from
one such wire to the next.
"""
TURN = 23.0
"""Of the wire at the bottom of a U below the block that it leads to: two corners of 8 pixels and an arrowhead of 7."""


def align_height(down: Fragment, up: Fragment, turn: str) -> None:
    """Stretch the two ways of a U, so that what is read on the way up stands at the height of its reader; the wire at the turn
    goes around below both.
    """
    skips = {edge.source.origin for edge in up.ends if edge.target != turn}
    for edge in up.ends:
        start = down.taps[edge.source.origin]
        if edge.target == turn and edge.source.origin not in skips:  # the last block stands as low as the first of the way up
            down.height += start[0][1]
            shift(down, 0, -start[0][1])
    for edge in level_skips(up, turn):
        tap, reader = down.taps[edge.source.origin][-1][1], up.ends[edge][0][1]
        if tap > reader + LEVEL:
            stretch(down, below_block(down, tap) + 0.1, tap - reader)
        elif reader > tap + LEVEL:
            stretch(up, below_block(up, reader) + 0.1, reader - tap)


def level_skips(up: Fragment, turn: str) -> list[DiagramEdge]:
    """Return what is to come in level on the way up of a U, from below: of what a block reads of the way down, one; that which
    leaves a block at its side, if there is such.
    """
    found: dict[str, DiagramEdge] = {}
    for edge, points in sorted(up.ends.items(), key=lambda end: -end[1][0][1]):
        known = found.get(edge.target)
        if edge.target != turn and len(points) == 1 and (known is None or edge.source.port > known.source.port):
            found[edge.target] = edge
    return [*found.values()]


def below_block(found: Fragment, y: float) -> float:
    """Return the lower end of the block that a wire goes into or leaves at a height, or that height where there is none."""
    blocks = [*(box.area for box in found.pieces.boxes), *(merge.area for merge in found.pieces.merges)]
    return max([y, *(one.bottom for one in blocks if one.top < y < one.bottom)])


def place_columns(laid: Sequence[Fragment], typography: Typography, turn: str = "", apart: float = COLUMN_GAP) -> Fragment:
    """Return columns on a page, so far `apart`, and the wires between them; at the `turn` of a U the stream itself goes over."""
    return _PageColumns(laid, typography, turn, apart).whole_page()


End: TypeAlias = tuple[DiagramEdge, tuple[Point, ...]]
"""A wire that comes in, and how it goes on from the border of a column."""
Crossing: TypeAlias = tuple[Sequence[Point], Sequence[Point]]
"""How a wire leaves one column, and how it goes on from the border of another one."""


class _PageColumns:
    """Columns while they come to stand beside each other, from the left."""

    def __init__(self, laid: Sequence[Fragment], typography: Typography, turn: str, apart: float) -> None:
        self.laid, self.typography, self.turn, self.apart = laid, typography, turn, apart
        self.whole = Fragment(height=max(one.height for one in laid))
        self.taps: dict[Origin, tuple[int, tuple[Point, ...]]] = {}
        """Of each value that others read, its column and how it leaves."""
        self.gutters: list[float] = []
        """Where wires go up and down left of each column."""
        self.turns: dict[Origin, list[Point]] = {}
        """Where wires of each value turn into a gutter."""
        self.heights: dict[tuple[Origin, Point], list[float]] = {}
        """Of each value where it turns into a gutter, the heights at which it leaves it for its readers."""

    def whole_page(self) -> Fragment:
        """Return all columns."""
        x = 0.0
        for number, one in enumerate(self.laid):
            incoming = [(edge, points) for edge, points in one.ends.items() if edge.source.origin in self.taps]
            self.gutters.append(x - self.apart / 2)
            ways = [(self.taps[edge.source.origin][1], points) for edge, points in incoming]
            if number == 1 and not self.turn and ways and is_box(self.laid[0]):
                by, x = below_way(self.laid[0], one, ways)
                shift(self.whole, by, 0)
                self.taps = {origin: (0, moved(points, by, 0)) for origin, (_, points) in self.taps.items()}
                self.gutters[1] = self.laid[0].left + by
            elif len(self.laid) == 2 and number and not self.turn:
                x, self.gutters[1] = pack(self.laid[0], one, ways)
            shift(one, x + one.left, 0)
            self.whole.pieces.take(one.pieces)
            self.wires(number, [(edge, one.ends[edge]) for edge, _ in incoming])
            self.taps |= {origin: (number, points) for origin, points in one.taps.items()}
            x += one.left + one.right + (self.apart if number < len(self.laid) - 1 else 0)
        self.whole.right = max([x, *(area.right for one in self.laid for area in areas(one))]) if len(self.laid) == 2 else x
        for corners in self.turns.values():  # the last one to turn off leaves no fork behind
            self.whole.pieces.dots += [Dot(*corner) for corner in sorted(set(corners))[:-1]]
        known = {(dot.x, dot.y) for dot in self.whole.pieces.dots}
        for (_, corner), heights in self.heights.items():
            self.whole.pieces.dots += [Dot(*one) for one in forks(corner, heights) if one not in known]
        return self.whole

    def wires(self, number: int, incoming: Sequence[End]) -> None:
        """Draw the wires into a column, the lowest first; those of a value branch off a track of its own."""
        ordered = sorted(incoming, key=lambda end: -end[1][0][1])
        orders = self.tracks(ordered)
        self.raise_taps(ordered, orders)
        told: dict[Origin, bool] = {}
        apart = min(TRACK, TRACKS / max(1, len(orders) - 1))
        for index, (edge, points) in enumerate(ordered):
            order = orders[edge.source.origin]
            between = [self.taps[origin][0] > self.taps[edge.source.origin][0] for origin in orders]
            over = (OVER_NAME if any(between) else OVER) + OVERS * order
            way, corner = self.way(number, (edge, points), over, apart * (order - (len(orders) - 1) / 2))
            if edge.target != self.turn:
                self.heights.setdefault((edge.source.origin, corner), []).append(points[0][1])
            if not self.rises_with_another(edge.source.origin, way, corner):
                self.turns.setdefault(edge.source.origin, []).append(corner)
            streams = edge.target == self.turn or isinstance(edge.source.origin, PassOutput | InnerOutput)
            style: Style = "loss" if edge.trains else "measured" if edge.shape_only else "main" if streams else "cross"
            self.whole.pieces.wires.append(
                WirePath(
                    maker(edge.source.origin).path,
                    edge.target,
                    straightened(way),
                    edge.port,
                    style,
                    not edge.passage,
                    passage=edge.passage,
                    place=edge.place,
                )
            )
            passes = isinstance(edge.source.origin, PassOutput | InnerOutput)
            on_skip = bool(self.turn) and index > 0  # where a gate may stand
            if not (passes or on_skip or edge.trains or edge.source.is_model_input or edge.source.origin in told):
                beside = [said for origin, said in told.items() if self.taps[origin][0] == self.taps[edge.source.origin][0]]
                gutter = way[len(self.taps[edge.source.origin][1])][0]
                told[edge.source.origin] = all(beside) and self.label(edge.source, gutter, alone=not beside)

    def tracks(self, ordered: Sequence[End]) -> dict[Origin, int]:
        """Return the order of the tracks of values from the left: that in which they come in from below, unless fewer wires cross
        each other the other way round, as where all rise.
        """
        origins = [*dict.fromkeys(edge.source.origin for edge, _ in ordered)]
        upwards, downwards = ({one: n for n, one in enumerate(each)} for each in (origins, origins[::-1]))
        ways = [(edge.source.origin, self.taps[edge.source.origin][1][-1][1], points[0][1]) for edge, points in ordered]
        up, down = (crossings([(each[one], come, goes) for one, come, goes in ways]) for each in (upwards, downwards))
        return downwards if down < up else upwards

    def raise_taps(self, ordered: Sequence[End], orders: Mapping[Origin, int]) -> None:
        """Let a value leave higher where it would run on a wire that comes in at this height from a track further to the left."""
        for origin, order in orders.items():
            column, start = self.taps[origin]
            x, height = start[-1]
            met = [points[0][1] for other, points in ordered if orders[other.source.origin] < order]
            if origin in self.turns or len(start) < 2 or start[-2][0] != x:
                continue
            while any(abs(height - one) < NEAR for one in met):
                height -= NEAR
            self.taps[origin] = column, (*start[:-1], (x, height))

    def label(self, source: DiagramSource, gutter: float, *, alone: bool) -> bool:
        """Write above a wire from a column to the first gutter what it carries, in as many words as there is room for; of one
        that is not alone, its name with or without its shape. Return whether it has its name.
        """
        start = self.taps[source.origin][1][-1]
        name = f"{spoken(source.called.partition('.')[0] or node_beside(source.path, self.turn)).lower()}{OUTPUT}"
        below = Area(start[0], start[1], gutter, self.taps[source.origin][1][0][1])
        told = any(text.text.startswith(source.shape) and text.area.meets(below) for text in self.whole.pieces.texts)
        for said in (name,) if told else (f"{name} · {source.shape}", source.shape if alone else name) if source.shape else ():
            if label_above(self.whole, said, source.path, start, gutter, self.typography):
                return said != source.shape
        return False

    def way(self, number: int, end: End, over: float, track: float) -> tuple[list[Point], Point]:
        """Return the way of a wire into a column, so far `over` those between, and where it turns into the gutter there."""
        edge, points = end
        column, start = self.taps[edge.source.origin]
        if edge.target == self.turn and len(start) > 1:  # at the bottom of a U
            return self.around(start, points)
        gutter, align_height = self.gutters[number] + track, start[-1][1]
        way: list[Point] = [*start]
        if column + 1 < number:  # over the columns between
            align_height = min(align_height, min(-between.height for between in self.laid[column + 1 : number]) - over)
            rise = self.turned(edge.source.origin, column + 1) or self.gutters[column + 1] + track
            way += [(rise, start[-1][1]), (rise, align_height)]
        return [*way, (gutter, align_height), (gutter, points[0][1]), *points], (gutter, align_height)

    def turned(self, origin: Origin, number: int) -> float:
        """Return where a value turns already in the gutter at the left of a column, at the height at which it leaves its own; 0
        where it does not.
        """
        height = self.taps[origin][1][-1][1]
        near = (x for x, y in self.turns.get(origin, ()) if y == height and abs(x - self.gutters[number]) <= TRACKS / 2)
        return next(near, 0.0)

    def rises_with_another(self, origin: Origin, way: Sequence[Point], corner: Point) -> bool:
        """Return whether a wire over columns forks from another one of its value where that goes up, and note how far it goes."""
        start = self.taps[origin][1]
        after = way[len(start) : len(start) + 2]
        if len(after) < 2 or after[0] == corner or after[0] not in self.turns.get(origin, ()):
            return False
        self.heights.setdefault((origin, after[0]), []).append(after[1][1])
        return True

    def around(self, start: Sequence[Point], points: Sequence[Point]) -> tuple[list[Point], Point]:
        """Return the way from the last block of the way down to the first of the way up, which is the last in `laid`."""
        boxes = [box for box in self.laid[-1].pieces.boxes if box.about.path == self.turn]
        middle, foot = points[-1]
        if boxes:
            middle, foot = boxes[0].x + boxes[0].width / 2, boxes[0].y + boxes[0].height
        low = max(start[-1][1], foot + TURN)
        return [start[0], (start[0][0], low), (middle, low), (middle, foot)], start[-1]


def crossings(ways: Sequence[tuple[int, float, float]]) -> int:
    """Return how many times wires cross each other that come level at one height into a track, and leave it at another.

    >>> crossings([(0, 30.0, 10.0), (1, 40.0, 20.0)]), crossings([(1, 30.0, 10.0), (0, 40.0, 20.0)])
    (0, 2)
    """
    return sum(
        min(come, goes) < level < max(come, goes)
        for track, come, goes in ways
        for other, its_come, its_goes in ways
        if track != other
        for level in [its_come if other > track else its_goes]
    )


def forks(corner: Point, heights: Sequence[float]) -> Iterator[Point]:
    """Yield where a wire forks that turns into a gutter at a corner and leaves it at some heights."""
    x, come = corner
    ends = [come, *heights]
    for y in dict.fromkeys(ends):
        ways = (y == come) + (y in heights) + (min(ends) < y) + (max(ends) > y)
        if ways > 2:
            yield x, y


def pack(before: Fragment, after: Fragment, between: Sequence[Crossing]) -> tuple[float, float]:
    """Return where a column begins beside the one before, and where wires go up and down between them: these have a straight way,
    and elsewhere the columns come as near to each other as what stands in them lets them.
    """
    high, low = heights_of(between)
    near, far = extent(before, 1, high, low), extent(after, -1, high, low)
    apart = max(near + far + COLUMN_GAP, after.left, room_between(before, after))
    return apart - after.left, near + (apart - near - far) / 2


def is_box(column: Fragment) -> bool:
    """Return whether a column is nothing but a box."""
    return len(column.pieces.boxes) == 1 and not (column.pieces.frames or column.pieces.merges)


def below_way(one: Fragment, after: Fragment, between: Sequence[Crossing]) -> tuple[float, float]:
    """Return how far to the right of the border a box stands whose wire goes straight up beside the next column, as near to that
    as what stands in both lets it, and where that column begins.
    """
    far = extent(after, -1, *heights_of(between))
    least = max(one.left + far + COLUMN_GAP / 2, room_between(one, after))
    apart = max(least, after.left)
    return apart - least, apart - after.left


def heights_of(between: Sequence[Crossing]) -> tuple[float, float]:
    """Return the heights of the upper and the lower end of the wires between two columns."""
    ys = [y for ends in between for points in ends for _, y in points]
    return (min(ys), max(ys)) if ys else (0.0, 0.0)


def room_between(before: Fragment, after: Fragment) -> float:
    """Return how far apart two columns have to stand, the first one at the border, so that what is level in them is apart."""
    rooms = (
        a.right - b.left + MIN_COLUMN_GAP
        for a in areas(before)
        for b in areas(after)
        if a.top < b.bottom + MIN_COLUMN_GAP / 2 and b.top < a.bottom + MIN_COLUMN_GAP / 2
    )
    return max(rooms, default=0.0)


def label_above(whole: Fragment, said: str, path: str, start: Point, gutter: float, typography: Typography) -> bool:
    """Write above a wire to a gutter, of the value of what stands at a path; return whether there is room."""
    if gutter - start[0] < typography.width(said, "shape") + 24:
        return False
    text = Text((start[0] + gutter) / 2, start[1] - 6, said, "shape", scale=typography.scale)
    solid = [box.area for box in whole.pieces.boxes] + [frame.area for frame in whole.pieces.frames]
    solid += [line for wire in whole.pieces.wires if wire.source != path for line in lines(wire)]
    written = [*whole.pieces.texts, *(one.text for one in whole.pieces.references)]
    if any(text.area.grown(4).meets(area) for area in (*solid, *(other.area for other in written))):
        return False
    whole.pieces.texts.append(text)
    return True
