"""A scene as SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise, starmap
from math import hypot

from composer.draw.palette import DARK, LIGHT, Hue, Paint, Palette
from composer.draw.scene import (
    DASHED,
    DOTTED,
    ICON,
    RADIUS,
    SWATCH,
    About,
    Badge,
    Box,
    Cells,
    Chip,
    Curve,
    Dot,
    Frame,
    Happened,
    Loop,
    Merge,
    PlacedIcon,
    Point,
    Ring,
    Scene,
    Strip,
    Style,
    Swatch,
    Text,
    Wire,
)

FAMILY = "Helvetica, Arial, Liberation Sans, sans-serif"
CORNER = 8.0
"""Radius of a wire's corner."""
WIDTHS: dict[Style, float] = {
    "main": 1.5,
    "side": 1.5,
    "cross": 1.8,
    "expert": 1.8,
    "idle": 1.0,
    "loss": 1.5,
    "loop": 1.5,
    "far": 1.2,
    "measured": 1.2,
    "rewired": 2.6,
}
CHANGES: dict[Happened, tuple[Hue, str]] = {
    "added": ("ffn", ""),
    "removed": ("loss", "7 4"),
    "replaced": ("embed", "12 3 2 3"),
    "altered": ("attn", "2 2.5"),
    "rewired": ("pos", ""),
    "shared": ("rec", "5 2"),
}
"""The colour of a change, and the dashes of a ring by which it is told apart without colours."""
INKS = {"heading": "title", "facts": "detail", "title": "title", "expert": "title", "row": "title", "detail": "detail"}
"""What colour a text has; all others are muted."""


@dataclass(frozen=True, slots=True)
class Theme:
    """How a picture looks, and whether it looks otherwise where the reader's screen is dark."""

    palette: Palette
    follows: bool = False
    paper: bool = True
    """Whether the page has a colour of its own."""
    stroke: float = 1.0
    """Factor of all lines."""
    letters: float = 1.0
    """Factor of all letters, for which figures are laid out."""


THEMES = {
    "light": Theme(LIGHT),
    "dark": Theme(DARK),
    "auto": Theme(LIGHT, follows=True),
    "slide": Theme(LIGHT, paper=False, stroke=1.35, letters=1.35),
}


def svg(scene: Scene, theme: str = "light", *, width: str = "", highlight: Sequence[str] = ()) -> str:
    """The text of an SVG file; the same scene gives the same bytes."""
    return "\n".join(_Writer(THEMES[theme], tuple(highlight)).scene(scene, width)) + "\n"


def n(value: float) -> str:
    """A coordinate, to a tenth."""
    text = f"{value:.1f}"
    return "0" if text in ("-0.0", "0.0") else text.removesuffix(".0")


def height_of(scene: Scene, width: str) -> str:
    """The height of a picture that has a width, in the same unit."""
    if not width:
        return n(scene.height)
    number = width.rstrip("abcdefghijklmnopqrstuvwxyz")
    return f"{float(number) * scene.height / scene.width:.2f}{width.removeprefix(number)}"


class _Writer:
    def __init__(self, theme: Theme, highlight: tuple[str, ...]) -> None:
        self.theme, self.palette, self.highlight = theme, theme.palette, highlight
        self.faint: frozenset[str] = frozenset()

    def scene(self, scene: Scene, width: str) -> Iterator[str]:
        self.faint = scene.faint
        wide, high = n(scene.width), n(scene.height)
        size = f'width="{width}"' if width.endswith("%") else f'width="{width or wide}" height="{height_of(scene, width)}"'
        label, follows = escape(scene.name, quote=True), ' class="follows"' if self.theme.follows else ""
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {wide} {high}" '
            f'font-family="{FAMILY}" role="img" aria-label="{label}"{follows}>'
        )
        if scene.description:
            yield f"<desc>{escape(scene.description, quote=False)}</desc>"
        if self.theme.follows:
            more = change_rules(DARK) if scene.badges else ""
            yield f"<style>@media (prefers-color-scheme:dark){{{within('.follows', rules(DARK) + more)}}}</style>"
        if self.theme.paper:
            yield f'<rect class="paper" width="{wide}" height="{high}" fill="{self.palette.paper}"/>'
        for frame in scene.frames:
            yield from self.frame(frame)
        for wire in scene.wires:
            yield from self.wire(wire)
        for dot in scene.dots:
            yield self.dot(dot)
        for merge in scene.merges:
            yield from self.merge(merge)
        for box in scene.boxes:
            yield from self.box(box)
        for chip in scene.chips:
            yield from self.chip(chip)
        for text in scene.texts:
            yield self.text(text)
        yield from map(self.ring, scene.rings)
        for badge in scene.badges:
            yield from self.badge(badge)
        yield "</svg>"

    # -- things

    def frame(self, frame: Frame) -> Iterator[str]:
        paint = self.palette.frame
        yield self.opened("frame", frame.about)
        yield self.rectangle(frame.x, frame.y, frame.width, frame.height, 12, paint, 1.2)
        if frame.pill is not None:
            area = frame.pill.area.grown(9)
            yield (
                f'<rect class="pill" x="{n(area.left)}" y="{n(frame.pill.y - 14.5)}" width="{n(area.right - area.left)}" '
                f'height="20" rx="10" fill="{self.palette.pill.fill}"/>'
            )
            yield self.text(frame.pill)
        if frame.strip is not None:
            yield from self.strip(frame.strip)
        for icon in frame.icons:
            yield from self.icon(icon, paint)
        yield from map(self.text, frame.texts)
        yield "</g>"

    def strip(self, strip: Strip) -> Iterator[str]:
        cell = strip.height / len(strip.kinds)
        gap = min(1.0, cell / 5)
        yield '<g class="k-attn">'
        for index, kind in enumerate(strip.kinds):
            top = strip.y + strip.height - cell * (index + 1)
            yield self.cell(kind, strip.x, top + gap / 2, strip.width, cell - gap)
        yield "</g>"
        yield from map(self.text, strip.ticks)

    def cell(self, kind: int, x: float, y: float, width: float, height: float) -> str:
        """A layer of a map, by its kind."""
        paint = self.palette.hues["attn"]
        fill = paint.stroke if kind else paint.fill
        look = f"{'on' if kind == 1 else 's'}" if kind < 2 else "half"
        opacity = "" if kind < 2 else f' fill-opacity="{max(0.25, 0.7 - 0.15 * kind):.2f}"'
        return (
            f'<rect class="{look}" x="{n(x)}" y="{n(y)}" width="{n(width)}" height="{n(height)}" '
            f'fill="{fill}"{opacity} stroke="{paint.stroke}" stroke-width=".7"/>'
        )

    def box(self, box: Box) -> Iterator[str]:
        paint = self.palette.hues[box.hue]
        yield self.opened(f"node k-{box.hue}", box.about)
        yield self.rectangle(box.x, box.y, box.width, box.height, 7, paint, 1.4, dashed=box.dashed)
        if box.double:
            inner = Paint("none", paint.stroke)
            yield self.rectangle(box.x + 3, box.y + 3, box.width - 6, box.height - 6, 5, inner, 1.0, kind="i")
        for icon in box.icons:
            yield from self.icon(icon, paint)
        yield from map(self.text, box.texts)
        yield "</g>"

    def merge(self, merge: Merge) -> Iterator[str]:
        paint = self.palette.hues["merge"]
        x, y = merge.x, merge.y
        yield self.opened("node k-merge", merge.about)
        yield (
            f'<circle class="s" cx="{n(x)}" cy="{n(y)}" r="{n(RADIUS)}" fill="{paint.fill}" stroke="{paint.stroke}" '
            f'stroke-width="{self.stroke(1.4)}"/>'
        )
        arm = 4.5 if merge.sign == "+" else 3.2
        line = f'class="i" fill="none" stroke="{paint.stroke}" stroke-width="{self.stroke(1.6)}"'
        match merge.sign:
            case "+":
                yield f'<path {line} d="M{n(x - arm)} {n(y)}h{n(2 * arm)}M{n(x)} {n(y - arm)}v{n(2 * arm)}"/>'
            case "×":
                yield (
                    f'<path {line} d="M{n(x - arm)} {n(y - arm)}l{n(2 * arm)} {n(2 * arm)}'
                    f'M{n(x + arm)} {n(y - arm)}l{n(-2 * arm)} {n(2 * arm)}"/>'
                )
            case "‖":
                yield f'<path {line} d="M{n(x - 2)} {n(y - 4.5)}v9M{n(x + 2)} {n(y - 4.5)}v9"/>'
            case "Σ":
                yield f'<path {line} d="M{n(x + 3.4)} {n(y - 4.4)}h-6.8l4 4.4l-4 4.4h6.8"/>'
        yield "</g>"

    def chip(self, chip: Chip) -> Iterator[str]:
        yield self.opened("chip", chip.about)
        yield self.text(chip.text)
        yield "</g>"

    def dot(self, dot: Dot) -> str:
        shade = ' opacity=".35"' if dot.faint else ""
        return f'<circle class="wire" cx="{n(dot.x)}" cy="{n(dot.y)}" r="2.6" fill="{self.palette.wire}"{shade}/>'

    def ring(self, ring: Ring) -> str:
        hue, dashes = CHANGES[ring.happened]
        area = ring.area
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        return (
            f'<rect class="c-{ring.happened}" data-of="{escape(ring.path)}" x="{n(area.left)}" y="{n(area.top)}" '
            f'width="{n(area.right - area.left)}" height="{n(area.bottom - area.top)}" rx="10" fill="none" '
            f'stroke="{self.palette.hues[hue].stroke}" stroke-width="{self.stroke(2.2)}"{dash}/>'
        )

    def badge(self, badge: Badge) -> Iterator[str]:
        area, colour = badge.area, self.palette.hues[CHANGES[badge.happened][0]].stroke
        of = f' data-of="{escape(badge.path)}"' if badge.path else ""
        yield f'<g class="badge b-{badge.happened}"{of}>'
        yield (
            f'<rect class="s" x="{n(area.left)}" y="{n(area.top)}" width="{n(area.right - area.left)}" '
            f'height="{n(area.bottom - area.top)}" rx="7.5" fill="{colour}" stroke="{self.palette.paper}" stroke-width="1.2"/>'
        )
        yield self.text(badge.text)
        yield "</g>"

    def opened(self, kind: str, about: About) -> str:
        dim = (self.highlight and not self.bright(about.path)) or about.path in self.faint
        shade = ' opacity=".35"' if dim and not kind.startswith("frame") else ""
        lines = f' data-lines="{about.lines[0]}-{about.lines[1]}"' if about.lines else ""
        named = f' data-id="{escape(about.path)}"' if about.path else ""
        title = f"<title>{escape(about.tip)}</title>" if about.tip else ""
        more = f"<desc>{escape(about.description, quote=False)}</desc>" if about.description else ""
        return f'<g class="{kind}"{named}{lines}{shade}>{title}{more}'

    def bright(self, path: str) -> bool:
        """Whether a path is among those that stay bright, or below one."""
        return any(path == one or path.startswith(f"{one}.") for one in self.highlight)

    # -- wires

    def wire(self, wire: Wire) -> Iterator[str]:
        colour = wire_colour(self.palette, wire.style)
        port = f' data-port="{escape(wire.port)}"' if wire.port else ""
        dash = (
            ' stroke-dasharray="4 3"'
            if wire.style in DASHED
            else ' stroke-dasharray="2 3"'
            if wire.partial or wire.style in DOTTED
            else ""
        )
        faded = self.highlight and not (self.bright(wire.source) or self.bright(wire.target))
        faded = faded or (wire.style != "rewired" and wire.source in self.faint and wire.target in self.faint)
        shade = ' opacity=".35"' if faded else ' opacity=".6"' if wire.style == "idle" else ""
        between = f' data-a="{escape(wire.source)}" data-b="{escape(wire.target)}"{port}' if wire.source or wire.target else ""
        yield f'<g class="edge e-{wire.style}"{between}{shade}>'
        points = shortened(wire.points) if wire.arrow else wire.points
        path = curve(points) if wire.curved else rounded(points)
        yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{self.stroke(WIDTHS[wire.style])}"{dash}/>'
        if wire.arrow:
            yield f'<polygon points="{arrowhead(wire.points)}" fill="{colour}"/>'
        yield "</g>"

    # -- icons

    def icon(self, placed: PlacedIcon, paint: Paint) -> Iterator[str]:
        x, y = placed.x, placed.y
        line = f'<path class="i" fill="none" stroke="{paint.stroke}" stroke-width="1.8" stroke-linejoin="round"'
        match placed.icon:
            case Cells(seen=seen):
                cell = ICON / len(seen)
                square = f'x="{n(x)}" y="{n(y)}" width="{n(ICON)}" height="{n(ICON)}"'
                yield f'<rect class="off" {square} fill="{self.palette.paper}"/>'
                runs = "".join(
                    f"M{n(x + cell * start)} {n(y + cell * row)}h{n(cell * (end - start))}v{n(cell)}h{n(cell * (start - end))}z"
                    for row, line in enumerate(seen)
                    for start, end in runs_of(line)
                )
                if runs:
                    yield f'<path class="on" fill="{paint.stroke}" d="{runs}"/>'
                lines = "".join(
                    f"M{n(x + cell * k)} {n(y)}v{n(ICON)}M{n(x)} {n(y + cell * k)}h{n(ICON)}" for k in range(1, len(seen))
                )
                yield f'<path class="gl" stroke="{self.palette.paper}" stroke-width=".5" stroke-opacity=".75" d="{lines}"/>'
                yield f'<rect class="i" {square} fill="none" stroke="{paint.stroke}" stroke-width="1"/>'
            case Curve(points=points):
                yield f'{line} d="{polyline([(x + ICON * a, y + ICON - 2 - (ICON - 4) * b) for a, b in points])}"/>'
            case Loop():
                a, b = x + ICON / 2, y + ICON / 2
                yield f'{line} d="M{n(a + 6)} {n(b - 7)}a9 9 0 1 0 3 8"/>'
                yield f'{line} d="M{n(a + 1)} {n(b - 8.5)}l5.6 1.9l-2 5.6"/>'
            case Swatch(kinds=kinds):
                yield '<g class="k-attn">'
                yield from (self.cell(kind, x + SWATCH * place, y, SWATCH, SWATCH) for place, kind in enumerate(kinds))
                yield "</g>"

    # -- what all are made of

    def rectangle(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        radius: float,
        paint: Paint,
        stroke: float,
        *,
        dashed: bool = False,
        kind: str = "s",
    ) -> str:
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        return (
            f'<rect class="{kind}" x="{n(x)}" y="{n(y)}" width="{n(width)}" height="{n(height)}" rx="{n(radius)}" '
            f'fill="{paint.fill}" stroke="{paint.stroke}" stroke-width="{self.stroke(stroke)}"{dash}/>'
        )

    def text(self, text: Text) -> str:
        font = text.font
        ink = {"title": self.palette.title, "detail": self.palette.detail}.get(INKS.get(text.role, ""), self.palette.muted)
        kind = {"title": "t", "detail": "u"}.get(INKS.get(text.role, ""), "m")
        if text.role == "header":
            ink, kind = self.palette.detail, "u"
        if text.role == "pill":
            ink, kind = self.palette.pill.stroke, "pt"
        if text.role == "badge":
            ink, kind = self.palette.paper, "bt"
        anchor = "" if text.anchor == "start" else f' text-anchor="{text.anchor}"'
        weight = ' font-weight="700"' if font.bold else ""
        return (
            f'<text class="{kind}" x="{n(text.x)}" y="{n(text.y)}" font-size="{font.size:g}"{anchor}{weight} fill="{ink}">'
            f"{escape(text.text, quote=False)}</text>"
        )

    def stroke(self, width: float) -> str:
        return f"{width * self.theme.stroke:g}"


def wire_colour(palette: Palette, style: Style) -> str:
    """What colour a wire has."""
    match style:
        case "side":
            return palette.hues["pos"].stroke
        case "cross":
            return palette.hues["cross"].stroke
        case "expert" | "idle":
            return palette.hues["moe"].stroke
        case "loss":
            return palette.hues["loss"].stroke
        case "loop":
            return palette.hues["rec"].stroke
        case "rewired":
            return palette.hues[CHANGES["rewired"][0]].stroke
    return palette.wire


def rules(palette: Palette) -> str:
    """Every colour of a theme as rules of CSS, by the classes that things have."""
    found = [
        f".t{{fill:{palette.title}}}.u{{fill:{palette.detail}}}.m{{fill:{palette.muted}}}.paper,.off{{fill:{palette.paper}}}",
        f".gl{{stroke:{palette.paper}}}.frame>.s{{fill:{palette.frame.fill};stroke:{palette.frame.stroke}}}",
        f".wire{{fill:{palette.wire}}}.pill{{fill:{palette.pill.fill}}}.pt{{fill:{palette.pill.stroke}}}",
    ]
    for hue, paint in palette.hues.items():
        found.append(f".k-{hue}>.s{{fill:{paint.fill};stroke:{paint.stroke}}}.k-{hue} .i{{stroke:{paint.stroke}}}")
        solid = f"{{fill:{paint.stroke};stroke:{paint.stroke}}}"
        found.append(f".k-{hue} .on{solid}.k-{hue} .half{solid}")
    for style in WIDTHS:
        if style == "rewired":  # told with the changes
            continue
        colour = wire_colour(palette, style)
        found.append(f".e-{style}>path{{stroke:{colour}}}.e-{style}>polygon{{fill:{colour}}}")
    return "".join(found)


def within(selector: str, css: str) -> str:
    """Rules for what is in a picture of some class alone: a notebook has several on one page."""

    def scoped(rule: re.Match[str]) -> str:
        return ",".join(f"{selector} {one}" for one in rule[1].split(",")) + rule[2]

    return re.sub(r"([^{}]+)(\{[^{}]*\})", scoped, css)


def change_rules(palette: Palette) -> str:
    """The same of what marks a change."""
    found = [f".bt{{fill:{palette.paper}}}"]
    for happened, (hue, _) in CHANGES.items():
        colour = palette.hues[hue].stroke
        found.append(f".c-{happened}{{stroke:{colour}}}.b-{happened}>.s{{fill:{colour};stroke:{palette.paper}}}")
    colour = wire_colour(palette, "rewired")
    return "".join([*found, f".e-rewired>path{{stroke:{colour}}}.e-rewired>polygon{{fill:{colour}}}"])


def runs_of(line: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Where cells that are filled begin and end."""
    start = None
    for index, filled in enumerate([*line, False]):
        if filled and start is None:
            start = index
        elif not filled and start is not None:
            yield start, index
            start = None


# -- paths: from their start on relative, so that equal ones read the same wherever they are


def polyline(points: Sequence[Point]) -> str:
    """A line through points."""
    return moved_to(points[0]) + "".join(starmap(straight, pairwise(points)))


def rounded(points: Sequence[Point]) -> str:
    """A line through points whose corners are round."""
    pieces, at = [moved_to(points[0])], points[0]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        a, b = _towards(corner, before), _towards(corner, after)
        pieces.append(f"{straight(at, a)}q{between(a, corner)} {between(a, b)}")
        at = b
    return "".join([*pieces, straight(at, points[-1])])


def moved_to(point: Point) -> str:
    """Where a path starts."""
    return f"M{n(point[0])} {n(point[1])}"


def straight(start: Point, end: Point) -> str:
    """A straight piece."""
    dx, dy = between(start, end).split()
    return f"v{dy}" if dx == "0" else f"h{dx}" if dy == "0" else f"l{dx} {dy}"


def between(start: Point, end: Point) -> str:
    """What is to go from one point to another; both are where their tenths are, so that no error adds up."""
    return " ".join(n(round(b, 1) - round(a, 1)) for a, b in zip(start, end, strict=True))


def _towards(corner: Point, other: Point) -> Point:
    dx, dy = other[0] - corner[0], other[1] - corner[1]
    length = hypot(dx, dy)
    step = min(CORNER, length / 2) / length if length else 0
    return corner[0] + dx * step, corner[1] + dy * step


def curve(points: Sequence[Point]) -> str:
    """A curve by its four control points."""
    start, *rest = points
    return f"{moved_to(start)}c{' '.join(between(start, point) for point in rest)}"


HEAD, HALF = 7.0, 3.4
"""Length and half the width of an arrowhead."""


def _direction(points: Sequence[Point]) -> Point:
    end = points[-1]
    before = next(p for p in reversed(points[:-1]) if p != end)
    length = hypot(end[0] - before[0], end[1] - before[1])
    return (end[0] - before[0]) / length, (end[1] - before[1]) / length


def shortened(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points with room for the arrowhead at the end."""
    dx, dy = _direction(points)
    x, y = points[-1]
    return (*points[:-1], (x - dx * (HEAD - 1), y - dy * (HEAD - 1)))


def arrowhead(points: Sequence[Point]) -> str:
    """The corners of the arrowhead."""
    dx, dy = _direction(points)
    x, y = points[-1]
    back = x - dx * HEAD, y - dy * HEAD
    corners = (x, y), (back[0] - dy * HALF, back[1] + dx * HALF), (back[0] + dy * HALF, back[1] - dx * HALF)
    return " ".join(f"{n(a)},{n(b)}" for a, b in corners)
