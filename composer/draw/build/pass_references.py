"""Passes of a repeat: how a reference names them, and where what an earlier one gave comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from blocks.core import Look, TableIcon
from composer.draw.about import About
from composer.draw.build.texts.node_names import by_itself, read_by_name
from composer.draw.diagram import Branches, Flow, Group, IrregularSubgraph, Item, Leaf, OpenMixture
from composer.draw.edges import (
    DiagramEdge,
    DiagramSource,
    InnerOutput,
    NodeOutput,
    Origin,
    PreviousPass,
    joined_inputs,
    joined_places,
)
from composer.draw.paths import above
from composer.draw.wording import each_pass, passes_in_words, shape
from composer.graph.anatomy import wires_of
from composer.graph.ir import Ref
from composer.graph.typed import TypedGraph, TypedScan
from composer.graph.types import TensorType

MIN_READERS = 2
"""Blocks of a step that read a state which is a box: into the only one, or into blocks in the same one, wires back lead."""
TABLE_AXES = 3
"""Of a state that is a table: those of its rows and its columns, and that of the batch."""
PREVIOUS_STEP = "previous step"
"""What a value of the step before is called where no wire leads back to it."""


def consecutive_passes(refs: Sequence[Ref]) -> Iterator[tuple[Ref, ...]]:
    """Yield the references in order, those to consecutive passes of a repeat together."""
    same: list[Ref] = []
    for ref in refs:
        last = same[-1] if same else None
        if last and last.index is not None and ref == replace(last, index=last.index + 1):
            same.append(ref)
            continue
        if same:
            yield tuple(same)
        same = [ref]
    if same:
        yield tuple(same)


def range_name(same: Sequence[Ref]) -> str:
    """Return how a recipe names some passes: `layers(1:3).attn`."""
    first, last = same[0], same[-1]
    if len(same) == 1 or first.index is None or last.index is None:
        return str(first)
    return f"{first.node}({first.index}:{last.index + 1}){'.' if first.port else ''}{first.port}"


def named_passes(source: DiagramSource, same: Sequence[Ref], last: int | None) -> DiagramSource:
    """Return a value with the passes that give it, in words, counted as in the language; `last` is the repeat's last pass."""
    if last is None:
        return source
    first, final = (last if ref.index is None else ref.index for ref in (same[0], same[-1]))
    said = passes_in_words(same[0].node, first, final, last)
    return replace(source, passes=f"{source.passes} of {said}" if source.passes else said)


def earlier_pass_source(same: Sequence[Ref], index: int, path: str, *, growing: bool = False) -> DiagramSource:
    """Return a value of passes before; where it comes from is known when one has been read. Of a `growing` list of them, each
    pass reads all before it.
    """
    first, last = same[0], same[-1]
    port = f": {first.port}" if first.port else ""
    if growing:
        origin = PreviousPass(path, first.port, immediate=True)
        return DiagramSource(origin, reference=f"earlier passes{port}", passes=f"all earlier {each_pass(first.node)[1]}")
    several = len(same) > 1 or (first.index == 0 and last.index == index - 1 and index > 1 and len(same) == index)
    immediate = not several and first.index == index - 1
    which = "earlier passes" if several else "previous pass" if immediate else f"pass {first.index}"
    return DiagramSource(PreviousPass(path, first.port, immediate), reference=f"{which}{port}")


def without_parameters(flow: Flow) -> Flow:
    """Return the flow as another kind of pass of which all have the same weights."""
    return flow.map_items(_without_parameters)


def _without_parameters(item: Item) -> Item:
    about = item.about.with_parameters(0)
    match item:
        case Leaf():
            return replace(item, about=about)
        case Group():
            return replace(item.map_flows(without_parameters), about=about)
        case OpenMixture(router=router, shared=shared):
            one = replace(router, about=router.about.with_parameters(0))
            every = shared and replace(shared, about=shared.about.with_parameters(0))
            return replace(item, about=about, router=one, shared=every)
        case Branches() | IrregularSubgraph():  # found by later passes
            return item


def resolve_previous_passes(
    flow: Flow, path: str, ports: Mapping[str, tuple[DiagramSource, ...]], own: Sequence[str] = ()
) -> Flow:
    """Return the flow in which values of earlier passes of a repeat come from where each pass makes them: by a wire that leads
    back where that is one of its blocks.
    """
    own = own or [item.about.path for item in flow.items]
    edges: list[DiagramEdge] = []
    led_back = {(edge.source.origin, edge.target, edge.port) for edge in flow.edges if edge.back}
    for edge in flow.edges:
        origin = edge.source.origin
        if not isinstance(origin, PreviousPass) or origin.path != path:
            edges.append(edge)
            continue
        for one in ports.get(origin.port, ()):
            back = origin.immediate and one.path in own and not one.port and not one.reference
            source = replace(one, passes=edge.source.passes) if back else one.by_name(edge.source.reference)
            if (source.origin, edge.target, edge.port) in led_back:
                continue  # of a repeat in a repeat: its wire back tells it
            edges.append(replace(edge, source=source, back=back))
    return flow.with_edges(edges).map_groups(lambda inner: resolve_previous_passes(inner, path, ports, own))


def with_state_boxes(
    flow: Flow,
    path: str,
    graph: TypedGraph,
    carried: Mapping[str, str],
    given: Mapping[str, tuple[DiagramSource, ...]],
    called: Callable[[str], str],
) -> Flow:
    """Return the flow of one step in which a state that several blocks read is a box, which they read by wires of this step: to
    that leads what the step before gave, and at first what is `given`. Its title is its name as it is `called` by itself; one of
    two axes beside the batch has the picture of a table. Of several such states none is a box: their boxes and loops would stand
    around the blocks that read them.

    Before: head(x ~new) new(~head ~new)
    After:  memory(~new) head(x memory) new(~head memory)
    """
    ports = Counter(carried.values())
    found = []
    for name, port in carried.items():
        if ports[port] == 1 and name not in graph.by_name:
            before = PreviousPass(path, port, immediate=True)
            type_ = graph.inputs[name]
            icon = TableIcon() if isinstance(type_, TensorType) and len(type_.axes) == TABLE_AXES else None
            title = by_itself(name, called, in_formula=name in read_by_name(graph))
            look = Look(title, (shape(type_),), "state", icon)
            boxed = _with_state_box(flow, before, f"{path}.{name}", look, given.get(name, ()))
            found += [boxed] if boxed is not flow else []
    return found[0] if len(found) == 1 else flow


def _with_state_box(flow: Flow, before: PreviousPass, path: str, look: Look, given: Sequence[DiagramSource]) -> Flow:
    """Return the flow with one state as a box, where several blocks read it, and each in the same place what it starts with."""
    led = [edge for edge in flow.all_edges() if edge.source.origin == before]
    into = {(edge.target, edge.port, edge.place) for edge in led}
    targets, origins = {target for target, *_ in into}, {one.origin for one in given}
    readers = {next((one for one in above(target) if one in flow.by_path), "") for target in targets}
    begun = [edge for edge in flow.all_edges() if edge.source.at_first and edge.source.origin in origins]
    begun = [edge for edge in begun if edge.target in targets]
    started = Counter((edge.target, edge.port, edge.place) for edge in begun if (edge.target, edge.port, edge.place) in into)
    if len(readers) < MIN_READERS or started != dict.fromkeys(into if given else (), len(given)):
        return flow  # one wire tells what this and another state start with
    name = path.rpartition(".")[2]
    value = DiagramSource(NodeOutput(path), look.detail, state=True)

    def changed(inner: Flow) -> Flow:
        edges = (edge.reading(value) if edge in led else edge for edge in inner.edges if not is_start(edge))
        return inner.with_edges(edges).map_groups(changed)

    def is_start(edge: DiagramEdge) -> bool:
        return edge in begun and (edge.target, edge.port, edge.place) in into

    leaf = Leaf(About(path, f"{name}: what the step before gave"), look)
    reads = [DiagramEdge(source, path, "", True) for source in (*given, led[0].source)]
    found = changed(flow)
    first = next(item.about.path for item in flow.items if item.about.path in readers)
    items = [one for item in found.items for one in ([leaf, item] if item.about.path == first else [item])]
    place = next((number for number, edge in enumerate(found.edges) if edge.target == first), 0)
    return found.with_items(items).with_edges((*found.edges[:place], *reads, *found.edges[place:]))


def join_states(flow: Flow, read: Iterable[Origin] = ()) -> Flow:
    """Return the flow in which all that a block reads of one block of the step before is one wire back from that, which has the
    names of all, `h, c`. A second output has a wire back of its own where what reads it does not read the first one, and where
    something else reads it, in the flow or around it, where what is `read` is known: it leaves the block by itself, and the wire
    of both would seem to lead from the first output alone.

    Before: cell(x ~cell cell.c=previous step), look(look.seen=previous step)
    After:  cell(x ~cell, as h and c), look(~look.seen)
    """
    back = {(edge.source.path, edge.target): edge for edge in flow.edges if edge.back and edge.input and not edge.partial}
    joined: dict[DiagramEdge, list[DiagramEdge]] = {}
    seconds = {edge: held for edge in flow.edges if (held := _second_output(edge.source, flow)) is not None}
    led = {*read, *(edge.source.origin for edge in flow.all_edges() if edge.upward)}
    for edge, origin in seconds.items():
        alone = edge.partial or not edge.input or origin in led
        if not alone and (wire := back.get((origin.path, edge.target))):
            joined.setdefault(wire, [wire]).append(edge)
    gone = {edge for _, *others in joined.values() for edge in others}
    wires = (_led_back(edge, seconds.get(edge)) for edge in flow.edges if edge not in gone)
    return flow.with_edges(_as_one(joined.get(edge, [edge])) for edge in wires)


def read_of_scans(graph: TypedGraph) -> Iterator[Ref]:
    """Yield what the nodes of a graph read of scans in it, and what it returns of these."""
    scans = {node.name for node in graph.nodes if isinstance(node, TypedScan)}
    if scans:
        wires = (wire for node in graph.nodes for wire in wires_of(node.node))
        refs = chain((ref for wire in wires for ref in wire.refs), (ref for _, ref in graph.graph.outputs))
        yield from (ref for ref in refs if ref.node in scans)


def _second_output(source: DiagramSource, flow: Flow) -> NodeOutput | InnerOutput | None:
    """Return which output of a box in a flow a value of the step before is that no wire leads back from, but the first one."""
    origin = source.origin
    if not isinstance(origin, NodeOutput) or source.reference != PREVIOUS_STEP:
        return None
    box = next((path for path in above(origin.path) if isinstance(flow.by_path.get(path), Leaf)), "")
    if box == origin.path:
        return origin if origin.port else None
    return InnerOutput(box, source.called or origin.path, origin, "") if box else None


def _led_back(edge: DiagramEdge, origin: Origin | None) -> DiagramEdge:
    """Return what is read of the step before by a wire from its origin in place of a name; another edge as it is."""
    return edge if origin is None else replace(edge.reading(replace(edge.source, origin=origin, reference="")), back=True)


def _as_one(edges: Sequence[DiagramEdge]) -> DiagramEdge:
    """Return several edges into one block as the first one, by the ports and the names of all."""
    ports = ", ".join(edge.port for edge in edges)
    return replace(edges[0], port=ports, input=joined_inputs(edges), place=joined_places(edges))
