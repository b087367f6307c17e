"""What leaves a block at its side: a wire, an arrow to an output of the model, to a loss, to a state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from composer.draw.diagram import Origin, Sink
from composer.draw.layout.boxes import MIN_SIDE_WIDTH, box, box_height, needed
from composer.draw.layout.fragment import Fragment, widen
from composer.draw.layout.references import SIDE_GAP, incoming_reference, outgoing_reference
from composer.draw.paths import output_path
from composer.draw.scene import Area, Point, Text, WirePath
from composer.draw.style.typography import Typography

SLOT = 14.0
"""From one wire at a side of a box to the next."""


@dataclass(frozen=True, slots=True)
class Output:
    """A value that is an output of the model."""

    origin: Origin
    name: str
    port: str = ""
    """What it is of what gives it, where that is not the first output."""


@dataclass(frozen=True, slots=True)
class Tap:
    """A value that goes on by a wire."""

    origin: Origin
    said: bool = True
    """Whether the port's name stands at the wire."""


OutgoingEdge: TypeAlias = Output | Tap | Sink


def room(leave: OutgoingEdge, letters: Typography) -> float:
    """How much of the side it takes."""
    return box_height(leave.leaf, letters, narrow=True) + 8 if isinstance(leave, Sink) and leave.leaf is not None else SLOT


def leave_at(found: Fragment, leave: OutgoingEdge, start: tuple[Point, ...], letters: Typography) -> None:
    """Lets it go on from where it is made, on whichever side of the spine that is."""
    side = 1 if start[-1][0] > 0 else -1
    match leave:
        case Output():
            widen(found, side, output_at(found, leave, start, side, letters).reach(side))
        case Tap():
            _tap_at(found, leave, start, side, letters)
        case Sink():
            sink_at(found, leave, start, letters, side)


def output_at(found: Fragment, output: Output, start: tuple[Point, ...], side: int, letters: Typography) -> Area:
    """An arrow to the name of an output; gives what the name covers."""
    x, y = start[-1]
    wire = WirePath(output.origin.path, output_path(output.name), (*start, (x + side * SIDE_GAP, y)), output.port)
    return outgoing_reference(found, wire, output.name, f"the model's output {output.name}", letters)


def _tap_at(found: Fragment, tap: Tap, start: tuple[Point, ...], side: int, letters: Typography) -> None:
    """The start of a wire, up to the border of all that is here."""
    x, y = start[-1]
    reach = abs(x)
    if tap.said:
        label = Text(x + side * 6, y - 3, tap.origin.port, "port", "start" if side > 0 else "end", letters.scale)
        found.pieces.texts.append(label)
        reach = label.area.reach(side)
    widen(found, side, reach)
    found.taps[tap.origin] = (*start, (side * (found.right if side > 0 else found.left), y))


def sink_at(found: Fragment, sink: Sink, start: tuple[Point, ...], letters: Typography, side: int = 1) -> None:
    """An arrow to what gives nothing that flows on; what else that reads comes in at its other side."""
    (x, y), first = start[-1], sink.edges[0]
    near = x + side * SIDE_GAP
    wire = WirePath(first.source.path, sink.path, (*start, (near, y)), first.port, "loss" if sink.leaf else "loop")
    if sink.leaf is None:
        widen(found, side, outgoing_reference(found, wire, sink.name, sink.name, letters).reach(side))
        return
    width = max(0.0 if sink.leaf.lines else MIN_SIDE_WIDTH, needed(sink.leaf, letters, narrow=True))
    height = box_height(sink.leaf, letters, narrow=True)
    drawn = box(sink.leaf, near + side * width / 2, y + height / 2, width, height, letters, narrow=True)
    found.pieces.boxes.append(replace(drawn, dashed=True))
    found.pieces.wires.append(wire)
    far, reach = near + side * width, abs(near) + width
    for number, edge in enumerate(sink.edges[1:]):
        at = y + SLOT * (number - (len(sink.edges) - 2) / 2)
        if edge.trains:
            found.ends[edge] = ((far, at),)
        else:
            reach = max(reach, incoming_reference(found, edge, edge.named, side, at, ((far, at),), letters).reach(side))
    widen(found, side, reach)
