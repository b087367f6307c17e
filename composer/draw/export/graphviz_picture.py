"""Marks as a picture that Graphviz draws without laying anything out: the background of a graph of two corners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from composer.draw.export.marks import Ink, TextLine
from composer.draw.export.outlines import FlatMark, Outline, OutlinedShape
from composer.draw.geometry import Point

FONT = "Arial"
TRANSPARENT = "#ffffff00"
MAX_STRING_LENGTH = 4000
"""Signs of a string."""


def xdot(width: float, height: float, marks: Iterable[FlatMark], scale: float = 1.0) -> str:
    """Return a DOT text of `width` × `height` points, times `scale`, for `neato -n2`."""
    drawing = _quoted(" ".join(part for mark in marks for part in _mark(mark, height, scale)))
    corner = 'shape=point width=0 height=0 style=invis label=""'
    return (
        f'digraph {{ graph [pad=0 margin=0 bgcolor=transparent bb="0,0,{width * scale:.2f},{height * scale:.2f}" '
        f"_background={drawing}];\n"
        f'a [{corner} pos="0,0!"]; b [{corner} pos="{width * scale:.2f},{height * scale:.2f}!"]; }}\n'
    )


def _quoted(text: str) -> str:
    """Return a string of DOT in pieces, of which older programs take no long ones."""
    pieces = [text[start : start + MAX_STRING_LENGTH] for start in range(0, len(text), MAX_STRING_LENGTH)]
    return " + ".join('"' + piece.replace("\\", "\\\\").replace('"', '\\"') + '"' for piece in pieces)


def _mark(mark: FlatMark, height: float, scale: float) -> Iterator[str]:
    match mark:
        case TextLine():
            yield f"F {mark.font.size * scale:.2f} {_counted(FONT)}"
            yield f"c {_counted(_color(mark.ink))} t {int(mark.font.bold)}"
            anchor = {"start": -1, "middle": 0, "end": 1}[mark.anchor]
            yield f"T {mark.x * scale:.2f} {(height - mark.y) * scale:.2f} {anchor} 0 {_counted(mark.text)}"
        case OutlinedShape():
            style = f"setlinewidth({(mark.stroke.width if mark.stroke else 1) * scale:.2f})"
            yield f"S {_counted(style)}"
            parts = mark.stroke.dash if mark.stroke else ()
            dash = "solid" if not parts else "dotted" if parts[0] <= 2 else "dashed"
            yield f"S {_counted(dash)}"
            yield f"c {_counted(_color(mark.stroke.ink if mark.stroke else None))} C {_counted(_color(mark.fill))}"
            for curve in mark.outlines:
                yield _curve(curve, mark.fill is not None, height, scale)


def _curve(curve: Outline, filled: bool, height: float, scale: float) -> str:
    places = [(x * scale, (height - y) * scale) for x, y in curve.points]
    corners = places[::3]
    if not _straight(curve.points):
        return f"{'b' if filled else 'B'} {_points(places)}"
    if filled or curve.closed:
        return f"{'P' if filled else 'p'} {_points(corners[:-1] if curve.closed else corners)}"
    return f"L {_points(corners)}"


def _straight(points: Sequence[Point]) -> bool:
    """Return whether every control point is one of the two ends of its piece."""
    return all(
        points[i + 1] in (points[i], points[i + 3]) and points[i + 2] == points[i + 3] for i in range(0, len(points) - 1, 3)
    )


def _points(points: Sequence[Point]) -> str:
    return f"{len(points)} " + " ".join(f"{x:.2f} {y:.2f}" for x, y in points)


def _color(ink: Ink | None) -> str:
    return TRANSPARENT if ink is None else f"{ink.color}{round(ink.cover * 255):02x}"


def _counted(text: str) -> str:
    """Return a text with the number of its bytes before it."""
    return f"{len(text.encode())} -{text}"
