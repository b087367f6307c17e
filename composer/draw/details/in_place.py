"""Small blocks that stand open in a drawing, rather than closed with a detail beside it: which takes no less room."""

from __future__ import annotations

from dataclasses import replace

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
    """Return a drawing with details in which small blocks of a few uses are open, such as the gates of several tasks, where the
    page has room for all that it showed before; given one in which they are closed.
    """
    for detail in scene.details if not found.is_wrapped else ():
        uses = frozenset(detail.stands_for)
        closed = {plain(box.about.path) for box in found.scene.boxes}
        if len(uses) not in USES or not uses <= closed - found.depth.closed:
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
