"""Things on the page while it is laid out, and how they are moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from composer.draw.scene import Box, Dot, Frame, MergeCircle, PlacedIcon, Point, Reference, Text, WirePath


@dataclass(slots=True)
class Pieces:
    """Things on the page while it is laid out."""

    frames: list[Frame] = field(default_factory=list)
    wires: list[WirePath] = field(default_factory=list)
    dots: list[Dot] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    merges: list[MergeCircle] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)

    def take(self, other: Pieces, dx: float = 0, dy: float = 0) -> None:
        """Adds all of another, moved."""
        self.frames += [_frame(one, dx, dy) for one in other.frames]
        self.wires += [replace(one, points=moved(one.points, dx, dy)) for one in other.wires]
        self.dots += [replace(one, x=one.x + dx, y=one.y + dy) for one in other.dots]
        self.boxes += [_box(one, dx, dy) for one in other.boxes]
        self.merges += [replace(one, x=one.x + dx, y=one.y + dy) for one in other.merges]
        self.references += [replace(one, text=_text(one.text, dx, dy)) for one in other.references]
        self.texts += _texts(other.texts, dx, dy)


def moved(points: Sequence[Point], dx: float, dy: float) -> tuple[Point, ...]:
    """Points, all moved by the same."""
    return tuple((x + dx, y + dy) for x, y in points)


def straightened(points: Sequence[Point]) -> tuple[Point, ...]:
    """Points without those that lie on the way between their neighbours."""
    found: list[Point] = []
    for point in points:
        if found and abs(found[-1][0] - point[0]) < 0.01 and abs(found[-1][1] - point[1]) < 0.01:
            continue
        if len(found) > 1 and _in_line(found[-2], found[-1], point):
            found.pop()
        found.append(point)
    return tuple(found)


def _in_line(a: Point, b: Point, c: Point) -> bool:
    return (abs(a[0] - b[0]) < 0.01 and abs(b[0] - c[0]) < 0.01) or (abs(a[1] - b[1]) < 0.01 and abs(b[1] - c[1]) < 0.01)


def _text(text: Text, dx: float, dy: float) -> Text:
    return Text(text.x + dx, text.y + dy, text.text, text.role, text.anchor, text.scale)


def _texts(texts: Sequence[Text], dx: float, dy: float) -> tuple[Text, ...]:
    return tuple(_text(one, dx, dy) for one in texts)


def _box(box: Box, dx: float, dy: float) -> Box:
    icons = _icons(box.icons, dx, dy)
    return replace(box, x=box.x + dx, y=box.y + dy, texts=_texts(box.texts, dx, dy), icons=icons)


def _icons(icons: Sequence[PlacedIcon], dx: float, dy: float) -> tuple[PlacedIcon, ...]:
    return tuple(PlacedIcon(one.icon, one.x + dx, one.y + dy) for one in icons)


def _frame(frame: Frame, dx: float, dy: float) -> Frame:
    strip = frame.strip and replace(
        frame.strip, x=frame.strip.x + dx, y=frame.strip.y + dy, ticks=_texts(frame.strip.ticks, dx, dy)
    )
    pill = frame.pill and _text(frame.pill, dx, dy)
    texts, icons = _texts(frame.texts, dx, dy), _icons(frame.icons, dx, dy)
    return replace(frame, x=frame.x + dx, y=frame.y + dy, texts=texts, pill=pill, strip=strip, icons=icons)
