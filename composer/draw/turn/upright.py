"""Blocks as upright boxes: an icon, and below it line by line what they say."""

from __future__ import annotations

from dataclasses import dataclass, replace

from composer.draw.geometry import PlacedIcon, Text
from composer.draw.layout.boxes import INSET, LINE, PAD
from composer.draw.layout.narrow import lines
from composer.draw.scene import Box
from composer.draw.style.typography import Role, Typography

TEXT_WIDTH = 102.0
"""How long lines in a box may be: `Grouped-query` has room."""
BELOW_TITLE: tuple[Role, ...] = ("name", "detail", "params")
"""What stands below a title, in this order."""
MIN_BOX = 62.0
"""The least length of a box along the stream: that of an expert."""


@dataclass(frozen=True, slots=True)
class BoxContent:
    """What stands in a box, around the middle of it."""

    width: float
    height: float
    texts: tuple[Text, ...] = ()
    icons: tuple[PlacedIcon, ...] = ()


def box_content(box: Box, typography: Typography) -> BoxContent:
    """Return what stands in a box as it stands in a narrow one: an icon, and below it line by line; rows keep their places."""
    more = 2 * INSET if box.places else 0.0
    if any(text.role == "row" for text in box.texts):
        areas = [*(text.area for text in box.texts), *(icon.area for icon in box.icons)]
        left, right = min(area.left for area in areas), max(area.right for area in areas)
        x, y = -(left + right) / 2, -box.y - box.height / 2
        return BoxContent(
            right - left + 2 * PAD,
            box.height + more,
            tuple(text.moved(x, y) for text in box.texts),
            tuple(icon.moved(x, y) for icon in box.icons),
        )
    size = typography.scale
    line, said = LINE * size, in_lines(box, typography)
    first = [icon.moved(-icon.x, -icon.y) for icon in box.icons[:1]]
    icon_wide, icon_high = max((icon.area.right for icon in first), default=0.0), sum(icon.area.bottom + 3 for icon in first)
    high = line * len(said) + icon_high
    wide = max([icon_wide, *(text.area.right - text.area.left for text in said)])
    top = -high / 2
    icons = tuple(icon.moved(-icon_wide / 2, top) for icon in first)
    top += icon_high
    texts = tuple(
        replace(text, x=0.0, y=top + line * (number + 0.5) + 4 * size, anchor="middle") for number, text in enumerate(said)
    )
    return BoxContent(max(wide + 2 * PAD, MIN_BOX if len(said) > 1 or box.icons else 0.0), high + 14 + more, texts, icons)


def in_lines(box: Box, typography: Typography) -> list[Text]:
    """Return what a box says line by line: its title, and below it its name, its detail and its parameters."""
    room = TEXT_WIDTH * typography.scale
    title = [text for text in box.texts if text.role not in BELOW_TITLE]
    below = [text for role in BELOW_TITLE for text in box.texts if text.role == role]
    detail = " · ".join(text.text for text in below)
    wrapped = [(text.role, line) for text in title for _, line in lines(text.role, text.text, room, typography)]
    wrapped += lines("detail", detail, room, typography, turns=True)
    return [Text(0.0, 0.0, line, role, scale=typography.scale) for role, line in wrapped]
