"""How wide the boxes of branches are: all of them fit on a page side by side, with texts in several lines where they must."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from composer.draw.diagram import Branches, Flow, Group, IrregularSubgraph, Item, Leaf, OpenMixture
from composer.draw.layout.boxes import MAX_BOX_WIDTH, MIN_COLUMN_WIDTH, needed
from composer.draw.layout.fragment import Fragment
from composer.draw.layout.narrow import in_lines
from composer.draw.layout.parallel_flows import APART, FEW_BRANCHES, apart_for
from composer.draw.style.typography import Typography

MAX_EQUAL_WIDTH, MAX_BRANCHES_WIDTH = 1000.0, 1300.0
"""Of a few branches whose boxes are all equally wide, and of many: hardly more than a page, whose letters stay legible."""
MAX_FRAMES_WIDTH = 1150.0
"""Of many branches with frames: a page without its margins."""
MAX_FED_WIDTH = 720.0
"""Of a few branches, some of which read another column: that stands beside them."""
LEAST_WIDTH = 96.0
"""Of a box whose texts stand in several lines: room for a long word of a title."""
MAX_NARROW_BLOCKS = 4
"""Blocks of one of several columns that are drawn narrow, with their parameters behind the detail: a longer column is a part of
the model, whose numbers are looked for at the right.
"""


def is_narrow(flow: Flow) -> bool:
    """Return whether the blocks of a branch are drawn narrow."""
    return sum(1 for leaf in flow.leaves() if isinstance(leaf, Leaf)) <= MAX_NARROW_BLOCKS


def branch_widths(item: Branches, typography: Typography, *, equal: bool = True) -> list[float]:
    """Return the width of the boxes of each branch: all are as wide as the widest ones if they are to be `equal`, where there is
    room for that; names take none where there are many.
    """
    few = len(item.flows) <= FEW_BRANCHES
    widths = []
    for flow in item.flows:
        leaves = (leaf for leaf in flow.leaves() if isinstance(leaf, Leaf))
        wanted = (needed(leaf, typography, narrow=is_narrow(flow), named=few) for leaf in leaves)
        widths.append(min(max(wanted, default=0.0), MAX_BOX_WIDTH))
    room = typography.scale * (MAX_EQUAL_WIDTH if few else MAX_BRANCHES_WIDTH) / len(widths) - APART
    plain = equal and all(isinstance(one, Leaf) for flow in item.flows for one in flow.items)
    least = max(widths) if plain and max(widths) <= room else 0.0
    return [max(width, least, min(MIN_COLUMN_WIDTH, room) if few else 0.0) for width in widths]


def fit_side_by_side(item: Branches, typography: Typography, lay: Callable[[Flow, float], Fragment]) -> Branches | None:
    """Return branches as they stand side by side on a page; where many frames are too wide, without shapes between their boxes,
    and with texts in several lines; none where a page is too narrow even so. What `lay` returns tells how much wider than its
    boxes a branch is.
    """
    if len(item.flows) <= FEW_BRANCHES:
        return _lined(item, typography) if any(_is_fed(flow, item) for flow in item.flows) else item
    widths = branch_widths(item, typography)
    gaps = apart_for(len(widths)) * (len(widths) - 1)
    if not any(isinstance(one, Group) for flow in item.flows for one in flow.items):
        return item if sum(widths) + gaps <= MAX_BRANCHES_WIDTH * typography.scale else None
    room = MAX_FRAMES_WIDTH * typography.scale - gaps

    def taken(branches: Branches) -> float:
        laid = (lay(flow, width) for flow, width in zip(branches.flows, widths, strict=True))
        return sum(one.left + one.right for one in laid)

    if taken(item) <= room:
        return item
    unlabeled = _changed(item, lambda leaf: replace(leaf, shape=""))
    each = (room - taken(unlabeled) + sum(widths)) / len(widths)
    if each < LEAST_WIDTH * typography.scale:
        return None
    lined = _changed(unlabeled, lambda leaf: leaf if leaf.look.sides or leaf.look.sign else in_lines(leaf, each, typography))
    return lined if max(branch_widths(lined, typography)) <= each + 1 else None


def _is_fed(flow: Flow, item: Branches) -> bool:
    """Return whether a branch, or one that stands in it, reads a value of another column."""
    near = {*flow.by_path, item.fork.path if item.fork else ""}
    own = any(e.upward and not e.source.is_model_input and e.source.path not in near for e in flow.edges)
    return own or any(_is_fed(inner, one) for one in flow.items if isinstance(one, Branches) for inner in one.flows)


def _deep_widths(item: Branches, typography: Typography) -> list[float]:
    """Return the widths of the boxes of all branches, of those that have others in them the widths of these."""
    found: list[float] = []
    for flow, width in zip(item.flows, branch_widths(item, typography), strict=True):
        nested = [_deep_widths(one, typography) for one in flow.items if isinstance(one, Branches)]
        found += max(nested, key=sum, default=[width])
    return found


def _lined(item: Branches, typography: Typography) -> Branches:
    """Return a few branches; where all are wider than there is room, the widest boxes have texts in several lines."""
    widths = _deep_widths(item, typography)
    room = MAX_FED_WIDTH * typography.scale - apart_for(len(widths)) * (len(widths) - 1)
    level, rest = 0.0, room
    for number, width in enumerate(sorted(widths)):
        level = rest / (len(widths) - number)
        if width > level:
            break
        rest -= width
    if sum(widths) <= room or level < LEAST_WIDTH * typography.scale:
        return item

    def narrowed(leaf: Leaf) -> Leaf:
        wide = needed(leaf, typography, narrow=True) > level and not (leaf.look.sides or leaf.look.sign)
        return in_lines(leaf, level, typography) if wide else leaf

    return _changed(item, narrowed)


def _changed(item: Branches, change: Callable[[Leaf], Leaf]) -> Branches:
    """Return branches with every block in them changed."""

    def changed(flow: Flow) -> Flow:
        return flow.map_items(inner)

    def inner(one: Item) -> Item:
        match one:
            case Leaf():
                return change(one)
            case Group() | Branches():
                return one.map_flows(changed)
            case OpenMixture() | IrregularSubgraph():
                return one

    return item.map_flows(changed)
