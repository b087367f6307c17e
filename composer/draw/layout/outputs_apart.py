"""Columns side by side above a block, each at an output of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from composer.draw.diagram import Branches, Flow
from composer.draw.edges import DiagramSource
from composer.draw.geometry import Text
from composer.draw.layout.fragment import Fragment, shift, straightened
from composer.draw.layout.parallel_flows import MAX_JOIN_WIDTH, column_positions, solid
from composer.draw.layout.spacing import LABEL_GAP, STUB
from composer.draw.style.typography import Typography

INSET = 30.0
"""From a wire to the end of the block that it leaves, at least."""
BASELINE = 9.0
"""From a block to what is written above it."""


def above_outputs(
    item: Branches, below: Callable[[float], Fragment], lay: Callable[[Flow], Fragment], typography: Typography, *, shapes: bool
) -> Fragment:
    """Return a block, laid out by how wide it is, and columns that start at its outputs; each of these has its name and its shape
    at its start. What the columns give leaves above all of them to the right, that of the last one lowest.
    """
    columns = [lay(flow) for flow in item.flows]
    places, total = column_positions(columns)
    least = places[-1] - places[0] + 2 * INSET
    found = below(max(least, total) if total < MAX_JOIN_WIDTH else least)
    middle = (places[0] + places[-1]) / 2 if total >= MAX_JOIN_WIDTH else 0.0
    high = found.top
    for flow, one, place in zip(item.flows, columns, places, strict=True):
        x, foot = place - middle, max(area.bottom for area in solid(one))
        y = high - LABEL_GAP - foot
        begin = ((0.0, high - y),)
        one.pieces.wires = [
            wire.through(straightened((*begin, *wire.points)))
            if (wire.source, wire.points[0]) == (flow.owner, (0.0, 0.0))
            else wire
            for wire in one.pieces.wires
        ]
        shift(one, x, y)
        found.pieces.take(one.pieces)
        found.left, found.right = max(found.left, one.left - x), max(found.right, one.right + x)
    for source, place in zip(item.outputs, places, strict=True):
        found.pieces.texts += _named(item, source, place - middle, high - BASELINE, typography, shapes=shapes)
    top = min(one.out[-1][1] for one in columns)
    for number, (flow, one) in enumerate(zip(reversed(item.flows), reversed(columns), strict=True), 1):
        assert flow.outlet is not None
        level = top - STUB * number
        found.taps[flow.outlet.origin] = straightened((*one.out, (one.out[-1][0], level), (found.right, level)))
    found.top = top - STUB * len(columns)
    found.height = -found.top
    return found


def _named(item: Branches, source: DiagramSource, x: float, y: float, typography: Typography, *, shapes: bool) -> Iterator[Text]:
    """Yield what a block calls one of its outputs, at the left of the wire, and the shape of that."""
    assert item.base is not None
    if name := source.port or item.base.gives:
        yield Text(x - 6, y, name, "port", "end", typography.scale)
    if shapes and source.shape:
        yield Text(x + 8, y, source.shape, "shape", "start", typography.scale)
