"""How far apart the blocks of a column stand: there is room for all that is written and that crosses between them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from composer.draw.diagram import Branches, Group, IrregularSubgraph, Leaf, OpenMixture, Sink, output_of, told_shape
from composer.draw.edges import NodeOutput, Origin
from composer.draw.geometry import Area, Text
from composer.draw.layout.ends.port_names import words
from composer.draw.layout.ends.shapes import shape_in
from composer.draw.layout.fragment import Fragment, areas, moved
from composer.draw.layout.outer_inputs import CLEAR, OuterInput
from composer.draw.layout.outgoing_edges import Output, outgoing_above, output_at, room, sink_at
from composer.draw.layout.spine import Spine, Station
from composer.draw.passes.order import inner_edges
from composer.draw.scene import RADIUS, Dot
from composer.draw.style.typography import Role

GAP, MERGE_GAP, LABEL_GAP = 20.0, 15.0, 28.0
"""Between two things on a spine; where one is a circle, which has free space around it; where the shape is written, 10 pixels
high with a line's distance above and below.
"""
TAP, ARROW, STUB = 14.0, 15.0, 14.0
"""From a block to a fork above it, so that its dot does not touch the border; from there to the next block, a corner of 8
pixels and an arrowhead of 7; from one crossing wire to the next, as the names at their ends are 10 pixels high.
"""
BETWEEN_FLOWS = 2
"""How many times as far apart two flows stand of which none leads to the other: the upper one would seem to go on."""
APART = 8.0
"""Between what stands beside two blocks: less than between the blocks, which have a wire between them."""
UNNAMED = ("", "y", "out", "output")
"""What the first output of a block is called where its author has no name for it."""
LABEL_TOP = 18.0
"""From a block to the upper end of what is written above it."""


def set_heights(spine: Spine) -> None:
    """Give every station its height, and find where wires turn off in between."""
    led, sides = values_led(spine), led_sides(spine)
    y = 0.0
    for number, station in enumerate(spine.stations):
        if number:
            y = Gap(spine, number, spine.stations[number - 1], station, led, sides).end(y)
        station.y = y
        y -= station.fragment.height
    spine.found.height = -y


def values_led(spine: Spine) -> set[Origin]:
    """Return the values that are led beside the column, or out of it."""
    straight = {station.straight for station in spine.stations}
    wired = [e for e in spine.flow.edges if e not in straight and not e.source.reference and not e.forks]
    ends = [e for station in spine.stations for e in station.fragment.ends]
    ends += [e for sink in spine.flow.sinks for e in sink.edges[1:] if e.trains]
    fed = {station.fed.source.origin for station in spine.stations if station.fed}
    return {e.source.origin for e in (*wired, *ends) if spine.number(e.source) is not None} | fed


def led_sides(spine: Spine) -> dict[Origin, set[int]]:
    """Return at which sides of the column wires lead each value to where it is read."""
    found: dict[Origin, set[int]] = {}
    for station in spine.stations:
        for edge, points in station.fragment.ends.items():
            found.setdefault(edge.source.origin, set()).add(1 if points[0][0] > 0 else -1)
        if station.fed is not None:
            found.setdefault(station.fed.source.origin, set()).add(spine.options.side)
    for path, one in spine.outer_inputs.items():
        for edge in one.wired:
            found.setdefault(edge.source.origin, set()).update(found.get(NodeOutput(path), ()))
    for edge in (edge for sink in spine.flow.sinks for edge in sink.edges[1:] if edge.trains):
        found.setdefault(edge.source.origin, set()).add(1)
    return found


@dataclass(slots=True)
class Gap:
    """What is between two stations."""

    spine: Spine
    number: int
    """Of the station above."""
    below: Station
    above: Station
    led: set[Origin]
    sides: dict[Origin, set[int]]
    offset: float = 0.0
    """How far above the block below there is something, so far."""
    turns: list[tuple[float, int]] = field(default_factory=list)
    """How far above it what it gives turns off, and to which side."""
    written: Area | None = None
    """What is covered by the label above the block below."""
    lifted: float = 0.0
    """How much higher that stands than usual, since something stands beside the block."""

    @property
    def top(self) -> float:
        """Of the block below."""
        return self.below.y + self.below.fragment.top

    def end(self, y: float) -> float:
        """Return the height at which the station above starts; all that belongs to the one below ends at `y`."""
        label, first = self.label(), self.first_output()
        if label or first:
            self.write(label, first)
        self.tap()
        self.place_outgoing()
        self.send()
        if has_outer_input := self.number in self.spine.readers.values():
            self.place_outer_inputs()
        if self.above.fed is not None:
            self.offset = max(self.offset + STUB, TAP)
            self.above.feed_y = self.top - self.offset
        return self.close(
            y, self.least(label=bool(label or first), has_outer_input=has_outer_input), has_outer_input=has_outer_input
        )

    @property
    def goes_on(self) -> bool:
        """Whether a wire leads straight up from the block below to the one above."""
        straight = self.above.straight
        return straight is not None and straight.source.origin == self.below.gives

    # -- what is in it

    @property
    def giver(self) -> Leaf | OpenMixture | Group | None:
        """The block below, of branches what joins them; none at the lower end."""
        return self.below.item.join if isinstance(self.below.item, Branches | IrregularSubgraph) else self.below.item

    def label(self) -> str:
        """Return what is written above the block: the shape of what it gives, and the dropout of that."""
        item = self.giver
        if item is None:
            return ""
        flow, value = self.spine.flow, output_of(item)
        options, sent = self.spine.options, value in self.spine.sent
        goes_on = value in self.spine.read or (flow.outlet and flow.outlet.path == value.path)
        if not goes_on and not (sent and (len(self.spine.sent) > 1 or self.first_output())):
            return item.after if sent else ""  # the one wire to another column tells the shape
        shape = shape_in(told_shape(item), self.spine.width / 2, options.typography) if options.shapes else ""
        return " · ".join(filter(None, (shape, item.after)))

    def first_output(self) -> str:
        """Return what the first output of the block or the frame is called, where others have their names at wires beside it;
        nothing where it says that, or it is as good as no name.
        """
        item, options = self.giver, self.spine.options
        if not isinstance(item, Leaf | Group) or item.gives in UNNAMED or options.alone or not options.names:
            return ""
        path = item.about.path
        sent = any(one.path == path and one.port for one in self.spine.sent)
        others = sent or any(path in one for one in (self.spine.ports, self.spine.led_out, self.spine.at_ends))
        told = words(item.gives) <= words(f"{item.name} {item.look.title}" if isinstance(item, Leaf) else item.header[0])
        return item.gives if others and not told and output_of(item) in self.spine.read | self.spine.sent else ""

    def write(self, label: str, first: str) -> None:
        """Write the label at the right of the wire and the name of the `first` output at its left, above what stands beside the
        block where they would lie on that.
        """
        role: Role = "note" if self.giver and label == self.giver.after else "shape"
        scale = self.spine.options.typography.scale
        texts = [Text(8, self.top - 9, label, role, "start", scale)] if label else []
        texts += [Text(-6, self.top - 9, first, "port", "end", scale)] if first else []
        y = self.below.y
        beside = [Area(one.left, one.top + y, one.right, one.bottom + y) for one in areas(self.below.fragment)]
        lies = (text.area.bottom - each.top + 3 for each in beside for text in texts if each.meets(text.area))
        self.lifted = max(lies, default=0.0)
        for text in texts:
            self.spine.found.pieces.texts.append(replace(text, y=text.y - self.lifted))
            self.spine.keep(self.spine.found.pieces.texts[-1].area)
        covered = [text.moved(0, -self.lifted).area for text in texts]
        left, right = min(one.left for one in covered), max(one.right for one in covered)
        self.written = Area(left, covered[0].top, right, covered[0].bottom)
        self.offset = LABEL_TOP + self.lifted

    def tapped(self) -> bool:
        """Return whether what the block gives is led beside the column too."""
        return self.below.gives in self.led

    def tap(self) -> None:
        """Make room for the fork to a lane, above what stands beside the block where wires turn off to."""
        if self.tapped():
            sides = sorted(self.sides_of(self.below.gives))
            beside = max(map(self.beside_below, sides), default=0.0)
            self.offset = max(
                self.offset + 4, LABEL_TOP if self.below.item is None else TAP, beside + APART if beside > 0 else 0.0
            )
            self.below.tap_y = self.top - self.offset
            if any(e.back and e.source.passes and e.source.origin == self.below.gives for e in self.spine.flow.edges):
                self.offset += LABEL_TOP - TAP  # which passes it is stands above
            self.turns += [(self.offset, side) for side in sides]

    def place_outgoing(self) -> None:
        """Draw the arrows to outputs of the model, to losses and to states."""
        names, sinks = outgoing_above(self.spine.flow, self.below.item) if self.below.item else ([], [])
        for name in names:
            self.offset = max(self.offset + STUB, TAP, self.beside_below(self.spine.options.side) + APART)
            self.name_exit(name, self.top - self.offset)
            self.turns.append((self.offset, self.spine.options.side))
        for sink in sinks:
            high = room(sink, self.spine.options.typography)
            self.offset = max(self.offset + high / 2 + 4, TAP, self.beside_below(1) + high / 2)
            self.sink_exit(sink, high, self.top - self.offset)
            self.turns.append((self.offset, 1))
            self.offset += high / 2 - 6

    def beside_below(self, side: int) -> float:
        """Return how far above the block below there is something that stands beside it, at a side."""
        tops = [area.top for area in areas(self.below.fragment) if area.reach(side) > RADIUS]
        return self.below.fragment.top - min(tops, default=self.below.fragment.top)

    def name_exit(self, name: str, y: float) -> None:
        """Draw an arrow to the name of an output."""
        assert self.below.gives is not None
        output = Output(self.below.gives, name)
        self.spine.keep(
            output_at(self.spine.found, output, ((0, self.top), (0, y)), self.spine.options.side, self.spine.options.typography)
        )
        self.below.exit_y.append(y)

    def sink_exit(self, sink: Sink, high: float, y: float) -> None:
        """Draw an arrow to what gives nothing; where the value goes on upwards, it starts at a fork."""
        drawn = Fragment()
        if self.goes_on:
            drawn.pieces.dots.append(Dot(0, y))
            sink_at(drawn, sink, ((0, y),), self.spine.options.typography)
        else:
            sink_at(drawn, sink, ((0, self.top), (0, y)), self.spine.options.typography)
        self.spine.found.pieces.take(drawn.pieces)
        self.below.fragment.ends |= {edge: moved(points, 0, -self.below.y) for edge, points in drawn.ends.items()}
        self.spine.keep(Area(0, y - high / 2, drawn.right, y + high / 2))
        self.below.exit_y.append(y)

    def send(self) -> None:
        """Start the wire of a value to another column."""
        value = self.below.gives
        if value not in self.spine.sent or value is None or self.below.item is None:
            return
        self.offset = max(self.offset + STUB, TAP + 8)
        self.turns.append((self.offset, -self.spine.options.side if self.spine.flow.owner else 1))
        y, found = self.top - self.offset, self.spine.found
        if self.goes_on:
            found.pieces.dots.append(Dot(0, y))
            found.taps[value] = ((0, y),)
        else:
            found.taps[value] = ((0, self.top), (0, y))
            self.below.exit_y.append(y)

    def place_outer_inputs(self) -> None:
        """Find a height for what stands below the block above, beside the value that goes up to it: higher than wires that turn
        off to the same side.
        """
        given = self.below.gives
        stem = self.top - max((offset for offset, _ in self.turns), default=0.0)
        free = self.below.item is not None and self.spine.fits_box_width(self.below)
        measuring: OuterInput | None = None
        for path, number in self.spine.readers.items():
            if number != self.number:
                continue
            one = self.spine.outer_inputs[path]
            measured = (e for e in one.reads if e.shape_only and e.upward and e.source.origin == given)
            one.shape_only = next(measured, None)
            sides = self.sides_of(NodeOutput(path)) or {-self.spine.options.side}
            passed = any(side in sides for _, side in self.turns)
            clear = (self.offset if passed else 0.0) + one.height / 2 + CLEAR if passed or not free else 0.0
            self.offset = max(self.offset + 4, TAP, clear)
            one.y = self.top - self.offset
            self.offset += one.height / 2 + CLEAR
            if one.shape_only is not None:
                if measuring is not None:
                    measuring.stem = None
                one.stem, measuring = None if self.goes_on else stem, one

    def sides_of(self, value: Origin | None) -> set[int]:
        """Return the sides at which wires lead a value to where it is read."""
        return self.sides.get(value, set()) if value is not None else set()

    # -- how much room it takes

    def least(self, *, label: bool, has_outer_input: bool) -> float:
        """Return the least distance from block to block on the spine."""
        below, above, owner = self.below, self.above, self.spine.flow.owner
        busy = self.tapped() or below.exit_y or above.fed or below.gives in self.spine.sent
        if isinstance(above.item, Branches | IrregularSubgraph) and above.item.fork is not None:
            return max(6.0, self.offset + 4)
        if above.item is None:
            return max(8.0 if owner else 0.0, self.offset + 8 if busy else 0.0)
        if below.item is None and owner == "" and not (has_outer_input or above.fed):
            return 0.0
        merge = (isinstance(below.item, Leaf) and below.fragment.pieces.merges) or above.fragment.pieces.merges
        least = LABEL_GAP + self.lifted if label else MERGE_GAP if merge else GAP
        least = max(least, self.offset + ARROW if busy else 0.0, self.offset if has_outer_input else 0.0)
        return BETWEEN_FLOWS * least if above.straight is None and self.parts_flows() else least

    def parts_flows(self) -> bool:
        """Return whether another flow begins above, to which nothing comes straight: it reads nothing of this column but inputs
        of the model.
        """
        if self.below.item is None or self.above.item is None:
            return False
        read = [edge.source for edge in (*self.spine.flow.edges_into(self.above.path), *inner_edges(self.above.item))]
        return not any(self.spine.local(source) and not source.is_model_input for source in read)

    def close(self, y: float, least: float, *, has_outer_input: bool) -> float:
        """Return where the station above starts. What stands beside it may reach down into the gap, where nothing stands
        there or beside the one below.
        """
        below, above = self.below, self.above
        crossed = -self.spine.options.side in self.sides_of(below.gives)
        hangs = above.item is not None and not isinstance(above.item, Branches | IrregularSubgraph)
        reach = -above.fragment.foot if hangs and not (crossed or has_outer_input) else 0.0
        if y < self.top - 1:
            y -= APART
        if reach and (above.fragment.pieces.merges or not self.spine.fits_box_width(below)):
            y, reach = y - APART, max(reach - APART, 0.0)
        hanging = [area for area in areas(above.fragment) if reach and area.bottom > above.fragment.foot]
        if self.written is not None and any(one.left < self.written.right and one.right > self.written.left for one in hanging):
            y = min(y, self.written.top - 3)
        return min(y, self.top - least + reach)
