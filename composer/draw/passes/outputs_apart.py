"""What stands side by side above a block with several outputs: columns that start at one of these each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from composer.draw.diagram import Branches, Flow, Leaf
from composer.draw.edges import DiagramSource, NodeOutput, Origin
from composer.draw.passes.branches import components, readers_of
from composer.draw.paths import belongs

MAX_OUTPUTS = 4
"""Columns that stand beside each other so: the block below is as wide as all of them."""


def group_outputs(flow: Flow, kept: Collection[str], sent: Collection[Origin]) -> Flow:
    """Return the flow of a model, in order, with the blocks at its end as one item with that below them where each reads another
    output of this, itself or through others, and one value of each goes on: it is `sent` to another column. What is `kept` stays
    in the column.

    Before: a(x) b(a) c(a.second)
    After:  [a(x): b(a) | c(a.second)]
    """
    paths = [item.about.path for item in flow.items]
    ends = {*kept, *(source.path for source in flow.returned())}
    for place in range(len(paths) - 2) if len(sent) > 1 and not flow.owner else ():
        base, after = flow.items[place], paths[place + 1 :]
        given = {e.source.origin for e in flow.all_edges() if e.source.path == paths[place]}
        if not isinstance(base, Leaf) or not 2 <= len(given) <= MAX_OUTPUTS or any(belongs(end, paths[place:]) for end in ends):
            continue
        parts = components(readers_of(flow, flow.by_path)[1], after)
        found = [one for part in parts if (one := _column(flow, base, part, sent)) is not None]
        if len(parts) == len(found) == len({source.origin for source, _ in found}) == len(given) and given.isdisjoint(sent):
            item = Branches(
                tuple(one for _, one in found), ("",) * len(found), None, None, base=base, outputs=tuple(one for one, _ in found)
            )
            return flow.without(after).with_item(item)
    return flow


def _column(flow: Flow, base: Leaf, part: Sequence[str], sent: Collection[Origin]) -> tuple[DiagramSource, Flow] | None:
    """Return the output of a block at which blocks start, and these up to the value that is sent; none where they read anything
    else by a wire, or more goes on.
    """
    own = flow.only({*part})
    outside = {e.source.origin: e.source for e in own.all_edges() if not (e.source.reference or belongs(e.source.path, part))}
    last = NodeOutput(part[-1])
    if [origin for origin in sent if belongs(origin.path, part)] != [last] or len(outside) != 1:
        return None
    (start,) = outside.values()
    plain = all(isinstance(item, Leaf) for item in own.items) and all(e.upward or e.source.reference for e in own.edges)
    if start.path != base.about.path or not isinstance(start.origin, NodeOutput) or not plain:
        return None
    begin = replace(start, origin=NodeOutput(start.path))
    edges = (e.reading(begin) if e.source.origin == start.origin else e for e in own.edges)
    return start, replace(own, entry=begin.origin, outlet=DiagramSource(last)).with_edges(edges)
