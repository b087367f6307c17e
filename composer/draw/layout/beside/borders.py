"""The inside of a frame in layers: all that comes in stands in a row at its lower border, all that goes out at its upper one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from blocks.core import Look
from composer.draw.about import About
from composer.draw.diagram import Flow, Group, Leaf
from composer.draw.edges import DiagramEdge, FrameInput, NodeOutput, Origin, maker
from composer.draw.geometry import Point
from composer.draw.layout.boxes import MIN_COLUMN_WIDTH
from composer.draw.layout.fragment import Fragment, shift
from composer.draw.paths import output_path
from composer.draw.scene import Box, WirePath

TRACK, TURN = 10.0, 16.0
"""Beside a border, from one wire to the next, and from the border to the first: two corners of 8 pixels."""


@dataclass(frozen=True, slots=True)
class BorderEnds:
    """What stands for the borders of a frame in the flow inside of it, by path."""

    flow: Flow
    entries: Mapping[str, str]
    """Where a value comes in, and its passage."""
    exits: Mapping[str, str]
    """Where one goes out, and its passage."""

    @property
    def drawn(self) -> dict[str, Fragment]:
        """What they look like while wires are led to them."""
        return {path: Fragment() for path in self.entries} | {path: _exit(path) for path in self.exits}


def with_border_ends(group: Group) -> BorderEnds:
    """Return the flow in a frame in which an item of its own stands for each value that comes in, and for each that goes out."""
    path, inner = group.about.path, group.flows[0]
    entries = {f"{path}.{port} in": port for port in (one.port for one in group.passages if one.enters)}
    of_port = {port: entry for entry, port in entries.items()}
    out = {output_path(f"{path}.{one.port}"): one for one in group.passages if one.made}
    exits = {end: one.port for end, one in out.items()}

    def changed(flow: Flow) -> Flow:
        return flow.map_edges(from_entry).map_groups(changed)

    def from_entry(edge: DiagramEdge) -> DiagramEdge:
        origin = edge.source.origin
        if not isinstance(origin, FrameInput) or origin.path != path:
            return edge
        return edge.reading(replace(edge.source, origin=NodeOutput(of_port[origin.port])))

    flow = changed(inner)
    read = {edge.source.path for edge in flow.all_edges()}
    entries = {entry: port for entry, port in entries.items() if entry in read}
    ends = [Leaf(About(entry), Look("", hue="io"), model_input=True) for entry in entries]
    outs = [Leaf(About(one), Look("", hue="io")) for one in exits]
    edges = [DiagramEdge(one.made, end, "", True) for end, one in out.items() if one.made]
    whole = Flow(None, (*ends, *flow.items, *outs), (*flow.edges, *edges), None)
    return BorderEnds(whole, entries, exits)


def layers_inside(group: Group, lay: Callable[[BorderEnds], Fragment | None]) -> Fragment | None:
    """Return the inside of a frame in layers, as it is laid out with items at its borders; none where that cannot be, or where a
    value goes straight through.
    """
    path = group.about.path
    ends = with_border_ends(group)
    found = lay(ends)
    if found is None or any(wire.source in ends.entries and wire.target in ends.exits for wire in found.pieces.wires):
        return None
    wires: list[WirePath] = []
    for wire in found.pieces.wires:
        if wire.target in ends.exits:
            found.above[ends.exits[wire.target]] = wire.points
        elif wire.source in ends.entries:
            port = ends.entries[wire.source]
            found.below[port] = wire.points[0][0]
            wires.append(replace(wire, source=path, from_inside=True, passage=port))
        else:
            wires.append(wire)
    found.pieces.wires = wires
    found.pieces.boxes = [one for one in found.pieces.boxes if one.about.path not in ends.exits]
    found.ends = {}
    return found


def _exit(path: str) -> Fragment:
    """Return where a value goes out: as wide as a block, so that a wire ends there wherever it comes from."""
    found = Fragment(left=MIN_COLUMN_WIDTH / 2, right=MIN_COLUMN_WIDTH / 2)
    found.pieces.boxes.append(Box(About(path), "io", -MIN_COLUMN_WIDTH / 2, 0, MIN_COLUMN_WIDTH, 0, ()))
    return found


def centered(found: Fragment) -> None:
    """Move a frame so that its middle is on the spine."""
    _move(found, (found.left - found.right) / 2)


def led_aside(found: Fragment, edges: Sequence[DiagramEdge], origins: Mapping[Origin, str], lanes: int) -> None:
    """Move a frame so that its stream comes in on the spine, and lead all else that goes through its border to a side of it; of
    what goes out, `origins` tell the passage. Lanes are at the side 1 or -1; there, and at the other side, wires turn off in an
    order in which they do not cross.
    """
    _move(found, -found.below.get("", 0.0))
    places = {edge: found.below[edge.passage] for edge in edges if edge.passage}
    for side in (-1, 1):
        several = sorted((edge for edge, x in places.items() if _side(x, lanes) == side), key=lambda edge: -side * places[edge])
        reach = found.left if side < 0 else found.right
        for number, edge in enumerate(several):
            x, y = places[edge], TURN + TRACK * number
            found.ends[edge] = ((side * reach, y), (x, y), (x, 0.0))
    tops = {origin: found.above[port][-1][0] for origin, port in origins.items() if port in found.above}
    middle, top = found.above[""][-1]
    high = top
    for side in (-1, 1):
        rising = sorted((one for one, x in tops.items() if _side(x, lanes) == side), key=lambda one: -side * tops[one])
        reach = found.left if side < 0 else found.right
        for number, origin in enumerate(rising):
            x, y = tops[origin], top - TURN - TRACK * number
            found.taps[origin] = ((x, top), (x, y), (side * reach, y))
            high = min(high, y)
    if abs(middle) > 1:  # back to the spine
        high -= TURN
        way = ((middle, top), (middle, high), (0.0, high))
        found.pieces.wires.append(WirePath(found.pieces.frames[0].about.path, "", way, arrow=False))
        found.top = high
    found.height += top - high
    low = max((points[0][1] for points in found.ends.values()), default=0.0)
    if low > 0:
        shift(found, 0, -low - TURN / 2)
        found.height += low + TURN / 2


def _side(x: float, lanes: int) -> int:
    return lanes if abs(x) < 1 else 1 if x > 0 else -1


def _move(found: Fragment, dx: float) -> None:
    shift(found, dx, 0)
    found.left, found.right = found.left - dx, found.right + dx


def passages_of(group: Group, origins: Sequence[Origin]) -> dict[Origin, str]:
    """Return through which passage of a frame values leave it that are made inside."""
    made = {one.made.origin: one.port for one in group.passages if one.made and one.port}
    return {origin: made[maker(origin)] for origin in origins if maker(origin) in made}


def free_room(above: Mapping[str, Sequence[Point]], left: float, right: float, wanted: float) -> tuple[float, float]:
    """Return between which two of the wires that go out, or of the sides of a frame, its header stands: in the first gap that is
    as wide as wanted, or in the widest.
    """
    xs = [-left + 14, *sorted(points[-1][0] for points in above.values()), right]
    gaps = [(a + (10 if number else 0), b - 10) for number, (a, b) in enumerate(pairwise(xs))]
    return next((gap for gap in gaps if gap[1] - gap[0] >= wanted), max(gaps, key=lambda gap: gap[1] - gap[0]))
