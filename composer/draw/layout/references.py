"""Values by their names, in place of long wires: each with a short arrow."""

from __future__ import annotations

from collections.abc import Sequence

from blocks.core import spoken
from composer.draw.about import About
from composer.draw.edges import DiagramEdge
from composer.draw.geometry import Area, Point, Text
from composer.draw.layout.ends.port_names import AT_FIRST
from composer.draw.layout.fragment import Fragment
from composer.draw.scene import Dot, Reference, WirePath
from composer.draw.style.typography import Typography

SOME = "some"
"""Behind a name that some passes alone read, of which few words do not tell which they are."""
SIDE_GAP = 26.0
"""Between a block and what stands beside it: room for a turn and an arrowhead, 15 pixels together, and some line to be seen."""


def incoming_reference(
    found: Fragment,
    edge: DiagramEdge,
    name: str,
    side: int,
    y: float,
    way: Sequence[Point],
    typography: Typography,
    *,
    joins: bool = False,
) -> Area:
    """Write where a value comes from, at a height and at one side of the way that it goes on; return what the name covers. What
    `joins` a wire ends there in a dot.
    """
    start = way[0][0] + side * (10 if len(way) > 1 else 16)
    text = Text(start + side * 4, y + 3.5, _said(edge, name), "reference", "end" if side < 0 else "start", typography.scale)
    own = edge.source.number and f"{edge.source.path} is "
    about = About(edge.source.path, f"{own}{name}, from elsewhere")
    found.pieces.references.append(Reference(about, text, edge.source.path, edge.target, edge.port))
    points = ((start, y), *way)
    found.pieces.wires.append(
        WirePath(
            edge.source.path,
            edge.target,
            points,
            edge.port,
            "far",
            not joins,
            partial=edge.partial,
            from_inside=edge.source.from_inside,
            place=edge.place,
        )
    )
    if joins:
        found.pieces.dots.append(Dot(*points[-1]))
    return text.area


def reference_below(found: Fragment, edge: DiagramEdge, typography: Typography) -> float:
    """Write where a value comes from below a block that stands on a height of 0; return how far down that goes."""
    name = edge.source.reference
    text = Text(0, SIDE_GAP + 8, _said(edge, name), "reference", scale=typography.scale)
    found.pieces.references.append(
        Reference(About(edge.source.path, f"{name}, from elsewhere"), text, edge.source.path, edge.target, edge.port)
    )
    points = ((0.0, text.area.top - 4), (0.0, 0.0))
    found.pieces.wires.append(
        WirePath(edge.source.path, edge.target, points, edge.port, "far", partial=edge.partial, place=edge.place)
    )
    return text.area.bottom


def reference_above(found: Fragment, path: str, name: str, top: float, typography: Typography) -> Area:
    """Write above a box that ends at a height, on the spine, by which name others read what it gives; return what that covers."""
    end = top - SIDE_GAP
    text = Text(0, end - 4, name, "reference", scale=typography.scale)
    found.pieces.references.append(Reference(About(path, f"{name}, read by its name"), text, path, ""))
    found.pieces.wires.append(WirePath(path, "", ((0.0, top), (0.0, end))))
    return text.area


def _said(edge: DiagramEdge, name: str) -> str:
    """Return what a value is called where no wire leads to it, and whether all passes read it."""
    source = edge.source
    if source.port and name == source.own_name and "." in source.path:
        name = f"{spoken(source.port).lower()} of {source.path.removesuffix('.body')}"
    some = f" ({edge.readers or SOME})" if edge.partial else ""
    return name + some + (f" {AT_FIRST}" if edge.source.at_first else "") + edge.source.suffix


def outgoing_reference(found: Fragment, wire: WirePath, name: str, tip: str, typography: Typography) -> Area:
    """Write where a value goes, at the end of its wire; return what the name covers."""
    (before, _), (end, y) = wire.points[-2:]
    side = 1 if end > before else -1
    found.pieces.wires.append(wire)
    text = Text(end + side * 4, y + 3.5, name, "reference", "start" if side > 0 else "end", typography.scale)
    found.pieces.references.append(Reference(About(wire.target, tip), text, wire.source, wire.target, wire.port))
    return text.area
