"""The columns of a page: which blocks stand in which, and what they read of each other."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from composer.draw.diagram import Flow, Group, Item, Leaf, OpenMixture, Sink
from composer.draw.edges import DiagramEdge, DiagramSource, InnerOutput, Origin
from composer.draw.passes.side_inputs import split_side_inputs
from composer.draw.paths import above, belongs

ONE_NUMBER = re.compile(r"(?:[\d.]+ \+ )?0·\w+")
"""A formula whose value is one number, in the shape of another value."""


def split_into_columns(flow: Flow) -> list[Flow]:
    """Return the columns of a page: blocks between which the stream flows; the one with the model's output last, but
    for those of further outputs that the recipe has after it, which nothing else reads or which read it.

    Before: a(x) b(a) c(y) d(c ~b)
    After:  a(x) b(a) / c(y) d(c ~b)
    """
    group = {item.about.path: item.about.path for item in flow.items}

    def root(path: str) -> str:
        top = path
        while group[top] != top:
            top = group[top]
        while path != top:  # the next time it is nearer
            path, group[path] = group[path], top
        return top

    alone = {item.about.path for item in flow.items} - {item.about.path for item in split_side_inputs(flow).flow.items}
    for edge in flow.edges:
        if (
            edge.source.path in group
            and not edge.source.reference
            and not isinstance(edge.source.origin, InnerOutput)
            and ((edge.main and not _beside_stream(edge, flow)) or edge.target in alone or edge.source.path in alone)
        ):
            group[root(edge.source.path)] = root(edge.target)
    for edge in flow.edges:
        if isinstance(edge.source.origin, InnerOutput) and not _aside(
            edge, flow, {p for p in group if root(p) == root(edge.target)}
        ):
            group[root(edge.source.path)] = root(edge.target)
    for item in flow.items:  # a block by itself that reads nothing stands in the column that reads it
        path = item.about.path
        still = path in alone or all(e.source.reference for e in flow.edges_into(path))
        if isinstance(item, Leaf) and group[path] == path and still:
            readers = [e for e in flow.all_edges() if e.source.path == path]
            if item.model_input and any(e.upward for e in readers):
                continue  # which a wire leads from into a frame
            holders = above(readers[0].target) if readers else []
            group[path] = next((root(one) for one in holders if one in group and root(one) != path), path)
    last = root(flow.items[-1].about.path)
    roots = dict.fromkeys(root(item.about.path) for item in flow.items)
    ordered = [one for one in roots if one != last] + [last]
    named = {root(source.path) for _, source in flow.exits if source.path in group}
    column = {one: {path for path in group if root(path) == one} for one in roots}
    given = [(root(e.source.path), e.target) for e in flow.all_edges() if e.source.path in group]
    read = {one for one, target in given if not belongs(target, column[one])}
    after = {last}  # what is made of the first output's column
    for one in roots:
        if any(source in after and belongs(target, column[one]) for source, target in given):
            after.add(one)
    others = named & after | named - read
    later = [one for one in ordered[list(roots).index(last) : -1] if one in others]  # other outputs, in their order
    ordered = [one for one in ordered if one not in later] + later
    columns = []
    reads = {one: {source for source, target in given if source != one and belongs(target, column[one])} for one in roots}
    ordered = before_readers(ordered, reads)
    for one in ordered:
        columns.append(flow.with_sinks(()).only({path for path in flow.by_path if root(path) == one}))
    return with_sinks(columns, flow.sinks)


def before_readers(columns: Sequence[str], reads: Mapping[str, Collection[str]]) -> list[str]:
    """Return columns in their order, but those that read no other one before the first that reads them: wires lead to the right.

    >>> before_readers(["a", "b", "c"], {"a": {"b"}, "b": set(), "c": {"a", "b"}})
    ['b', 'a', 'c']
    """
    found: list[str] = []
    for one in columns:
        found += [other for other in columns if other in reads[one] and not reads[other] and other not in found]
        found += [one] if one not in found else []
    return found


def _beside_stream(edge: DiagramEdge, flow: Flow) -> bool:
    """Return whether a value comes into a frame beside its stream, in which nothing goes on but that: so may another column."""
    frame = flow.by_path.get(edge.target)
    if not (edge.passage and isinstance(frame, Group)):
        return False
    return all(one.enters and not (one.port and one.made) for one in frame.passages)


def _aside(edge: DiagramEdge, flow: Flow, column: Collection[str]) -> bool:
    """Return whether what reads a value from inside of a frame stands in a column beside that: one that has inputs of its own, or
    where the stream goes on from the frame.
    """
    frame = edge.source.path
    goes_on = any(
        e.source.path == frame and e.upward and e.main and not isinstance(e.source.origin, InnerOutput) for e in flow.edges
    )
    return frame not in column and (
        goes_on or any(isinstance(i, Leaf) and i.model_input and i.about.path in column for i in flow.items)
    )


def with_sinks(columns: Sequence[Flow], sinks: Sequence[Sink]) -> list[Flow]:
    """Return the columns, each with what gives nothing that flows on: beside what it reads first, a loss beside what it reads
    last. A loss that reads routers of two columns stands between them, and wires lead to it from either side.
    """
    found = list(columns)
    items = [(place, item) for column in columns for place, item in enumerate(column.items)]
    computed = {item.about.path: -1 if is_one_number(item) else place for place, item in items}
    for sink in sinks:
        sink = replace(sink, edges=_last_first(sink.edges, computed))
        first, *others = sink.edges
        column, *of = (number_of(edge.source, columns) for edge in sink.edges)
        mixtures = {leaf.about.path for one in columns for leaf in one.leaves() if isinstance(leaf, OpenMixture)}
        if len(others) == 1 and of[0] > column and {edge.source.path for edge in sink.edges} <= mixtures:
            here = replace(first, source=replace(first.source, reference=""), trains=True)
            sink, column = replace(sink, edges=(others[0], here)), of[0]
        found[column] = found[column].with_sinks((*found[column].sinks, sink))
    return found


def is_one_number(item: Item) -> bool:
    """Return whether a block is a formula whose value is one number for all places of what it reads: `1 + 0 · score`, the target
    of a loss.
    """
    return isinstance(item, Leaf) and ONE_NUMBER.fullmatch(item.look.formula) is not None


def _last_first(edges: Sequence[DiagramEdge], places: Mapping[str, int]) -> tuple[DiagramEdge, ...]:
    """Return what a loss reads, that first which is computed last, so that the loss stands where wires lead up to it from the
    others; rather than what is one number everywhere, whose place is that of no stream.
    """
    made = [edge for edge in edges if edge.source.path in places and not edge.source.reference and not edge.source.port]
    if len(made) < 2 or made[0] is not edges[0]:
        return tuple(edges)
    last = max(made, key=lambda edge: places[edge.source.path])
    return last, *(edge for edge in edges if edge is not last)


def number_of(source: DiagramSource, columns: Sequence[Flow]) -> int:
    """Return the column that a value comes from; the last one for an input of the model."""
    numbers = (n for n, column in enumerate(columns) if belongs(source.path, column.by_path))
    return next(numbers, len(columns) - 1)


def by_name_where_needed(columns: Sequence[Flow]) -> list[Flow]:
    """Return the columns, where what a later one gives goes by its name: wires lead to the right; and so does, in a column to
    which a wire would go over others, what a column without inputs gives to one of these too.

    Before: a(x) b(a ~c) / c(y)
    After:  a(x) b(a @c) / c(y)
    """
    found = []
    reads = [{e.source.origin for e in column.all_edges() if not e.source.reference} for column in columns]
    for number, column in enumerate(columns):
        later = {path for other in columns[number + 1 :] for path in other.by_path}
        found.append(name_from_others(column, later | _read_on_the_way(columns, reads, number)))
    return found


def _read_on_the_way(columns: Sequence[Flow], reads: Sequence[Collection[Origin]], number: int) -> set[str]:
    """Return the paths of what gives values, in columns without inputs, that a column reads, and one between them too: for what
    stands beside the streams of a model, a name tells as much as a wire around one of these.
    """
    found = set[str]()
    for place, source in enumerate(columns[:number]):
        if not any(isinstance(item, Leaf) and item.model_input for item in source.items):
            between = {one for read in reads[place + 1 : number] for one in read}
            found |= {one.path for one in reads[number] if one in between and one.path in source.by_path}
    return found


def name_from_others(flow: Flow, paths: Collection[str]) -> Flow:
    """Return a flow in which what it and its frames read of some items of other columns goes by its name."""
    named = flow.map_edges(lambda e: e.by_name() if e.source.path in paths else e)
    return named.map_groups(lambda inner: name_from_others(inner, paths))


def sent_from(column: Flow, columns: Sequence[Flow]) -> frozenset[Origin]:
    """Return the values of a column that others read."""
    own = column.by_path.keys()
    others = [other for other in columns if other is not column]
    read = [e.source for other in others for e in other.all_edges() if e.source.path in own]
    read += [e.source for other in others for sink in other.sinks for e in sink.edges if e.trains and belongs(e.source.path, own)]
    return frozenset(source.origin for source in read if not source.reference)
