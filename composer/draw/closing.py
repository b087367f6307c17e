"""Groups as boxes, where a page has no room for all of them as frames: which are closed first."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

from composer.draw.build.group_places import GroupPlace
from composer.draw.build.levels import Depth
from composer.draw.diagram import Branches, Flow, Group, IrregularSubgraph, OpenMixture
from composer.draw.paths import above, belongs, lies_in, plain
from composer.draw.scene import Scene

MAX_SHARE = 0.5
"""How much of a model may be in a group that is closed: of a model that is all in one, the inside is what a figure is for."""
WORTH = 1.1
"""Where no closing makes a drawing fit, how many times larger it may stay than with groups closed."""

MANY_USES, SEVERAL_USES = 3, 2
"""Uses of a block from which on it is drawn once, beside the figure, where a page is too large with all of them open; and where
the stream goes on in another column with them.
"""


def repeated_groups(flow: Flow, groups: Sequence[GroupPlace], depth: Depth) -> frozenset[str]:
    """Return the paths of groups that a diagram shows from inside and that are like one before them: a reader has seen these."""
    inside = boxes_inside(flow)
    seen: set[object] = set()
    closed: list[str] = []
    for one in groups:
        if not inside[one.path] or any(lies_in(one.path, path) for path in closed):
            continue
        if one.form in seen and not depth.shows(one.path):
            closed.append(one.path)
        seen.add(one.form)
    return frozenset(closed)


def often_open(flow: Flow, groups: Sequence[GroupPlace], depth: Depth, uses: int) -> list[frozenset[str]]:
    """Return the paths of all uses of each block of the recipe of which a diagram shows so many from inside that one would do."""
    inside = boxes_inside(flow)
    found: dict[str, list[str]] = {}
    for one in groups:
        if one.block and inside[one.path] > 1:
            found.setdefault(one.block, []).append(one.path)
    return [frozenset(paths) for paths in found.values() if len(paths) >= uses and not any(map(depth.shows, paths))]


def partly_closed(flow: Flow, groups: Sequence[GroupPlace], depth: Depth) -> bool:
    """Return whether some uses of a block of the recipe are closed to fit a page and others stand open."""
    inside, closed = boxes_inside(flow), closed_blocks(groups, depth)
    return any(inside[one.path] and one.block in closed and not depth.shows(one.path) for one in groups)


def closed_blocks(groups: Sequence[GroupPlace], depth: Depth) -> dict[str, frozenset[str]]:
    """Return the paths of all uses of each block of the recipe of which some are closed to fit a page, by its name."""
    found: dict[str, list[str]] = {}
    for one in groups:
        if one.block:
            found.setdefault(one.block, []).append(one.path)
    return {block: frozenset(paths) for block, paths in found.items() if not depth.closed.isdisjoint(paths)}


def closing_order(flow: Flow, groups: Sequence[GroupPlace], depth: Depth, share: float = MAX_SHARE) -> list[str]:
    """Return the paths of what else may be closed: first what holds no other group, then what has most boxes, the last first;
    what has more than a share of all boxes may not.
    """
    inside = boxes_inside(flow)
    most = share * sum(1 for _ in flow.leaves())
    open_ = [one.path for one in groups if 1 < inside[one.path] <= most and not depth.shows(one.path)]
    heights: dict[str, int] = {}
    for path in reversed(open_):  # those inside come after what is around them
        heights[path] = 1 + max((high for inner, high in heights.items() if lies_in(inner, path)), default=0)
    return sorted(heights, key=lambda path: (heights[path], -inside[path]))


def boxes_inside(flow: Flow) -> Counter[str]:
    """Return how many boxes a diagram shows in each node: none in one that is closed or not drawn."""
    return Counter(holder for leaf in flow.leaves() for holder in above(plain(leaf.about.path))[:-1])


def fewest_closed(order: Sequence[str], over: Callable[[Collection[str]], float], limit: float) -> frozenset[str]:
    """Return as few of some groups as make a drawing fit when they are closed; of more than are needed, the first are open again.

    Args:
        order: What may be closed, what is closed first first.
        over: How many times larger than it may be a drawing is with some of them closed.
        limit: How much of that is allowed.
    """
    room = max(limit, WORTH * over(order))
    if over(()) <= room:
        return frozenset()
    count = bisect_left(range(len(order)), True, key=lambda count: over(order[:count]) <= room)
    closed = list(order[:count])
    for path in order[:count]:
        rest = [one for one in closed if one != path]
        if over(rest) <= room:
            closed = rest
    return frozenset(closed)


def closed_to_fit(scene: Scene, flow: Flow, groups: Callable[[], Sequence[GroupPlace]]) -> tuple[str, ...]:
    """Return the paths of what a diagram shows from inside and a page as one box; of what is in it, nothing more."""
    found = dict.fromkeys(_without_frame(flow, {frame.about.path for frame in scene.frames}))
    boxes = {plain(box.about.path) for box in scene.boxes} & boxes_inside(flow).keys()
    if boxes:  # also those whose nodes stand in the frame around them, in full detail
        found |= dict.fromkeys(one.path for one in groups() if one.path in boxes)
    return tuple(path for path in found if not belongs(path, found.keys() - {path}))


def _without_frame(flow: Flow, frames: Collection[str]) -> Iterator[str]:
    for item in flow.items:
        if isinstance(item, Group | OpenMixture) and item.about.path not in frames:
            yield item.about.path
        elif isinstance(item, Group | Branches | IrregularSubgraph):
            for inner in item.flows:
                yield from _without_frame(inner, frames)
