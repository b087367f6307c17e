"""Where values come from: what a drawing can read of each thing in it, and by which name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from blocks.core import Formula
from composer.draw.build.pass_references import consecutive_passes, named_passes, range_name
from composer.draw.edges import TIMES, DiagramEdge, DiagramSource, FrameInput, NodeOutput, Origin
from composer.draw.wording import shape
from composer.graph.anatomy import wires_of
from composer.graph.ir import Ref, Wire
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedRepeat

Sources: TypeAlias = tuple[DiagramSource, ...]

NO_STREAM = "-"
"""In place of the name of what goes up into a frame, where nothing does."""
MIN_ROW = 3
"""Values that are joined and stand side by side below the block that does so."""
NO_PLACES: Mapping[DiagramSource, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class NodeSources:
    """Where what can be read of a node comes from."""

    ports: Mapping[str, Sources]
    """What wires lead to; its first output under no name, too."""
    inner: Mapping[str, Sources] = field(default_factory=dict)
    """Of a frame: what makes its outputs inside of it, which is called by its name."""
    passes: Mapping[tuple[int | None, str], Sources] = field(default_factory=dict)
    """Of a repeat of which every pass is drawn: the outputs of each pass, by its number and port."""
    last_pass: int | None = None
    """Of a repeat that is drawn folded: the number of its last pass, whose output is the repeat's."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Of a frame: what outputs are called that a recipe does not call by its name."""

    @property
    def first(self) -> Sources:
        """Of its first output."""
        return self.ports[""]

    def is_first(self, port: str) -> bool:
        """Return whether a port is the first output, which may be read by its name too."""
        return not port or self.ports.get(port) == self.ports.get("")


def single_output(given: Sources) -> NodeSources:
    """Return what can be read of something with one output."""
    return NodeSources({"": given})


def called_by(given: NodeSources, path: str) -> NodeSources:
    """Return what can be read of a block with one output under another name."""
    whole = tuple(replace(one, called=path) for one in given.first)
    return replace(given, ports=dict.fromkeys(given.ports, whole))


ValueSources: TypeAlias = dict[str, NodeSources]
"""The sources of every node of a graph, by its name."""


def sources(refs: Sequence[Ref], values: Mapping[str, NodeSources]) -> Sources:
    """Return where values come from; what lies inside of a frame is called by its name, a range of passes at once."""
    found: list[DiagramSource] = []
    for same in consecutive_passes(refs):
        node, ref = values[same[0].node], same[0]
        folded = node.last_pass is not None
        if node.passes.get((ref.index, ref.port)):
            found += [source for one in same for source in node.passes[one.index, one.port]]
        elif node.is_first(ref.port) and len(same) == 1 and (ref.index is None or ref.index == node.last_pass):
            found += node.first
        elif not folded and ref.port in node.ports and not node.ports[ref.port][0].reference:
            found += node.ports[ref.port]
        else:
            inner = node.inner.get(ref.port, node.first)
            name = node.names.get(ref.port) or range_name(same)
            found += [named_passes(source.by_name(name), same, node.last_pass) for source in inner]
    return tuple(found)


def places_of(node: TypedBlock, values: Mapping[str, NodeSources]) -> Mapping[DiagramSource, str]:
    """Return which of the values that a block reads in an order each is, counted from 1; of what it reads several times where
    that tells no order, how often: `2 ×`. Nothing is told of other values.
    """
    refs = [ref for wire in node.node.wires for ref in wire.refs]
    ordered = node.part.is_ordered
    if not ordered and (len({*refs}) == len(refs) or isinstance(getattr(node.part, "formula", None), Formula)):
        return NO_PLACES
    found: dict[tuple[str, DiagramSource], list[str]] = {}
    ports = [wire.port for wire in node.node.wires for _ in wire.refs]
    for number, (port, ref) in enumerate(zip(ports, refs, strict=True), 1):
        for source in sources((ref,), values):
            found.setdefault((port, source), []).append(str(number))
    several = {source: f"{len(numbers)}{TIMES}" for (_, source), numbers in found.items() if len(numbers) > 1}
    if not ordered or len(found) == 1:
        return several
    return {source: ", ".join(numbers) for (_, source), numbers in found.items()}


def read(wires: Sequence[Wire], values: Mapping[str, NodeSources]) -> dict[str, Sources]:
    """Return what each port reads."""
    return {wire.port: sources(wire.refs, values) for wire in wires}


def of_block(node: TypedBlock, path: str) -> NodeSources:
    """Return what can be read of a block."""
    if not node.outputs:
        return NodeSources({})
    names = list(node.outputs)
    shapes = {name: shape(type_) for name, type_ in node.outputs.items()}
    ports = {name: (DiagramSource(NodeOutput(path, name), shapes[name]),) for name in names[1:]}
    first = (DiagramSource(NodeOutput(path), shapes[names[0]]),)
    return NodeSources({"": first, names[0]: first, **ports})


def of_frame(graph: TypedGraph, path: str, inner: Mapping[str, Sources], last_pass: int | None = None) -> NodeSources:
    """Return what can be read of a frame: what it returns; anything else is called by its name."""
    name, type_ = next(iter(graph.outputs.items()))
    whole = (DiagramSource(NodeOutput(path), shape(type_)),)
    return NodeSources({"": whole, name: whole}, inner, last_pass=last_pass)


def of_inner_pass(graph: TypedGraph, path: str, port: str) -> DiagramSource:
    """Return an output of a graph that is drawn as one box; where a pass of a repeat in it gives that, with which one that is."""
    source, ref = DiagramSource(NodeOutput(path, port)), dict(graph.graph.outputs)[port]
    maker = graph.by_name.get(ref.node)
    if ref.index is None or not isinstance(maker, TypedRepeat):
        return source
    return named_passes(source, (ref,), len(maker.passes) - 1)


def edge_into(
    path: str, port: str, source: DiagramSource, second_streams: Collection[Origin], captured: Collection[str]
) -> DiagramEdge:
    """Return the edge of what a frame or a box around a graph is given; that of the stream has no port. What it reads of the
    graph around it, by ports that are `captured`, it calls by the name of that, if it is the name of a node.
    """
    own = port not in captured or port == source.path.rpartition(".")[2]
    second = bool(port) and source.origin in second_streams
    return DiagramEdge(source, path, port, main=not port, second_stream=second, input=port if own else "")


def captured_inputs(graph: TypedGraph) -> frozenset[str]:
    """Return the inputs of a graph that it reads of what is around it."""
    return frozenset(one.name for one in graph.graph.inputs if one.captured)


def only(given: Mapping[str, Sources], name: str) -> dict[str, Sources]:
    """Return what is given under one name."""
    return {name: given[name]} if name in given else {}


def edges_into(
    graph: TypedGraph, given: Mapping[str, Sources], path: str, main: str, second_streams: Collection[Origin]
) -> list[DiagramEdge]:
    """Return the edges of what a frame or a box is given; that of the stream has no port."""
    captured = captured_inputs(graph)
    return [
        edge_into(path, "" if one.name == main else one.name, source, second_streams, captured)
        for one in graph.graph.inputs
        for source in given.get(one.name, ())
    ]


def merge_by_origin(given: Sources) -> Sources:
    """Return values, those of several passes of one block as one."""
    found: dict[Origin, list[DiagramSource]] = {}
    for source in given:
        found.setdefault(source.origin, []).append(source)
    return tuple(same[0] if len(same) == 1 else replace(same[0].by_name(same[0].own_name), passes="") for same in found.values())


def first_input(graph: TypedGraph) -> str:
    """Return the name of what a graph is handed first; nothing where it only reads what is around it."""
    return next((one.name for one in graph.graph.inputs[:1] if not one.captured), "")


def stream_of(graph: TypedGraph) -> str:
    """Return the name of what goes up into the frame of a group: what it is handed first; or what it reads first of what is
    around it, if that goes up into its first node.
    """
    if not graph.graph.inputs or not graph.graph.inputs[0].captured:
        return first_input(graph)
    name, node = graph.graph.inputs[0].name, graph.nodes[0]
    ports = [one.name for one in node.graph.graph.inputs] if isinstance(node, TypedGroup) else []
    ports = [one.rstrip("?*") for one in node.part.inputs] if isinstance(node, TypedBlock) else ports
    into = [wire for wire in wires_of(node.node) if wire.port == next(iter(ports), "")]
    return name if len(into) == 1 and [ref.node for ref in into[0].refs] == [name] else ""


def led_in_once(given: Mapping[str, Sources], stream: str, path: str) -> Mapping[str, Sources]:
    """Return what a group is given: what goes up into its frame as the stream comes in there under its other names, too."""
    own = given.get(stream, ())
    entry = tuple(DiagramSource(FrameInput(path), one.shape) for one in own)
    return {name: entry if name != stream and len(own) == 1 and ours == own else ours for name, ours in given.items()}


def joins_a_row(graph: TypedGraph, name: str, given: Mapping[str, Sources]) -> bool:
    """Return whether an input of the model, as a graph is given it under a name, goes only into a block there that joins it with
    a row of others, some of which are made in the graph.
    """
    own = given.get(name, ())
    readers = [node for node in graph.nodes if any(ref.node == name for wire in wires_of(node.node) for ref in wire.refs)]
    if len(own) != 1 or not own[0].is_model_input or len(readers) != 1 or any(ref.node == name for _, ref in graph.graph.outputs):
        return False
    (reader,) = readers
    if not isinstance(reader, TypedBlock) or not reader.part.is_ordered:
        return False
    joined = {ref.node for wire in wires_of(reader.node) for ref in wire.refs}
    return len(joined) >= MIN_ROW and not joined.isdisjoint(graph.by_name)


def read_once(ref: Ref, graph: TypedGraph) -> bool:
    """Return whether there is one reader of a value in a graph, in whichever passes it is made."""
    inside = [one for node in graph.nodes for wire in wires_of(node.node) for one in wire.refs]
    every = [*inside, *(one for _, one in graph.graph.outputs)]
    return [(one.node, one.port) for one in every].count((ref.node, ref.port)) == 1


def by_input_name(edge: DiagramEdge) -> DiagramEdge:
    """Return an edge, from an input of the model by its name."""
    return edge.reading(by_name_if_input(edge.source))


def by_name_if_input(source: DiagramSource) -> DiagramSource:
    """Return a value as it is called behind a border: an input of the model by its name."""
    return source.by_name() if source.is_model_input else source
