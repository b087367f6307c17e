"""What stands beside a flow: blocks that read nothing that flows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from composer.draw.brief.block import is_parameter
from composer.draw.diagram import Flow, Group, Item, Leaf, is_state, output_of
from composer.draw.edges import DiagramEdge, DiagramSource, Origin, grouped, joined_inputs, joined_places
from composer.draw.paths import above, lies_in

BesideBlock: TypeAlias = tuple[Leaf, DiagramEdge, tuple[DiagramEdge, ...]]
"""What stands beside a block, the edge from there, and what it reads."""
MIN_COLUMNS = 3
"""Values that are concatenated and stand side by side: of two, the one that is less stands beside the other."""
MAX_BESIDE = 2
"""Blocks beside another one, but for what it starts with: a cell starts with a value for each of its states."""
NOTHING_BESIDE: Mapping[str, Sequence[BesideBlock]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SideInputs:
    """A flow without the blocks that read nothing that flows, and where these stand."""

    flow: Flow
    beside: Mapping[str, Sequence[BesideBlock]]
    """With each block what stands beside it."""
    outer_inputs: Mapping[str, tuple[Leaf, tuple[DiagramEdge, ...]]]
    """What is read by several blocks, or over a border, and so stands below the first of its readers; with what it reads."""


def split_side_inputs(flow: Flow, sent: Collection[Origin] = (), trunk: str = "") -> SideInputs:
    """Return a flow without what stands beside it, and that; what is `sent` to other columns stays, and what alone reads the
    input of the model that the `trunk` begins with.

    Before: a(x) table() b(a ~table)
    After:  a(x) b(a); table beside b
    """
    items = flow.by_path
    beside: dict[str, list[BesideBlock]] = {}
    outer_inputs: dict[str, tuple[Leaf, tuple[DiagramEdge, ...]]] = {}
    gone: set[str] = set()
    read = (e for e in flow.all_edges() if not (e.source.at_first and e.source.reference))  # these are not led to
    read_of, into = grouped(read, lambda e: e.source.path), grouped(flow.edges, lambda e: e.target)
    all_into = grouped(flow.all_edges(), lambda e: e.target)

    def goes_on(read: DiagramEdge) -> bool:
        """Return whether something that flows goes through the reader too, so that this only joins it."""
        others = [e.source for e in all_into[read.target] if e.main and not e.source.reference and e.source.path not in gone]
        holder = next((path for path in above(read.target) if isinstance(items.get(path), Group)), None)
        own = holder is not None and any(lies_in(s.path, holder) for s in others)
        return own or any(s.path != read.source.path and (s.from_inside or _flows(s, flow, items)) for s in others)

    def joins(read: DiagramEdge) -> bool:
        """Return whether the reader reads several values that are made of the same one, side by side, so that none of them goes
        up to it beside this block.
        """
        made = [e.source.path for e in into.get(read.target, ()) if e.main and e.upward and e.source.path != read.source.path]
        origins = [{e.source.origin for e in into.get(path, ()) if e.main and e.upward} for path in dict.fromkeys(made)]
        return len(origins) > 1 and bool(set.intersection(*origins))

    def shared(read: DiagramEdge, path: str) -> bool:
        """Return whether something else that stays in a column reads an input that a block reads, and that the trunk does not
        begin with.
        """
        source = read.source
        others = (e for e in read_of.get(source.path, ()) if e.target != path and e.target in items and e.target not in gone)
        return source.is_model_input and read.main and source.path != trunk and any(e.main and e.upward for e in others)

    twins = _twins(flow, items) | _columns_of_joins(items, read_of, into)
    for path, item in items.items():
        readers, reads = read_of.get(path, []), tuple(into.get(path, ()))
        streams = [e for e in reads if not (e.shape_only or (is_state(item) and (e.back or e.source.at_first)))]
        still = all(e.source.reference or e.source.is_model_input for e in streams)
        still = still and flow.owner not in {e.source.path for e in streams} - {""}
        if path in twins or (isinstance(item, Leaf) and item.model_input):
            continue  # one of several towers, or an input of the model
        if len(readers) == 1 and output_of(item) in sent:
            continue  # of what stands beside a block, no wire leads elsewhere
        if not (isinstance(item, Leaf) and not item.look.sign and not item.look.sides and still and readers):
            continue
        if any(e.main and e.source.path == trunk and len(read_of[trunk]) == 1 for e in reads):
            continue
        if any(e.upward and e.source.path in items and len(read_of[e.source.path]) == 1 for e in reads):
            continue  # of an input with a box, which would stand there alone
        if not readers[0].main and any(shared(e, path) for e in reads):
            continue  # of what another column begins with, it stands there
        if any(source.path == path for _, source in flow.exits) or any(e.source.port or e.back for e in readers):
            continue
        if any(e.source.path in outer_inputs for e in reads):
            continue  # of what stands below its first reader, that reader stays in the column
        reader = items.get(readers[0].target)
        reads_a_shape = any(e.shape_only and e.upward and not e.source.is_model_input for e in reads)
        if len(readers) > 1 or reader is None or (reads_a_shape and not joins(readers[0])):
            stays = output_of(item) in sent or any(e.source.path == path for sink in flow.sinks for e in sink.edges)
            stays = stays or any(e.partial for e in readers)  # kinds of layers are led to at both sides of their frame
            if is_state(item) or not (stays or any((e.main and not goes_on(e)) or e.source.reference for e in readers)):
                outer_inputs[path] = item, reads
                gone.add(path)
            continue
        if not isinstance(reader, Leaf):
            continue
        streams = [e for e in into.get(readers[0].target, ()) if e.main and e.source.path not in gone]
        others = [e for e in streams if e.source.path != path and not e.source.reference]
        if not others or (readers[0].main and streams[0].source.path == path and not _flows(others[0].source, flow, items)):
            continue
        if len(beside.get(readers[0].target, [])) < MAX_BESIDE or readers[0].source.at_first:
            beside.setdefault(readers[0].target, []).append((item, readers[0], reads))
            gone.add(path)
    kept = tuple(item for item in flow.items if item.about.path not in gone)
    paths = gone - set(outer_inputs)
    led = [e for e in flow.edges if e.target not in gone or (e.back and is_state(items[e.target]))]  # which blocks lead back
    edges = tuple(e for e in led if e.source.path not in paths or e.source.reference)
    return SideInputs(flow.with_items(kept).with_edges(edges), beside, outer_inputs)


def inputs_of_losses(flow: Flow) -> set[str]:
    """Return the inputs of the model that no output depends on, and that each of its readers joins with what is computed: they
    are what losses compare, and stand beside that as their targets do.
    """
    if not any(sink.leaf for sink in flow.sinks):
        return set()
    items, edges = flow.by_path, [*flow.all_edges()]
    into: dict[str, set[str]] = {}
    for edge in edges:
        for path in above(edge.target):
            if path in items:
                into.setdefault(path, set()).update(above(edge.source.path))
    needed, waiting = set[str](), [path for _, source in flow.exits for path in above(source.path)]
    while waiting:
        path = waiting.pop()
        if path not in needed:
            needed.add(path)
            waiting += into.get(path, ())
    computed = {e.target for e in edges if e.upward and e.main and not e.source.is_model_input and e.source.path in items}
    read_of = grouped((e for e in edges if e.source.is_model_input), lambda e: e.source.path)
    return {path for path, read in read_of.items() if path not in needed and all(e.target in computed for e in read)}


def name_starts(flow: Flow, kept: Collection[str] = ()) -> Flow:
    """Return a flow without the blocks that are nothing but what recurrences start with, one number or parameters: what reads
    that at first names it, as no box in the frame of a step is computed once. Those that are `kept` stay boxes.
    """
    flow = flow.map_groups(lambda inner: name_starts(inner, kept))
    returned, paths = {one.path for one in flow.returned()}, flow.by_path.keys()
    read_of = grouped(flow.all_edges(), lambda e: e.source.path)
    starts: dict[str, Leaf] = {}
    gone: set[str] = set()
    for path, item in flow.by_path.items():
        if not (isinstance(item, Leaf) and path in read_of and path not in returned and path not in kept):
            continue
        if not (item.look.number or is_parameter(item)):
            continue
        made = _made_for(path, flow, read_of) if all(e.starts and e.target not in paths for e in read_of[path]) else None
        if made is not None and made.isdisjoint(kept):
            starts[path] = item
            gone |= made
    return _with_starts(flow.without(gone), starts) if starts else flow


def _made_for(path: str, flow: Flow, read_of: Mapping[str, Sequence[DiagramEdge]]) -> set[str] | None:
    """Return the blocks of a flow that are only there for one of them, with that; none where one of these has parameters or holds
    others, or would leave something that nothing reads.
    """
    returned, found, waiting = {one.path for one in flow.returned()}, {path}, [path]
    while waiting:
        for edge in flow.edges_into(waiting.pop()):
            source = edge.source.path
            if source in found or source in returned or any(e.target not in found for e in read_of[source]):
                continue
            item = flow.by_path.get(source)
            if not isinstance(item, Leaf) or item.model_input or item.about.parameters:
                return None
            found.add(source)
            waiting.append(source)
    return found


def _with_starts(flow: Flow, starts: Mapping[str, Leaf]) -> Flow:
    """Return a flow in which what recurrences start with is named where it is read, once for each block, whose description tells
    of what gives it; the first block that reads parameters stands for these, and tells their shape.
    """
    first: dict[str, str] = {}
    for edge in flow.all_edges():
        first.setdefault(edge.source.path, edge.target)
    return _named_in(flow, starts, {path: first[path] for path in starts})


def _named_in(flow: Flow, starts: Mapping[str, Leaf], first: Mapping[str, str]) -> Flow:
    started = grouped((e for e in flow.edges if e.source.path in starts), lambda e: e.target)
    given = {target: grouped(edges, lambda e: e.source.path) for target, edges in started.items()}

    def named(edges: Sequence[DiagramEdge]) -> DiagramEdge:
        source, start = edges[0].source, starts[edges[0].source.path]
        told = first[source.path] == edges[0].target
        name = start.look.number or (learned(start) if told else source.own_name)
        source = replace(source.by_name(name), number=name if name != source.own_name else "")
        ports = ", ".join(e.port for e in edges)
        return replace(edges[0], port=ports, source=source, input=joined_inputs(edges), place=joined_places(edges))

    def tell(item: Item) -> Item:
        read = [starts[path].about for path in given.get(item.about.path, ())]
        said = (f"starts with {one.path} ({'; '.join(filter(None, [one.tip, one.description]))})" for one in read)
        own = [one for one in read if one.parameters and first[one.path] == item.about.path]
        about = item.about.with_parameters(item.about.parameters + sum(one.parameters for one in own))
        about = replace(about, description="; ".join(filter(None, [about.description, *said])))
        about = replace(about, covers=(*about.covers, *(one.path for one in own)))
        return replace(item, about=about) if isinstance(item, Leaf) else item

    kept = [e for e in flow.edges if e.source.path not in starts]
    named_edges = (named(edges) for sources in given.values() for edges in sources.values())
    flow = flow.map_items(tell).with_edges((*kept, *named_edges))
    return flow.map_groups(lambda inner: _named_in(inner, starts, first))


def learned(start: Leaf) -> str:
    """Return the name of parameters with their shape, in place of their box."""
    how = "frozen" if "frozen" in start.params else "learned"
    return f"{start.about.path.rpartition('.')[2]} ({start.look.facts[0]}, {how})"


def stand_by_readers(flow: Flow) -> Flow:
    """Return a flow in which what a recurrence starts with stands in its frame, beside the first block that reads it; others that
    do so call it by its name.
    """
    flow = flow.map_groups(stand_by_readers)
    read_of = grouped(flow.all_edges(), lambda e: e.source.path)
    returned = {one.path for one in flow.returned()}
    for path, item in flow.by_path.items():
        reads, readers = flow.edges_into(path), read_of.get(path, ())
        still = all(e.shape_only for e in reads)
        if not (isinstance(item, Leaf) and not item.model_input and not item.look.sign and not item.look.sides and still):
            continue
        starts = path not in returned and all(e.starts for e in readers)
        first = _first_in_frame(path, flow) if starts else None
        if first is not None:
            named = [replace(e, source=e.source.by_name()) for e in reads]
            flow = _with_start(flow.without({path}), item, named, first)
    return flow


def _first_in_frame(path: str, flow: Flow) -> DiagramEdge | None:
    """Return the first edge from somewhere else into a block in a frame of a flow, but for frames of several kinds of passes."""
    for inner in (item.flows[0] for item in flow.items if isinstance(item, Group) and len(item.flows) == 1):
        into = {edge.target: edge for edge in inner.edges if edge.source.path == path}
        found = next((into[one] for one, item in inner.by_path.items() if one in into and isinstance(item, Leaf)), None)
        if found := found or _first_in_frame(path, inner):
            return found
    return None


def _with_start(flow: Flow, start: Leaf, reads: Sequence[DiagramEdge], first: DiagramEdge) -> Flow:
    """Return a flow with a block, and what that reads, in the frame where something reads it first; by its name elsewhere."""
    held = first in flow.edges
    named = flow.map_edges(lambda e: e.by_name() if e.source.path == start.about.path and e != first else e)
    named = named.map_groups(lambda inner: _with_start(inner, start, reads, first))
    return named.with_items((start, *named.items)).with_edges((*named.edges, *reads)) if held else named


def _twins(flow: Flow, items: Mapping[str, Item]) -> set[str]:
    """Return the blocks that read inputs of the model alone, and whose reader reads another of the same kind, or that are boxes
    or frames of one block of the recipe and read several inputs.
    """
    read = grouped((e for e in flow.edges if e.upward and not e.shape_only), lambda e: e.target)
    alone = {path for path, edges in read.items() if all(e.source.is_model_input for e in edges)}
    starts = {path: item for path, item in items.items() if path in alone and isinstance(item, Leaf | Group)}
    found: set[str] = set()
    for edges in read.values():
        found.update(*(alike for alike in _by_title({e.source.path for e in edges}, starts) if len(alike) > 1))
    for alike in _by_title({path for path, item in starts.items() if isinstance(item, Group) or item.closed}, starts):
        found |= alike if len({e.source.path for path in alike for e in read[path]}) > 1 else set()
    return found


def _by_title(paths: Collection[str], starts: Mapping[str, Leaf | Group]) -> list[set[str]]:
    """Return those of some blocks that the model starts with, in sets of one kind each."""
    found: dict[str, set[str]] = {}
    for path in starts.keys() & paths:
        found.setdefault(_title(starts[path]), set()).add(path)
    return [*found.values()]


def _title(item: Leaf | Group) -> str:
    """Return what a box or a frame is an instance of, without its own name."""
    return item.look.title if isinstance(item, Leaf) else item.header[0].partition(" · ")[0]


def _columns_of_joins(
    items: Mapping[str, Item], read_of: Mapping[str, Sequence[DiagramEdge]], into: Mapping[str, Sequence[DiagramEdge]]
) -> set[str]:
    """Return what leads to a concatenation of at least three values that go nowhere else, back to where each begins: these are
    columns side by side, none of which is more than another.
    """
    found: set[str] = set()
    for path, item in items.items():
        if not (isinstance(item, Leaf) and item.look.sign == "‖" and len(into.get(path, ())) >= MIN_COLUMNS):
            continue
        waiting, column = [path], set[str]()
        while waiting:
            read = [edge for edge in into.get(waiting.pop(), ()) if edge.upward and not edge.source.at_first]
            sources = {edge.source.path for edge in read} & items.keys()
            if any(len(read_of[source]) > 1 for source in sources):
                break
            waiting += sources
            column |= sources
        else:
            found |= column
    return found


def _flows(source: DiagramSource, flow: Flow, items: Mapping[str, Item]) -> bool:
    """Return whether a value comes from a block that reads what flows."""
    wired = [e for e in flow.edges if e.upward]
    return source.path == flow.owner or any(e.target == source.path and e.source.path in items for e in wired)
