"""A column: blocks above each other on a spine, and every wire that does not go straight up in a lane beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil

from composer.draw.boxes import NARROW, SIDE_GAP, WIDEST, Beside, Fragment, Leaving, block, circle, extent, needed, shift, sink_at
from composer.draw.fan import fan
from composer.draw.frame import frame, side_by_side
from composer.draw.looks import Look, SideLook
from composer.draw.scene import About, Area, Chip, Dot, Point, Style, Text, Wire, straightened
from composer.draw.shape import Asides, aside, branched, in_line, inner_edges, woven
from composer.draw.standing import CLEAR, Standing
from composer.draw.structure import Branches, Edge, Fan, Flow, Group, Item, Leaf, Sink, Source, Web
from composer.draw.web import laid_out

GAP, MERGE_GAP, LABEL_GAP = 20.0, 15.0, 28.0
"""Between two things on a spine; where one is a circle; where the shape is written."""
TAP, ARROW, STUB = 14.0, 15.0, 14.0
"""From a block to a fork above it; from there to the next block; from one crossing wire to the next."""
LANE, LANES = 20.0, 13.0
"""From the blocks to the first lane, and from lane to lane."""
NEAR, CLOSE = 15.0, 9.0
"""The same on a narrow page."""
APART = 8.0
"""Between what stands beside two blocks."""

FAR = 1000.0
"""A lane that is nowhere."""
FEW = 4
"""Blocks of one of several columns that are drawn narrow."""

Net = tuple[str, str]
"""A value, by path and port."""


@dataclass(slots=True)
class Station:
    """A thing on the spine, and what is between it and the one below."""

    item: Item | None
    """None for what comes in and what goes out."""
    fragment: Fragment
    y: float = 0.0
    """Of its lower end."""
    straight: Edge | None = None
    fed: Edge | None = None
    """What comes in from below out of a lane."""
    feed_y: float = 0.0
    tap_y: float = 0.0
    exit_y: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Lane:
    """A wire beside the column: from where its value starts to where it is read."""

    net: Net
    side: int
    start: tuple[Point, ...]
    stops: list[tuple[float, Edge, tuple[Point, ...]]] = field(default_factory=list)
    """For each reader the height at which it turns off, and how it goes on."""
    x: float = 0.0

    @property
    def span(self) -> tuple[float, float]:
        """From the upper end to the lower."""
        ys = [self.start[-1][1], *(stop[0] for stop in self.stops)]
        return min(ys), max(ys)


@dataclass(frozen=True, slots=True)
class Shown:
    """What is written beside wires."""

    shapes: bool = True
    narrow: bool = False
    """Whether blocks stand in one of several columns."""
    side: int = 1
    """Where lanes go: to the right, or to the left with -1."""
    alone: bool = False
    """Whether no block stands beside another."""
    out: int = 1
    """Where what routers tell goes."""


class Column:
    """Lays out one flow."""

    def __init__(self, flow: Flow, width: float, shown: Shown, sent: frozenset[Net] = frozenset()) -> None:
        asides = Asides(flow, {}, {}) if shown.alone else aside(flow, sent)
        self.besides = asides.beside
        self.webs: dict[str, Fragment] = {}
        ordered = in_line(asides.flow)
        self.flow = ordered if shown.alone else in_line(branched(woven(ordered, self.besides, self.fits)))
        self.width, self.shown, self.sent = width, shown, sent
        self.found = Fragment()
        self.paths = {item.about.path: number for number, item in enumerate(self.flow.items, 1)}
        self.lanes: dict[tuple[Net, int], Lane] = {}
        self.standing = {path: Standing(leaf, reads) for path, (leaf, reads) in asides.standing.items()}
        self.readers = {path: self.first_reader(path) for path in self.standing}
        self.beside_gaps: list[Area] = []
        """What stands beside the spine between two blocks."""
        self.led: set[Net] = set()
        """Values that are led beside the column, or out of it."""
        self.crossed: set[str] = set()
        """Paths of those that leave to the side where things stand beside blocks."""

    def fits(self, web: Web) -> bool:
        """Whether an irreducible part can be laid out by itself, which then is done."""
        found = laid_out(web)
        if found is not None:
            self.webs[web.about.path] = found
        return found is not None

    def lay(self) -> Fragment:
        """The column as a fragment; `top` is where its output leaves, and `taps` hold what is read of it elsewhere."""
        self.stations = [Station(None, Fragment())]
        for item in self.flow.items:
            self.stations.append(self.station(item, len(self.stations)))
        self.stations.append(Station(None, Fragment()))
        outlet = self.flow.outlet
        if outlet is not None and not outlet.chip and self.number(outlet) is not None:
            edge = Edge(outlet, self.flow.owner, "", True)
            self.wire_in(self.stations[-1], edge, len(self.stations) - 1)
        self.heights()
        self.place()
        self.route()
        return self.found

    # -- what is where

    def number(self, source: Source) -> int | None:
        """Which station a value comes from; none for one from elsewhere."""
        if source.path == self.flow.owner and not source.port and self.flow.owner:
            return 0
        return self.paths.get(source.path)

    def first_reader(self, path: str) -> int:
        """The station that reads a value first, itself or inside of it."""
        for number, item in enumerate(self.flow.items, 1):
            edges = [*(e for e in self.flow.edges if e.target == item.about.path), *inner_edges(item)]
            if any(e.source.path == path for e in edges):
                return number
        raise AssertionError(path)

    def local(self, source: Source) -> bool:
        """Whether a value comes from something in this column."""
        return self.number(source) is not None or source.path in self.standing

    def wire_in(self, station: Station, edge: Edge, number: int) -> None:
        """Lets a value come in from below: straight, or out of a lane."""
        source = self.number(edge.source)
        if source == number - 1 and not edge.source.port:
            station.straight = edge
        else:
            station.fed = edge

    def station(self, item: Item, number: int) -> Station:
        """An item with all that stands beside it, its wires sorted by how they come."""
        path = item.about.path
        station = Station(item, Fragment())
        edges = list(dict.fromkeys(e for e in self.flow.edges if e.target == path))
        inner = [e for e in edges if not e.source.chip and self.number(e.source) is not None]
        streams = [e for e in inner if e.main and not e.back]
        straight = [e for e in streams if self.number(e.source) == number - 1 and not e.source.port]
        first = next(iter([*straight, *streams]), None)
        asides = [
            Beside(edge, leaf=leaf, style=style_of(edge, leaf), inner=reads) for leaf, edge, reads in self.besides.get(path, ())
        ]
        rest = [e for e in edges if e is not first]
        is_circle = isinstance(item, Leaf) and bool(item.look.sign) and self.round(item, first, rest, asides)
        if first is not None and not (is_circle and not straight and len(rest) < 2):
            self.wire_in(station, first, number)
        elif first is not None:
            rest.insert(0, first)
        station.fragment = self.fragment(item, rest, asides, is_circle)
        return station

    def round(self, item: Leaf, first: Edge | None, rest: Sequence[Edge], asides: Sequence[Beside]) -> bool:
        """Whether a merge is drawn as a circle: it has room for one thing at each side."""
        own = 1 if item.look.sides else 0
        beside = [e for e in rest if not (own and e.source.chip)]
        ports = [e for e in rest if e.source.port and not e.source.chip]  # these leave at the right and come in there
        return own + len(beside) + len(asides) + (first is None) <= 2 and len(ports) < 2

    def fragment(self, item: Item, rest: Sequence[Edge], asides: Sequence[Beside], is_circle: bool) -> Fragment:
        """An item laid out, with what comes in at its sides."""
        rest = sorted(rest, key=lambda e: not e.source.port)
        near = [e for e in rest if not e.source.chip and self.number(e.source) is not None]
        lanes = [Beside(e, style=style_of(e)) for e in near if not e.back]
        backs = [Beside(e, style=style_of(e)) for e in near if e.back]
        far = [Beside(e, style=style_of(e)) for e in rest if not e.source.chip and self.number(e.source) is None]
        far += backs
        chips = [Beside(e, chip=e.source.chip) for e in rest if e.source.chip]
        match item:
            case Leaf():
                own = [self.own_side(item, side, chips if item.look.sign else []) for side in item.look.sides]
                if any(side.learned for side in item.look.sides):
                    item = replace(item, about=replace(item.about, parameters=0), params="")
                if is_circle:
                    others = [*asides, *([] if own else chips), *far]
                    lefts, rights = [*own, *others[: 1 - len(own)]], [*others[1 - len(own) :], *lanes]
                    if len(rights) > 1:
                        lefts, rights = [*lefts, *rights[1:]], rights[:1]
                    if self.shown.side < 0 and not own:
                        lefts, rights = rights, lefts
                    return circle(item, lefts, rights)
                lefts = [*own, *asides, *([] if item.look.sign and own else chips), *far]
                rights = lanes
                if self.shown.side < 0:
                    lefts, rights = rights, lefts
                return block(
                    replace(item, look=item.look.spelled), self.width, lefts, rights, self.leaving(item), narrow=self.shown.narrow
                )
            case Fan():
                return fan(item, self.width, self.leaving(item), [*chips, *far, *lanes], self.shown.out)
            case Group():
                inside = self.through(item)
                leaving = self.leaving(item)
                lay = partial(self.lay_inside, sent=inside)
                return frame(item, self.width, self.shown.narrow, leaving, lay, self.shown.side, inside & self.sent)
            case Web():
                return self.webs[item.about.path]
        return self.branches(item, lanes, [*asides, *chips, *far])

    def own_side(self, item: Leaf, side: SideLook, chips: Sequence[Beside]) -> Beside:
        """What a block has beside it by itself, such as rotary positions."""
        about = replace(
            item.about,
            path=f"{item.about.path}.{side.name}",
            tip=side.words,
            parameters=item.about.parameters if side.learned else 0,
        )
        params = item.params if side.learned else ""
        inner = tuple(beside.edge for beside in chips if beside.edge is not None)
        return Beside(leaf=Leaf(about, Look(side.title, side.facts, side.hue), params), style="side", inner=inner)

    def lay_inside(self, flow: Flow, width: float, narrow: bool, side: int, sent: frozenset[Net]) -> Fragment:
        """A flow in a frame."""
        return Column(flow, width, replace(self.shown, narrow=narrow, side=side), sent).lay()

    def through(self, item: Group) -> frozenset[Net]:
        """Second outputs of blocks in a frame that are read outside of it by a wire."""
        read = [source for _, source in self.flow.exits] + [sink.edges[0].source for sink in self.flow.sinks]
        nets = {*self.sent, *((source.path, source.port) for source in read)}
        return frozenset((path, port) for path, port in nets if port and path.startswith(f"{item.about.path}."))

    def named(self, item: Item) -> list[tuple[str, Source]]:
        """Outputs of the model that an item gives, but for what goes on upwards."""
        path = item.about.path
        below = f"{path}."
        return [(name, source) for name, source in self.flow.exits if source.path == path or source.path.startswith(below)]

    def leaving(self, item: Item) -> list[Leaving]:
        """What is read at an item's side: outputs of the model, and ports other than the first."""
        path = item.about.path
        names = [
            Leaving(source.port or source.chip, name, source.path)
            for name, source in self.named(item)
            if source.port or source.chip or source.path != path
        ]
        read = [*(e.source for e in self.flow.edges), *([self.flow.outlet] if self.flow.outlet else [])]
        ports = {one.port for one in read if one.path == path and one.port and not one.chip}
        inner = () if isinstance(item, Group) else sorted((one, port) for one, port in self.sent if one.startswith(f"{path}."))
        sent = sorted({port for sender, port in self.sent if sender == path and port} - ports)
        sinks = [Leaving("", sink=sink) for sink in self.sinks(item) if not self.plain(sink, path)]
        further = [Leaving(port, said=not self.flow.owner) for port in sent]
        return [
            *names,
            *map(Leaving, sorted(ports)),
            *further,
            *(Leaving(port, "", one, said=False) for one, port in inner),
            *sinks,
        ]

    def sinks(self, item: Item) -> list[Sink]:
        """What reads an item, or what lies in it, and gives nothing."""
        path = item.about.path
        return [
            sink
            for sink in self.flow.sinks
            if sink.edges[0].source.path == path or sink.edges[0].source.path.startswith(f"{path}.")
        ]

    def plain(self, sink: Sink, path: str) -> bool:
        """Whether it reads what an item gives first."""
        source = sink.edges[0].source
        return source.path == path and not source.port and not source.chip

    def branches(self, item: Branches, lanes: Sequence[Beside], lefts: Sequence[Beside]) -> Fragment:
        """Columns side by side, between a fork and a join."""
        return side_by_side(item, lanes, lefts, self.leaving(item), self.lay_branch, self.shown.side)

    def lay_branch(self, flow: Flow) -> Fragment:
        """One of several columns."""
        leaves = [leaf for leaf in flow.leaves() if isinstance(leaf, Leaf)]
        narrow = len(leaves) <= FEW
        width = max([NARROW, *(needed(leaf, narrow=narrow) for leaf in leaves)])
        return Column(flow, min(width, WIDEST), replace(self.shown, narrow=narrow)).lay()

    # -- heights

    def heights(self) -> None:
        """Finds what each gap has to hold, and gives every station its height."""
        self.led = self.nets()
        ends = ((edge, points[0][0]) for s in self.stations for edge, points in s.fragment.ends.items())
        self.crossed = {e.source.path for e, x in ends if not e.source.port and x * self.shown.side < 0}
        y = 0.0
        for number, station in enumerate(self.stations):
            if number:
                y = self.gap(self.stations[number - 1], station, number, y)
            station.y = y
            y -= station.fragment.height
        self.found.height = -y

    def stand(self, above: int, top: float, offset: float) -> float:
        """Finds a height for what stands below a station, beside the value that goes up to it; gives the room that it takes
        above the block below."""
        below = self.stations[above - 1]
        for path, number in self.readers.items():
            if number != above:
                continue
            one = self.standing[path]
            source = below.item.about.path if below.item else self.flow.owner
            measured = (e for e in one.reads if e.measured and e.upward and (e.source.path, e.source.port) == (source, ""))
            one.measured = next(measured, None)
            free = below.item is not None and self.slender(below)
            offset = max(offset + 4, TAP, 0.0 if free else one.height / 2 + CLEAR)
            one.y = top - offset
            offset += one.height / 2 + CLEAR
        return offset

    def gap(self, below: Station, above: Station, number: int, y: float) -> float:
        """The height at which a station starts, above the one that ends at y; sets where wires cross in between."""
        source = below.item.about.path if below.item else self.flow.owner
        top = below.y + below.fragment.top if below.item else y
        offset = 0.0
        label = self.label(below)
        if label:
            text = Text(8, top - 9, label, "shape", "start")
            self.found.pieces.texts.append(text)
            self.beside(text.area)
            offset = 18.0
        merge = isinstance(below.item, Leaf) and below.fragment.pieces.merges
        taps = (source, "") in self.led and (below.item or self.flow.owner)
        if taps:
            offset = max(offset + 4, 18.0 if below.item is None else TAP)
            below.tap_y = top - offset
        for name, _ in self.plain_exits(below):
            offset = max(offset + STUB, TAP)
            below.exit_y.append(top - offset)
            self.name_exit(below, name, top - offset)
        for sink in self.sinks(below.item) if below.item else ():
            if self.plain(sink, source):
                room = Leaving("", sink=sink).height
                offset = max(offset + room / 2 + 4, TAP)
                self.sink_exit(below, sink, top, top - offset)
                offset += room / 2 - 6
        if (source, "") in self.sent and below.item:
            offset = max(offset + STUB, TAP + 8)
            goes_on = any(e.source.path == source and e.upward for e in self.flow.edges)
            fork = [Dot(0, top - offset)] if goes_on else []
            self.found.pieces.dots += fork
            self.found.taps[source, ""] = ((0, top - offset),) if goes_on else ((0, top), (0, top - offset))
        if above.fed is not None:
            offset = max(offset + STUB, TAP)
            above.feed_y = top - offset
        stands = number in self.readers.values()
        if stands:
            offset = self.stand(number, top, offset)
        busy = bool(taps or below.exit_y or above.fed or (source, "") in self.sent)
        least = LABEL_GAP if label else MERGE_GAP if merge or above.fragment.pieces.merges else GAP
        if busy:
            least = max(least, offset + ARROW)
        if stands:
            least = max(least, offset)
        elif below.item is None and self.flow.owner == "":
            least = 0.0
        if above.item is None:
            least = max(8.0 if self.flow.owner else 0.0, offset + 8 if busy else 0.0)
        if isinstance(above.item, Branches | Web) and above.item.fork is not None:
            least = max(6.0, offset + 4)
        # What stands beside a block may reach into the gap, where nothing stands beside its neighbour.
        reach = -above.fragment.foot if above.item and not isinstance(above.item, Branches | Web) else 0.0
        if y < top - 1:
            y -= APART
        if source in self.crossed:
            reach = 0.0
        if reach and (above.fragment.pieces.merges or not self.slender(below)):
            y, reach = y - APART, max(reach - APART, 0.0)
        return min(y, top - least + reach)

    def slender(self, station: Station) -> bool:
        """Whether nothing stands beside a block."""
        return station.item is None or station.fragment.left <= self.width / 2 + 1

    def label(self, station: Station) -> str:
        """What to write above a station: the shape of what it gives, and the dropout of that."""
        item = station.item.join if isinstance(station.item, Branches | Web) else station.item
        if item is None:
            return ""
        path = item.about.path
        read = any(e.source.path == path and not e.source.port for e in self.flow.edges)
        if not read and not (self.flow.outlet and self.flow.outlet.path == path):
            return item.after if (path, "") in self.sent else ""  # the wire to another column tells the shape
        shape = item.shape if self.shown.shapes and isinstance(item, Leaf) else ""
        return " · ".join(filter(None, (shape, item.after)))

    def plain_exits(self, station: Station) -> list[tuple[str, Source]]:
        """Outputs of the model that are what an item gives first, where it also goes on or other outputs do."""
        if station.item is None:
            return []
        path = station.item.about.path
        return [(name, s) for name, s in self.named(station.item) if s.path == path and not s.port and not s.chip]

    def name_exit(self, station: Station, name: str, y: float) -> None:
        """An arrow to the name of an output."""
        assert station.item is not None
        path, target = station.item.about.path, f"outputs:{name}"
        side = self.shown.side
        text = Text(side * (SIDE_GAP + 4), y + 3.5, name, "chip", "start" if side > 0 else "end")
        top = station.y + station.fragment.top
        self.found.pieces.wires.append(Wire(path, target, ((0, top), (0, y), (side * SIDE_GAP, y))))
        self.found.pieces.chips.append(Chip(About(target, f"the model's output {name}"), text, path, target))
        self.beside(text.area)

    def beside(self, area: Area) -> None:
        """Keeps room for what stands beside the spine between two blocks."""
        self.beside_gaps.append(area)
        self.found.right = max(self.found.right, area.right)
        self.found.left = max(self.found.left, -area.left)

    def sink_exit(self, station: Station, sink: Sink, top: float, y: float) -> None:
        """An arrow from above an item to what gives nothing; where others read the value too, it starts at a fork."""
        drawn = Fragment()
        if any(e.source.path == sink.edges[0].source.path and not e.source.chip for e in self.flow.edges):
            drawn.pieces.dots.append(Dot(0, y))
            sink_at(drawn, sink, ((0, y),))
        else:
            sink_at(drawn, sink, ((0, top), (0, y)))
        half = Leaving("", sink=sink).height / 2
        self.found.pieces.take(drawn.pieces)
        self.beside(Area(0, y - half, drawn.right, y + half))
        station.exit_y.append(y)

    def nets(self) -> set[Net]:
        """Values that are led beside the column, or out of it."""
        straight = {station.straight for station in self.stations if station.straight}
        found = {
            (e.source.path, e.source.port)
            for e in self.flow.edges
            if e not in straight and not e.source.chip and self.number(e.source) is not None and e.port != "|"
        }
        ends = [e for s in self.stations for e in s.fragment.ends if self.number(e.source) is not None]
        fed = [s.fed for s in self.stations if s.fed]
        return found | {(e.source.path, e.source.port) for e in (*ends, *fed)}

    # -- wires

    def place(self) -> None:
        """Puts every station where it belongs, and collects where wires begin and end."""
        for station in self.stations:
            if station.item is None:
                continue
            shift(station.fragment, 0, station.y)
        for station in self.stations:
            if station.item is None:
                continue
            self.found.pieces.take(station.fragment.pieces)
            self.found.left = max(self.found.left, station.fragment.left)
            self.found.right = max(self.found.right, station.fragment.right)
            for edge, points in station.fragment.ends.items():
                if self.local(edge.source):
                    self.stop(edge, points)
                else:
                    self.found.ends[edge] = points
            for net in self.sent & set(station.fragment.taps):
                self.found.taps[net] = station.fragment.taps[net]
            if station.fed is not None:
                foot = station.fragment.foot
                self.stop(station.fed, ((0, station.feed_y), (0, foot)))
        last = self.stations[-1]
        if last.fed is not None:
            self.stop(last.fed, ((0, last.feed_y), (0, last.y)))
        self.found.top = last.y

    def stop(self, edge: Edge, points: tuple[Point, ...]) -> None:
        """Lets a wire out of a lane end in some points."""
        side = self.shown.side if points[0][0] == 0 else (1 if points[0][0] > 0 else -1)
        net = (edge.source.path, edge.source.port)
        key = (net, side)
        if key not in self.lanes:
            self.lanes[key] = Lane(net, side, self.start(edge.source))
        self.lanes[key].stops.append((points[0][1], edge, points))

    def start(self, source: Source) -> tuple[Point, ...]:
        """How a value leaves for a lane."""
        if source.path in self.standing:
            return ((0, self.standing[source.path].top),)
        number = self.number(source)
        assert number is not None
        station = self.stations[number]
        if source.port and station.item is not None:
            return station.fragment.taps[source.path, source.port]
        top = station.fragment.top if station.item else 0.0
        return ((0, top), (0, station.tap_y))

    def route(self) -> None:
        """Gives every lane its place and draws all wires."""
        placed: list[tuple[Lane, tuple[float, float]]] = []
        for lane in sorted(self.lanes.values(), key=lambda one: (one.span[1] - one.span[0], one.net)):
            self.place_lane(lane, placed)
            if lane.net[0] in self.standing:
                one = self.standing[lane.net[0]]
                lane.start = one.place(self.found, self.near(one, lane.side), lane.x)
                self.beside_gaps.append(self.found.pieces.boxes[-1].area)
            placed.append((lane, lane.span))
            self.draw_lane(lane)
        for path, one in self.standing.items():
            if not any(lane.net[0] == path for lane, _ in placed):  # those that read it call it by its name
                side = -self.shown.side
                one.place(self.found, self.near(one, side), side * FAR)
        for number, station in enumerate(self.stations[1:], 1):
            if station.straight is not None:
                self.draw_straight(self.stations[number - 1], station)

    def place_lane(self, lane: Lane, placed: Sequence[tuple[Lane, tuple[float, float]]]) -> None:
        """Puts a lane beside everything along its way, and beside shorter lanes."""
        high, low = lane.span
        first, apart = (NEAR, CLOSE) if self.shown.alone else (LANE, LANES)
        reach = 0.0
        for station in self.stations:
            if station.item is not None and station.y > high - 2 and station.y - station.fragment.height < low + 2:
                reach = max(reach, extent(station.fragment, lane.side, high, low))
        for area in self.beside_gaps:
            if area.top < low + 4 and area.bottom > high - 4:
                reach = max(reach, (area.right if lane.side > 0 else -area.left) - first + 8)
        x = reach + first
        beside = sorted(
            abs(other.x) for other, (upper, lower) in placed if other.side == lane.side and upper < low + 6 and high < lower + 6
        )
        for other in beside:
            if abs(other - x) < apart:
                x += ceil(other + apart - x)
        lane.x = lane.side * x
        if lane.side > 0:
            self.found.right = max(self.found.right, x)
        else:
            self.found.left = max(self.found.left, x)

    def near(self, one: Standing, side: int) -> float:
        """How near to the spine a box may come."""
        texts = [a for a in self.beside_gaps if a.top < one.top + one.height and a.bottom > one.top]
        return max([self.width / 2, *(a.right if side > 0 else -a.left for a in texts)]) + CLEAR

    def draw_lane(self, lane: Lane) -> None:
        """A wire for each reader; forks where they part."""
        start = lane.start
        number = self.number(Source(lane.net[0]))
        going_up = number is not None and any(
            s.straight and (s.straight.source.path, s.straight.source.port) == lane.net for s in self.stations
        )
        both = (lane.net, -lane.side) in self.lanes
        if not lane.net[1] and (going_up or both or (number and self.stations[number].exit_y)):
            self.found.pieces.dots.append(Dot(*start[-1]))
            start = start[-1:]
        far = max(lane.stops, key=lambda stop: abs(stop[0] - lane.start[-1][1]))
        for y, edge, points in lane.stops:
            corner = ((lane.x, start[-1][1]), (lane.x, y))
            whole = straightened((*start, *corner, *points))
            if edge is self.stations[-1].fed:
                self.found.out = whole
                continue
            self.found.pieces.wires.append(
                Wire(lane.net[0], target_of(edge), whole, port_of(edge), style_of(edge), partial=edge.partial)
            )
            if y != far[0]:
                self.found.pieces.dots.append(Dot(lane.x, y))

    def draw_straight(self, below: Station, above: Station) -> None:
        """The wire from one station up to the next."""
        edge = above.straight
        assert edge is not None
        top = below.fragment.top if below.item is not None else 0.0
        foot = above.fragment.foot if above.item is not None else above.y
        if above.item is None:
            self.found.out = ((0, top), (0, foot))
            return
        arrow = not isinstance(above.item, Group | Fan | Branches | Web)
        target = "" if edge.source.path.endswith("|") else target_of(edge)
        points = ((0.0, top), (0.0, foot))
        self.found.pieces.wires.append(
            Wire(edge.source.path.partition("|")[0], target, points, port_of(edge), "main", arrow, partial=edge.partial)
        )


def target_of(edge: Edge) -> str:
    """Where a wire is said to end: nowhere, if it forks into branches that go on."""
    return "" if edge.port == "|" else edge.target


def port_of(edge: Edge) -> str:
    """The port that a wire is labelled with."""
    return "" if edge.port == "|" else edge.port


def style_of(edge: Edge, leaf: Leaf | None = None) -> Style:
    """How a wire is drawn, by where it goes."""
    if edge.back:
        return "loop"
    if edge.main:
        return "main" if leaf is None or leaf.look.hue != "pos" else "side"
    return "cross" if edge.port in ("memory", "k", "v", "query") else "side"
