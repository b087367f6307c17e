"""Blocks of an irreducible part: Graphviz says which stand beside each other and where, the wires between them are ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

from composer.draw.diagram import IrregularSubgraph, Leaf
from composer.draw.geometry import Area
from composer.draw.graphviz_programs import Missing, pure
from composer.draw.layout.beside.layers import PASSING, STRAIGHT, Layers, slot
from composer.draw.layout.beside.tracks import APART, SIDE, RankNode
from composer.draw.layout.boxes import MIN_COLUMN_WIDTH, needed
from composer.draw.layout.ends.shapes import shape_in
from composer.draw.layout.fragment import Fragment, shift
from composer.draw.layout.parallel_flows import solid
from composer.draw.layout.references import reference_below
from composer.draw.layout.stations import NamedInput, SideBox, SideInput, WiredInput, block, circle
from composer.draw.passes.layers import ItemLink
from composer.draw.passes.series_parallel import longest, ranks
from composer.draw.style.typography import Typography

MIN_TRUNK = 8
"""Blocks of a part whose longest way stands above its fork, if it has most of them."""
MAX_EQUAL, MAX_EQUAL_BOX = 3, 220.0
"""How many blocks stand side by side, and how wide they are, where all of them are equally wide."""
MAX_IRREGULAR_WIDTH = 2400.0
"""Twice the width of a page: shrunk to it, a wider part could not be read, and a column can."""

NO_SIDE_BOXES: Mapping[str, Sequence[SideBox]] = MappingProxyType({})


def irregular_fragment(
    item: IrregularSubgraph,
    typography: Typography,
    beside: Mapping[str, Sequence[SideBox]] = NO_SIDE_BOXES,
    *,
    shapes: bool = True,
) -> Fragment | None:
    """Return the part with its fork below and its join above, both on the spine; none where it is too wide, where a box stands in
    the way of what comes in from the side, or where our own Graphviz is not there, since any other would draw other bytes.
    """
    try:
        if not pure():
            return None
        layers = _Blocks(item, typography, beside, shapes).in_ranks()
        layers.place()
        found = layers.fragment()
    except Missing:
        return None
    if found.left + found.right > MAX_IRREGULAR_WIDTH:
        return None
    ways = [Area(-found.left, points[0][1] - 1, points[0][0] - 1, points[0][1] + 1) for points in found.ends.values()]
    covered = [*solid(found), *(one.text.area for one in found.pieces.references)]
    return None if any(way.meets(area) for way in ways for area in covered) else found


class _Blocks:
    def __init__(
        self, item: IrregularSubgraph, typography: Typography, beside: Mapping[str, Sequence[SideBox]], shapes: bool
    ) -> None:
        self.item, self.typography, self.beside, self.shapes = item, typography, beside, shapes
        paths = [item.fork.path, *(one.about.path for one in item.flow.items)]
        place = {path: number for number, path in enumerate(paths)}
        upward = [e for e in dict.fromkeys(item.flow.edges) if e.upward]
        self.edges = [e for e in upward if e.source.path in place]
        self.far = [e for e in upward if e.source.path not in place]
        self.paths, self.wires = paths, sorted({(place[e.source.path], place[e.target]) for e in self.edges})
        self.nets = dict.fromkeys((e.source.own_name, e.source.path) for e in self.edges)

    def in_ranks(self) -> Layers:
        """Return the blocks in ranks."""
        item, paths = self.item, self.paths
        rank = dict(zip(paths, ranks(0, len(paths) - 1, self.wires), strict=True))
        trunk = [paths[number] for number in longest(len(paths), self.wires)]
        rank_nodes = {(item.fork.path, 0): RankNode(item.fork.path, PASSING)}
        leaves = [leaf for leaf in item.flow.items if isinstance(leaf, Leaf)]
        widths = {leaf.about.path: self.width(leaf) for leaf in leaves}
        inner = max([0.0, *(widths[path] for path in paths[1:-1])])
        few = max(Counter(rank.values()).values()) <= MAX_EQUAL
        for leaf in leaves:
            path = leaf.about.path
            wide = max(inner, widths[path]) if few and inner <= MAX_EQUAL_BOX else widths[path]
            fragment = self.block(leaf, wide)
            room = 2 * max(fragment.left, fragment.right)
            room = room if fragment.pieces.boxes else max(room, 2 * (SIDE + APART))
            label = shape_in(leaf.shape, fragment.right, self.typography) if self.shapes else ""
            node = RankNode(path, room, fragment, label=label, first=leaf.gives, circle=bool(fragment.pieces.merges))
            rank_nodes[path, rank[path]] = node
        return Layers(
            self.typography,
            [ItemLink(e, e.source.path, e.target) for e in self.edges],
            rank,
            rank_nodes,
            (paths[-1], rank[paths[-1]]),
            item.fork.path,
            dict.fromkeys(pairwise(trunk), STRAIGHT) if 2 * len(trunk) > len(paths) >= MIN_TRUNK else {},
        )

    def count(self, path: str) -> int:
        """Return how many wires lead into a block from below."""
        return sum(1 for e in self.edges if e.target == path)

    def width(self, leaf: Leaf) -> float:
        """Return the width that a block needs as a box."""
        spelled = replace(leaf, look=leaf.look.spelled)
        count = self.count(leaf.about.path)
        ports = [net for net, path in self.nets if path == leaf.about.path != net]
        out = 2 * sum(slot(net, self.typography) for net in ports) + 28
        return max(MIN_COLUMN_WIDTH, needed(spelled, self.typography, narrow=True), (count + 1) * 2 * APART, out)

    def block(self, leaf: Leaf, width: float) -> Fragment:
        """Return a block: a circle where a merge has room for all that it reads, else a box. A name of a value from elsewhere
        stands below a box that reads nothing else.
        """
        path = leaf.about.path
        named = [e for e in dict.fromkeys(self.item.flow.edges) if e.target == path and e.source.reference]
        wired: list[SideInput] = [WiredInput(e) for e in self.far if e.target == path]
        lefts: list[SideInput] = [*self.beside.get(path, ()), *(NamedInput(e) for e in named), *wired]
        count = self.count(path)
        if leaf.look.sign and count + len(lefts) <= 3 and len(lefts) <= 1:
            return circle(leaf, self.typography, lefts)
        leaf = replace(leaf, look=leaf.look.spelled)
        if count or len(lefts) != 1 or not named:
            return block(leaf, width, self.typography, lefts, narrow=True)
        found = block(leaf, width, self.typography, narrow=True)
        below = reference_below(found, named[0], self.typography)
        shift(found, 0, -below)
        found.height += below
        return found
