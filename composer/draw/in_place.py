"""Small blocks that stand open in a drawing, rather than closed with a detail beside it: which takes no less room."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from composer.draw.closing import boxes_inside
from composer.draw.details.drawn import HARDLY, Details
from composer.draw.fitting import Attempt, Attempts
from composer.draw.paths import plain
from composer.draw.scene import Scene

USES = range(2, 4)
"""Boxes of a small block that are all open: one alone says what it is by its name, and more would say the same over and over."""
MAX_BOXES = 6
"""Boxes in a block that may stand open."""


def with_small_open(made: Details, attempts: Attempts, found: Attempt, scene: Scene) -> tuple[Attempt, Scene]:
    """Return a drawing with details in which small blocks of a few uses side by side are open, such as the gates of several
    tasks, where the page has room for all that it showed before; given one in which they are closed.
    """
    for detail in scene.details if not found.is_wrapped else ():
        uses = frozenset(detail.stands_for)
        if len(uses) not in USES or not uses.isdisjoint(found.depth.closed) or not stand_apart(found.scene, uses):
            continue
        depth = replace(found.depth, opened=found.depth.opened | uses)
        flow = attempts.diagram(depth)
        inside = boxes_inside(flow)
        if all(inside[path] <= MAX_BOXES for path in uses):
            opened = replace(found, depth=depth, flow=flow, scene=attempts.on_page(flow))
            whole = made.beside(opened.scene, flow, depth, ())
            told = len(whole.details) >= len(scene.details) - 1
            if told and made.size(whole.width, whole.height) <= max(1.0, HARDLY * made.size(scene.width, scene.height)):
                found, scene = opened, whole
    return found, scene


def stand_apart(scene: Scene, uses: frozenset[str]) -> bool:
    """Return whether a drawing has a box for each use of a block, in a column each: of two in one column, a reader has seen the
    first when coming to the second.
    """
    boxes = sorted((one.area.left, one.area.right) for one in scene.boxes if plain(one.about.path) in uses)
    return len(boxes) == len(uses) and all(right < left for (_, right), (left, _) in pairwise(boxes))
