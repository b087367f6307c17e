"""A drawing turned so that the stream runs to the right: what lay above another thing lies right of it, and texts stay level.

Along each axis, all coordinates keep their order, and only the distances between them change: boxes get the room that their texts
need in their new place, gaps shrink to what they need. So nothing comes to lie on anything that it did not lie on before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from composer.draw.diagram import Branches, Flow, Group, IrregularSubgraph, Item, Leaf, OpenMixture
from composer.draw.geometry import ICON, Area, PlacedIcon, Point, Text
from composer.draw.layout.boxes import LINE, PAD, detail_of
from composer.draw.layout.narrow import lines
from composer.draw.layout.page import MARGIN
from composer.draw.scene import RADIUS, Box, Dot, Frame, MergeCircle, Scene, Strip, WirePath
from composer.draw.style.typography import Typography

GAP = 18.0
"""Pixels that are kept between neighboring coordinates at most: between boxes, an arrow of 7 with a piece of line."""
HEAD, HEAD_LINE = 30.0, 13.0
"""Height of a frame's header, and of each more line: those of the usual layout."""
PILL_ENDS = 28.0
"""Both ends of a pill beside its text, and what stays free beside it."""
TEXT_WIDTH = 102.0
"""How long lines in a box may be: `Grouped-query` has room."""
MIN_BOX = 62.0
"""The least length of a box along the stream: that of an expert."""
CELL = 5.0
"""The least length of a layer in a map."""
CURVE = 40.0
"""Length of a curve along the stream, at most."""
FREE = 8.0
"""Between the corner of a box and a wire that meets it."""
BESIDE = 3.0
"""So near to each other, two things across the stream count as beside one another."""
ON = 1.5
"""So near is a point that lies on a border."""


def turned(scene: Scene, typography: Typography) -> Scene:
    """Return a scene whose stream runs to the right; its title stays above it."""
    return _Turn(scene, typography).scene()


def narrowed(flow: Flow, typography: Typography) -> Flow:
    """Return a flow whose blocks say in several lines what they say in one: upright boxes take less of the length."""

    def item(one: Item) -> Item:
        match one:
            case Leaf():
                return _in_lines(one, typography)
            case Group() | Branches():
                return one.map_flows(lambda inner: narrowed(inner, typography))
            case OpenMixture() | IrregularSubgraph():
                return one

    return flow.map_items(item).map_sinks(lambda sink: replace(sink, leaf=sink.leaf and _in_lines(sink.leaf, typography)))


def _in_lines(leaf: Leaf, typography: Typography) -> Leaf:
    if leaf.rows or (leaf.look.sign and not leaf.look.sides):
        return leaf
    room = TEXT_WIDTH * typography.scale
    detail = " · ".join(filter(None, [leaf.name, detail_of(leaf), leaf.params]))
    said = (*lines("title", leaf.look.title, room, typography), *lines("detail", detail, room, typography))
    return replace(leaf, lines=said)


class _Across:
    """Coordinates across the stream in their order, and how far apart they must be."""

    def __init__(self) -> None:
        self.known: set[float] = set()
        self.spans: list[tuple[float, float, float]] = []
        self.old: list[float] = []
        self.new: list[float] = []

    def add(self, *values: float) -> None:
        """Add coordinates that keep their order."""
        self.known |= {_near(value) for value in values}

    def span(self, low: float, high: float, least: float) -> None:
        """Add two coordinates that will be at least so far apart."""
        self.add(low, high)
        if _near(low) < _near(high):
            self.spans.append((_near(low), _near(high), least))

    def centered(self, low: float, middle: float, high: float, least: float) -> None:
        """Add two coordinates around a third one, with half of the room on either side."""
        self.span(low, middle, least / 2)
        self.span(middle, high, least / 2)

    def solve(self) -> None:
        """Place all coordinates, each as far to the front as the others let it."""
        self.old = sorted(self.known)
        number = {value: at for at, value in enumerate(self.old)}
        before: dict[int, list[tuple[int, float]]] = {}
        for low, high, least in self.spans:
            before.setdefault(number[high], []).append((number[low], least))
        self.new = []
        for at, value in enumerate(self.old):
            steps = [self.new[-1] + min(value - self.old[at - 1], GAP)] if at else [0.0]
            steps += [self.new[low] + least for low, least in before.get(at, ())]
            self.new.append(max(steps))

    def __call__(self, value: float) -> float:
        """Return where a coordinate is now; one that was not added lies between its neighbors as it did."""
        value = _near(value)
        at = bisect_left(self.old, value)
        if at == len(self.old):
            return self.new[-1] + value - self.old[-1]
        if self.old[at] == value or not at:
            return self.new[at] + value - self.old[at]
        low, high = self.old[at - 1 : at + 1]
        return self.new[at - 1] + (self.new[at] - self.new[at - 1]) * (value - low) / (high - low)


@dataclass(slots=True)
class _Line:
    """What stands at one place along the stream, from one coordinate across it to another."""

    place: float
    low: float
    high: float
    new: float = 0.0
    late: bool = False
    """Whether it stands as near as it can to what comes next."""


class _Along:
    """Lines across the stream. Those that a wire along the stream could meet keep their order; others do not know each other."""

    def __init__(self) -> None:
        self.drawn: dict[float, list[tuple[float, float]]] = {}
        self.spans: list[tuple[float, float, float, float]] = []
        self.lines: dict[float, list[_Line]] = {}
        self.late: list[tuple[float, float]] = []
        self.end = 0.0

    def add(self, place: float, low: float, high: float) -> None:
        """Add a line; lines of one place that touch are one."""
        self.drawn.setdefault(_near(place), []).append((min(low, high), max(low, high)))

    def span(self, start: float, end: float, across: tuple[float, float], least: float) -> None:
        """Add two lines that will be at least so far apart."""
        self.add(start, *across)
        self.add(end, *across)
        if _near(start) < _near(end):
            self.spans.append((_near(start), _near(end), across[0], least))

    def centered(self, start: float, middle: float, end: float, across: tuple[float, float], least: float) -> None:
        """Add two lines around a third one, with half of the room on either side."""
        self.span(start, middle, across, least / 2)
        self.span(middle, end, across, least / 2)

    def solve(self) -> None:
        """Place all lines, each as far to the front as the others let it."""
        self.lines = {place: _joined(place, pieces) for place, pieces in self.drawn.items()}
        before: dict[int, list[tuple[_Line, float]]] = {}
        for start, end, across, least in self.spans:
            before.setdefault(id(self.line(end, across)), []).append((self.line(start, across), least))
        for place, across in self.late:
            self.line(place, across).late = True
        placed: list[_Line] = []
        after: dict[int, list[tuple[_Line, float]]] = {}
        for place in sorted(self.lines):
            for line in self.lines[place]:
                met = [one for one in placed if one.low <= line.high + BESIDE and line.low <= one.high + BESIDE]
                steps = [(one, min(place - one.place, GAP)) for one in met] + before.get(id(line), [])
                line.new = max([0.0, *(one.new + least for one, least in steps)])
                for one, least in steps:
                    after.setdefault(id(one), []).append((line, least))
            placed += self.lines[place]
        for line in reversed(placed):
            if line.late and id(line) in after:
                line.new = min(one.new - least for one, least in after[id(line)])
        self.end = max(line.new for line in placed)

    def line(self, place: float, across: float) -> _Line:
        """Return the line of a place that goes through a coordinate across the stream, or ends next to it."""
        return min(self.lines[_near(place)], key=lambda line: max(line.low - across, across - line.high, 0.0))

    def __call__(self, place: float, across: float) -> float:
        """Return where something is now that lies on a line."""
        return self.line(place, across).new


def _joined(place: float, pieces: Iterable[tuple[float, float]]) -> list[_Line]:
    """Return the lines of some pieces, those that touch in one."""
    found: list[_Line] = []
    for low, high in sorted(pieces):
        if found and low <= found[-1].high + ON:
            found[-1].high = max(found[-1].high, high)
        else:
            found.append(_Line(place, low, high))
    return found


def _near(value: float) -> float:
    """Return a coordinate as all that are equal to the eye share it."""
    return round(value, 1)


def _on(value: float, *borders: float) -> bool:
    """Return whether a coordinate is that of a border."""
    return any(abs(value - border) < ON for border in borders)


@dataclass(frozen=True, slots=True)
class _Content:
    """What stands in a box, around the middle of it."""

    width: float
    height: float
    texts: tuple[Text, ...] = ()
    icons: tuple[PlacedIcon, ...] = ()


@dataclass(frozen=True, slots=True)
class _Slab:
    """How far a box reaches across the stream, and where wires meet its sides, along the stream."""

    low: float
    high: float
    content: _Content
    across: tuple[float, ...]
    """Where wires meet it that come along the stream."""
    along: tuple[float, ...]
    """Where wires meet it that come across."""


class _Turn:
    def __init__(self, scene: Scene, typography: Typography) -> None:
        self.given, self.typography, self.size = scene, typography, typography.scale
        self.head = tuple(text for text in scene.texts if text.role in ("heading", "facts"))
        self.words = tuple(text for text in scene.texts if text.role not in ("heading", "facts"))
        self.slabs = self._slabs()
        self.wires = tuple(map(self._reattached, scene.wires))
        self.along, self.across = _Along(), _Across()
        self.drawn: list[tuple[Area, Area]] = []
        self.top = max([0.0, *(text.y for text in self.head)]) + MARGIN

    # -- what needs how much room

    def _slabs(self) -> list[_Slab]:
        """Return the reach of each box: as far as it needs for its texts, and to where wires meet it."""
        contents = [content(box, self.size) for box in self.given.boxes]
        columns = [(_near(box.x), _near(box.width)) for box in self.given.boxes]  # boxes of a column are alike
        highest: dict[tuple[float, float], float] = {}
        for column, own in zip(columns, contents, strict=True):
            highest[column] = max(highest.get(column, 0.0), own.height)
        found = []
        ends = [wire.points[end] for wire in self.given.wires for end in (0, -1)]
        for box, own, column in zip(self.given.boxes, contents, columns, strict=True):
            area, middle = box.area, box.x + box.width / 2
            half = min(highest[column], box.width) / 2
            across = tuple(x for x, y in ends if area.left < x < area.right and _on(y, area.top, area.bottom))
            along = tuple(-y for x, y in ends if area.top < y < area.bottom and _on(x, area.left, area.right))
            low = max(min([middle - half, *(x - FREE for x in across)]), area.left)
            high = min(max([middle + half, *(x + FREE for x in across)]), area.right)
            found.append(_Slab(low, high, replace(own, height=highest[column]), across, along))
        return found

    def _reattached(self, wire: WirePath) -> WirePath:
        """Return a wire whose ends at the side of a box are where that is now."""
        points = list(wire.points)
        for end in (0, -1):
            x, y = points[end]
            for slab, box in zip(self.slabs, self.given.boxes, strict=True):
                if box.y - ON <= y <= box.y + box.height + ON:
                    if abs(x - box.x) < ON:
                        points[end] = (slab.low, y)
                    elif abs(x - box.x - box.width) < ON:
                        points[end] = (slab.high, y)
        return wire.through(points)

    def _require(self) -> None:
        """Add everything to both axes."""
        scene, along, across = self.given, self.along, self.across
        targets = {wire.target for wire in self.wires}
        for box, slab in zip(scene.boxes, self.slabs, strict=True):
            own, reach = slab.content, (slab.low, slab.high)
            if box.about.path not in targets:
                self._late(-box.y - box.height / 2, slab.low, *(-box.y - box.height, -box.y))
            along.centered(-box.y - box.height, -box.y - box.height / 2, -box.y, reach, own.width)
            across.centered(slab.low, (slab.low + slab.high) / 2, slab.high, own.height)
        for merge in scene.merges:
            low, high = merge.x - RADIUS, merge.x + RADIUS
            along.centered(-merge.y - RADIUS, -merge.y, -merge.y + RADIUS, (low, high), 2 * RADIUS)
            across.centered(low, merge.x, high, 2 * RADIUS)
        for wire in self.wires:
            points = (wire.points[0], wire.points[-1]) if wire.curved else wire.points
            across.add(*(x for x, _ in points))
            for x, y in points:
                along.add(-y, x, x)
            if not wire.curved:
                for a, b in pairwise(points):
                    if abs(a[1] - b[1]) < ON:
                        along.add(-a[1], a[0], b[0])
                        along.add(-b[1], a[0], b[0])
            else:
                for _, y in points:  # what such wires lead to from one place stands in one line
                    along.add(-y, points[0][0], points[1][0])
                along.span(-points[0][1], -points[1][1], (points[0][0], points[0][0]), min(points[0][1] - points[1][1], CURVE))
        for dot in scene.dots:
            along.add(-dot.y, dot.x, dot.x)
            across.add(dot.x)
        for text in self.words:
            self._require_text(text)
        for reference in scene.references:
            text, middle = reference.text, self._middle(reference.text)
            self._require_text(text, middle)
            half = (text.area.bottom - text.area.top) / 2
            self._late(middle, self._reach(text)[0], middle - half, middle + half)
            for x, y in self._met(text):
                if -y == middle:  # a wire that begins there does so below the middle of the text
                    along.add(middle, self._reach(text)[0], x)
        for wire in self.wires:
            if wire.source not in targets:
                for x, y in wire.points[:-1]:
                    self._late(-y, x)
        for frame in scene.frames:
            self._require_frame(frame)

    def _late(self, place: float, across: float, *others: float) -> None:
        """Let lines stand as near as they can to what comes next, as what is computed from nothing and read only there."""
        self.along.late += [(one, across) for one in (place, *others)]

    def _middle(self, text: Text) -> float:
        """Return where the middle of a text is along the stream: at the wire that begins or ends beside it, if one does."""
        level = (text.area.top + text.area.bottom) / 2
        return -min((y for _, y in self._met(text)), key=lambda y: abs(y - level), default=level)

    def _met(self, text: Text) -> list[Point]:
        """Return the ends of wires beside the middle of a text."""
        area = text.area.grown(12)
        level = (area.top + area.bottom) / 2
        ends = [wire.points[end] for wire in self.wires for end in (0, -1)]
        return [(x, y) for x, y in ends if area.left <= x <= area.right and abs(y - level) < text.font.size / 2]

    def _require_text(self, text: Text, middle: float | None = None) -> None:
        area, (low, high) = text.area, self._reach(text)
        wide = area.right - area.left + 4
        if middle is None and text.anchor == "middle":
            middle = -(area.top + area.bottom) / 2
        if middle is None:
            self.along.span(-area.bottom, -area.top, (low, high), wide)
        else:
            half = (area.bottom - area.top) / 2
            self.along.centered(middle - half, middle, middle + half, (low, high), wide)
        self.across.span(low, high, area.bottom - area.top + 2)

    def _reach(self, text: Text) -> tuple[float, float]:
        """Return how far a text reaches across the stream: as far as its letters are high, from where it began."""
        area = text.area
        high = area.bottom - area.top
        match text.anchor:
            case "start":
                return area.left, area.left + high
            case "end":
                return area.right - high, area.right
            case "middle":
                return text.x - high / 2, text.x + high / 2

    def _require_frame(self, frame: Frame) -> None:
        area = frame.area
        sides = area.left, area.right
        self.along.span(-area.bottom, -area.top, sides, 0.0)
        self.across.span(*sides, 0.0)
        if frame.texts:
            first = min(self._inside(area), default=area.right)
            self.across.span(area.left, first, HEAD + HEAD_LINE * self.size * (len(frame.texts) - 1) + 4)
            low, high = self._free(frame)
            said, pill = self._header_width(frame) + 28, self._pill_width(frame)
            at_end = high == _near(-area.top)  # where the pill stands too
            self.along.span(low, high, (area.left, area.left), said + (pill + 14 if at_end else 0.0))
            self.along.span(-area.bottom, -area.top, sides, pill + 14)
        if frame.strip:
            strip, first = frame.strip.area, frame.strip.ticks[0].area
            beside = min(strip.left, area.left), max(strip.right, area.right)
            self.across.span(strip.left, strip.right, strip.right - strip.left)
            low, high = self._free(frame, strip.left)
            self.along.span(low, high, beside, first.right - first.left + 2 * GAP + CELL * len(frame.strip.kinds))
            for tick in frame.strip.ticks[1:]:
                self.across.span(*self._reach(tick), tick.area.bottom - tick.area.top + 2)

    def _inside(self, area: Area) -> Iterable[float]:
        """Yield where things inside of a frame begin, across the stream."""

        def within(x: float, y: float) -> bool:
            return area.left + ON < x < area.right and area.top + ON < y < area.bottom - ON

        scene = self.given
        yield from (
            slab.low
            for slab, box in zip(self.slabs, scene.boxes, strict=True)
            if within(box.x + box.width / 2, box.y + box.height / 2)
        )
        yield from (merge.x - RADIUS for merge in scene.merges if within(merge.x, merge.y))
        yield from (inner.x for inner in scene.frames if inner.area != area and within(inner.x + 2 * ON, inner.y + 2 * ON))
        texts = (*self.words, *(reference.text for reference in scene.references))
        yield from (self._reach(text)[0] for text in texts if within(self._reach(text)[0], text.area.top))
        for inner in scene.frames:
            if inner.strip and within(inner.strip.x, inner.strip.y):
                yield inner.strip.x
        yield from (x for wire in self.wires for x, y in wire.points if within(x, y))

    def _free(self, frame: Frame, level: float | None = None) -> tuple[float, float]:
        """Return the widest piece of a frame's border without a wire through it, which a header or a map of layers may have; or
        of a line beside it.
        """
        area = frame.area
        level = area.left if level is None else level
        crossing = {
            _near(-a[1])
            for wire in self.wires
            if not wire.curved
            for a, b in pairwise(wire.points)
            if abs(a[1] - b[1]) < ON and min(a[0], b[0]) - ON < level < max(a[0], b[0]) + ON and area.top < a[1] < area.bottom
        }
        return max(pairwise(sorted([_near(-area.bottom), *crossing, _near(-area.top)])), key=lambda piece: piece[1] - piece[0])

    def _header_width(self, frame: Frame) -> float:
        wide = max(text.area.right - text.area.left for text in frame.texts)
        return wide + sum(icon.area.right - icon.area.left + 10 for icon in frame.icons)

    def _pill_width(self, frame: Frame) -> float:
        return frame.pill.area.right - frame.pill.area.left + PILL_ENDS + 14 if frame.pill else 0.0

    # -- where it stands then

    def scene(self) -> Scene:
        """Return all of it in its place."""
        self._require()
        self.along.solve()
        self.across.solve()
        given = self.given
        boxes = tuple(map(self.box, given.boxes, self.slabs))
        merges = tuple(map(self.merge, given.merges))
        slabs = (Area(slab.low, box.y, slab.high, box.y + box.height) for slab, box in zip(self.slabs, given.boxes, strict=True))
        before = (*slabs, *(merge.area for merge in given.merges))
        self.drawn = [*zip(before, (thing.area for thing in (*boxes, *merges)), strict=True)]
        wide = max([self.along.end + 2 * MARGIN, *(text.area.right + MARGIN for text in self.head)])
        return replace(
            given,
            width=wide,
            height=self.top + self.across.new[-1] + MARGIN + 2,
            texts=(*self.head, *(self.text(text) for text in self.words)),
            frames=tuple(map(self.frame, given.frames)),
            wires=tuple(map(self.wire, self.wires)),
            dots=tuple(map(self.dot, given.dots)),
            boxes=boxes,
            merges=merges,
            references=tuple(
                replace(reference, text=self.text(reference.text, self._middle(reference.text))) for reference in given.references
            ),
            direction="right",
        )

    def wire(self, wire: WirePath) -> WirePath:
        """Return a wire that meets boxes and circles where these are."""
        points = self.bent(wire) if wire.curved else [self.point(*point) for point in wire.points]
        for end in (0, -1):
            x, y = wire.points[end]
            for thing, area in self.drawn:
                if not (thing.left - ON <= x <= thing.right + ON and thing.top - ON <= y <= thing.bottom + ON):
                    continue
                if abs(y - thing.bottom) < ON:
                    points[end] = (area.left, points[end][1])
                elif abs(y - thing.top) < ON:
                    points[end] = (area.right, points[end][1])
                elif abs(x - thing.left) < ON:
                    points[end] = (points[end][0], area.top)
                elif abs(x - thing.right) < ON:
                    points[end] = (points[end][0], area.bottom)
        return wire.through(points)

    def bent(self, wire: WirePath) -> list[Point]:
        """Return a curve whose control points lie between its ends as they did."""
        (x, y), (end_x, end_y) = wire.points[0], wire.points[-1]
        (left, top), (right, bottom) = self.point(x, y), self.point(end_x, end_y)

        def between(value: float, low: float, high: float, new_low: float, new_high: float) -> float:
            return new_low + (new_high - new_low) * (value - low) / (high - low) if abs(high - low) > ON else new_low

        return [(between(b, y, end_y, left, right), between(a, x, end_x, top, bottom)) for a, b in wire.points]

    def point(self, x: float, y: float) -> Point:
        """Return where a point of the given scene is."""
        return MARGIN + self.along(-y, x), self.top + self.across(x)

    def area(self, area: Area, low: float, high: float) -> Area:
        """Return where a rectangle is that reaches so far across the stream."""
        (left, top), (right, bottom) = self.point(low, area.bottom), self.point(high, area.top)
        return Area(left, top, right, bottom)

    def dot(self, dot: Dot) -> Dot:
        x, y = self.point(dot.x, dot.y)
        return replace(dot, x=x, y=y)

    def merge(self, merge: MergeCircle) -> MergeCircle:
        x, y = self.point(merge.x, merge.y)
        return replace(merge, x=x, y=y)

    def box(self, box: Box, slab: _Slab) -> Box:
        x, y = self.point((slab.low + slab.high) / 2, box.y + box.height / 2)
        met_x = [MARGIN + self.along(value, (slab.low + slab.high) / 2) for value in slab.along]
        met_y = [self.top + self.across(value) for value in slab.across]
        left = min([x - slab.content.width / 2, *(value - FREE for value in met_x)])
        right = max([x + slab.content.width / 2, *(value + FREE for value in met_x)])
        top = min([y - slab.content.height / 2, *(value - FREE for value in met_y)])
        bottom = max([y + slab.content.height / 2, *(value + FREE for value in met_y)])
        texts = tuple(text.moved((left + right) / 2, (top + bottom) / 2) for text in slab.content.texts)
        icons = tuple(icon.moved((left + right) / 2, (top + bottom) / 2) for icon in slab.content.icons)
        return replace(box, x=left, y=top, width=right - left, height=bottom - top, texts=texts, icons=icons)

    def text(self, text: Text, middle: float | None = None, *, at: float | None = None) -> Text:
        """Return a text around a place along the stream, or around one on the page."""
        low, high = self._reach(text)
        top, bottom = self.top + self.across(low), self.top + self.across(high)
        letters = text.font.size
        # where there is more room than its letters need, it stays beside what it stood beside
        baseline = bottom - 1 - 0.22 * letters if text.anchor == "end" else top + 1 + 0.74 * letters
        if text.anchor == "middle":
            baseline = (top + bottom) / 2 + 0.26 * letters
            middle = -(text.area.top + text.area.bottom) / 2 if middle is None else middle
        if at is not None:
            return replace(text, x=at, y=baseline, anchor="middle")
        if middle is None:
            return replace(text, x=MARGIN + self.along(-text.area.bottom, low) + 2, y=baseline, anchor="start")
        return replace(text, x=MARGIN + self.along(middle, low), y=baseline, anchor="middle")

    def frame(self, frame: Frame) -> Frame:
        area = self.area(frame.area, frame.area.left, frame.area.right)
        start = MARGIN + self.along(self._free(frame)[0], frame.area.left) + 14
        texts = tuple(
            replace(text, x=start, y=area.top + 19 + HEAD_LINE * self.size * number, anchor="start")
            for number, text in enumerate(frame.texts)
        )
        icons, x = [], max([start, *(text.area.right for text in texts[:1])])
        for icon in frame.icons:
            icons.append(replace(icon, x=x + 10, y=area.top + 10.5))
            x = icons[-1].area.right
        pill = frame.pill and replace(
            frame.pill, x=area.right - 14 - (self._pill_width(frame) - 14) / 2 + 5, y=area.top + 15 + 4.5 * self.size
        )
        return replace(
            frame,
            x=area.left,
            y=area.top,
            width=area.right - area.left,
            height=area.bottom - area.top,
            texts=texts,
            icons=tuple(icons),
            pill=pill,
            strip=frame.strip and self.strip(frame, frame.strip),
        )

    def strip(self, frame: Frame, strip: Strip) -> Strip:
        """Return the map of a frame's layers along its border, the first one at the left."""
        low, high = self._free(frame, strip.x)
        beside = strip.x if low != _near(-frame.area.bottom) else frame.x
        first, *others = strip.ticks
        wide = first.area.right - first.area.left + 6
        left = MARGIN + self.along(low, beside) + wide + (0 if beside == frame.x else GAP)
        right = MARGIN + self.along(high, strip.x if high != _near(-frame.area.top) else frame.x)
        right -= 0 if high == _near(-frame.area.top) else GAP
        top, bottom = self.top + self.across(strip.x), self.top + self.across(strip.x + strip.width)
        cell = (right - left) / len(strip.kinds)
        ticks = [replace(first, x=left - 6, y=(top + bottom) / 2 + 3.5 * self.size, anchor="end")]
        for tick in others:
            number = int(tick.text.split()[-1]) - 0.5
            ticks.append(replace(self.text(tick, at=left + cell * number), anchor="middle"))
        size = {"width": right - left, "height": bottom - top}
        return replace(strip, x=left, y=top, **size, ticks=tuple(ticks), level=True)


def content(box: Box, size: float) -> _Content:
    """Return what stands in a box as it stands in a narrow one: an icon, and below it line by line; rows keep their places."""
    if any(text.role == "row" for text in box.texts):
        areas = [*(text.area for text in box.texts), *(icon.area for icon in box.icons)]
        left, right = min(area.left for area in areas), max(area.right for area in areas)
        x, y = -(left + right) / 2, -box.y - box.height / 2
        return _Content(
            right - left + 2 * PAD,
            box.height,
            tuple(text.moved(x, y) for text in box.texts),
            tuple(icon.moved(x, y) for icon in box.icons),
        )
    line = LINE * size
    high = line * len(box.texts) + (ICON + 3 if box.icons else 0.0)
    wide = max([ICON if box.icons else 0.0, *(text.area.right - text.area.left for text in box.texts)])
    top = -high / 2
    icons = tuple(replace(icon, x=-ICON / 2, y=top) for icon in box.icons[:1])
    top += ICON + 3 if icons else 0
    texts = tuple(
        replace(text, x=0.0, y=top + line * (number + 0.5) + 4 * size, anchor="middle") for number, text in enumerate(box.texts)
    )
    return _Content(max(wide + 2 * PAD, MIN_BOX if len(box.texts) > 1 or box.icons else 0.0), high + 14, texts, icons)
