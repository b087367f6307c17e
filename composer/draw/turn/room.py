"""How much room things need along the stream and across it."""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

from composer.draw.geometry import Text
from composer.draw.scene import CARD_ROOM, RADIUS, Box, Frame, Strip
from composer.draw.turn.axes import GAP, ON, Across, Along, near, on
from composer.draw.turn.outline import SceneOutline, exits_of

HEAD, HEAD_LINE = 30.0, 13.0
"""Height of a frame's header, and of each more line: those of the usual layout."""
CELL, LEVEL = 5.0, 0.05
"""The least length of a layer in a map; how far from its cell a wire may start."""
MAX_ROUNDS = 12
"""How often maps of layers are made longer, or wires from their cells moved on, until these start at their cells."""
CURVE = 40.0
"""Length of a curve along the stream, at most."""


def axes_of(outline: SceneOutline) -> tuple[Along, Across]:
    """Return both axes, with everything placed."""
    room = _Room(outline)
    room.require()
    room.along.solve()
    for _ in range(MAX_ROUNDS):
        if not room.level_exits():
            break
        room.along.solve()
    room.across.solve()
    return room.along, room.across


StripEnd: TypeAlias = tuple[float, float, float]
"""A place along the stream, a coordinate across it, and how far from there the cells of a map begin or end."""


def strip_ends(outline: SceneOutline, frame: Frame, strip: Strip) -> tuple[StripEnd, StripEnd]:
    """Return where the cells of a map of layers begin and end along the stream."""
    band = outline.band(frame)
    low, high = outline.free(frame, band)
    begins, ends = low == near(-frame.area.bottom), high == near(-frame.area.top)
    border = frame.x if band[1] == frame.x else frame.x + frame.width
    name = strip.ticks[0].area
    before = name.right - name.left + 6
    first = (low, border if begins else strip.x, before + (0.0 if begins else GAP))
    return first, (high, border if ends else strip.x, 0.0 if ends else GAP)


class _Room:
    def __init__(self, outline: SceneOutline) -> None:
        self.outline, self.given, self.size = outline, outline.given, outline.typography.scale
        self.along, self.across = Along(), Across()

    def require(self) -> None:
        """Add everything to both axes."""
        scene, along, across = self.given, self.along, self.across
        targets = {wire.target for wire in self.outline.wires}
        for box, slab in zip(scene.boxes, self.outline.slabs, strict=True):
            own, reach = slab.content, (slab.low, slab.high)
            if box.about.path not in targets:
                self._pull(1.0, -box.y - box.height / 2, slab.low, -box.y - box.height, -box.y)
            along.centered(-box.y - box.height, -box.y - box.height / 2, -box.y, reach, own.width)
            across.centered(slab.low, (slab.low + slab.high) / 2, slab.high, own.height)
            self._require_cards(box, reach)
        for merge in scene.merges:
            low, high = merge.x - RADIUS, merge.x + RADIUS
            along.centered(-merge.y - RADIUS, -merge.y, -merge.y + RADIUS, (low, high), 2 * RADIUS)
            across.centered(low, merge.x, high, 2 * RADIUS)
        for wire in self.outline.wires:
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
        for text in self.outline.words:
            self._require_text(text)
            if self.outline.is_at_end(text):
                self._pull(1.0, -text.area.bottom, self.outline.reach(text)[0], -text.area.top)
        for reference in scene.references:
            text, middle = reference.text, self.outline.middle(reference.text)
            self._require_text(text, middle)
            half = (text.area.bottom - text.area.top) / 2
            self._pull(1.0, middle, self.outline.reach(text)[0], middle - half, middle + half)
            for x, y in self.outline.met(text):
                if -y == middle:  # a wire that begins there does so below the middle of the text
                    along.add(middle, self.outline.reach(text)[0], x)
        for wire in self.outline.wires:
            if wire.source not in targets:
                for x, y in wire.points[:-1]:
                    self._pull(1.0, -y, x)
        for frame in scene.frames:
            self._require_frame(frame)

        led = {near(-y) for frame in scene.frames for _, (_, y) in exits_of(self.outline.wires, frame)}
        along.pulled = [one for one in along.pulled if near(one[0]) not in led]  # these stand at their cells

        losses = {box.about.path: box for box in scene.boxes if box.hue == "loss"}
        for wire in self.outline.wires:
            (x, y), loss = wire.points[0], losses.get(wire.target)
            if loss and any(on(x, frame.x, frame.x + frame.width) for frame in scene.frames):  # of all that is in the frame
                self._pull(0.5, -y, x)
                self._pull(0.5, -loss.y - loss.height / 2, loss.x + loss.width / 2, -loss.y - loss.height, -loss.y)

    def level_exits(self) -> bool:
        """Ask for more room where wires do not start at their cells of a map of layers yet; return whether there are any."""
        asked = False
        for frame in self.given.frames:
            if frame.strip is None:
                continue
            begin, end = strip_ends(self.outline, frame, frame.strip)
            left, right = self.along(*begin[:2]) + begin[2], self.along(*end[:2]) - end[2]
            count = len(frame.strip.kinds)
            starts = [(index, (-y, x), self.along(-y, x)) for index, (x, y) in exits_of(self.outline.wires, frame)]
            least = max([(right - left) / count, *((start - left) / (index + 0.5) for index, _, start in starts)])
            if least * count > right - left + LEVEL:
                self.along.tie(begin[:2], end[:2], begin[2] + least * count + end[2])
                asked = True
            for index, place, start in starts:
                if left + least * (index + 0.5) > start + LEVEL:
                    self.along.tie(begin[:2], place, begin[2] + least * (index + 0.5))
                    asked = True
        return asked

    def _pull(self, pull: float, place: float, across: float, *others: float) -> None:
        """Let lines go on toward what comes next."""
        self.along.pulled += [(one, across, pull) for one in (place, *others)]

    def _require_text(self, text: Text, middle: float | None = None) -> None:
        area, (low, high) = text.area, self.outline.reach(text)
        wide = area.right - area.left + 4
        if middle is None and text.anchor == "middle":
            middle = -(area.top + area.bottom) / 2
        if middle is None:
            self.along.span(-area.bottom, -area.top, (low, high), wide)
        else:
            half = (area.bottom - area.top) / 2
            self.along.centered(middle - half, middle, middle + half, (low, high), wide)
        self.across.span(low, high, area.bottom - area.top + 2)

    def _require_cards(self, thing: Box | Frame, sides: tuple[float, float]) -> None:
        """Ask for the room of what is seen behind a thing at its end, so that what is written there stands beside that."""
        if thing.parallel:
            self.along.span(-thing.area.top, -thing.area.top + CARD_ROOM, sides, CARD_ROOM)

    def _require_frame(self, frame: Frame) -> None:
        area = frame.area
        sides = area.left, area.right
        self.along.span(-area.bottom, -area.top, sides, 0.0)
        self.across.span(*sides, 0.0)
        self._require_cards(frame, sides)
        if frame.texts:
            first = min(self.outline.inside(area), default=area.right)
            self.across.span(area.left, first, HEAD + HEAD_LINE * self.size * (len(frame.texts) - 1) + 4)
            low, high = self.outline.free(frame)
            said, pill = self.outline.header_width(frame) + 28, self.outline.pill_width(frame)
            at_end = high == near(-area.top)  # where the pill stands too
            self.along.span(low, high, (area.left, area.left), said + (pill + 14 if at_end else 0.0))
            self.along.span(-area.bottom, -area.top, sides, pill + 14)
            last = self.outline.crossing(frame, (area.left, area.left))[-2]
            self.along.span(last, near(-area.top), (area.left, area.left), pill + 14)
        if frame.strip:
            strip, name = frame.strip.area, frame.strip.ticks[0].area
            beside = self.outline.band(frame)
            self.across.span(strip.left, strip.right, strip.right - strip.left)
            low, high = self.outline.free(frame, beside)
            self.along.span(low, high, beside, name.right - name.left + 2 * GAP + CELL * len(frame.strip.kinds))
            for tick in frame.strip.ticks[1:]:
                self.across.span(*self.outline.reach(tick), tick.area.bottom - tick.area.top + 2)
