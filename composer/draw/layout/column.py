"""A column: blocks above each other on a spine, and every wire that does not go straight up in a lane beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf

from composer.draw.diagram import Branches, Flow, Group, IrregularSubgraph, Item, Leaf, OpenMixture, output_of
from composer.draw.edges import DiagramEdge, DiagramSource, InnerOutput, Origin, PassOutput, maker
from composer.draw.layout.beside.borders import led_aside, passages_of
from composer.draw.layout.beside.branch_widths import branch_widths, fit_side_by_side, is_narrow
from composer.draw.layout.beside.in_layers import layered_frame, side_boxes_of
from composer.draw.layout.beside.layered import Lay
from composer.draw.layout.beside.u_shape import u_in_frame
from composer.draw.layout.ends.port_names import NO_NAMES, far_starts, names_at_ends
from composer.draw.layout.experts import open_mixture
from composer.draw.layout.fragment import Fragment, shift, upright
from composer.draw.layout.frames import frame
from composer.draw.layout.irregular import irregular_fragment
from composer.draw.layout.lanes import wire
from composer.draw.layout.outer_inputs import OuterInput
from composer.draw.layout.outgoing_edges import OutgoingEdge, Output, leads_up, outgoing_at_side, outgoing_through
from composer.draw.layout.parallel_flows import above_outputs, side_by_side, with_aside
from composer.draw.layout.references import reference_below
from composer.draw.layout.spacing import set_heights
from composer.draw.layout.spine import LANE_SIDE, LayoutOptions, Spine, Station
from composer.draw.layout.stations import (
    Incoming,
    NamedInput,
    SideBox,
    SideInput,
    WiredInput,
    block,
    circle,
    in_pairs,
    joined_loops,
    own_side,
    starts_of,
)
from composer.draw.layout.wrapped import in_columns
from composer.draw.passes.branches import group_branches
from composer.draw.passes.heads import group_heads, group_led_out, group_outputs, lead_to_losses, split_aside
from composer.draw.passes.irregular import group_irregular_subgraphs
from composer.draw.passes.order import inner_edges, sort_topologically
from composer.draw.passes.side_inputs import NOTHING_BESIDE, BesideBlock, SideInputs, split_side_inputs
from composer.draw.paths import belongs

ASIDE_WIDTH = 170.0
"""Of the boxes of what leads aside: less than those of the trunk, and a formula of a loss has room."""


def column(
    flow: Flow,
    width: float,
    options: LayoutOptions,
    sent: frozenset[Origin] = frozenset(),
    beside: Mapping[str, Sequence[BesideBlock]] = NOTHING_BESIDE,
) -> Fragment:
    """Lay out a flow; `top` is where its output leaves, and `taps` hold what is `sent` to other columns. What stands `beside` its
    blocks may be known before: a branch is part of a flow that has been split.
    """
    flow, *aside = (flow,) if options.alone else split_aside(flow)
    if aside:
        return beside_flow(flow, aside[0], sent, lambda part, wide, values: column(part, wide or width, options, values, beside))
    side_inputs = SideInputs(flow, {}, {}) if options.alone else split_side_inputs(flow, sent)
    side_inputs = replace(side_inputs, beside={**side_inputs.beside, **beside})
    subgraphs: dict[str, Fragment] = {}
    side_boxes = {path: side_boxes_of(blocks) for path, blocks in side_inputs.beside.items()}

    def fits(subgraph: IrregularSubgraph) -> bool:
        found = irregular_fragment(subgraph, options.typography, side_boxes, shapes=options.shapes)
        if found is not None:
            subgraphs[subgraph.about.path] = found
        return found is not None

    ordered = sort_topologically(side_inputs.flow)
    if options.alone:
        flow = ordered
    else:
        subgraphs_apart = group_irregular_subgraphs(ordered, fits)

        def lay(branch: Flow, wide: float) -> Fragment:
            return column(branch, wide, replace(options, narrow=is_narrow(branch)), beside=side_inputs.beside)

        fitting = partial(fit_side_by_side, typography=options.typography, lay=lay)
        rows = group_branches(subgraphs_apart, side_inputs.beside, fitting)
        led_out = group_led_out(rows, side_inputs.beside, sent if flow.owner else (), options.side, options.rightward)
        together = sort_topologically(led_out)
        read_outside = {e.target for e in together.all_edges() if e.source.path in side_inputs.outer_inputs}
        flow = lead_to_losses(group_outputs(group_heads(together, read_outside, sent), read_outside, sent))
    outer_inputs = {path: OuterInput(leaf, reads, options.typography) for path, (leaf, reads) in side_inputs.outer_inputs.items()}
    numbers = {item.about.path: number for number, item in enumerate(flow.items, 1)}
    spine = Spine(flow, width, options, sent, outer_inputs, {path: first_reader(path, flow) for path in outer_inputs}, numbers)
    Stations(spine, side_inputs, subgraphs).lay_out()
    set_heights(spine)
    place(spine)
    wire(spine)
    return spine.found


def beside_flow(
    flow: Flow, aside: Flow, sent: frozenset[Origin], lay: Callable[[Flow, float, frozenset[Origin]], Fragment]
) -> Fragment:
    """Return a flow with what leads aside from it at its right, in a column of its own."""
    assert aside.entry is not None
    found = lay(flow, 0.0, sent | {aside.entry})
    own = frozenset(origin for origin in sent if belongs(origin.path, aside.by_path))
    with_aside(found, lay(aside, ASIDE_WIDTH, own), aside.entry)
    found.taps = {origin: points for origin, points in found.taps.items() if origin in sent}
    return found


def items_of(flow: Flow, options: LayoutOptions) -> Lay:
    """Return how items of a flow are laid out that stand on no spine."""
    numbers = {item.about.path: number for number, item in enumerate(flow.items, 1)}
    side_inputs = SideInputs(flow, {}, {})

    def lay(item: Item, width: float, incoming: Incoming, is_circle: bool, faces_right: bool) -> Fragment:
        own = replace(options, side=-options.side) if faces_right else options
        spine = Spine(flow, width, own, frozenset(), {}, {}, numbers)
        if leads_up(flow, item):
            spine.ports, spine.led_out = {}, {}
        return Stations(spine, side_inputs, {}).fragment(item, incoming, is_circle)

    return lay


def reads_below(head: Flow) -> bool:
    """Return whether a block in a head reads a value from below the fork."""
    held = {*head.by_path, head.owner}
    return any(e.upward and e.source.path not in held and not e.source.reference for e in head.edges)


def beside_loops(own: Sequence[SideInput], others: Sequence[SideInput]) -> list[SideInput]:
    """Return what stands at one side of a circle, given what does at the other one: what a loop starts with is where that is."""
    moved = joined_loops([*others, *own])
    loops = {loop: [one for one in moved if moved[one] is loop] for loop in moved.values()}
    stays = (one for one in own if one not in moved)
    return [piece for one in stays for piece in (*(loops.get(one, []) if isinstance(one, WiredInput) else []), one)]


def first_reader(path: str, flow: Flow) -> int:
    """Return the station that reads a value first, itself or inside of it."""
    readers = {edge.target for edge in flow.edges if edge.source.path == path}
    items = enumerate(flow.items, 1)
    return next(n for n, item in items if item.about.path in readers or any(e.source.path == path for e in inner_edges(item)))


def place(spine: Spine) -> None:
    """Put every station where it belongs."""
    found = spine.found
    for station in spine.stations:
        shift(station.fragment, 0, station.y)
        found.pieces.take(station.fragment.pieces)
        found.left = max(found.left, station.fragment.left)
        found.right = max(found.right, station.fragment.right)
        found.named = max(found.named, station.fragment.named)
        for origin in spine.sent & set(station.fragment.taps):
            found.taps[origin] = station.fragment.taps[origin]
    found.top = spine.stations[-1].y


class Stations:
    """Lays out what stands on a spine, each with what stands beside it."""

    def __init__(self, spine: Spine, side_inputs: SideInputs, subgraphs: dict[str, Fragment]) -> None:
        self.spine, self.side_boxes, self.subgraphs = spine, side_inputs.beside, subgraphs
        self.flow, self.width, self.options = spine.flow, spine.width, spine.options
        self.edges_into: dict[str, dict[DiagramEdge, None]] = {}  # each edge once
        for edge in spine.flow.edges:
            self.edges_into.setdefault(edge.target, {})[edge] = None

    def lay_out(self) -> None:
        """Place all stations, from below."""
        owner, outlet = self.flow.owner, self.flow.outlet
        stations = self.spine.stations
        stations.append(Station(owner, gives=self.flow.entry))
        for number, item in enumerate(self.flow.items, 1):
            stations.append(self.station(item, number))
        stations.append(Station(""))
        if outlet is not None and not outlet.reference and self.spine.number(outlet) is not None:
            self.wire_in(stations[-1], DiagramEdge(outlet, owner, "", True), len(stations) - 1)

    def wire_in(self, station: Station, edge: DiagramEdge, number: int) -> None:
        """Wire a value in from below: straight, or out of a lane."""
        if self.spine.is_below(edge.source, number):
            station.straight = edge
        else:
            station.fed = edge

    def station(self, item: Item, number: int) -> Station:
        """Return an item with all that stands beside it, its wires sorted by how they come."""
        path = item.about.path
        station = Station(path, item, output_of(item))
        edges = [*self.edges_into.get(path, ())]
        streams = [e for e in edges if e.main and e.upward and not e.passage and self.spine.number(e.source) is not None]
        straight = [e for e in streams if self.spine.is_below(e.source, number)]
        first = next(iter([*(e for e in streams if e.forks), *straight, *streams]), None)
        first = None if isinstance(item, Branches) and not (item.fork or item.base) else first  # below it there are the branches
        if first is None and number == 1 and isinstance(item, Group):  # which begins a column with what passes of another give
            given = (e for e in edges if e.main and e.upward and e.source.origin in self.options.given)
            station.fed = next((e for e in given if isinstance(e.source.origin, InnerOutput | PassOutput)), None)
        rest = [e for e in edges if e is not first and e is not station.fed]
        side_inputs = side_boxes_of(self.side_boxes.get(path, ()))
        is_circle = isinstance(item, Leaf) and bool(item.look.sign) and self.fits_circle(item, first, rest, side_inputs)
        if first is not None and not (is_circle and not straight and len(rest) < 2):
            self.wire_in(station, first, number)
        elif first is not None:
            rest.insert(0, first)
        incoming = self.incoming(rest, side_inputs)
        named = self.only_name(item, incoming) if number == 1 and self.flow.entry is None and first is None else None
        station.fragment = self.fragment(item, replace(incoming, references=[]) if named else incoming, is_circle)
        if named is not None:
            shift(station.fragment, 0, -reference_below(station.fragment, named.edge, self.options.typography))
            upright(station.fragment)
        if isinstance(item, Group) and station.fragment.below:
            read = [one.origin for one in self.outgoing(item)]
            led_aside(station.fragment, rest, passages_of(item, read), self.options.side)
        return station

    def fits_circle(
        self, item: Leaf, first: DiagramEdge | None, rest: Sequence[DiagramEdge], side_inputs: Sequence[SideBox]
    ) -> bool:
        """Return whether a merge is drawn as a circle: it has room for one thing at each side. Values of other columns come from
        the left.
        """
        own = 1 if item.look.sides else 0
        beside = [e for e in rest if not (own and e.source.reference)]
        ports = [e for e in rest if e.source.port and not e.source.reference]  # these leave at the right and come in there
        given = [e for e in rest if e.source.origin in self.options.given]
        return own + len(beside) + len(side_inputs) + (first is None) <= 2 and len(ports) < 2 and own + len(given) < 2

    def incoming(self, rest: Sequence[DiagramEdge], side_inputs: Sequence[SideBox]) -> Incoming:
        """Return what does not come in from below; first what is a second output of this column."""
        rest = sorted(rest, key=lambda e: not e.source.port or e.source.origin in self.options.given)
        wires = [e for e in rest if not e.source.reference]
        far = [e for e in wires if not self.beside_lanes(e.source)]
        near = [e for e in wires if self.beside_lanes(e.source)]
        far += [e for e in near if e.back and not e.source.port]  # a second output leaves where lanes are, and comes back there
        lanes = [e for e in near if not e.back or e.source.port]
        references = [NamedInput(e) for e in rest if e.source.reference]
        return Incoming([*side_inputs], references, [WiredInput(e) for e in far], [WiredInput(e) for e in lanes])

    def only_name(self, item: Item, incoming: Incoming) -> NamedInput | None:
        """Return the name of the one value that a box reads; it stands below the first box of a column."""
        if not isinstance(item, Leaf) or item.look.sides or len(incoming.references) != 1:
            return None
        return None if incoming.side_inputs or incoming.far or incoming.lanes else incoming.references[0]

    def beside_lanes(self, source: DiagramSource) -> bool:
        """Return whether a value comes from this column, or leaves a block around it where lanes are: at the side of that."""
        if self.spine.side_of(source) != self.options.side:
            return False
        return self.spine.number(source) is not None or (bool(source.port) and source.origin not in self.options.given)

    # -- items

    def fragment(self, item: Item, incoming: Incoming, is_circle: bool, width: float = 0.0) -> Fragment:
        """Lay out an item, with what comes in at its sides; of a block, the `width` may be another one than that of all."""
        path = item.about.path
        led_out = self.spine.led_out.get(path, ())
        outgoing = self.outgoing(item)
        if self.options.alone:  # a narrow page has no room for what outputs are called in the recipe
            outgoing = [replace(one, inside="", own="") if isinstance(one, Output) else one for one in outgoing]
        match item:
            case Leaf():
                own = [own_side(item, side, incoming.references if item.look.sign else []) for side in item.look.sides]
                if any(side.learned for side in item.look.sides):
                    item = replace(item, about=replace(item.about, parameters=0), params="")
                told = self.options.names and not self.options.alone
                far = far_starts(one.edge for one in incoming.far) if told else NO_NAMES
                if is_circle:
                    return circle(item, self.options.typography, *self.around_circle(own, incoming), far)
                near, far_off = starts_of([] if item.look.sign and own else incoming.references, incoming.lanes)
                lefts: list[SideInput] = [
                    *own,
                    *incoming.side_inputs,
                    *in_pairs(far_off, incoming.far, self.height_of_source),
                ]
                lefts, rights = self.by_side(lefts, in_pairs(near, incoming.lanes, self.height_of_source))
                boxed = replace(item, look=item.look.spelled)
                names = {**far, **names_at_ends(self.edges_into.get(path, ()), self.flow.by_path)} if told else NO_NAMES
                return block(
                    boxed,
                    width or self.width,
                    self.options.typography,
                    lefts,
                    rights,
                    outgoing,
                    names=names,
                    narrow=self.options.narrow,
                )
            case OpenMixture():
                return open_mixture(
                    item,
                    self.width,
                    outgoing,
                    [*incoming.references, *incoming.far, *incoming.lanes],
                    self.options.typography,
                    self.options.out,
                )
            case Group():
                inside = outgoing_through(self.flow, item, self.spine.sent, led_out)
                lay = partial(self.inside, sent=inside, group=item)
                through = inside & self.spine.sent
                return frame(
                    item,
                    self.width,
                    self.options.narrow,
                    outgoing,
                    lay,
                    self.options.side,
                    self.options.typography,
                    through,
                    inside,
                    () if self.flow.owner else self.spine.sent,
                )
            case Branches():
                lefts = [*incoming.side_inputs, *incoming.references, *incoming.far]
                led = {e.source.origin for e in self.flow.edges if e.source.path in self.spine.begun and not e.source.reference}
                led &= {output_of(flow.items[0]) for flow in item.flows}  # these go on beside the branches, to more of the model
                widths = iter(branch_widths(item, self.options.typography, equal=not led))
                free = {id(flow) for flow in (item.flows[0], item.flows[-1])}  # from others a wire would cross their neighbors

                def lay_branch(flow: Flow) -> Fragment:
                    options = replace(self.options, narrow=is_narrow(flow))
                    if item.join is None and flow is item.flows[-1] and reads_below(flow):
                        options = replace(options, side=-LANE_SIDE)  # what comes from below the fork does so at the outer side
                    inner = frozenset(one for one in self.spine.sent if id(flow) in free and self.flow.owner)
                    return column(flow, next(widths), options, inner | led, beside=self.side_boxes)

                if (base := item.base) is not None:
                    below = partial(self.fragment, base, incoming, False)
                    return above_outputs(item, below, lay_branch, self.options.typography, shapes=self.options.shapes)
                lefts, rights = self.by_side(lefts, [*incoming.lanes])
                return side_by_side(item, rights, lefts, outgoing, lay_branch, self.options.typography)
            case IrregularSubgraph():
                return self.subgraphs[item.about.path]

    def around_circle(self, own: Sequence[SideBox], incoming: Incoming) -> tuple[list[SideInput], list[SideInput]]:
        """Return what stands left and right of a circle."""
        others = [*incoming.side_inputs, *([] if own else incoming.references), *incoming.far]
        others.sort(key=lambda one: not (isinstance(one, WiredInput) and one.edge.source.origin in self.options.given))
        free = 1 - len(own)
        lefts, rights = [*own, *others[:free]], [*others[free:], *incoming.lanes]
        if len(rights) > 1:
            lefts, rights = [*lefts, *rights[1:]], rights[:1]
        lefts, rights = (lefts, rights) if own else self.by_side(lefts, rights)
        lefts, rights = (rights, lefts) if any(map(self.leads_around, rights)) else (lefts, rights)
        return beside_loops(lefts, rights), beside_loops(rights, lefts)

    def leads_around(self, side_input: SideInput) -> bool:
        """Return whether something comes back around branches, of which this is the one at the left."""
        return isinstance(side_input, WiredInput) and side_input.edge.back and self.spine.number(side_input.edge.source) is None

    def by_side(self, lefts: list[SideInput], rights: list[SideInput]) -> tuple[list[SideInput], list[SideInput]]:
        """Return the two sides the other way round, where lanes are at the left."""
        return (rights, lefts) if self.options.side < 0 else (lefts, rights)

    def outgoing(self, item: Item) -> list[OutgoingEdge]:
        """Return what leaves at the side of an item."""
        path = item.about.path
        ports, led_out = self.spine.ports.get(path, ()), self.spine.led_out.get(path, ())
        return outgoing_at_side(self.flow, item, ports, self.spine.sent, led_out, self.options.called)

    def height_of_source(self, side_input: WiredInput) -> float:
        """Return which station from below gives what comes in by a wire; from elsewhere, it comes last."""
        number = self.spine.number(side_input.edge.source)
        return inf if number is None else number

    def inside(self, flow: Flow, width: float, narrow: bool, side: int, sent: frozenset[Origin], group: Group) -> Fragment:
        """Lay out a flow in a frame, in several columns where it is to be broken; in layers where it has passages."""
        options = replace(self.options, narrow=narrow, side=side)
        if not self.flow.owner:
            options = replace(options, rightward=frozenset(map(maker, self.spine.sent)))
        if group.passages:
            found = layered_frame(group, options, items_of)
            assert found is not None  # or else it would have none
            return found
        u = u_in_frame(flow, options, column) if len(group.flows) == 1 and not sent else None
        if u is not None:
            return u
        broken, high = options.broken
        if group.about.path == broken and not sent:
            several = in_columns(flow, high, lambda part, on: column(part, width, options, on))
            if several is not None:
                return several
        return column(flow, width, options, sent)
