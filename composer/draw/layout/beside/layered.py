"""Any flow in layers: blocks and frames rank by rank, inputs below and outputs above, long streams as straight columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

from composer.draw.diagram import Flow, Group, Item, Leaf, OpenMixture, told_shape
from composer.draw.edges import DiagramEdge, DiagramSource, NodeOutput
from composer.draw.geometry import Point
from composer.draw.graphviz_programs import Missing, pure
from composer.draw.layout.beside.borders import centered, passages_of
from composer.draw.layout.beside.heights import STREAM, LevelWires, in_two_rows, ranks
from composer.draw.layout.beside.layers import BEGINS, STRAIGHT, Layers, slot
from composer.draw.layout.beside.measure import PAGE_WIDTH, clearer, measured
from composer.draw.layout.beside.order import Kin, turned
from composer.draw.layout.beside.parallel_streams import ParallelStreams, parallel_streams
from composer.draw.layout.beside.stages.in_line import in_line
from composer.draw.layout.beside.stages.spread import spread
from composer.draw.layout.beside.tracks import APART, SIDE, RankNode
from composer.draw.layout.beside.wide_boxes import StreamLanes, wide_paths
from composer.draw.layout.boxes import MAX_BOX_WIDTH, MIN_COLUMN_WIDTH, needed
from composer.draw.layout.ends.port_names import names_at_ends, names_below, said_at_end
from composer.draw.layout.ends.shapes import shape_in
from composer.draw.layout.fragment import Fragment
from composer.draw.layout.narrow import has_short_title, in_lines, small
from composer.draw.layout.outgoing_edges import leads_up, mark_at, room, sink_at
from composer.draw.layout.parallel_flows import FEW_BRANCHES
from composer.draw.layout.spacing import LABEL_TOP
from composer.draw.layout.spine import LayoutOptions
from composer.draw.layout.stations import Incoming, NamedInput, SideBox, WiredInput
from composer.draw.passes.heads import output_leaf
from composer.draw.passes.layers import ItemLink, alike_sources, fans, forks_alike, kept_shapes, kin_of, links_of, streams
from composer.draw.paths import is_output
from composer.draw.scene import Dot
from composer.draw.series import is_series, without_repeat

MIN_ITEMS, MAX_ITEMS = 8, 100
"""Items of a flow that is laid out so: one with fewer is seen at a glance in a column too."""
MIN_IN_FRAME = 6
"""Items of the inside of a frame that is laid out so, with what comes in and goes out at its borders."""
MAX_ROW_WIDTH, ROW_GAP = 1150.0, 24.0
"""Of the widest rank whose boxes are all equally wide: a page without its margins; and the least distance between two of them."""
MIN_LINED_WIDTH = 116.0
"""Of boxes of such a rank whose texts stand in several lines: a number of channels before and after has room."""
SMALL_WIDTH = 132.0
"""Of a small box between two streams: a convolution has room in one line, with its channels."""
MIN_SMALL = 2
"""Boxes between streams from which on these are small: one alone has room."""
NARROWER = (0.95, 0.9, 0.85, 0.8, 0.75, 0.7)
"""How much shorter the lines of such a box may be."""
MUCH_WIDER = 1.1
"""What a row in the order of the recipe costs at most of the width without it."""
MAX_WIDTH = 2400.0
"""Twice the width of a page: shrunk to it, a wider part could not be read."""
MIN_ROW = 3
"""Inputs with which Graphviz is asked for the mirror image too."""
MIN_STREAM = 4
"""Items of a stream that is straight before others."""
MAX_SIDES = 2
"""Wires into a block that stands above one of them: above more, it stands in the middle."""
LANE, LANES = 20.0, 14.0
"""From a frame to the first wire that goes up beside it, and from one to the next."""

NO_KIN: Kin = MappingProxyType({})
Lay: TypeAlias = Callable[[Item, float, Incoming, bool, bool], Fragment]
"""Lays out an item for a width of its boxes, with what comes in at its sides; or as a circle. One that faces right has there what
else comes in at the left.
"""


def layered(
    flow: Flow, ordered: Sequence[str], beside: Mapping[str, Sequence[SideBox]], options: LayoutOptions, lay: Lay
) -> Fragment | None:
    """Return a flow in layers, its items `ordered` as in the recipe from the left where wires leave a choice; none where it has
    too few or too many items, where a value goes back, where all are in line, or without our own Graphviz, since any other would
    draw other bytes.
    """
    least = MIN_IN_FRAME if options.ends else MIN_ITEMS
    if not (least <= len(flow.items) <= MAX_ITEMS) or any(e.of_state for e in flow.edges):
        return None
    if any(_is_first(flow, sink.edges[0].source) and not sink.leaf for sink in flow.sinks):  # a state
        return None
    if not pure():
        return None
    inputs = [path for path in options.inputs if path in flow.by_path]
    flow = _with_names_of_streams(flow)
    links = links_of(flow)
    try:
        items = _Items(flow, ordered, beside, options, lay, links, streams(flow, links, options.ends))
        if len({*items.rank.values()}) == len(flow.items):
            return None
        found = [
            _in_order(items, inputs, mirrored=mirrored) for mirrored in ((False, True) if _is_sided(flow, inputs) else (False,))
        ]
        others = [*_in_parallel(items, inputs)]
    except Missing:
        return None
    found = [one for one in found if one.left + one.right <= MAX_WIDTH]
    others = [one for one in others if one.left + one.right <= MAX_WIDTH]
    best = found[-1:] if len(found) > 1 and clearer(found[0], found[-1]) else found[:1]
    if options.ends and others and not (best and clearer(others[0], best[0])):
        return min(others, key=lambda one: measured(one).cost)  # in a frame, streams go straight from border to border
    return min((*best, *others), key=lambda one: measured(one).cost, default=None)


def _is_sided(flow: Flow, inputs: Sequence[str]) -> bool:
    """Return whether the left differs from the right: there are many inputs, or several passages of a frame."""
    return len(inputs) >= MIN_ROW or any(isinstance(item, Group) and item.passages for item in flow.items)


def find_parallel_streams(
    flow: Flow, options: LayoutOptions, *, as_joined: bool = False
) -> tuple[list[list[str]], ParallelStreams | None]:
    """Return the streams of a flow, in order, and where they stand if they exchange values, those that one block reads in its
    order with `as_joined`; alike branches of a fork do not stand so, but around its middle.
    """
    links = links_of(flow)
    kept = kept_shapes(flow, links)
    lines = streams(flow, links, options.ends, kept.pairs, kept.changed)
    inputs = [path for path in options.inputs if path in flow.by_path]
    found = parallel_streams(lines, links, [*flow.by_path], inputs, as_joined=as_joined)
    return lines, None if found is None or forks_alike(flow, links, found.columns) else found


def _in_parallel(usual: _Items, inputs: Sequence[str]) -> Iterator[Fragment]:
    """Yield the items with parallel streams, if they exchange values; a page that is too wide also without level wires."""
    lines, columns = find_parallel_streams(usual.flow, usual.options)
    if columns is None:
        return
    wide = _placed(usual.in_lines(lines, columns), inputs, mirrored=False).fragment()
    joined = find_parallel_streams(usual.flow, usual.options, as_joined=True)[1]
    if joined is not None and joined.columns != columns.columns:
        ordered = _placed(usual.in_lines(lines, joined), inputs, mirrored=False).fragment()
        if _costs_little(ordered, wide):
            wide, columns = ordered, joined
    yield wide
    if wide.left + wide.right > PAGE_WIDTH:
        apart = replace(columns, reach=0.0)
        yield _placed(usual.in_lines(lines, apart), inputs, mirrored=False).fragment()
        yield _placed(usual.in_lines(lines, apart, in_rows=True), inputs, mirrored=False).fragment()


def _in_order(items: _Items, inputs: Sequence[str], *, mirrored: bool) -> Fragment:
    """Return the items in layers, those that are called the same in the order of the recipe where that costs no crossing and not
    much width.
    """
    layers = _placed(items, inputs, mirrored=mirrored)
    usual = layers.fragment()
    if not turned(layers.rows(), items.kin):
        return usual
    ordered = _placed(items, inputs, items.kin, mirrored=mirrored).fragment()
    return ordered if _costs_little(ordered, usual) else usual


def _costs_little(ordered: Fragment, usual: Fragment) -> bool:
    """Return whether an order has no more crossings than the usual one, and is hardly wider."""
    after, before = measured(ordered), measured(usual)
    return after.crossings <= before.crossings and after.width <= MUCH_WIDER * before.width


def _placed(items: _Items, inputs: Sequence[str], kin: Kin = NO_KIN, *, mirrored: bool) -> Layers:
    """Return the items in layers, the inputs in that order, and what is `kin` where no more wires cross; merges that two wires
    from one side would lead to are boxes, and frames face what they read.
    """
    layers = items.in_layers(inputs, kin, mirrored=mirrored)
    layers.place()
    if crowded := layers.crowded():
        layers = items.in_layers(inputs, kin, crowded, mirrored=mirrored)
        layers.place()
    if facing := layers.read_from_right():
        layers = items.in_layers(inputs, kin, crowded, facing, mirrored=mirrored)
        layers.place()
    return layers


class _Items:
    """The items of a flow, before they have a place."""

    def __init__(
        self,
        flow: Flow,
        ordered: Sequence[str],
        beside: Mapping[str, Sequence[SideBox]],
        options: LayoutOptions,
        lay: Lay,
        links: Sequence[ItemLink],
        lines: Sequence[Sequence[str]],
        columns: ParallelStreams | None = None,
        *,
        in_rows: bool = False,
    ) -> None:
        self.flow, self.ordered, self.beside, self.options, self.lay = flow, ordered, beside, options, lay
        self.items = flow.by_path
        self.links, self.streams, self.parallel = links, lines, columns
        self.boxed: Collection[str] = ()
        self.facing_right: Collection[str] = ()
        self.apart: dict[str, Sequence[tuple[float, float, float]]] = {}
        """Of frames, between which streams there is more room, and how much."""
        self.across = wide_paths(flow, links)
        self.straight = {pair: _straight(one, pair) for one in self.streams for pair in pairwise(one)}
        self.rank = self.ranks()
        if in_rows and columns is not None:
            self.rank = in_two_rows(self.rank, links, columns)
        self.small = self.between_streams()
        self.items = {**self.items, **self.small}
        self.items = {**self.items, **self.in_narrow_rows()}
        self.kin: Kin = {(path, self.rank[path]): one for path, one in kin_of(flow, ordered).items()}
        self.fans = [*fans(flow, self.links, self.rank)]
        trunks = {fan.hub for fan in self.fans}  # what a hub goes on with stands above it, and its wires to the row go around
        self.straight = {
            pair: weight + (pair[0] in trunks and weight < STRAIGHT and self.is_straight(*pair))
            for pair, weight in self.straight.items()
        }
        rows = [[(path, self.rank[path]) for path in row] for row in alike_sources(flow, links)]
        self.siblings = [row for row in rows if len({rank for _, rank in row}) == 1]

    def in_lines(self, lines: Sequence[Sequence[str]], columns: ParallelStreams, *, in_rows: bool = False) -> _Items:
        """Return the items in other streams, which have columns of their own; many blocks between these may stand in two rows."""
        return _Items(self.flow, self.ordered, self.beside, self.options, self.lay, self.links, lines, columns, in_rows=in_rows)

    def in_layers(
        self, inputs: Sequence[str], kin: Kin, boxed: Collection[str] = (), facing: Collection[str] = (), *, mirrored: bool
    ) -> Layers:
        """Return the items in ranks; some merges are no circles, and some frames are `facing` what is at their right."""
        self.boxed, self.facing_right, self.apart = boxed, facing, {}
        rank = self.rank
        leaves = {path: item for path, item in self.items.items() if isinstance(item, Leaf)}
        widths = {path: self.width(leaf) for path, leaf in leaves.items() if not (self.is_circle(leaf) or path in self.small)}
        most = max([1, *Counter(rank[path] for path in widths).values(), self.slots([*widths])])
        equal = max((wide for path, wide in widths.items() if path not in self.across), default=0.0)
        if most * (equal + ROW_GAP) > MAX_ROW_WIDTH * self.options.typography.scale:
            equal = 0.0

        of_lanes = self.lane_boxes()

        def usual(path: str, item: Item) -> RankNode:
            if path in self.small:
                return self.node(item, max(needed(self.small[path], self.options.typography), SMALL_WIDTH))
            inner = [
                needed(leaf, self.options.typography) for leaf in Flow(None, (item,), (), None).leaves() if isinstance(leaf, Leaf)
            ]
            wide = max(equal, widths[path] if path in widths else min(max(inner, default=0.0), MAX_BOX_WIDTH), MIN_COLUMN_WIDTH)
            wide = of_lanes.get(path, wide)
            return self.node(item, max(wide, self.width_for_names(item), self.width_for_outputs(item)))

        ordered = self.in_columns(inputs)
        found = {path: usual(path, item) for path, item in ordered if path not in self.across}
        self.put_in_line(found, usual)
        if self.across:
            found |= self.wide_nodes(found, max([MIN_COLUMN_WIDTH, *of_lanes.values()]))
        nodes = {(path, rank[path]): found[path] for path, _ in ordered}
        anchor = self.streams[0][-1] if self.streams else self.flow.items[-1].about.path
        return Layers(
            self.options.typography,
            self.links,
            rank,
            nodes,
            (anchor, rank[anchor]),
            straight={(a, b): weight for (a, b), weight in self.straight.items() if self.is_straight(a, b)},
            kin=kin,
            row=inputs,
            mirrored=mirrored,
            fans=self.fans,
            parallel=self.parallel,
            siblings=self.siblings,
        )

    def put_in_line(self, nodes: dict[str, RankNode], lay: Callable[[str, Item], RankNode]) -> None:
        """Move frames above each other that the same streams go through, so that these go straight up."""
        frames = {path: nodes[path] for path in self.items if path in nodes and len(nodes[path].below) > 1}
        apart = len({self.rank[path] for path in frames}) == len(frames) > 1
        found = in_line(frames, self.links) if apart else {}
        for path, one in found.items():
            self.apart[path] = one.apart
            nodes[path] = lay(path, self.items[path])
        for line in {one.line for one in found.values()}:
            several = {path: one for path, one in found.items() if one.line == line}
            low = min(one.middle - one.width / 2 for one in several.values())
            high = max(one.middle + one.width / 2 for one in several.values())
            for path, one in several.items():
                nodes[path].move_aside(one.middle - (low + high) / 2)
                nodes[path].line = line

    def lane_boxes(self) -> dict[str, float]:
        """Return the blocks that begin a stream which goes through boxes across several, all as wide as one needs."""
        several = (
            {path for path, item in self.items.items() if isinstance(item, Group) and item.passages} if self.across else set()
        )
        begun = {link.source for link in self.links if link.target in self.across or link.target in several}
        leaves = [self.items[path] for path in begun if path not in self.across]
        widths = {item.about.path: self.width(item) for item in leaves if isinstance(item, Leaf) and not self.is_circle(item)}
        return dict.fromkeys(widths, max([MIN_COLUMN_WIDTH, *widths.values()]))

    def wide_nodes(self, others: Mapping[str, RankNode], wide: float) -> dict[str, RankNode]:
        """Return the boxes across several streams, and move all that these go through, of which some may be among the `others`,
        so that their streams stand above each other.
        """
        typography, found = self.options.typography, dict[str, RankNode]()
        lanes = StreamLanes(self.links, wide + ROW_GAP, lambda net: slot(net, typography))
        middles: dict[str, dict[str, float]] = {}
        for path, item in self.items.items():
            if path in self.across:
                box = lanes.box(path, self.across[path], wide / 2)
                found[path] = self.node(item, box.width)
                found[path].ways, found[path].tops = box.below, box.above
                found[path].shapes = self.shapes_of_streams(path)
                middles.setdefault(box.line, {})[path] = box.middle
            elif len(others[path].above) > 1:
                line = others[path].line or path
                lanes.begin(line, others[path])
                middles.setdefault(line, {})[path] = 0.0
        whole = {**others, **found}
        for line, several in middles.items():
            if len(several) > 1:
                low = min(x - whole[path].width / 2 for path, x in several.items())
                high = max(x + whole[path].width / 2 for path, x in several.items())
                for path, x in several.items():
                    whole[path].move_aside(x - (low + high) / 2)
                    whole[path].line = line
        return found

    def shapes_of_streams(self, path: str) -> dict[str, str]:
        """Return the shape of each value that leaves a box across several streams."""
        given = {link.net: link.edge.source.shape for link in self.links if link.source == path and self.options.shapes}
        return {net: shape for net, shape in given.items() if shape and not is_series(shape)}

    def between_streams(self) -> dict[str, Leaf]:
        """Return the closed boxes in a frame through which one of its streams gives a value of another shape to another one, as
        small boxes: what comes in and goes out is told by the streams.
        """
        if self.parallel is None or not self.options.ends:
            return {}
        columns, found = self.parallel.columns, dict[str, Leaf]()
        typography = self.options.typography
        for path, item in self.items.items():
            if not (isinstance(item, Leaf) and item.closed and item.shape) or path in columns or self.named(path):
                continue
            into = [link.source for link in self.links if link.target == path]
            ends = [columns.get(one) for one in (*into, *{link.target for link in self.links if link.source == path})]
            alone = len(ends) == 2 and not (self.beside.get(path) or item.look.sides)
            if alone and None not in ends and ends[0] != ends[1] and has_short_title(item, SMALL_WIDTH, typography):
                found[path] = item
        return small(found, SMALL_WIDTH, typography) if len(found) >= MIN_SMALL else {}

    def in_narrow_rows(self) -> dict[str, Leaf]:
        """Return the boxes of rows that would be wider than a page: those of many that are alike, with their texts in lines."""
        found: dict[str, Leaf] = {}
        leaves = {path: item for path, item in self.items.items() if isinstance(item, Leaf) and not self.is_circle(item)}
        for rank in {*self.rank.values()}:
            row = [path for path in leaves if self.rank[path] == rank and path not in self.small]
            titles = {path: without_repeat(leaves[path].look.title) for path in row}
            alike_titles = Counter(titles.values())
            alike = [path for path in row if alike_titles[titles[path]] > FEW_BRANCHES and not leaves[path].look.sides]
            rest = sum(self.width(leaves[path]) + ROW_GAP for path in row if path not in alike)
            room = MAX_ROW_WIDTH * self.options.typography.scale - rest
            if alike and sum(self.width(leaves[path]) + ROW_GAP for path in alike) > room:
                slots = self.slots(alike)
                least = MIN_COLUMN_WIDTH if slots else MIN_LINED_WIDTH * self.options.typography.scale
                width = max(room / max(len(alike), slots) - ROW_GAP, least)
                found |= self.lined({path: leaves[path] for path in alike}, width)
        return found

    def slots(self, row: Sequence[str]) -> int:
        """Return how many blocks stand side by side between columns where those of a row and near to it do: as many as there are
        in the fullest rank of each place.
        """
        if self.parallel is None:
            return 0
        places, near = self.parallel.places, {self.rank[path] + by for path in row for by in (-1, 0, 1)}
        between = [path for path in places if path not in self.parallel.columns and self.rank[path] in near]
        count = Counter((places[path], self.rank[path]) for path in between)
        return sum(max(number for (at, _), number in count.items() if at == place) for place in {at for at, _ in count})

    def lined(self, leaves: Mapping[str, Leaf], width: float) -> dict[str, Leaf]:
        """Return boxes with their texts in lines of a width; those with fewer lines than others have shorter ones, so that all
        are equally high where that can be.
        """
        typography = self.options.typography
        found = {path: in_lines(leaf, width, typography) for path, leaf in leaves.items()}
        most = max(len(leaf.lines) for leaf in found.values())
        for path, leaf in leaves.items():
            narrower = (in_lines(leaf, width * share, typography) for share in NARROWER)
            if len(found[path].lines) < most:
                found[path] = next((one for one in narrower if len(one.lines) == most), found[path])
        return found

    def is_straight(self, a: str, b: str) -> bool:
        """Return whether an item stands above the one that it goes on from, and not in the middle of all that it reads; where
        streams have columns of their own, what reads three of them is in the middle.
        """
        read = [link for link in self.into(b) if link.edge.main]
        if self.parallel:
            return len({self.parallel.columns.get(link.source) for link in read} - {None}) <= MAX_SIDES
        return len(read) <= MAX_SIDES and not any(one.joins(a, b) for one in self.fans)

    def ranks(self) -> dict[str, int]:
        """Return how high each item stands."""
        weights = {pair: STREAM for pair, weight in self.straight.items() if weight == STRAIGHT}
        found = ranks(self.flow, self.links, weights)
        if self.parallel is None:
            return found
        leaves = {path: item for path, item in self.items.items() if isinstance(item, Leaf)}
        return LevelWires(
            self.flow,
            self.links,
            self.parallel,
            {pair for pair in self.straight if self.is_straight(*pair)},
            {path for path, leaf in leaves.items() if self.is_circle(leaf)},
            {path for path, leaf in leaves.items() if leaf.look.sides or self.beside.get(path) or self.named(path)},
            self.across,
            [*fans(self.flow, self.links, found)],
        ).ranks(weights)

    def in_columns(self, inputs: Sequence[str]) -> list[tuple[str, Item]]:
        """Return the items; in a frame, stream by stream in the order of what comes in: Graphviz begins with it."""
        if not self.options.ends:
            return [*self.items.items()]
        lines = sorted(self.streams, key=lambda line: inputs.index(line[0]) if line[0] in inputs else len(inputs))
        return [(path, self.items[path]) for line in lines for path in line]

    def into(self, path: str) -> list[ItemLink]:
        """Return the wires into an item from below."""
        return [link for link in self.links if link.target == path == link.edge.target]

    def is_circle(self, leaf: Leaf) -> bool:
        """Return whether a merge has room for all that it reads as a circle."""
        count, own = len(self.into(leaf.about.path)), 1 if leaf.look.sides else 0
        lefts = own + len(self.beside.get(leaf.about.path, ())) + (0 if own else len(self.named(leaf.about.path)))
        return bool(leaf.look.sign) and leaf.about.path not in self.boxed and count + lefts <= 3 and lefts <= 1

    def named(self, path: str) -> list[DiagramEdge]:
        """Return what an item reads by its name."""
        return [e for e in dict.fromkeys(self.flow.edges_into(path)) if e.source.reference]

    def width(self, leaf: Leaf) -> float:
        """Return the width that a block needs as a box."""
        count = len(self.into(leaf.about.path))
        wide = needed(leaf, self.options.typography, narrow=self.options.narrow)
        return min(max(MIN_COLUMN_WIDTH, wide, (count + 1) * 2 * APART), MAX_BOX_WIDTH)

    def width_for_names(self, item: Item) -> float:
        """Return the width that a block needs for the names of what comes in from below, beside its stream in the middle."""
        names = self.names(item)
        streams = len(self.into(item.about.path)) - len(names)
        wide = sum(names.values()) + 2 * APART if names else 0.0
        return min(2 * (wide + 2 * APART * (streams - 1)) if streams > 0 else wide, MAX_BOX_WIDTH)

    def width_for_outputs(self, item: Item) -> float:
        """Return the width that a block needs for what leaves it above beside its first output, with the names of all."""
        path = item.about.path
        if not leads_up(self.flow, item):
            return 0.0
        others = {link.net for link in self.links if link.source == path and link.edge.source.origin.port}
        first = item.gives if isinstance(item, Leaf) else ""
        rooms = [slot(net, self.options.typography) for net in (*others, *([first] if first and others else []))]
        wide = 2 * sum(rooms) + 2 * BEGINS if rooms else 0.0
        return max(min(wide, MAX_BOX_WIDTH), sum(rooms) + 3 * BEGINS if rooms else 0.0)

    def node(self, item: Item, width: float) -> RankNode:
        """Return an item with all that stands beside it, and the room that it takes in its rank."""
        path = item.about.path
        circle = isinstance(item, Leaf) and self.is_circle(item)
        given = {link.source for link in self.links}
        far = [e for e in dict.fromkeys(self.flow.edges_into(path)) if e.upward and e.source.path not in self.items]
        local = [link.edge for link in self.into(path)]
        rest = [WiredInput(e) for e in local[1:]] if isinstance(item, OpenMixture) else []
        incoming = Incoming(
            [*self.beside.get(path, ())], [NamedInput(e) for e in self.named(path)], [WiredInput(e) for e in far], rest
        )
        fragment = self.lay(item, width, incoming, circle, path in self.facing_right)
        if fragment.below:
            centered(fragment)
            for left, right, by in reversed(self.apart.get(path, ())):
                fragment = spread(fragment, left, right, by) or fragment
            centered(fragment)
        body = fragment.height
        self.add_losses(path, fragment, alone=path not in given)
        framed = isinstance(item, Group | OpenMixture)
        told = "" if path in self.small or not self.options.shapes else told_shape(item)  # a stream keeps its own shape
        shape = shape_in(told, fragment.right, self.options.typography) if told else ""
        after = item.after if isinstance(item, Leaf | Group | OpenMixture) else ""
        label = " · ".join(filter(None, (shape, after))) if path in given else ""
        one = RankNode(path, 0.0, fragment, label=label, circle=circle, framed=framed)
        one.first = item.gives if isinstance(item, Leaf) else ""
        one.losses = fragment.height - body
        one.names = {} if circle else self.names(item)
        reads = {link.edge for link in self.links if link.target == path}
        ends = [(points[0], edge) for edge, points in fragment.ends.items() if edge in reads]
        taps = [
            (fragment.taps[link.edge.source.origin][-1], link.net)
            for link in self.links
            if link.edge.source.origin in fragment.taps
        ]
        enter: dict[DiagramEdge, float] = {}
        leave: dict[str, float] = {}
        reach = {-1: max(fragment.left + 8, LANE), 1: max(fragment.right + 8, LANE)}
        for (x, _), edge in sorted(ends, key=lambda end: -end[0][1]):  # the lowest is nearest
            side = 1 if x > 0 else -1
            enter[edge] = side * reach[side]
            reach[side] += LANES
        for (x, _), net in sorted(dict.fromkeys(taps), key=lambda tap: tap[0][1]):  # the highest is nearest
            side = 1 if x > 0 else -1
            leave[net] = side * reach[side]
            reach[side] += LANES
        one.enter, one.leave = enter, leave
        if isinstance(item, Group) and fragment.below:
            nets = {link.edge.source.origin: link.net for link in self.links if link.source == path}
            passages = {NodeOutput(path): "", **passages_of(item, [*nets])}
            one.below = fragment.below
            one.above = {nets.get(origin, path): fragment.above[port][-1][0] for origin, port in passages.items()}
            one.shapes = self.shapes_of_streams(path) if len(one.above) > 1 else {}
        if isinstance(item, Leaf) and not item.shape and not circle:
            one.kept = self.shapes_of_streams(path).get(path, "")
        wide = max(fragment.left, fragment.right, *(abs(x) + APART for x in (*enter.values(), *leave.values(), 0.0)))
        one.width = 2 * max(wide, SIDE + APART if circle else 0.0)
        return one

    def names(self, item: Item) -> dict[DiagramEdge, float]:
        """Return how much room the names of what comes into a block from below take."""
        path = item.about.path
        if not (self.options.names and isinstance(item, Leaf)):
            return {}
        into = [link.edge for link in self.into(path)]
        if path in self.across:
            streams = {edge: said_at_end(edge) for edge in into if edge.input}
            return names_below([*streams], streams, self.options.typography)
        return names_below(into, names_at_ends(self.flow.edges_into(path), self.items), self.options.typography)

    def add_losses(self, path: str, fragment: Fragment, *, alone: bool) -> None:
        """Add the losses that read what an item gives, beside the way up from it: as a box where one reads it first; where one
        reads it among several alike, by an arrow to its name.
        """
        for sink in self.flow.sinks:
            first, *others = sink.edges
            alike = [edge for edge in others if edge.port == first.port and _is_first(self.flow, edge.source)]
            alike = alike if sink.leaf and _is_first(self.flow, first.source) else []
            boxed = replace(sink, edges=tuple(edge for edge in sink.edges if edge not in alike))
            high = room(boxed, self.options.typography)
            if first.source.path == path and _is_first(self.flow, first.source):
                sink_at(fragment, boxed, self.loss_start(fragment, high, alone=alone), self.options.typography)
            for edge in alike:
                if edge.source.path == path and sink.leaf:
                    mark_at(fragment, edge, sink.leaf, self.loss_start(fragment, high, alone=alone), self.options.typography)

    def loss_start(self, fragment: Fragment, high: float, *, alone: bool) -> tuple[Point, ...]:
        """Return where a wire to a loss of a height forks off the way up from a fragment, which becomes higher by that, or the
        way up itself where it is `alone`.
        """
        y = min(fragment.top - LABEL_TOP, -fragment.height) - high / 2
        start = ((0.0, fragment.top), (0.0, y)) if alone else ((0.0, y),)
        if not alone:
            fragment.pieces.dots.append(Dot(0, y))
        fragment.height = high / 2 - y
        return start


def _with_names_of_streams(flow: Flow) -> Flow:
    """Return a flow in which what a box reads first that several streams go through has a name as all others have."""
    wide = wide_paths(flow, links_of(flow))
    taken = {path: item.takes for path, item in flow.by_path.items() if path in wide and isinstance(item, Leaf)}

    def named(edge: DiagramEdge) -> DiagramEdge:
        local = edge.main and not edge.input and edge.source.path in flow.by_path
        return replace(edge, input=taken.get(edge.target, "")) if local else edge

    return flow.with_edges(map(named, flow.edges)) if any(taken.values()) else flow


def _straight(stream: Sequence[str], pair: tuple[str, str]) -> int:
    """Return how much it counts that a wire of a stream is straight; an output stands above what gives it."""
    return STRAIGHT if len(stream) >= MIN_STREAM else STRAIGHT // 2 if is_output(pair[1]) else STRAIGHT // 4


def with_output_boxes(flow: Flow) -> Flow:
    """Return a flow with a box for every output that is what an item gives first."""
    for name, source in flow.exits:
        if _is_first(flow, source):
            end = output_leaf(name, source)
            flow = flow.with_items((*flow.items, end)).with_edges((*flow.edges, DiagramEdge(source, end.about.path, "", True)))
            flow = flow.with_exits(one for one in flow.exits if one != (name, source))
    return flow


def _is_first(flow: Flow, source: DiagramSource) -> bool:
    return source.path in flow.by_path and not source.reference and not source.port
