"""Boxes whose values go by their names alone: each has an arrow to its name, since no wire leads on."""

from __future__ import annotations

from composer.draw.edges import REQUIRED_INPUT
from composer.draw.geometry import Area
from composer.draw.layout.fragment import Fragment, in_the_way
from composer.draw.layout.references import SIDE_GAP, reference_above
from composer.draw.scene import Box
from composer.draw.style.typography import Typography

CLEAR = 4.0
"""Between the name above a box and what stands around it."""


def with_names_above(whole: Fragment, typography: Typography) -> Fragment:
    """Return a page, below its head, on which a box that no wire leaves has an arrow to the name by which others read it, where
    there is room above it.
    """
    called = names_of(whole)
    leave = {one.source for one in whole.pieces.wires if one.style != "far"}
    for box in [one for one in whole.pieces.boxes if one.about.path in called and one.about.path not in leave]:
        name = called[box.about.path]
        if is_free(whole, box, typography.width(name, "reference")):
            found = Fragment()
            area = reference_above(found, box.about.path, name, box.y, typography)
            middle = box.x + box.width / 2
            whole.pieces.take(found.pieces, middle, 0)
            whole.height = max(whole.height, -area.top)
    return whole


def names_of(whole: Fragment) -> dict[str, str]:
    """Return by which names values are read on a page, by the paths of what gives them; none for those of several names."""
    names: dict[str, set[str]] = {}
    for one in whole.pieces.references:
        if one.target:
            names.setdefault(one.source, set()).add(one.text.text.rstrip("*").removesuffix(REQUIRED_INPUT))
    return {path: next(iter(said)) for path, said in names.items() if len(said) == 1}


def is_free(whole: Fragment, box: Box, width: float) -> bool:
    """Return whether there is room above a box for an arrow and a name of that width."""
    middle, top = box.x + box.width / 2, box.y - SIDE_GAP
    arrow, name = (
        Area(middle - 2, top, middle + 2, box.y - CLEAR - 1),
        Area(middle - width / 2, top - 18, middle + width / 2, top),
    )
    return not any(one.meets(room) for one in in_the_way(whole.pieces, CLEAR) for room in (arrow, name))
