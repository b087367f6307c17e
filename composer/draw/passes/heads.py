"""What stands side by side where a flow goes on: heads of a model, each with outputs or losses of its own, what starts at another
output of one block each, what leads aside, and what is read around a frame alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from blocks.core import Look, spoken
from composer.draw.about import About
from composer.draw.diagram import Branches, Flow, Item, Leaf, Sink, output_of
from composer.draw.edges import DiagramEdge, DiagramSource, NodeOutput, Origin, PreviousPass, grouped
from composer.draw.passes.branches import component_counts, components, readers_of
from composer.draw.passes.order import inner_edges
from composer.draw.paths import above, belongs, output_path

MAX_HEADS = 6
"""Heads that stand beside each other: more do not fit on a page."""
MAX_LONGER = 6
"""How many blocks more than the next one a head may have: a longer one is the trunk, from which the others go off."""

MAX_PASSED = 6
"""Blocks that a wire to a loss goes past at most: what is made further below goes by its name."""
MAX_OUTPUTS = 4
"""Columns that stand beside each other at outputs of one block: that is as wide as all of them."""


def output_leaf(name: str, source: DiagramSource) -> Leaf:
    """Return the box of an output of the model."""
    return Leaf(About(output_path(name), f"the model's output {name} — {source.shape}"), Look(spoken(name), hue="io"))


def group_heads(flow: Flow, kept: Collection[str] = (), sent: Collection[Origin] = ()) -> Flow:
    """Return the flow, in order, with the heads at its end as one item: blocks that read one value, and of which nothing goes on
    but outputs and losses. What is `kept` or `sent` to other columns leaves from the column.

    Before: a(x) b(a) c(a) d(c)
    After:  a(x) [b(a) | c(a) d(c)]
    """
    if flow.outlet is not None:
        return flow
    paths = [item.about.path for item in flow.items]
    fixed = {*kept, *(origin.path for origin in sent)}
    forks = [*([flow.entry] if flow.entry else []), *map(output_of, flow.items)]
    counts = component_counts(flow, paths)
    for fork in forks:
        start = 0 if fork == flow.entry else paths.index(fork.path) + 1
        if not 2 <= counts[start] <= MAX_HEADS:
            continue
        after = paths[start:]
        parts = components(readers_of(flow, flow.by_path)[1], after)
        outer, below = (parts[0], parts[-1]), paths[: max(0, start - 1)]
        lengths = sorted(sum(1 for _ in flow.only(set(part)).leaves()) for part in parts)
        if (
            lengths[-1] - lengths[-2] <= MAX_LONGER
            and not any(belongs(path, after) for path in fixed)
            and all(_starts_at(flow, part, fork, set(after).difference(part), below if part in outer else ()) for part in parts)
        ):
            return _with_heads(flow, fork, parts)
    return flow


def _starts_at(flow: Flow, part: Sequence[str], fork: Origin, others: Collection[str], below: Collection[str]) -> bool:
    """Return whether blocks read a fork, and else only each other, what goes by its name, and by themselves what comes from
    `below` the fork, but nothing of the other heads.
    """
    items = [item for item in flow.items if item.about.path in part]
    own = [e for e in flow.edges if e.target in part]
    deep = [e for item in items for e in inner_edges(item)]
    held = {*part, *(e.target for e in deep)}
    led = {e for e in own if e.source.path in below and e.upward and not (e.source.port or e.partial or e.passage)}
    led = {e for e in led if _leads_beside(e, [one for one in own if one.target == e.target], flow.by_path[e.target])}
    free = all(e in led or e.source.reference or e.source.origin == fork or belongs(e.source.path, held) for e in (*own, *deep))
    free = free and not any(belongs(e.source.path, others) for e in (*own, *deep))
    return free and not any(e.of_state for e in own) and any(e.source.origin == fork and e.main and e.upward for e in own)


def _leads_beside(edge: DiagramEdge, into: Sequence[DiagramEdge], item: Item) -> bool:
    """Return whether a value from below a fork comes in at the outer side of a block in a head: alone, beside what goes straight
    up.
    """
    return isinstance(item, Leaf) and not item.look.sides and len(into) == 2 and all(e.upward or e == edge for e in into)


def _with_heads(flow: Flow, fork: Origin, parts: Sequence[Sequence[str]]) -> Flow:
    """Return the flow with the blocks from a fork on side by side."""
    gone = {path for part in parts for path in part}
    source = next(e.source for e in flow.edges if e.source.origin == fork and e.target in gone and e.main and e.upward)
    heads = tuple(with_end_boxes(replace(flow.only(part), entry=fork)) for part in parts)
    item = Branches(heads, ("",) * len(heads), None, source)
    rest = flow.without(gone)
    rest = rest.with_exits((name, one) for name, one in flow.exits if not belongs(one.path, gone))
    rest = rest.with_sinks(sink for sink in flow.sinks if not belongs(sink.edges[0].source.path, gone))
    edges = (*rest.edges, DiagramEdge(source, item.about.path, "", True, forks=True))
    return rest.with_items((*rest.items, item)).with_edges(edges)


def group_outputs(flow: Flow, kept: Collection[str], sent: Collection[Origin]) -> Flow:
    """Return the flow of a model, in order, with the blocks at its end as one item with that below them where each reads another
    output of this, itself or through others, and one value of each goes on: it is `sent` to another column. What is `kept` stays
    in the column.

    Before: a(x) b(a) c(a.second)
    After:  a(x) [b(a) | c(a.second)]
    """
    paths = [item.about.path for item in flow.items]
    ends = {*kept, *(source.path for source in flow.returned())}
    for place in range(len(paths) - 2) if len(sent) > 1 and not flow.owner else ():
        base, after = flow.items[place], paths[place + 1 :]
        given = {e.source.origin for e in flow.all_edges() if e.source.path == paths[place]}
        if not isinstance(base, Leaf) or not 2 <= len(given) <= MAX_OUTPUTS or any(belongs(end, paths[place:]) for end in ends):
            continue
        parts = components(readers_of(flow, flow.by_path)[1], after)
        found = [one for part in parts if (one := _above_output(flow, base, part, sent)) is not None]
        if len(parts) == len(found) == len({source.origin for source, _ in found}) == len(given) and given.isdisjoint(sent):
            item = Branches(
                tuple(one for _, one in found), ("",) * len(found), None, None, base=base, outputs=tuple(one for one, _ in found)
            )
            return flow.without(after).with_item(item)
    return flow


def _above_output(flow: Flow, base: Leaf, part: Sequence[str], sent: Collection[Origin]) -> tuple[DiagramSource, Flow] | None:
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


def group_led_out(
    flow: Flow,
    kept: Collection[str] = (),
    sent: Collection[Origin] = (),
    lanes: int = 1,
    rightward: Collection[Origin] = (),
) -> Flow:
    """Return the flow, in order, with each block that nothing in it reads, and whose value is `sent` out of it, beside the one
    that goes on from the same value: away from the `lanes`, at the right with 1, or `rightward`. What is `kept` stays in the
    column.

    Before: a(x) b(a) c(a) d(c x)
    After:  a(x) [b(a) | c(a)] d(x a)
    """
    fixed = {*kept, *(source.path for source in (*flow.returned(), flow.outlet) if source)}
    free = {item.about.path: item for item in flow.items if isinstance(item, Leaf) and item.about.path not in fixed}
    readers, read = grouped(flow.all_edges(), lambda e: e.source.path), grouped(flow.edges, lambda e: e.target)
    led = [path for path, item in free.items() if output_of(item) in sent and path not in readers]
    for path in led:
        given = _only_value(read.get(path, ()))
        given = given if given and (given.origin == flow.entry or given.path in flow.by_path) else None
        beside = [edge.target for edge in readers[given.path] if edge.target in free] if given else []
        on = next((one for one in beside if _only_value(read[one]) == given and len(readers.get(one, ())) == 1), None)
        if given is None or on is None:
            continue
        (into,) = readers[on]
        end = flow.by_path.get(into.target)
        if isinstance(end, Leaf) and _goes_straight(into):
            left = lanes > 0 and output_of(free[path]) not in rightward
            flow = _with_led_out(flow, given, (path, on) if left else (on, path), into, end)
    return flow


def _only_value(read: Sequence[DiagramEdge]) -> DiagramSource | None:
    """Return what comes up to a block, where that is all that is led to it."""
    wires = [edge for edge in read if not edge.source.reference]
    return wires[0].source if len(wires) == 1 and _goes_straight(wires[0]) else None


def _goes_straight(edge: DiagramEdge) -> bool:
    return edge.main and edge.upward and not edge.source.port and not edge.partial


def _with_led_out(flow: Flow, given: DiagramSource, paths: Sequence[str], into: DiagramEdge, end: Leaf) -> Flow:
    """Return the flow with two blocks side by side, of which one goes on into the block at the end."""

    def alone(path: str) -> Flow:
        return replace(flow.only({path}), entry=given.origin, outlet=into.source if path == into.source.path else None)

    ports = tuple(into.port if path == into.source.path else "" for path in paths)
    item = Branches(tuple(map(alone, paths)), ports, end, given)
    return flow.without(paths).with_item(item, DiagramEdge(given, end.about.path, "", True, forks=True))


def with_end_boxes(flow: Flow, sent: Collection[Origin] = ()) -> Flow:
    """Return a head, or a column of which some values are sent to others, with boxes above it for the outputs and the losses that
    are all that reads a value.
    """
    read = {e.source.path for e in flow.edges if e.upward} | {origin.path for origin in sent}
    for name, source in flow.exits:
        if source.path in flow.by_path and source.path not in read and not source.port:
            end = output_leaf(name, source)
            flow = _ended(flow, end, DiagramEdge(source, end.about.path, "", True))
            flow = flow.with_exits(one for one in flow.exits if one != (name, source))
            read.add(source.path)
    for sink in flow.sinks:
        first, *others = sink.edges
        if sink.leaf and first.source.path in flow.by_path and first.source.path not in read and first.upward:
            edges = (replace(first, main=True, trains=True), *(one.by_name() for one in others))
            flow = _ended(flow, sink.leaf, *edges).with_sinks(one for one in flow.sinks if one != sink)
            read.add(first.source.path)
    return flow


def _ended(flow: Flow, end: Leaf, *edges: DiagramEdge) -> Flow:
    return flow.with_items((*flow.items, end)).with_edges((*flow.edges, *edges))


def split_aside(flow: Flow) -> tuple[Flow, ...]:
    """Return the flow of a frame without what leads from one of its values to other ends than what the frame gives first, such
    as a loss or a second output, and that; the whole flow where there is no such or several, or a block alone: that may stand in
    a row with what goes on.

    Before: a(x) b(a) c(b) d(a), of which d goes on
    After:  a(x) d(a) / b(a) c(b)
    """
    outlet = flow.outlet
    if not flow.owner or outlet is None or outlet.path not in flow.by_path or _reads_by_port(flow):
        return (flow,)
    read = _reads(flow)
    trunk, waiting = set[str](), [outlet.path]
    while waiting:
        path = waiting.pop()
        if path not in trunk:
            trunk.add(path)
            waiting += read[path]
    rest = [path for path in read if path not in trunk]
    parts = components(read, rest)
    found = _aside(flow, parts[0], trunk) if len(parts) == 1 and len(parts[0]) > 1 else None
    if found is None:
        return (flow,)
    kept = (sink for sink in flow.sinks if not belongs(sink.edges[0].source.path, rest))
    return flow.without(rest).with_sinks(kept), with_end_boxes(found)


def _reads(flow: Flow) -> dict[str, list[str]]:
    """Return which items each one reads, itself or inside of it, in this pass or of the one before."""
    items = flow.by_path
    found: dict[str, list[str]] = {path: [] for path in items}
    for edge in (*flow.edges, *(edge for item in flow.items for edge in inner_edges(item))):
        given = [path for path in above(edge.source.path) if path in items]
        for one in above(edge.target):
            if one in items:
                found[one] += [path for path in given if path != one]
    return found


def _reads_by_port(flow: Flow) -> bool:
    """Return whether something is read of earlier passes of which it is not known what gives it."""
    return any(isinstance(e.source.origin, PreviousPass) for e in flow.all_edges())


def _aside(flow: Flow, part: Sequence[str], trunk: Collection[str]) -> Flow | None:
    """Return some items as what leads aside from one value of the trunk, where they read nothing else of it but what begins
    there, which goes by its name; none where they read more.
    """
    whole = flow.only({*part})
    held = {*part, *(e.target for e in whole.all_edges())}
    wires = [e for e in whole.all_edges() if not (e.source.reference or belongs(e.source.path, held))]
    begun = {path for path in trunk if isinstance(flow.by_path[path], Leaf) and not flow.edges_into(path)}
    origins = {e.source.origin for e in wires if e.source.path not in begun}
    fork = next(iter(origins), None)
    if len(origins) != 1 or not isinstance(fork, NodeOutput) or fork.port or any(e.of_state for e in whole.edges):
        return None
    if not (fork.path in trunk and all(e.main for e in wires if e.source.origin == fork)):
        return None
    return replace(whole.map_edges(lambda e: _by_node_name(e) if e.source.path in begun else e), entry=fork, outlet=None)


def _by_node_name(edge: DiagramEdge) -> DiagramEdge:
    """Return an edge from a node of the same frame that is called as the recipe calls it there."""
    return edge.reading(edge.source.by_name(edge.source.reference or edge.source.path.rpartition(".")[2]))


def lead_to_losses(flow: Flow) -> Flow:
    """Return a flow, in order, in which wires lead to a loss from all that it reads of the flow not far below it.

    Before: a(x) b(a) loss(b @a)
    After:  a(x) b(a) loss(b a)
    """
    places = {item.about.path: place for place, item in enumerate(flow.items)}

    def led(sink: Sink) -> Sink:
        first, *others = sink.edges
        above = places.get(first.source.path)
        if sink.leaf is None or above is None:
            return sink
        return replace(sink, edges=(first, *(replace(e, trains=True) if reaches(e, above) else e for e in others)))

    def reaches(edge: DiagramEdge, above: int) -> bool:
        below = above - places.get(edge.source.path, above)
        return edge.upward and not edge.source.port and 0 < below <= MAX_PASSED

    return flow.map_sinks(led)
