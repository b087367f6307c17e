"""A drawing turned so that the stream runs to the right: what lay above another thing lies right of it, and texts stay level.

Along each axis, coordinates keep their order, and only the distances between them change: boxes get the room that their texts
need in their new place, gaps shrink to what they need. So nothing comes to lie on anything that it did not lie on before.
"""

from __future__ import annotations

from dataclasses import replace

from composer.draw.geometry import Area, Point, Text
from composer.draw.layout.page import MARGIN
from composer.draw.scene import Box, Dot, Frame, MergeCircle, Scene, Strip, WirePath
from composer.draw.style.typography import Typography
from composer.draw.turn.axes import ON, on
from composer.draw.turn.outline import FREE, SceneOutline, Slab
from composer.draw.turn.room import HEAD_LINE, axes_of, strip_ends


def turned(scene: Scene, typography: Typography) -> Scene:
    """Return a scene whose stream runs to the right; its title stays above it."""
    return _Turn(scene, typography).scene()


class _Turn:
    def __init__(self, scene: Scene, typography: Typography) -> None:
        self.given, self.size = scene, typography.scale
        self.outline = SceneOutline(scene, typography)
        self.along, self.across = axes_of(self.outline)
        self.drawn: list[tuple[Area, Area]] = []
        self.top = max([0.0, *(text.y for text in self.outline.head)]) + MARGIN

    def scene(self) -> Scene:
        """Return all of it in its place."""
        given = self.given
        boxes = tuple(map(self.box, given.boxes, self.outline.slabs))
        merges = tuple(map(self.merge, given.merges))
        slabs = (
            Area(slab.low, box.y, slab.high, box.y + box.height)
            for slab, box in zip(self.outline.slabs, given.boxes, strict=True)
        )
        before = (*slabs, *(merge.area for merge in given.merges))
        self.drawn = [*zip(before, (*(box.area for box in boxes), *(merge.area for merge in merges)), strict=True)]
        wide = max([self.along.end + 2 * MARGIN, *(text.area.right + MARGIN for text in self.outline.head)])
        return replace(
            given,
            width=wide,
            height=self.top + self.across.new[-1] + MARGIN + 2,
            texts=(*self.outline.head, *(self.text(text) for text in self.outline.words)),
            frames=tuple(map(self.frame, given.frames)),
            wires=tuple(map(self.wire, self.outline.wires)),
            dots=tuple(map(self.dot, given.dots)),
            boxes=boxes,
            merges=merges,
            references=tuple(
                replace(reference, text=self.text(reference.text, self.outline.middle(reference.text)))
                for reference in given.references
            ),
            direction="right",
        )

    def wire(self, wire: WirePath) -> WirePath:
        """Return a wire that meets boxes and circles where these are."""
        points = self.bent(wire) if wire.curved else [self.point(*point) for point in wire.points]
        for end, beside in ((0, 1), (-1, -2)):
            (x, y), (_, next_y) = wire.points[end], wire.points[beside]
            for thing, area in self.drawn:
                if not (thing.left - ON <= x <= thing.right + ON and thing.top - ON <= y <= thing.bottom + ON):
                    continue
                if on(y, next_y) and not wire.curved:  # it meets a side of the box
                    points[end] = (points[end][0], area.top if abs(x - thing.left) < abs(x - thing.right) else area.bottom)
                else:
                    points[end] = (area.right if abs(y - thing.top) < abs(y - thing.bottom) else area.left, points[end][1])
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

    def box(self, box: Box, slab: Slab) -> Box:
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
        low, high = self.outline.reach(text)
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
        start = MARGIN + self.along(self.outline.free(frame)[0], frame.area.left) + 14
        texts = tuple(
            replace(text, x=start, y=area.top + 19 + HEAD_LINE * self.size * number, anchor="start")
            for number, text in enumerate(frame.texts)
        )
        icons, x = [], max([start, *(text.area.right for text in texts[:1])])
        for icon in frame.icons:
            icons.append(replace(icon, x=x + 10, y=area.top + 10.5))
            x = icons[-1].area.right
        pill = frame.pill and replace(
            frame.pill, x=area.right - 14 - (self.outline.pill_width(frame) - 14) / 2 + 5, y=area.top + 15 + 4.5 * self.size
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
        begin, end = strip_ends(self.outline, frame, strip)
        left, right = MARGIN + self.along(*begin[:2]) + begin[2], MARGIN + self.along(*end[:2]) - end[2]
        first, *others = strip.ticks
        top, bottom = self.top + self.across(strip.x), self.top + self.across(strip.x + strip.width)
        cell = (right - left) / len(strip.kinds)
        ticks = [replace(first, x=left - 6, y=(top + bottom) / 2 + 3.5 * self.size, anchor="end")]
        for tick in others:
            number = int(tick.text.split()[-1]) + 0.5
            ticks.append(replace(self.text(tick, at=left + cell * number), anchor="middle"))
        wide, high = right - left, bottom - top
        return replace(strip, x=left, y=top, width=wide, height=high, ticks=tuple(ticks), level=True)
