"""What is read of a block beside what goes on upwards, and how it leaves: by a wire, or by an arrow to an output or a loss."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

from blocks.core import spoken
from composer.draw.diagram import Flow, Group, Item, Leaf, Sink
from composer.draw.edges import DiagramEdge, DiagramSource, InnerOutput, NodeOutput, Origin, PassOutput, maker
from composer.draw.geometry import Area, Point, Text
from composer.draw.layout.boxes import MIN_SIDE_WIDTH, box, box_height, needed
from composer.draw.layout.fragment import Fragment, widen
from composer.draw.layout.references import SIDE_GAP, incoming_reference, outgoing_reference
from composer.draw.paths import lies_in, output_path
from composer.draw.scene import CARD_ROOM, WirePath
from composer.draw.style.typography import Typography

HEAD = 8.0
"""From a name above a wire to the name at its end: an arrowhead of 7 pixels."""
SLOT = 14.0
"""From one wire at a side of a box to the next: the name at each is 10 pixels high."""


@dataclass(frozen=True, slots=True)
class Output:
    """A value that is an output of the model."""

    origin: Origin
    name: str
    port: str = ""
    """What it is of what gives it, where that is not the first output."""
    inside: str = ""
    """What it is called in the recipe, where it is made inside of a frame or by one of its passes."""
    own: str = ""
    """What it is called among the outputs of what gives it, where that says it in place of a name in the recipe."""

    @property
    def said(self) -> str:
        """What stands at the end of its wire."""
        return f"{self.name} = {self.inside}" if self.inside not in ("", self.name) else self.name


@dataclass(frozen=True, slots=True)
class Tap:
    """A value that goes on by a wire."""

    origin: Origin
    labeled: bool = True
    """Whether the port's name stands at the wire."""

    @property
    def said(self) -> str:
        """What stands at the wire."""
        own = self.origin.port.rpartition(".")[2]
        return self.origin.passes or own if isinstance(self.origin, InnerOutput) else self.origin.port


OutgoingEdge: TypeAlias = Output | Tap | Sink


# -- what is read of an item beside what goes on upwards


def outgoing_at_side(
    flow: Flow,
    item: Item,
    ports: Collection[str],
    sent: Collection[Origin],
    led_out: Collection[InnerOutput] = (),
    called: Collection[Origin] = (),
) -> list[OutgoingEdge]:
    """Return what leaves at an item's side, of it or of what lies in it: `ports` of it that the flow reads, what is `sent` to
    other columns, and what is `led_out` of its inside; that which is `called` something at the other end has one name, there.
    """
    path = item.about.path
    names = [
        _second_output(name, source, path.rpartition(".")[2])
        for name, source in outputs(flow, item)
        if not is_first(source, path)
    ]
    given = {origin for origin in sent if origin.path == path and origin.port and origin.port not in ports}
    further = [origin for origin in given if not isinstance(origin, InnerOutput)]
    led = [origin for origin in {*given, *led_out} if isinstance(origin, InnerOutput)]
    inner = (
        ()
        if isinstance(item, Group)
        else sorted((o for o in sent if o.path.startswith(f"{path}.")), key=lambda one: (one.path, one.port))
    )
    return [
        *(Tap(NodeOutput(path, port)) for port in sorted(ports)),  # above the names of outputs, since their own stand above them
        *(Tap(origin, labeled=not flow.owner) for origin in sorted(further, key=height_in_repeat)),
        *(Tap(origin, bool(origin.passes) or origin not in called) for origin in sorted(led, key=lambda one: one.port)),
        *(Tap(origin, labeled=False) for origin in inner),
        *sorted(names, key=lambda one: height_in_repeat(one.origin)[0]),
        *(sink for sink in sinks(flow, item) if not is_first(sink.edges[0].source, path)),
    ]


def _second_output(name: str, source: DiagramSource, block: str) -> Output:
    """Return an output of the model that is not what a block gives first; of one of its outputs by a name, that is what it is
    called there.
    """
    inside, port = source.reference or called(source.origin), source.port or source.reference
    holder, _, own = inside.rpartition(".")
    return Output(source.origin, name, port, own=own) if holder == block else Output(source.origin, name, port, inside)


def called(origin: Origin) -> str:
    """Return what a pass of a repeat is called; nothing for other values."""
    return origin.port if isinstance(origin, PassOutput) else ""


def height_in_repeat(origin: Origin) -> tuple[int, str]:
    """Return a key by which outputs of a block are in their order from above: later passes of a repeat first."""
    return (-origin.index if isinstance(origin, PassOutput) else 0), origin.port


def outgoing_above(flow: Flow, item: Item) -> tuple[list[str], list[Sink]]:
    """Return the outputs of the model, by name, and the losses and states that are what an item gives first:
    these leave above it.
    """
    path = item.about.path
    names = [name for name, source in outputs(flow, item) if is_first(source, path)]
    return names, [sink for sink in sinks(flow, item) if is_first(sink.edges[0].source, path)]


def leads_up(flow: Flow, item: Item) -> bool:
    """Return whether all that other items read of one that stands on no spine leaves it above: it is a box, beside whose way up
    no loss stands.
    """
    return isinstance(item, Leaf) and not outgoing_above(flow, item)[1]


def outgoing_through(
    flow: Flow, group: Group, sent: Collection[Origin], led_out: Collection[InnerOutput] = ()
) -> frozenset[Origin]:
    """Return what blocks in a frame give that is read outside of it by a wire."""
    read = [source.origin for _, source in flow.exits] + [sink.origin for sink in flow.sinks]
    made = map(maker, (*sent, *led_out, *read))
    return frozenset(one for one in made if one.path.startswith(f"{group.about.path}."))


def outputs(flow: Flow, item: Item) -> list[tuple[str, DiagramSource]]:
    """Return the outputs of the model that an item gives, but for what goes on upwards."""
    return [(name, source) for name, source in flow.exits if lies_in(source.path, item.about.path)]


def sinks(flow: Flow, item: Item) -> list[Sink]:
    """Return what reads an item, or what lies in it, and gives nothing."""
    return [sink for sink in flow.sinks if lies_in(sink.edges[0].source.path, item.about.path)]


def is_first(source: DiagramSource, path: str) -> bool:
    """Return whether a value is what an item gives first."""
    return source.path == path and not source.port and not source.reference


# -- how it leaves


def room(out_edge: OutgoingEdge, typography: Typography) -> float:
    """Return how much of the side it takes."""
    if isinstance(out_edge, Sink) and out_edge.leaf is not None:
        return side_height(out_edge.leaf, len(out_edge.edges) - 1, typography) + 8
    slot = SLOT * max(1.0, typography.scale)
    return 2 * slot if isinstance(out_edge.origin, InnerOutput) else slot  # with what stands above it


def side_height(leaf: Leaf, reads: int, typography: Typography) -> float:
    """Return how high a small box is: at least as so many wires or names that come in at one of its sides."""
    return max(box_height(leaf, typography, narrow=True), SLOT * (reads - 1) + 12)


def past_cards(start: tuple[Point, ...], parallel: bool) -> tuple[Point, ...]:
    """Return the start of a wire, at the right of what stands for several side by side past the cards behind that: what is said
    at the wire begins there.
    """
    x, y = start[-1]
    return (*start, (x + CARD_ROOM, y)) if parallel and x > 0 else start


def draw_outgoing(
    found: Fragment, out_edge: OutgoingEdge, start: tuple[Point, ...], typography: Typography, said: str = ""
) -> None:
    """Let a value go on from where it is made, on whichever side of the spine that is; `said` is what stands at the wire to a
    loss.
    """
    side = 1 if start[-1][0] > 0 else -1
    match out_edge:
        case Output():
            widen(found, side, output_at(found, out_edge, start, side, typography).reach(side))
        case Tap():
            _tap_at(found, out_edge, start, side, typography)
        case Sink():
            sink_at(found, out_edge, start, typography, side, said)


def output_at(found: Fragment, output: Output, start: tuple[Point, ...], side: int, typography: Typography) -> Area:
    """Draw an arrow to the name of an output; return what the name covers."""
    x, y = start[-1]
    gap = SIDE_GAP
    if output.own not in ("", output.name):
        label = Text(x + side * 6, y - 3, output.own, "port", "start" if side > 0 else "end", typography.scale)
        found.pieces.texts.append(label)
        gap = max(gap, label.area.reach(side) - abs(x) + HEAD)
    wire = WirePath(output.origin.path, output_path(output.name), (*start, (x + side * gap, y)), output.port)
    return outgoing_reference(found, wire, output.said, f"the model's output {output.name}", typography)


def _tap_at(found: Fragment, tap: Tap, start: tuple[Point, ...], side: int, typography: Typography) -> None:
    """Draw the start of a wire, up to the border of all that is here."""
    x, y = start[-1]
    reach = abs(x)
    if tap.labeled:
        label = Text(x + side * 6, y - 3, tap.said, "port", "start" if side > 0 else "end", typography.scale)
        found.pieces.texts.append(label)
        reach = label.area.reach(side)
    widen(found, side, reach)
    found.taps[tap.origin] = (*start, (side * (found.right if side > 0 else found.left), y))


def of_passes(out_edge: OutgoingEdge) -> str:
    """Return which passes of a repeat give a value, in words, where words at its wire or behind that tell it."""
    match out_edge:
        case Tap():
            return out_edge.said if out_edge.labeled and isinstance(out_edge.origin, InnerOutput) else ""
        case Sink():
            return out_edge.edges[0].source.passes
        case Output():
            return out_edge.inside


def called_at(out_edge: OutgoingEdge, block: str) -> str:
    """Return which of several outputs of a block a loss reads, given the path of the block, where its title does not say it."""
    if not isinstance(out_edge, Sink) or out_edge.leaf is None:
        return ""
    holder, _, own = (out_edge.edges[0].source.reference or out_edge.edges[0].source.own_name).rpartition(".")
    told = {*spoken(own).lower().split()} <= {*out_edge.leaf.look.title.lower().split()}
    return own if holder and holder in (block, block.rpartition(".")[2]) and not told else ""


def sink_at(found: Fragment, sink: Sink, start: tuple[Point, ...], typography: Typography, side: int = 1, said: str = "") -> None:
    """Draw an arrow to what gives nothing that flows on, with what is `said` at it; what else that reads comes in at its other
    side.
    """
    (x, y), first = start[-1], sink.edges[0]
    near = x + side * SIDE_GAP
    if said:
        label = Text(x + side * 6, y - 3, said, "port", "start" if side > 0 else "end", typography.scale)
        found.pieces.texts.append(label)
        near = x + side * max(SIDE_GAP, label.area.reach(side) - abs(x) + HEAD)
    wire = WirePath(first.source.path, sink.path, (*start, (near, y)), first.port, "loss" if sink.leaf else "loop")
    if sink.leaf is None:
        widen(found, side, outgoing_reference(found, wire, sink.name, sink.name, typography).reach(side))
        return
    width = max(0.0 if sink.leaf.lines else MIN_SIDE_WIDTH, needed(sink.leaf, typography, narrow=True))
    height = side_height(sink.leaf, len(sink.edges) - 1, typography)
    drawn = box(sink.leaf, near + side * width / 2, y + height / 2, width, height, typography, narrow=True)
    found.pieces.boxes.append(drawn)
    found.pieces.wires.append(wire)
    far, reach = near + side * width, abs(near) + width
    for number, edge in enumerate(sink.edges[1:]):
        at = y + SLOT * (number - (len(sink.edges) - 2) / 2)
        if edge.trains:
            found.ends[edge] = ((far, at),)
        else:
            reach = max(reach, incoming_reference(found, edge, edge.named, side, at, ((far, at),), typography).reach(side))
    widen(found, side, reach)


def mark_at(found: Fragment, edge: DiagramEdge, loss: Leaf, start: tuple[Point, ...], typography: Typography) -> None:
    """Draw an arrow to the name of a loss that stands at another of the values that it reads."""
    x, y = start[-1]
    wire = WirePath(edge.source.path, loss.about.path, (*start, (x + SIDE_GAP, y)), edge.port, "loss")
    widen(found, 1, outgoing_reference(found, wire, loss.look.title, loss.about.tip, typography).reach(1))
