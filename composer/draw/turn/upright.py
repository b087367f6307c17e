"""Blocks as upright boxes: an icon, and below it line by line what they say."""

from __future__ import annotations

from dataclasses import dataclass, replace

from composer.draw.diagram import Branches, Flow, Group, IrregularSubgraph, Item, Leaf, OpenMixture
from composer.draw.geometry import ICON, PlacedIcon, Text
from composer.draw.layout.boxes import LINE, PAD, detail_of
from composer.draw.layout.narrow import lines
from composer.draw.scene import Box
from composer.draw.style.typography import Typography

TEXT_WIDTH = 102.0
"""How long lines in a box may be: `Grouped-query` has room."""
MIN_BOX = 62.0
"""The least length of a box along the stream: that of an expert."""


def narrowed(flow: Flow, typography: Typography) -> Flow:
    """Return a flow whose blocks say in several lines what they say in one: upright boxes take less of the length."""

    def item(one: Item) -> Item:
        match one:
            case Leaf():
                return _in_lines(one, typography)
            case Group() | Branches():
                return one.map_flows(lambda inner: narrowed(inner, typography))
            case OpenMixture() | IrregularSubgraph():
                return one

    return flow.map_items(item).map_sinks(lambda sink: replace(sink, leaf=sink.leaf and _in_lines(sink.leaf, typography)))


def _in_lines(leaf: Leaf, typography: Typography) -> Leaf:
    if leaf.rows or (leaf.look.sign and not leaf.look.sides):
        return leaf
    room = TEXT_WIDTH * typography.scale
    detail = " · ".join(filter(None, [leaf.name, detail_of(leaf), leaf.params]))
    said = (*lines("title", leaf.look.title, room, typography), *lines("detail", detail, room, typography))
    return replace(leaf, lines=said)


@dataclass(frozen=True, slots=True)
class BoxContent:
    """What stands in a box, around the middle of it."""

    width: float
    height: float
    texts: tuple[Text, ...] = ()
    icons: tuple[PlacedIcon, ...] = ()


def box_content(box: Box, size: float) -> BoxContent:
    """Return what stands in a box as it stands in a narrow one: an icon, and below it line by line; rows keep their places."""
    if any(text.role == "row" for text in box.texts):
        areas = [*(text.area for text in box.texts), *(icon.area for icon in box.icons)]
        left, right = min(area.left for area in areas), max(area.right for area in areas)
        x, y = -(left + right) / 2, -box.y - box.height / 2
        return BoxContent(
            right - left + 2 * PAD,
            box.height,
            tuple(text.moved(x, y) for text in box.texts),
            tuple(icon.moved(x, y) for icon in box.icons),
        )
    line = LINE * size
    high = line * len(box.texts) + (ICON + 3 if box.icons else 0.0)
    wide = max([ICON if box.icons else 0.0, *(text.area.right - text.area.left for text in box.texts)])
    top = -high / 2
    icons = tuple(replace(icon, x=-ICON / 2, y=top) for icon in box.icons[:1])
    top += ICON + 3 if icons else 0
    texts = tuple(
        replace(text, x=0.0, y=top + line * (number + 0.5) + 4 * size, anchor="middle") for number, text in enumerate(box.texts)
    )
    return BoxContent(max(wide + 2 * PAD, MIN_BOX if len(box.texts) > 1 or box.icons else 0.0), high + 14, texts, icons)
