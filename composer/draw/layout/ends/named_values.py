"""What stands at the source of a value that is read by its name: that name, which a box may not say itself."""

from __future__ import annotations

import re
from itertools import islice

from composer.draw.edges import OUTPUT, REQUIRED_INPUT, SIZES_OF
from composer.draw.geometry import Area, Text
from composer.draw.layout.ends.port_names import AT_FIRST, words
from composer.draw.layout.fragment import Fragment, in_the_way
from composer.draw.layout.references import SIDE_GAP, reference_above
from composer.draw.scene import Box, MergeCircle
from composer.draw.style.typography import Typography

BEHIND = re.compile(rf"\*?(?: {AT_FIRST})?(?:{re.escape(REQUIRED_INPUT)}|{OUTPUT})?$")
"""What stands behind a name in place of a wire."""
PASS = "("
"""In the name of what a pass of a repeat gives, which the frame of that tells."""
CLEAR = 4.0
"""Between the name above a box and what stands around it."""


def with_names_above(whole: Fragment, typography: Typography) -> Fragment:
    """Return a page, below its head, on which a box or a circle that no wire leaves has an arrow to the name by which others read
    it, where there is room above it; and on which one that wires leave has that name beside it, if nothing in it says so.
    """
    called = names_of(whole)
    leave = {one.source for one in whole.pieces.wires if one.style != "far"}
    things: list[Box | MergeCircle] = [*whole.pieces.boxes, *whole.pieces.merges]
    for thing in [one for one in things if one.about.path in called]:
        name, area = called[thing.about.path], thing.area
        if thing.about.path in leave:
            whole.pieces.texts += [] if is_said(name, thing) else _beside(whole, name, area, typography)
        elif is_free(whole, area, typography.width(name, "reference")):
            found = Fragment()
            above = reference_above(found, thing.about.path, name, area.top, typography)
            whole.pieces.take(found.pieces, (area.left + area.right) / 2, 0)
            whole.height = max(whole.height, -above.top)
        elif not (isinstance(thing, Box) and any(text.text == name for text in thing.texts)):
            whole.pieces.texts += _beside(whole, name, area, typography)
    return whole


def is_said(name: str, thing: Box | MergeCircle) -> bool:
    """Return whether what is written in a box, or at the frame around it, tells the name by which others read its value; nothing
    is written in a circle.
    """
    said = {word for text in thing.texts for word in words(text.text)} if isinstance(thing, Box) else set()
    return PASS in name or words(name.rpartition(".")[2]) <= said


def _beside(whole: Fragment, name: str, area: Area, typography: Typography) -> list[Text]:
    """Return a name where there is room for it beside a box or a circle: left or right of the wire above it, or below; none where
    there is none.
    """
    middle, size = (area.left + area.right) / 2, typography.scale
    places = (
        Text(middle + side * CLEAR, foot, name, "port", "end" if side < 0 else "start", size)
        for foot in (area.top - CLEAR, area.bottom + 2 * CLEAR)
        for side in (-1, 1)
    )
    taken = [*in_the_way(whole.pieces, 1)]
    free = (text for text in places if not any(text.area.meets(one) for one in taken))
    return [*islice(free, 1)]


def names_of(whole: Fragment) -> dict[str, str]:
    """Return by which names values are read on a page, by the paths of what gives them; none for those of several names, and for
    those that go to a name, of an output or a loss.
    """
    names: dict[str, set[str]] = {}
    for one in whole.pieces.references:
        if one.target and one.about.path == one.source:
            names.setdefault(one.source, set()).add(BEHIND.sub("", one.text.text.removeprefix(SIZES_OF)))
    return {path: next(iter(said)) for path, said in names.items() if len(said) == 1}


def is_free(whole: Fragment, box: Area, width: float) -> bool:
    """Return whether there is room above a box or a circle for an arrow and a name of that width."""
    middle, top = (box.left + box.right) / 2, box.top - SIDE_GAP
    arrow, name = (
        Area(middle - 2, top, middle + 2, box.top - CLEAR - 1),
        Area(middle - width / 2, top - 18, middle + width / 2, top),
    )
    return not any(one.meets(room) for one in in_the_way(whole.pieces, CLEAR) for room in (arrow, name))
