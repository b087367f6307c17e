"""A scene painted: every thing on the page as marks, in the colors and widths of a theme."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import copysign, sqrt

from blocks.core.look import Cells, Curve, Hue, LoopIcon, ProductIcon, TableIcon
from composer.draw.about import About
from composer.draw.export.marks import (
    BLACK,
    ArcBy,
    Circle,
    Close,
    Geometry,
    Ink,
    LineBy,
    Mark,
    MarkGroup,
    MarkShape,
    MoveTo,
    Path,
    Rectangle,
    Step,
    Stroke,
    TextLine,
    tenth,
)
from composer.draw.export.polylines import (
    Gaps,
    arrowhead,
    between,
    crossings,
    curve,
    line,
    move_to,
    parting,
    polyline,
    round_corners,
    rounded,
    shortened,
)
from composer.draw.geometry import ICON, SWATCH, Area, PlacedIcon, Point, Swatch, Text
from composer.draw.paths import belongs
from composer.draw.scene import (
    CARD_APART,
    CARDS,
    DASHED,
    DOTTED,
    RADIUS,
    SWATCH_SIZE,
    UNTOLD,
    Badge,
    Box,
    Detail,
    DilationFan,
    Dot,
    Frame,
    LegendEntry,
    MergeCircle,
    MergeSign,
    Reference,
    Ring,
    Scene,
    Strip,
    WirePath,
)
from composer.draw.style.palette import Paint, Palette
from composer.draw.style.product_picture import ProductPicture
from composer.draw.style.themes import CHANGES, CLASSES, THEMES, WIDTHS, Theme, ThemeName, inks, wire_color

FADED, IDLE = 0.35, 0.6
"""How much is left of what is the same in another model or not highlighted, and of wires to experts that are not visited."""

IN_SOME = (9.0, 3.0, 2.0, 3.0)
"""A dash, a space, a dot and a space of a wire that only some passes of a repeat have."""

CELLS_INSET, CUBE_DEPTH = 3.0, 7.0
"""How far the cells of a product are from the border of its icon; and how far a cube reaches back."""

TABLE_ROWS, ROW_CELLS, ROW_GAP = 4, 4, 2.2
"""Rows of a table in its icon, cells in each, and the pixels between two rows."""

DETAIL_DASH = (5.0, 4.0)
"""Of the border of a block that is drawn from inside beside the figure."""

SLICE_COVER = 0.14
"""How much of the color of a box covers the slice of a 1 in the picture of a product."""
FAN_DOT, FAN_OTHERS = 3.2, 0.35
"""Radius of a position in a fan, and how much is left of lines from those that are not told apart."""
SHADED: Hue = "attn"
"""Whose color shades have."""
COVERS, BORDERS = (0.0, 0.08, 0.16, 0.24, 0.32), (1.0, 1.3, 1.7, 2.3, 3.0)
"""How much of the color covers a box of each shade, at most so much that the smallest letters keep a contrast of 4.5; and its
border, by which shades are told apart without colors.
"""


def paint_scene(scene: Scene, theme: ThemeName = "light", highlight: Sequence[str] = ()) -> tuple[Mark, ...]:
    """Return the marks of a scene from below to above; all fades but what is to be highlighted, if anything is."""
    return tuple(_Painter(THEMES[theme], tuple(highlight), scene.faint).scene(scene))


@dataclass(frozen=True, slots=True)
class _Painter:
    theme: Theme
    highlight: tuple[str, ...]
    faint: frozenset[str]

    @property
    def palette(self) -> Palette:
        return self.theme.palette

    def scene(self, scene: Scene) -> Iterator[Mark]:
        if self.theme.paper:
            page = Rectangle(0.0, 0.0, tenth(scene.width), tenth(scene.height))
            yield MarkShape(page, Ink(self.palette.paper), kind="paper")
        yield from self.things(scene)
        yield from map(self.detail, scene.details)
        yield from map(self.fan, [scene.fan] if scene.fan is not None else [])
        yield from map(self.ring, scene.rings)
        yield from map(self.badge, scene.badges)
        yield from map(self.legend_entry, scene.legend)

    def things(self, scene: Scene) -> Iterator[Mark]:
        """Yield what stands for the model."""
        yield from map(self.frame, scene.frames)
        sharp = parting(wire.points for wire in scene.wires)
        straight = (wire.points for wire in scene.wires if not wire.curved)
        gaps = crossings(straight, [(dot.x, dot.y) for dot in scene.dots], broken=0 if scene.direction == "up" else 1)
        yield from (self.wire(wire, sharp, gaps) for wire in scene.wires)
        yield from map(self.dot, scene.dots)
        yield from map(self.merge, scene.merges)
        yield from map(self.box, scene.boxes)
        yield from map(self.reference, scene.references)
        yield from map(self.text, scene.texts)

    # -- things

    def detail(self, detail: Detail) -> MarkGroup:
        paint = Paint(self.palette.paper, self.palette.frame.stroke)
        border = self.bordered(rectangle(detail.x, detail.y, detail.width, detail.height, 12), paint, 1.2, DETAIL_DASH)
        marks = (border, *map(self.text, detail.texts), *self.things(detail.inside))
        return MarkGroup("detail", marks, (("detail", detail.about.path),), 1.0, detail.about.tip, detail.about.description)

    def fan(self, fan: DilationFan) -> MarkGroup:
        paper, paint = Paint(self.palette.paper, self.palette.frame.stroke), self.palette.hues["embed"]
        marks: list[Mark] = [self.bordered(rectangle(fan.x, fan.y, fan.width, fan.height, 12), paper, 1.2, DETAIL_DASH)]
        lines: list[Mark] = []
        dots: list[Mark] = []
        for told, opacity in ((False, FAN_OTHERS), (True, 1.0)):
            ways = Path(tuple(step for way in fan.lines(told=told) for step in polyline(way).steps))
            lines.append(MarkShape(ways, None, self.stroke(paint.stroke, 1.6 if told else 0.8), "i", opacity=opacity))
            fill, pen, look = Ink(paint.stroke if told else paint.fill), self.stroke(paint.stroke, 1.0), "on" if told else "s"
            dots += [MarkShape(Circle(tenth(x), tenth(y), FAN_DOT), fill, pen, look) for x, y in fan.dots(told=told)]
        marks.append(MarkGroup("k-embed", (*lines, *dots)))
        marks += map(self.text, fan.texts)
        return MarkGroup("detail fan", tuple(marks), (("fan", fan.about.path),), 1.0, fan.about.tip, fan.about.description)

    def frame(self, frame: Frame) -> MarkGroup:
        paint = self.palette.frame
        marks: list[Mark] = [self.bordered(rectangle(frame.x, frame.y, frame.width, frame.height, 12), paint, 1.2)]
        if frame.parallel:
            marks += self.cards(frame.area, 12, paint)
        if frame.pill is not None:
            area = frame.pill.area.grown(9)
            pill = rectangle(area.left, frame.pill.y - 14.5, area.right - area.left, 20, 10)
            marks += [MarkShape(pill, Ink(self.palette.pill.fill), kind="pill"), self.text(frame.pill)]
        if frame.strip is not None:
            marks += self.strip(frame.strip)
        marks += [mark for icon in frame.icons for mark in self.icon(icon, paint)]
        return self.group("frame", frame.about, [*marks, *map(self.text, frame.texts)])

    def strip(self, strip: Strip) -> Iterator[Mark]:
        cell = (strip.width if strip.level else strip.height) / len(strip.kinds)
        gap = min(1.0, cell / 5)
        yield MarkGroup("k-attn", tuple(map(self.cell, strip.kinds, strip_cells(strip, cell, gap))))
        yield from map(self.text, strip.ticks)

    def cell(self, kind: int, place: Rectangle) -> MarkShape:
        """Return a layer of a map, by its kind."""
        paint = self.palette.hues["attn"]
        look = "off" if kind == UNTOLD else ("s", "on", "half")[min(kind, 2)]
        return MarkShape(place, cell_ink(self.palette, kind), Stroke(Ink(paint.stroke), 0.7), look)

    def box(self, box: Box) -> MarkGroup:
        hue = box.hue if box.shade is None else SHADED
        paint = self.palette.hues[hue]
        dash = (4.0, 3.0) if box.dashed else ()
        marks: list[Mark] = [*self.filled(bordering(box, 0, 7), hue, box.shade, dash)]
        if box.parallel:
            marks += self.cards(box.area, 7, paint)
        if box.double:
            inner = bordering(box, 3, 5)
            marks.append(MarkShape(inner, None, self.stroke(paint.stroke, 1.0), "i"))
        marks += [mark for icon in box.icons for mark in self.icon(icon, paint)]
        return self.group(f"node k-{hue}", box.about, [*marks, *map(self.text, box.texts)])

    def cards(self, front: Area, radius: float, paint: Paint) -> Iterator[MarkShape]:
        """Yield what one sees of the cards behind a thing with round corners: lines alone, so that no wire is hidden."""
        for number in range(1, CARDS + 1):
            yield MarkShape(
                Path(tuple(card_steps(front, radius, CARD_APART * number))), None, self.stroke(paint.stroke, 1.0), "i"
            )

    def filled(self, place: Geometry, hue: Hue, shade: int | None, dash: tuple[float, ...] = ()) -> Iterator[MarkShape]:
        """Yield a surface in the color of a kind of blocks, or as dark and with as thick a border as a shade."""
        paint = self.palette.hues[hue]
        if shade is None:
            yield self.bordered(place, paint, 1.4, dash)
            return
        yield MarkShape(place, Ink(self.palette.paper), kind="off")
        yield MarkShape(place, Ink(paint.stroke, COVERS[shade]), self.stroke(paint.stroke, BORDERS[shade], dash), "on")

    def legend_entry(self, entry: LegendEntry) -> MarkGroup:
        place = rectangle(entry.x, entry.y, SWATCH_SIZE, SWATCH_SIZE, 3)
        marks: tuple[Mark, ...] = (*self.filled(place, entry.hue, entry.shade), self.text(entry.text))
        return MarkGroup(f"legend k-{entry.hue}", marks)

    def merge(self, merge: MergeCircle) -> MarkGroup:
        paint = self.palette.hues["merge"]
        circle = Circle(tenth(merge.x), tenth(merge.y), RADIUS)
        sign = Path(tuple(sign_steps(merge.sign, merge.x, merge.y)))
        border = MarkShape(circle, Ink(paint.fill), self.stroke(paint.stroke, 1.4), "s")
        return self.group("node k-merge", merge.about, [border, MarkShape(sign, None, self.stroke(paint.stroke, 1.6), "i")])

    def reference(self, reference: Reference) -> MarkGroup:
        return self.group("reference", reference.about, [self.text(reference.text)])

    def dot(self, dot: Dot) -> MarkShape:
        circle = Circle(tenth(dot.x), tenth(dot.y), 2.6)
        return MarkShape(circle, Ink(self.palette.wire), kind="wire", opacity=FADED if dot.faint else 1.0)

    def ring(self, ring: Ring) -> MarkShape:
        hue, dash = CHANGES[ring.happened]
        area = ring.area
        place = rectangle(area.left, area.top, area.right - area.left, area.bottom - area.top, 10)
        pen = self.stroke(self.palette.hues[hue].stroke, 2.2, dash)
        return MarkShape(place, None, pen, f"c-{ring.happened}", of=ring.path)

    def badge(self, badge: Badge) -> MarkGroup:
        area, color = badge.area, self.palette.hues[CHANGES[badge.happened][0]].stroke
        place = rectangle(area.left, area.top, area.right - area.left, area.bottom - area.top, 7.5)
        border = MarkShape(place, Ink(color), Stroke(Ink(self.palette.paper), 1.2), "s")
        of = (("of", badge.path),) if badge.path else ()
        return MarkGroup(f"badge b-{badge.happened}", (border, self.text(badge.text)), of)

    def group(self, kind: str, about: About, marks: Sequence[Mark]) -> MarkGroup:
        """Return marks of a thing that stands for a node."""
        fades = (self.highlight and not any(map(self.bright, (about.path, *about.merged)))) or about.path in self.faint
        opacity = FADED if fades and kind != "frame" else 1.0
        data = [("id", about.path)] if about.path else []
        data += [("lines", f"{about.lines[0]}-{about.lines[1]}")] if about.lines else []
        data += [("merged", " ".join(about.merged))] if about.merged else []
        return MarkGroup(kind, tuple(marks), tuple(data), opacity, about.tip, about.description)

    def bright(self, path: str) -> bool:
        """Return whether a path is among those that stay bright, or below one."""
        return belongs(path, self.highlight)

    # -- wires

    def wire(self, wire: WirePath, sharp: Collection[Point], gaps: Gaps) -> MarkGroup:
        color = Ink(wire_color(self.palette, wire.style))
        dash = (4.0, 3.0) if wire.style in DASHED else (2.0, 3.0) if wire.style in DOTTED else IN_SOME if wire.partial else ()
        fades = self.highlight and not (self.bright(wire.source) or self.bright(wire.target))
        fades = fades or (wire.style != "rewired" and wire.source in self.faint and wire.target in self.faint)
        data = [("a", wire.source), ("b", wire.target)] if wire.source or wire.target else []
        data += [("port", wire.port)] if data and wire.port else []
        points = shortened(wire.points) if wire.arrow else wire.points
        path = curve(points) if wire.curved else rounded(points, sharp, gaps)
        marks = [MarkShape(path, None, self.stroke(color.color, WIDTHS[wire.style], dash))]
        marks += [MarkShape(arrowhead(wire.points), color)] if wire.arrow else []
        opacity = FADED if fades else IDLE if wire.style == "idle" else 1.0
        return MarkGroup(f"edge e-{wire.style}", tuple(marks), tuple(data), opacity)

    # -- icons

    def icon(self, placed: PlacedIcon, paint: Paint) -> Iterator[Mark]:
        x, y = placed.x, placed.y
        pen = Stroke(Ink(paint.stroke), 1.8, round=True)
        match placed.icon:
            case Cells(seen=seen):
                yield from self.mask(seen, x, y, paint)
            case Curve(points=points):
                line = polyline([(x + ICON * a, y + ICON - 2 - (ICON - 4) * b) for a, b in points])
                yield MarkShape(line, None, pen, "i")
            case LoopIcon():
                a, b = x + ICON / 2, y + ICON / 2
                arc = ArcBy(9.0, large=True, clockwise=False, end=(3.0, 8.0))
                yield MarkShape(Path((move_to((a + 6, b - 7)), arc)), None, pen, "i")
                head = move_to((a + 1, b - 8.5)), LineBy((5.6, 1.9)), LineBy((-2.0, 5.6))
                yield MarkShape(Path(head), None, pen, "i")
            case ProductIcon() if placed.picture is not None:
                yield MarkGroup("picture", tuple(self.product(placed.picture, x, y, paint)))
            case ProductIcon(sides=sides):
                yield from (MarkShape(polyline(line), None, pen, "i") for line in (grid if len(sides) == 2 else cube)(x, y))
            case TableIcon():
                for row in table_rows(x, y):
                    yield MarkShape(row, Ink(self.palette.paper), kind="bg")
                    yield MarkShape(Path(tuple(strip_steps(row))), None, replace(pen, width=1.1), "i")
            case Swatch(kinds=kinds):
                if max(kinds) > 1:  # such colors let through what lies below, which in a map of layers is the page
                    yield MarkShape(rectangle(x, y, SWATCH * len(kinds), SWATCH), Ink(self.palette.paper), kind="bg")
                places = (rectangle(x + SWATCH * place, y, SWATCH, SWATCH) for place in range(len(kinds)))
                yield MarkGroup("k-attn", tuple(map(self.cell, kinds, places)))

    def product(self, picture: ProductPicture, x: float, y: float, paint: Paint) -> Iterator[Mark]:
        """Yield a large picture of an outer product: the slices of each 1 are the darker, the more of them meet."""

        def moved(points: Sequence[Point]) -> list[Point]:
            return [(x + right, y + down) for right, down in points]

        for face in picture.faces():
            yield from (MarkShape(closed(moved(area)), Ink(paint.stroke, SLICE_COVER), kind="light") for area in face.slices())
            yield from (MarkShape(polyline(moved(way)), None, self.stroke(paint.stroke, 0.6), "i") for way in face.lines())
        for face in picture.faces():
            yield MarkShape(closed(moved(face.area())), None, Stroke(Ink(paint.stroke), 1.4 * self.theme.stroke, round=True), "i")
        for label in picture.labels():
            yield self.text(Text(x + label.x, y + label.y, label.text, "detail", label.anchor, picture.scale))

    def mask(self, seen: Sequence[Sequence[bool]], x: float, y: float, paint: Paint) -> Iterator[Mark]:
        cell = ICON / len(seen)
        square, paper = rectangle(x, y, ICON, ICON), self.palette.paper
        yield MarkShape(square, Ink(paper), kind="off")
        runs = tuple(
            step
            for row, line in enumerate(seen)
            for start, end in filled_runs(line)
            for step in run_steps(x + cell * start, y + cell * row, cell * (end - start), cell)
        )
        if runs:
            yield MarkShape(Path(runs), Ink(paint.stroke), kind="on")
        lines = Path(tuple(step for k in range(1, len(seen)) for step in grid_steps(x, y, cell * k)))
        yield MarkShape(lines, BLACK, Stroke(Ink(paper, 0.75), 0.5), "gl")
        yield MarkShape(square, None, Stroke(Ink(paint.stroke), 1.0), "i")

    # -- what all are made of

    def bordered(self, place: Geometry, paint: Paint, width: float, dash: tuple[float, ...] = ()) -> MarkShape:
        """Return the surface of a thing with its border."""
        return MarkShape(place, Ink(paint.fill), self.stroke(paint.stroke, width, dash), "s")

    def text(self, text: Text) -> TextLine:
        kind = CLASSES.get(text.role, "m")
        ink = Ink(inks(self.palette)[kind.split()[0]])
        return TextLine(tenth(text.x), tenth(text.y), text.text, text.font, text.anchor, ink, kind)

    def stroke(self, color: str, width: float, dash: tuple[float, ...] = ()) -> Stroke:
        """Return a pen whose width is the theme's."""
        return Stroke(Ink(color), width * self.theme.stroke, dash)


def card_steps(front: Area, radius: float, away: float) -> Iterator[Step]:
    """Yield the upper and the right border of a card that lies so far right of and above another one with round corners, from
    where it comes out behind the card before to where it goes in again.
    """
    half = CARD_APART / 2
    along = sqrt((radius**2 - 2 * half**2) / 2)  # from the middle between two corners to where their circles meet
    begin = front.left + away - half + radius - along, front.top - away + half + radius - along
    first, last = (front.left + away + radius, front.top - away), (front.right + away, front.bottom - away - radius)
    end = front.right + away - half - radius + along, front.bottom - away + half - radius + along
    yield move_to(begin)
    yield ArcBy(radius, large=False, clockwise=True, end=between(begin, first))
    yield line(first, (last[0] - radius, first[1]))
    yield ArcBy(radius, large=False, clockwise=True, end=(radius, radius))
    yield line((last[0], first[1] + radius), last)
    yield ArcBy(radius, large=False, clockwise=True, end=between(last, end))


def cell_ink(palette: Palette, kind: int) -> Ink:
    """Return what fills a layer of a map: another ink for each kind."""
    paint = palette.hues["attn"]
    if kind <= 0:
        return Ink(palette.paper if kind == UNTOLD else paint.fill)
    return Ink(paint.stroke, 1.0 if kind < 2 else round(max(0.25, 0.7 - 0.15 * kind), 2))


def bordering(box: Box, inset: float, radius: float) -> Rectangle | Path:
    """Return the border of a box, or a line so far inside of it, with round corners."""
    if box.slant is None:
        return rectangle(box.x + inset, box.y + inset, box.width - 2 * inset, box.height - 2 * inset, radius)
    x, y = box.x + box.width / 2, box.y + box.height / 2
    return round_corners([(a + copysign(inset, x - a), b + copysign(inset, y - b)) for a, b in box.corners], radius)


def rectangle(x: float, y: float, width: float, height: float, radius: float = 0.0) -> Rectangle:
    """Return a rectangle on the page."""
    return Rectangle(tenth(x), tenth(y), tenth(width), tenth(height), radius)


def strip_cells(strip: Strip, cell: float, gap: float) -> Iterator[Rectangle]:
    """Yield the place of each layer in a map, the first one below or at the left."""
    for index in range(len(strip.kinds)):
        if strip.level:
            yield rectangle(strip.x + cell * index + gap / 2, strip.y, cell - gap, strip.height)
        else:
            yield rectangle(strip.x, strip.y + strip.height - cell * (index + 1) + gap / 2, strip.width, cell - gap)


def sign_steps(sign: MergeSign, x: float, y: float) -> Iterator[Step]:
    """Yield the lines of a sign in a circle around a point."""
    match sign:
        case "+":
            yield from (move_to((x - 4.5, y)), LineBy((9.0, 0.0)), move_to((x, y - 4.5)), LineBy((0.0, 9.0)))
        case "×":
            yield from (move_to((x - 3.2, y - 3.2)), LineBy((6.4, 6.4)), move_to((x + 3.2, y - 3.2)), LineBy((-6.4, 6.4)))
        case "‖":
            yield from (move_to((x - 2, y - 4.5)), LineBy((0.0, 9.0)), move_to((x + 2, y - 4.5)), LineBy((0.0, 9.0)))
        case "Σ":
            yield move_to((x + 3.4, y - 4.4))
            yield from map(LineBy, ((-6.8, 0.0), (4.0, 4.4), (-4.0, 4.4), (6.8, 0.0)))


def run_steps(x: float, y: float, width: float, height: float) -> Iterator[Step]:
    """Yield a rectangle as a path."""
    wide, high = tenth(width), tenth(height)
    yield from (move_to((x, y)), LineBy((wide, 0.0)), LineBy((0.0, high)), LineBy((tenth(-width), 0.0)), Close())


def grid_steps(x: float, y: float, far: float) -> Iterator[MoveTo | LineBy]:
    """Yield an upright and a level line through an icon, so far from its corner."""
    yield from (move_to((x + far, y)), LineBy((0.0, ICON)), move_to((x, y + far)), LineBy((ICON, 0.0)))


def filled_runs(line: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield where cells that are filled begin and end."""
    start = None
    for index, filled in enumerate([*line, False]):
        if filled and start is None:
            start = index
        elif not filled and start is not None:
            yield start, index
            start = None


def closed(corners: Sequence[Point]) -> Path:
    """Return a closed line through corners."""
    return Path((*polyline(corners).steps, Close()))


def grid(x: float, y: float) -> Iterator[Sequence[Point]]:
    """Yield the lines of a square of three by three cells in an icon."""
    low, high = CELLS_INSET, ICON - CELLS_INSET
    for number in range(4):
        at = low + (high - low) * number / 3
        yield (x + at, y + low), (x + at, y + high)
        yield (x + low, y + at), (x + high, y + at)


def table_rows(x: float, y: float) -> Iterator[Rectangle]:
    """Yield the place of each row of a table in an icon."""
    high = (ICON - 2 * CELLS_INSET + ROW_GAP) / TABLE_ROWS - ROW_GAP
    for number in range(TABLE_ROWS):
        yield rectangle(x, y + CELLS_INSET + (high + ROW_GAP) * number, ICON, high)


def strip_steps(row: Rectangle) -> Iterator[Step]:
    """Yield a row of a table as a strip: its border, and the lines between its cells."""
    yield from run_steps(row.x, row.y, row.width, row.height)
    for number in range(1, ROW_CELLS):
        yield from (move_to((row.x + row.width * number / ROW_CELLS, row.y)), LineBy((0.0, row.height)))


def cube(x: float, y: float) -> Iterator[Sequence[Point]]:
    """Yield the lines of a cube of two by two by two cells in an icon, as one sees its front, its top and its right side."""
    side, deep = ICON - 2 * CELLS_INSET - CUBE_DEPTH, CUBE_DEPTH
    left, right, bottom = x + CELLS_INSET, x + CELLS_INSET + side, y + ICON - CELLS_INSET
    top = bottom - side
    for part in (0.0, 0.5, 1.0):
        along, back = side * part, deep * part
        yield (left, bottom - along), (right, bottom - along), (right + deep, bottom - along - deep)
        yield (left + along, bottom), (left + along, top), (left + along + deep, top - deep)
        yield (left + back, top - back), (right + back, top - back), (right + back, bottom - back)
