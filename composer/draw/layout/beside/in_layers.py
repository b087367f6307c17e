"""A flow in layers: the whole of a model, or the inside of a frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from composer.draw.diagram import Flow, Group, Item
from composer.draw.layout.beside.borders import BorderEnds, layers_inside
from composer.draw.layout.beside.layered import MAX_ITEMS, Lay, layered
from composer.draw.layout.ends.port_names import AT_FIRST
from composer.draw.layout.fragment import Fragment, copied
from composer.draw.layout.lanes import style_of
from composer.draw.layout.spine import LayoutOptions
from composer.draw.layout.stations import Incoming, SideBox
from composer.draw.passes.order import sort_topologically
from composer.draw.passes.side_inputs import BesideBlock, split_side_inputs

ItemsOf: TypeAlias = Callable[[Flow, LayoutOptions], Lay]
"""Returns how items of a flow are laid out."""
NO_ENDS: Mapping[str, Fragment] = MappingProxyType({})


def layered_frame(group: Group, options: LayoutOptions, items_of: ItemsOf) -> Fragment | None:
    """Lay out the inside of a frame in layers, if that can be."""

    def lay(ends: BorderEnds) -> Fragment | None:
        return in_layers(ends.flow, replace(options, inputs=tuple(ends.entries), ends=tuple(ends.exits)), items_of, ends.drawn)

    found = options.frames.get((group, options), lambda: layers_inside(group, lay))
    return None if found is None else copied(found)


def in_layers(flow: Flow, options: LayoutOptions, items_of: ItemsOf, drawn: Mapping[str, Fragment] = NO_ENDS) -> Fragment | None:
    """Lay out a flow in layers, if that can be; some of its items are `drawn` already."""
    if len(flow.items) > MAX_ITEMS:
        return None
    side_inputs = split_side_inputs(flow)
    still = {
        path: [one for one in blocks if all(e.source.reference for e in one[2])] for path, blocks in side_inputs.beside.items()
    }
    whole = sort_topologically(flow.without({leaf.about.path for blocks in still.values() for leaf, *_ in blocks}))
    beside = {path: side_boxes_of(blocks) for path, blocks in still.items()}
    lay = items_of(whole, options)

    known: dict[tuple[int, float, bool, bool], list[tuple[Item, Incoming, Fragment]]] = {}
    """What is laid out already, as it is for each order of the layers that is tried."""

    def laid(item: Item, width: float, incoming: Incoming, is_circle: bool, faces_right: bool) -> Fragment:
        end = drawn.get(item.about.path)
        if end is not None:
            return copied(end)
        alike = known.setdefault((id(item), width, is_circle, faces_right), [])
        found = next((fragment for _, came_in, fragment in alike if came_in == incoming), None)
        if found is None:
            found = lay(item, width, incoming, is_circle, faces_right)
            alike.append((item, incoming, found))
        return copied(found)

    return layered(whole, [*flow.by_path], beside, options, laid)


def side_boxes_of(blocks: Sequence[BesideBlock]) -> list[SideBox]:
    """Return what stands beside a block as small boxes."""
    return [
        SideBox(leaf, edge.port, style_of(edge, leaf), reads, AT_FIRST if edge.source.at_first else "", edge.place)
        for leaf, edge, reads in blocks
    ]
