"""A pyramid of features as papers draw it: the trunk at the left, its way back at the right, and a row from one to the other
for each level.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from composer.draw.diagram import Flow, Leaf
from composer.draw.geometry import Point
from composer.draw.layout.beside.levels import APART, ROW_GAP, Levels
from composer.draw.layout.fragment import Fragment
from composer.draw.layout.spine import LayoutOptions
from composer.draw.passes.pyramid import Pyramid
from composer.draw.scene import RADIUS, Dot


def pyramid_fragment(pyramid: Pyramid, width: float, options: LayoutOptions) -> Fragment | None:
    """Return all of a pyramid, counted from its left border; boxes of the trunk have the width. None where a sum is no circle."""
    if any(not _leaves(drop)[-1].look.sign for drop in pyramid.drops):
        return None
    rows = _Rows(pyramid, width, options)
    rows.place()
    return rows.found


class _Rows(Levels):
    """The rows of a pyramid while they are placed, each at the height where its value leaves the trunk."""

    def __init__(self, pyramid: Pyramid, width: float, options: LayoutOptions) -> None:
        self.rungs, self.drops, self.ends = (tuple(map(_leaves, flows)) for flows in (pyramid.rungs, pyramid.drops, pyramid.ends))
        flows = (*pyramid.rungs, *pyramid.drops, *pyramid.ends)
        edges = {(e.source.path, e.target): e for flow in flows for e in flow.edges}
        firsts = [rung[0] if rung else drop[-1] for rung, drop in zip(self.rungs, ([], *self.drops), strict=True)]
        taps = [next(path for path in pyramid.trunk.by_path if (path, leaf.about.path) in edges) for leaf in firsts]
        super().__init__(pyramid.trunk, taps, edges, width, options, narrow=True)
        for (drop, upper), lower in zip(zip(self.drops, self.taps, strict=False), self.taps[1:], strict=True):
            self.part(upper, lower, self.least(drop))

    def least(self, drop: Sequence[Leaf]) -> float:
        """Return the least distance from a level to the next."""
        rows = [leaf for line in (*self.rungs, *self.ends) for leaf in line]
        high = max(map(self.high, rows)) + ROW_GAP
        return max(high, 2 * RADIUS + self.way_down(drop[:-1]))

    def place(self) -> None:
        """Place all rows, and what leads down from each to the next."""
        rungs = [leaf for rung in self.rungs for leaf in rung]
        drops = [leaf for drop in self.drops for leaf in drop[:-1]]
        wide, drop_wide = self.wide(rungs), self.wide(drops) or 2 * RADIUS
        left = self.found.left + self.found.right + APART
        middle = left + wide + self.gap(rungs, drop_wide / 2 - RADIUS) + drop_wide / 2
        sums: list[Leaf | None] = [None, *(drop[-1] for drop in self.drops)]
        levels: list[tuple[Leaf, Point]] = []
        for path, rung, end in zip(self.taps, self.rungs, sums, strict=True):
            y = self.height_of(path)
            before: tuple[str, Point] = path, (self.found.left, y)
            for leaf in rung:
                before = self.box(leaf, left, wide, y, before)
            if end is not None:
                levels.append((end, self.sign(end, middle, 0.0, y, before)[1]))
            else:
                levels.append((rung[0], before[1]))
        beside = RADIUS + self.gap([end for end in sums if end is not None])
        self.place_ends(levels, middle + max(drop_wide / 2 + APART, beside))
        for (upper, start), (lower, to), drop in zip(levels, levels[1:], self.drops, strict=False):
            self.drop(upper, start, lower, to[1] - RADIUS, drop[:-1], middle)

    def place_ends(self, levels: Sequence[tuple[Leaf, Point]], left: float) -> None:
        """Place what else reads the levels, in columns from the left border of the first."""
        before = [(leaf.about.path, start) for leaf, start in levels]
        for leaves in zip_longest(*self.ends):
            there = [leaf for leaf in leaves if leaf is not None]
            wide = self.wide(there)
            for at, leaf in enumerate(leaves):
                if leaf is not None:
                    before[at] = self.box(leaf, left, wide, levels[at][1][1], before[at])
            left += wide + self.gap(there)
        self.close()

    def drop(self, upper: Leaf, start: Point, lower: Leaf, end: float, leaves: Sequence[Leaf], x: float) -> None:
        """Place what leads down from a level to the sum of the next, in the middle between them."""
        source = upper.about.path
        if upper.look.sign:
            way: tuple[Point, ...] = ((x, start[1] + RADIUS),)
        elif any(path == source and target not in {one.about.path for one in (*leaves, lower)} for path, target in self.edges):
            self.found.pieces.dots.append(Dot(x, start[1]))
            way = ((x, start[1]),)
        else:
            way = (start, (x, start[1]))
        self.lead_down((source, way), leaves, lower.about.path, end, self.drop_width)

    @property
    def drop_width(self) -> float:
        return self.wide([leaf for drop in self.drops for leaf in drop[:-1]])


def _leaves(flow: Flow) -> list[Leaf]:
    return [item for item in flow.items if isinstance(item, Leaf)]
