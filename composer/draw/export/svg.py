"""A drawing as SVG."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from composer.draw.about import TIP_SEPARATOR
from composer.draw.export.marks import (
    BLACK,
    ArcBy,
    Circle,
    Close,
    CubicBy,
    Geometry,
    Ink,
    LineBy,
    Mark,
    MarkGroup,
    MarkShape,
    MoveTo,
    Path,
    Polygon,
    QuadraticBy,
    Rectangle,
    Step,
    Stroke,
    TextLine,
)
from composer.draw.export.paint import paint_scene
from composer.draw.geometry import Point
from composer.draw.scene import Scene
from composer.draw.style.palette import DARK
from composer.draw.style.themes import THEMES, ThemeName, change_rules, detail_rules, picture_rules, rules, within
from composer.printable import markup

FAMILY = "Helvetica, Arial, Liberation Sans, sans-serif"


INKSCAPE = "http://www.inkscape.org/namespaces/inkscape"
"""Of the names of layers in Inkscape; the address is a name and nothing is read there."""


def svg(scene: Scene, theme: ThemeName = "light", *, width: str = "", highlight: Sequence[str] = (), layers: bool = False) -> str:
    """Return the text of an SVG file; the same scene gives the same bytes.

    With `layers`, groups have the names by which programs that edit drawings list them, and ids, of which a page that holds
    several drawings must have none.
    """
    return "\n".join(_lines(scene, theme, width, highlight, _LayerNames() if layers else None)) + "\n"


class _LayerNames:
    """Gives every group an id of its own, by the path of what it shows, and what stands for something a label, its title."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()

    def of(self, group: MarkGroup) -> str:
        """Return the attributes of a group that stands for something."""
        data = dict(group.data)
        if path := data.get("id", ""):
            name, label = path, group.title.partition(TIP_SEPARATOR)[0] or path
        elif "a" in data:
            name, label = f"{data['a']}--{data['b']}", ""
        else:
            return ""
        name = re.sub(r"[^\w.-]", "-", name)
        self.taken[name] += 1
        count = "" if self.taken[name] == 1 else f"--{self.taken[name]}"
        return f' id="{name}{count}"' + (f' inkscape:label="{markup(label)}"' if label else "")


def height_of(scene: Scene, width: str) -> str:
    """Return the height of a picture that has a width, in the same unit."""
    if not width:
        return n(scene.height)
    number = width.rstrip("abcdefghijklmnopqrstuvwxyz")
    return f"{float(number) * scene.height / scene.width:.2f}{width.removeprefix(number)}"


def _lines(scene: Scene, theme: ThemeName, width: str, highlight: Sequence[str], names: _LayerNames | None) -> Iterator[str]:
    follows = THEMES[theme].follows
    wide, high = n(scene.width), n(scene.height)
    size = f'width="{width}"' if width.endswith("%") else f'width="{width or wide}" height="{height_of(scene, width)}"'
    label, kind = markup(scene.name), ' class="follows"' if follows else ""
    space = f' xmlns:inkscape="{INKSCAPE}"' if names else ""
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg"{space} {size} viewBox="0 0 {wide} {high}" '
        f'font-family="{FAMILY}" role="img" aria-label="{label}"{kind}>'
    )
    if scene.description:
        yield f"<desc>{markup(scene.description)}</desc>"
    if follows:
        more = (change_rules(DARK) if scene.badges else "") + (detail_rules(DARK) if scene.details or scene.fan else "")
        more += picture_rules(DARK) if scene.has_pictures else ""
        yield f"<style>@media (prefers-color-scheme:dark){{{within('.follows', rules(DARK) + more)}}}</style>"
    for mark in paint_scene(scene, theme, highlight):
        yield from _mark(mark, names)
    yield "</svg>"


def _mark(mark: Mark, names: _LayerNames | None) -> Iterator[str]:
    match mark:
        case MarkGroup():
            data = "".join(f' data-{name}="{markup(value)}"' for name, value in mark.data)
            title = f"<title>{markup(mark.title)}</title>" if mark.title else ""
            more = f"<desc>{markup(mark.description)}</desc>" if mark.description else ""
            layer = names.of(mark) if names else ""
            yield f'<g class="{mark.kind}"{layer}{data}{_opacity(mark.opacity)}>{title}{more}'
            for inner in mark.marks:
                yield from _mark(inner, names)
            yield "</g>"
        case MarkShape():
            yield _shape(mark)
        case TextLine():
            yield _text(mark)


def _text(line: TextLine) -> str:
    kind = f' class="{line.kind}"' if line.kind else ""
    anchor = "" if line.anchor == "start" else f' text-anchor="{line.anchor}"'
    weight = ' font-weight="700"' if line.font.bold else ""
    return (
        f'<text{kind} x="{n(line.x)}" y="{n(line.y)}" font-size="{line.font.size:g}"{anchor}{weight} fill="{line.ink.color}">'
        f"{markup(line.text)}</text>"
    )


def _shape(shape: MarkShape) -> str:
    name, geometry = _geometry(shape.geometry)
    kind = f' class="{shape.kind}"' if shape.kind else ""
    of = "" if shape.of is None else f' data-of="{markup(shape.of)}"'
    ink = _fill(shape.fill) + (_stroke(shape.stroke) if shape.stroke else "") + _opacity(shape.opacity)
    is_named_path = isinstance(shape.geometry, Path) and shape.kind
    return f"<{name}{kind}{of}{ink}{geometry}/>" if is_named_path else f"<{name}{kind}{of}{geometry}{ink}/>"


def _fill(ink: Ink | None) -> str:
    if ink is None:
        return ' fill="none"'
    cover = "" if ink.cover == 1 else f' fill-opacity="{ink.cover:.2f}"'
    return "" if ink == BLACK else f' fill="{ink.color}"{cover}'


def _stroke(pen: Stroke) -> str:
    cover = "" if pen.ink.cover == 1 else f' stroke-opacity="{share(pen.ink.cover)}"'
    dash = f' stroke-dasharray="{" ".join(f"{part:g}" for part in pen.dash)}"' if pen.dash else ""
    join = ' stroke-linejoin="round"' if pen.round else ""
    return f' stroke="{pen.ink.color}" stroke-width="{share(pen.width)}"{cover}{dash}{join}'


def _opacity(opacity: float) -> str:
    return "" if opacity == 1 else f' opacity="{share(opacity)}"'


def _geometry(geometry: Geometry) -> tuple[str, str]:
    """Return the element of a shape, and where it is."""
    match geometry:
        case Rectangle(x=x, y=y, width=width, height=height, radius=radius):
            corner = f' x="{n(x)}" y="{n(y)}"' if x or y else ""
            return "rect", f'{corner} width="{n(width)}" height="{n(height)}"' + (f' rx="{n(radius)}"' if radius else "")
        case Circle(x=x, y=y, radius=radius):
            return "circle", f' cx="{n(x)}" cy="{n(y)}" r="{n(radius)}"'
        case Polygon(corners=corners):
            return "polygon", f' points="{" ".join(f"{n(x)},{n(y)}" for x, y in corners)}"'
        case Path(steps=steps):
            return "path", f' d="{"".join(map(_step, steps))}"'


def _step(step: Step) -> str:
    match step:
        case MoveTo(x=x, y=y):
            return f"M{n(x)} {n(y)}"
        case LineBy(end=(dx, dy)):
            return f"v{n(dy)}" if dx == 0 else f"h{n(dx)}" if dy == 0 else f"l{n(dx)} {n(dy)}"
        case QuadraticBy(control=control, end=end):
            return f"q{_point(control)} {_point(end)}"
        case CubicBy(first=first, second=second, end=end):
            return f"c{_point(first)} {_point(second)} {_point(end)}"
        case ArcBy(radius=radius, large=large, clockwise=clockwise, end=end):
            return f"a{n(radius)} {n(radius)} 0 {int(large)} {int(clockwise)} {_point(end)}"
        case Close():
            return "z"


def _point(point: Point) -> str:
    return f"{n(point[0])} {n(point[1])}"


def n(value: float) -> str:
    """Return a coordinate, to a tenth."""
    text = f"{value:.1f}"
    return "0" if text in ("-0.0", "0.0") else text.removesuffix(".0")


def share(value: float) -> str:
    """Return a width or a part of one without a zero before its point."""
    return f"{value:g}".removeprefix("0")
