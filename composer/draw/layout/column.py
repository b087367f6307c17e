"""A column: blocks above each other on a spine, and every wire that does not go straight up in a lane beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from blocks.core import Look, SideLook
from composer.draw.build.outer_inputs import Standing
from composer.draw.diagram import Branches, DiagramEdge, Fan, Flow, Group, Item, Leaf, Net, Web
from composer.draw.layout import exits
from composer.draw.layout.boxes import NARROW, WIDEST, needed
from composer.draw.layout.experts import fan
from composer.draw.layout.fragment import Fragment, shift
from composer.draw.layout.frames import frame
from composer.draw.layout.irregular import laid_out
from composer.draw.layout.lanes import style_of, wire
from composer.draw.layout.parallel_flows import side_by_side
from composer.draw.layout.spacing import set_heights
from composer.draw.layout.spine import Shown, Spine, Station
from composer.draw.layout.stations import Beside, Named, Small, Wired, block, circle
from composer.draw.passes.branches import branched
from composer.draw.passes.irregular import woven
from composer.draw.passes.order import in_line, inner_edges
from composer.draw.passes.side_inputs import SideInputs, aside

FEW = 4
"""Blocks of one of several columns that are drawn narrow."""


def column(flow: Flow, width: float, shown: Shown, sent: frozenset[Net] = frozenset()) -> Fragment:
    """A flow laid out; `top` is where its output leaves, and `taps` hold what is `sent` to other columns."""
    asides = SideInputs(flow, {}, {}) if shown.alone else aside(flow, sent)
    webs: dict[str, Fragment] = {}

    def fits(web: Web) -> bool:
        found = laid_out(web)
        if found is not None:
            webs[web.about.path] = found
        return found is not None

    ordered = in_line(asides.flow)
    flow = ordered if shown.alone else in_line(branched(woven(ordered, asides.beside, fits)))
    standing = {path: Standing(leaf, reads) for path, (leaf, reads) in asides.standing.items()}
    numbers = {item.about.path: number for number, item in enumerate(flow.items, 1)}
    spine = Spine(flow, width, shown, sent, standing, {path: first_reader(path, flow) for path in standing}, numbers)
    Stations(spine, asides, webs).stand()
    set_heights(spine)
    place(spine)
    wire(spine)
    return spine.found


def first_reader(path: str, flow: Flow) -> int:
    """The station that reads a value first, itself or inside of it."""
    readers = {edge.target for edge in flow.edges if edge.source.path == path}
    items = enumerate(flow.items, 1)
    return next(n for n, item in items if item.about.path in readers or any(e.source.path == path for e in inner_edges(item)))


def place(spine: Spine) -> None:
    """Puts every station where it belongs."""
    found = spine.found
    for station in spine.stations:
        shift(station.fragment, 0, station.y)
        found.pieces.take(station.fragment.pieces)
        found.left = max(found.left, station.fragment.left)
        found.right = max(found.right, station.fragment.right)
        for net in spine.sent & set(station.fragment.taps):
            found.taps[net] = station.fragment.taps[net]
    found.top = spine.stations[-1].y


@dataclass(frozen=True, slots=True)
class Coming:
    """What comes in at the sides of an item, by how it comes."""

    asides: list[Beside]
    """Small boxes."""
    chips: list[Named]
    far: list[Beside]
    """Wires from other columns, and from above."""
    lanes: list[Beside]
    """Wires from this column."""


class Stations:
    """Lays out what stands on a spine, each with what stands beside it."""

    def __init__(self, spine: Spine, asides: SideInputs, webs: dict[str, Fragment]) -> None:
        self.spine, self.besides, self.webs = spine, asides.beside, webs
        self.flow, self.width, self.shown = spine.flow, spine.width, spine.shown

    def stand(self) -> None:
        """All stations, from below."""
        owner, outlet = self.flow.owner, self.flow.outlet
        stations = self.spine.stations
        stations.append(Station(owner))
        for number, item in enumerate(self.flow.items, 1):
            stations.append(self.station(item, number))
        stations.append(Station(""))
        if outlet is not None and not outlet.chip and self.spine.number(outlet) is not None:
            self.wire_in(stations[-1], DiagramEdge(outlet, owner, "", True), len(stations) - 1)

    def wire_in(self, station: Station, edge: DiagramEdge, number: int) -> None:
        """Lets a value come in from below: straight, or out of a lane."""
        if self.spine.number(edge.source) == number - 1 and not edge.source.port:
            station.straight = edge
        else:
            station.fed = edge

    def station(self, item: Item, number: int) -> Station:
        """An item with all that stands beside it, its wires sorted by how they come."""
        path = item.about.path
        station = Station(path, item)
        edges = list(dict.fromkeys(e for e in self.flow.edges if e.target == path))
        streams = [e for e in edges if e.main and e.upward and self.spine.number(e.source) is not None]
        straight = [e for e in streams if self.spine.number(e.source) == number - 1 and not e.source.port]
        first = next(iter([*straight, *streams]), None)
        rest = [e for e in edges if e is not first]
        asides = [Small(leaf, edge.port, style_of(edge, leaf), reads) for leaf, edge, reads in self.besides.get(path, ())]
        is_circle = isinstance(item, Leaf) and bool(item.look.sign) and self.round(item, first, rest, asides)
        if first is not None and not (is_circle and not straight and len(rest) < 2):
            self.wire_in(station, first, number)
        elif first is not None:
            rest.insert(0, first)
        station.fragment = self.fragment(item, self.coming(rest, asides), is_circle)
        return station

    def round(self, item: Leaf, first: DiagramEdge | None, rest: Sequence[DiagramEdge], asides: Sequence[Small]) -> bool:
        """Whether a merge is drawn as a circle: it has room for one thing at each side."""
        own = 1 if item.look.sides else 0
        beside = [e for e in rest if not (own and e.source.chip)]
        ports = [e for e in rest if e.source.port and not e.source.chip]  # these leave at the right and come in there
        return own + len(beside) + len(asides) + (first is None) <= 2 and len(ports) < 2

    def coming(self, rest: Sequence[DiagramEdge], asides: Sequence[Small]) -> Coming:
        """What does not come in from below; first what is a second output."""
        rest = sorted(rest, key=lambda e: not e.source.port)
        wires = [e for e in rest if not e.source.chip]
        far = [e for e in wires if self.spine.number(e.source) is None]
        near = [e for e in wires if self.spine.number(e.source) is not None]
        far += [e for e in near if e.back]
        chips = [Named(e) for e in rest if e.source.chip]
        return Coming([*asides], chips, [Wired(e) for e in far], [Wired(e) for e in near if not e.back])

    # -- items

    def fragment(self, item: Item, coming: Coming, is_circle: bool) -> Fragment:
        """An item laid out, with what comes in at its sides."""
        leaving = exits.at_side(self.flow, item, self.spine.sent)
        match item:
            case Leaf():
                own = [own_side(item, side, coming.chips if item.look.sign else []) for side in item.look.sides]
                if any(side.learned for side in item.look.sides):
                    item = replace(item, about=replace(item.about, parameters=0), params="")
                if is_circle:
                    return circle(item, *self.around(own, coming))
                lefts: list[Beside] = [*own, *coming.asides, *([] if item.look.sign and own else coming.chips), *coming.far]
                lefts, rights = self.turned(lefts, coming.lanes)
                boxed = replace(item, look=item.look.spelled)
                return block(boxed, self.width, lefts, rights, leaving, narrow=self.shown.narrow)
            case Fan():
                return fan(item, self.width, leaving, [*coming.chips, *coming.far, *coming.lanes], self.shown.out)
            case Group():
                inside = exits.through(self.flow, item, self.spine.sent)
                lay = partial(self.inside, sent=inside)
                return frame(item, self.width, self.shown.narrow, leaving, lay, self.shown.side, inside & self.spine.sent)
            case Branches():
                lefts = [*coming.asides, *coming.chips, *coming.far]
                return side_by_side(item, coming.lanes, lefts, leaving, self.branch)
            case Web():
                return self.webs[item.about.path]

    def around(self, own: Sequence[Small], coming: Coming) -> tuple[list[Beside], list[Beside]]:
        """What stands left and right of a circle."""
        others = [*coming.asides, *([] if own else coming.chips), *coming.far]
        free = 1 - len(own)
        lefts, rights = [*own, *others[:free]], [*others[free:], *coming.lanes]
        if len(rights) > 1:
            lefts, rights = [*lefts, *rights[1:]], rights[:1]
        return (lefts, rights) if own else self.turned(lefts, rights)

    def turned(self, lefts: list[Beside], rights: list[Beside]) -> tuple[list[Beside], list[Beside]]:
        """The two sides the other way round, where lanes are at the left."""
        return (rights, lefts) if self.shown.side < 0 else (lefts, rights)

    def inside(self, flow: Flow, width: float, narrow: bool, side: int, sent: frozenset[Net]) -> Fragment:
        """A flow in a frame."""
        return column(flow, width, replace(self.shown, narrow=narrow, side=side), sent)

    def branch(self, flow: Flow) -> Fragment:
        """One of several columns."""
        leaves = [leaf for leaf in flow.leaves() if isinstance(leaf, Leaf)]
        narrow = len(leaves) <= FEW
        width = max([NARROW, *(needed(leaf, narrow=narrow) for leaf in leaves)])
        return column(flow, min(width, WIDEST), replace(self.shown, narrow=narrow))


def own_side(item: Leaf, side: SideLook, chips: Sequence[Named]) -> Small:
    """What a block has beside it by itself, such as rotary positions."""
    path = f"{item.about.path}.{side.name}"
    about = replace(item.about, path=path, tip=side.words, parameters=item.about.parameters if side.learned else 0)
    leaf = Leaf(about, Look(side.title, side.facts, side.hue), item.params if side.learned else "")
    return Small(leaf, reads=tuple(chip.edge for chip in chips))
