"""A scene as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from blocks.core.look import Cells, Curve, LoopIcon
from composer.draw.build.node_paths import belongs
from composer.draw.layout.polylines import arrowhead, curve, n, polyline, rounded, shortened
from composer.draw.scene import (
    DASHED,
    DOTTED,
    ICON,
    RADIUS,
    SWATCH,
    About,
    Badge,
    Box,
    Chip,
    Dot,
    Frame,
    MergeCircle,
    PlacedIcon,
    Ring,
    Scene,
    Strip,
    Swatch,
    Text,
    WirePath,
)
from composer.draw.style.palette import DARK, Paint
from composer.draw.style.themes import CHANGES, CLASSES, THEMES, WIDTHS, Theme, change_rules, inks, rules, wire_color, within

FAMILY = "Helvetica, Arial, Liberation Sans, sans-serif"


def svg(scene: Scene, theme: str = "light", *, width: str = "", highlight: Sequence[str] = ()) -> str:
    """The text of an SVG file; the same scene gives the same bytes."""
    return "\n".join(_Writer(THEMES[theme], tuple(highlight)).scene(scene, width)) + "\n"


def height_of(scene: Scene, width: str) -> str:
    """The height of a picture that has a width, in the same unit."""
    if not width:
        return n(scene.height)
    number = width.rstrip("abcdefghijklmnopqrstuvwxyz")
    return f"{float(number) * scene.height / scene.width:.2f}{width.removeprefix(number)}"


class _Writer:
    def __init__(self, theme: Theme, highlight: tuple[str, ...]) -> None:
        self.theme, self.palette, self.highlight = theme, theme.palette, highlight
        self.inks = inks(theme.palette)
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

    def merge(self, merge: MergeCircle) -> Iterator[str]:
        paint = self.palette.hues["merge"]
        x, y = merge.x, merge.y
        yield self.opened("node k-merge", merge.about)
        yield (
            f'<circle class="s" cx="{n(x)}" cy="{n(y)}" r="{n(RADIUS)}" fill="{paint.fill}" stroke="{paint.stroke}" '
            f'stroke-width="{self.stroke(1.4)}"/>'
        )
        yield (
            f'<path class="i" fill="none" stroke="{paint.stroke}" stroke-width="{self.stroke(1.6)}" '
            f'd="{strokes(merge.sign, x, y)}"/>'
        )
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
        area, color = badge.area, self.palette.hues[CHANGES[badge.happened][0]].stroke
        of = f' data-of="{escape(badge.path)}"' if badge.path else ""
        yield f'<g class="badge b-{badge.happened}"{of}>'
        yield (
            f'<rect class="s" x="{n(area.left)}" y="{n(area.top)}" width="{n(area.right - area.left)}" '
            f'height="{n(area.bottom - area.top)}" rx="7.5" fill="{color}" stroke="{self.palette.paper}" stroke-width="1.2"/>'
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
        return belongs(path, self.highlight)

    # -- wires

    def wire(self, wire: WirePath) -> Iterator[str]:
        color = wire_color(self.palette, wire.style)
        port = f' data-port="{escape(wire.port)}"' if wire.port else ""
        dashes = "4 3" if wire.style in DASHED else "2 3" if wire.partial or wire.style in DOTTED else ""
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        faded = self.highlight and not (self.bright(wire.source) or self.bright(wire.target))
        faded = faded or (wire.style != "rewired" and wire.source in self.faint and wire.target in self.faint)
        shade = ' opacity=".35"' if faded else ' opacity=".6"' if wire.style == "idle" else ""
        between = f' data-a="{escape(wire.source)}" data-b="{escape(wire.target)}"{port}' if wire.source or wire.target else ""
        yield f'<g class="edge e-{wire.style}"{between}{shade}>'
        points = shortened(wire.points) if wire.arrow else wire.points
        path = curve(points) if wire.curved else rounded(points)
        yield f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{self.stroke(WIDTHS[wire.style])}"{dash}/>'
        if wire.arrow:
            yield f'<polygon points="{arrowhead(wire.points)}" fill="{color}"/>'
        yield "</g>"

    # -- icons

    def icon(self, placed: PlacedIcon, paint: Paint) -> Iterator[str]:
        x, y = placed.x, placed.y
        line = f'<path class="i" fill="none" stroke="{paint.stroke}" stroke-width="1.8" stroke-linejoin="round"'
        match placed.icon:
            case Cells(seen=seen):
                yield from self.mask(seen, x, y, paint)
            case Curve(points=points):
                yield f'{line} d="{polyline([(x + ICON * a, y + ICON - 2 - (ICON - 4) * b) for a, b in points])}"/>'
            case LoopIcon():
                a, b = x + ICON / 2, y + ICON / 2
                yield f'{line} d="M{n(a + 6)} {n(b - 7)}a9 9 0 1 0 3 8"/>'
                yield f'{line} d="M{n(a + 1)} {n(b - 8.5)}l5.6 1.9l-2 5.6"/>'
            case Swatch(kinds=kinds):
                yield '<g class="k-attn">'
                yield from (self.cell(kind, x + SWATCH * place, y, SWATCH, SWATCH) for place, kind in enumerate(kinds))
                yield "</g>"

    def mask(self, seen: Sequence[Sequence[bool]], x: float, y: float, paint: Paint) -> Iterator[str]:
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
        lines = "".join(f"M{n(x + cell * k)} {n(y)}v{n(ICON)}M{n(x)} {n(y + cell * k)}h{n(ICON)}" for k in range(1, len(seen)))
        yield f'<path class="gl" stroke="{self.palette.paper}" stroke-width=".5" stroke-opacity=".75" d="{lines}"/>'
        yield f'<rect class="i" {square} fill="none" stroke="{paint.stroke}" stroke-width="1"/>'

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
        kind = CLASSES.get(text.role, "m")
        ink = self.inks[kind]
        anchor = "" if text.anchor == "start" else f' text-anchor="{text.anchor}"'
        weight = ' font-weight="700"' if font.bold else ""
        return (
            f'<text class="{kind}" x="{n(text.x)}" y="{n(text.y)}" font-size="{font.size:g}"{anchor}{weight} fill="{ink}">'
            f"{escape(text.text, quote=False)}</text>"
        )

    def stroke(self, width: float) -> str:
        return f"{width * self.theme.stroke:g}"


def strokes(sign: str, x: float, y: float) -> str:
    """The lines of a sign in a circle around a point."""
    match sign:
        case "+":
            return f"M{n(x - 4.5)} {n(y)}h9M{n(x)} {n(y - 4.5)}v9"
        case "×":
            return f"M{n(x - 3.2)} {n(y - 3.2)}l6.4 6.4M{n(x + 3.2)} {n(y - 3.2)}l-6.4 6.4"
        case "‖":
            return f"M{n(x - 2)} {n(y - 4.5)}v9M{n(x + 2)} {n(y - 4.5)}v9"
    return f"M{n(x + 3.4)} {n(y - 4.4)}h-6.8l4 4.4l-4 4.4h6.8"  # Σ


def runs_of(line: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Where cells that are filled begin and end."""
    start = None
    for index, filled in enumerate([*line, False]):
        if filled and start is None:
            start = index
        elif not filled and start is not None:
            yield start, index
            start = None
