"""A diagram as a reader wants it: less of it, in other words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from composer.draw.about import About
from composer.draw.arrange.arrangement import Arrangement, titled
from composer.draw.arrange.hide import Hidden, hide_inputs, hide_nodes
from composer.draw.arrange.merge import EachPass, merge_nodes
from composer.draw.diagram import Flow, Group, Item, Leaf, OpenMixture, Titles

BEHIND = re.compile(r"(?: ·|,) dropout [\d.]+")
"""Dropout behind a block, where a closed box tells both in one."""
FactsOf = Callable[[About], tuple[str, ...]]
"""What else the box of a node says, such as its FLOPs."""


def arranged(flow: Flow, wanted: Arrangement, each: EachPass, facts: FactsOf | None = None) -> tuple[Flow, tuple[Hidden, ...]]:
    """Return a diagram as it is wanted, and which nodes are not in it.

    Raises:
        Unarrangeable: if it cannot be so.
    """
    flow, gone = hide_nodes(flow, wanted.hidden) if wanted.hidden else (flow, ())
    if names := {*wanted.inputs, *wanted.hidden}:
        flow = hide_inputs(flow, names, wanted.hidden)
    for label, paths in wanted.merged.items():
        flow = merge_nodes(flow, label, paths, each)
    if wanted.labels or facts or not (wanted.names and wanted.dropout):
        flow = _map_all(flow, lambda item: _worded(item, wanted, facts))
    return flow, gone


def with_notes(titles: Titles, gone: tuple[Hidden, ...], wanted: Arrangement, counted: Callable[[int], str]) -> Titles:
    """Return the head of a drawing that also tells what is not drawn: how much in the figure, which in its description."""
    inputs = {name: wanted.labels.get(name, said) for name, said in titles.inputs.items()}
    left_out = [*(one.about.path for one in gone), *(name for name in (*wanted.inputs, *wanted.hidden) if name in inputs)]
    if not left_out:
        return replace(titles, inputs=inputs)
    lost = sum(one.parameters for one in gone)
    count = f"{len(gone)} {'node' if len(gone) == 1 else 'nodes'}"
    note = [f"{count} not drawn" + (f", with {counted(lost)} parameters" if lost else "")] if gone else []
    tips = {one.about.path: one.about.tip for one in gone}
    said = ", ".join(f"{path} ({tips[path]})" if tips.get(path) else path for path in dict.fromkeys(left_out))
    description = "; ".join(filter(None, [titles.description, f"not drawn: {said}"]))
    return replace(titles, facts=(*titles.facts, *note), inputs=inputs, description=description)


def _map_all(flow: Flow, change: Callable[[Item], Item]) -> Flow:
    """Return a flow with every item changed, also those in frames, and the boxes of losses."""
    flow = flow.map_items(change).map_groups(lambda inner: _map_all(inner, change))

    def leaf(one: Leaf | None) -> Leaf | None:
        changed = one and change(one)
        return changed if isinstance(changed, Leaf) else one

    return flow.map_sinks(lambda sink: replace(sink, leaf=leaf(sink.leaf)))


def _worded(item: Item, wanted: Arrangement, facts: FactsOf | None) -> Item:
    """Return an item with its label, and without the words that are not wanted."""
    label = wanted.labels.get(item.about.path, "")
    match item:
        case Leaf():
            more = facts(item.about) if facts and item.look.sign is None else ()
            bare = item.look.facts if wanted.dropout else (BEHIND.sub("", fact) for fact in item.look.facts)  # also in brackets
            told = (fact for fact in bare if wanted.dropout or not fact.startswith("dropout "))
            kept = item.after if wanted.dropout else ""
            seen = replace(item.look, facts=(*more, *told))
            item = replace(item, look=seen, after=kept, name=item.name if wanted.names else "")
            return titled(item, label) if label else item
        case OpenMixture() | Group():
            header = (label or item.header[0], *item.header[1:])
            return replace(item, header=header, after=item.after if wanted.dropout else "")
        case _:
            return item


def label_places(flow: Flow) -> Mapping[str, str]:
    """Return the paths of all that has a title, with it: blocks, frames and losses."""
    found: dict[str, str] = {}
    for item in flow.items:
        match item:
            case Group() | OpenMixture():
                found[item.about.path] = item.header[0]
            case Leaf() if item.look.sign is None:
                found[item.about.path] = item.look.title
            case _:
                pass
        if isinstance(item, Group):
            for inner in item.flows:
                found |= label_places(inner)
    return found | {sink.path: sink.leaf.look.title for sink in flow.sinks if sink.leaf}
