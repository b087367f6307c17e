"""The inside of a closed block as a diagram of its own: what comes into the block are inputs, and what it gives are outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from blocks.core import Look, spoken
from composer.draw.about import About
from composer.draw.build.value_sources import by_input_name, stream_of
from composer.draw.diagram import Flow, Group, Item, Leaf, OpenMixture, Titles
from composer.draw.edges import DiagramEdge, DiagramSource, FrameInput, InnerOutput, ModelInput, NodeOutput, Origin
from composer.draw.paths import input_path, last_step, lies_in, node_beside
from composer.draw.wording import shape
from composer.graph.anatomy import wires_of
from composer.graph.ir import Graph, Ref
from composer.graph.typed import TypedGraph, TypedGroup, TypedNode, TypedRepeat, TypedScan

MIN_FORK = 2
"""Blocks that read an input from which on it is a fork."""
OUTPUT = "output"
"""What the one output of a block is called, which has no name in a recipe."""


@dataclass(frozen=True, slots=True)
class BlockInside:
    """A block from inside, by itself."""

    path: str
    """Of the block."""
    flow: Flow
    titles: Titles
    """What its inputs and outputs are called."""
    merged: bool = False
    """Whether several ports read one value there, so that these are one input."""
    note: str = ""
    """What is said of it below its title: which part of the block it is, where it is not all."""

    @property
    def said(self) -> object:
        """All that it says, to be compared with another one's."""
        looks = [(leaf.look, leaf.params, leaf.rows, leaf.shape, leaf.after) for leaf in self.leaves]
        shapes = [edge.source.shape for edge in self.flow.all_edges()]
        return looks, shapes, sorted(self.titles.types.values())

    @property
    def leaves(self) -> Iterator[Leaf]:
        """The boxes in it."""
        return (leaf for leaf in self.flow.leaves() if isinstance(leaf, Leaf))


def inside_of(opened: Flow, closed: Flow, path: str, node: TypedNode) -> BlockInside | None:
    """Return a block as a diagram of its own, given the diagram in which it is open and the one in which it is closed; none where
    it is drawn in several ways, or gives what no node in it gives.
    """
    found = [(flow, one) for flow in flows_of(opened) for one in flow.items if isinstance(one, Group) and one.about.path == path]
    if not found or any(group != found[0][1] for _, group in found):
        return None
    around, group = found[0]
    if isinstance(node, TypedGroup):
        return group_inside(group, [edge for flow in flows_of(closed) for edge in flow.edges_into(path)], node)
    return repeat_inside(group, around, node) if isinstance(node, TypedRepeat | TypedScan) else None


def group_inside(group: Group, outer: Sequence[DiagramEdge], node: TypedGroup) -> BlockInside | None:
    """Return the inside of a group, given what its closed box reads."""
    path, flow = group.about.path, group.flows[0]
    exits = outputs_of(flow, path, node)
    if exits is None:
        return None
    stream = stream_of(node.graph)
    ports: dict[Origin, str] = {FrameInput(path): stream} if stream else {}
    first = {edge.source.origin for edge in outer if not edge.port}  # which comes in as the stream under other names, too
    for edge in (edge for edge in outer if edge.port and edge.source.origin not in first):
        origin = edge.source.origin
        if isinstance(origin, InnerOutput) and origin.path == path:  # its own output, of the step before
            origin = origin.made
        ports.setdefault(origin, edge.port)
    read_inside = {f"{path}.{ref.node}" for one in node.graph.nodes for wire in wires_of(one) for ref in wire.refs}
    if any(origin.path in read_inside for origin in ports):  # in this step and in the next one: these cannot be told apart
        return None
    if not {*ports.values()} <= {one.name for one in node.graph.graph.inputs}:  # one value that comes in as several
        return None
    found = by_itself(group, replace(flow, entry=None, outlet=None), exits, in_order(ports, node.graph.graph))
    return replace(found, merged=not {edge.port for edge in outer if edge.port} <= {*ports.values()})


def in_order(ports: Mapping[Origin, str], graph: Graph) -> dict[Origin, str]:
    """Return the inputs of a block, by where their values come from, in the order in which the recipe names them."""
    names = [one.name for one in graph.inputs]
    return dict(sorted(ports.items(), key=lambda one: names.index(one[1]) if one[1] in names else len(names)))


def repeat_inside(group: Group, around: Flow, node: TypedRepeat | TypedScan) -> BlockInside | None:
    """Return a repeat or a scan as the frame around its passes, into which all that it reads leads, or as one pass of several
    streams; none where several values are read of it otherwise.
    """
    path = group.about.path
    inner = [edge.source for flow in group.flows for edge in flow.all_edges()]
    read = [edge.source for edge in around.edges_into(path)] + [
        one for one in inner if not (one.reference or lies_in(one.path, path))
    ]
    names = {one.origin: node_beside(one.path, path) for one in read if one.path != path}
    if len(set(names.values())) < len(names):  # several values of one node
        names = {origin: last_step(origin.path) for origin in names}
    exits = dict(given_by(around, path))
    streams = pass_inside(group, [one.origin for one in exits.values()], node) if isinstance(node, TypedRepeat) else None
    if streams is not None:
        return streams
    if len(exits) != 1 or len(set(names.values())) < len(names):
        return None
    return by_itself(group, Flow(None, (group,), around.edges_into(path), None), list(exits.items()), names)


def pass_inside(group: Group, read: Sequence[Origin], node: TypedRepeat) -> BlockInside | None:
    """Return the inside of one pass of a repeat of several streams, given what is read of it; none where passes differ, where one
    does not hand on several values, or where something else is read.
    """
    path, flow, graph = group.about.path, group.flows[0], node.passes[-1]
    if group.kinds or len(group.flows) > 1 or flow.outlet is None:
        return None
    made: dict[Origin, str] = {maker_of(flow, path, graph, ref): name for name, ref in graph.graph.outputs}
    stream = made.get(flow.outlet.origin, "")
    back = {(edge.target, edge.port): edge.source.origin for edge in flow.edges if edge.back and not edge.source.reference}
    ports: dict[Origin, str] = {FrameInput(path): stream}
    for edge in (edge for edge in flow.edges if edge.source.at_first and (edge.target, edge.port) in back):
        ports.setdefault(edge.source.origin, made.get(back[edge.target, edge.port], ""))
    handed_on = {NodeOutput(path), *(origin for origin, name in made.items() if name in ports.values())}
    if not (handed_on.issuperset(read) and all(ports.values()) and 1 < len({*ports.values()}) == len(ports)):
        return None
    given = {shape(one.inputs[stream]) for one in node.passes if stream in one.inputs}
    said = given.pop() if len(given) == 1 else ""

    def sized(one: Flow) -> Flow:
        return one.map_edges(
            lambda edge: edge.reading(replace(edge.source, shape=said)) if edge.source.origin == FrameInput(path) else edge
        )

    edges = [edge for edge in sized(flow).edges if not (edge.back and not edge.source.reference)]
    exits = [(name, DiagramSource(origin, shape(node.outputs[name]))) for origin, name in made.items()]
    found = by_itself(group, replace(flow, entry=None, outlet=None, edges=tuple(edges)), exits, in_order(ports, graph.graph))
    return replace(found, note=f"one of {group.count}")


def given_by(around: Flow, path: str) -> Iterator[tuple[str, DiagramSource]]:
    """Yield what is read of a repeat around it, by the names of the nodes that make it; what it returns by none of its own."""
    read = (edge.source for edge in around.all_edges() if not lies_in(edge.target, path))
    for source in (*read, *around.returned()):
        if lies_in(source.path, path) and isinstance(source.origin, NodeOutput):
            yield (OUTPUT if source.path == path else source.path.rpartition(".")[2]), source


def count_read(around: Flow, path: str) -> int:
    """Return how many values are read of a closed block in a diagram."""
    return len({source.origin for flow in flows_of(around) for _, source in given_by(flow, path)})


def by_itself(group: Group, flow: Flow, exits: Sequence[tuple[str, DiagramSource]], ports: Mapping[Origin, str]) -> BlockInside:
    """Return a flow as a diagram of its own, with inputs in place of what is around the block and with what it gives."""
    path = group.about.path
    shapes = {port: shape_at(flow, [origin for origin, one in ports.items() if one == port]) for port in ports.values() if port}
    led_by = BlockPorts(path, ports, shapes, merged=group not in flow.items)
    flow = led_by.flow(flow)
    flow = flow.with_exits((name, led_by.given(source)) for name, source in exits)
    flow = forked(flow, {input_path(path, port): (spoken(port), said) for port, said in shapes.items()})
    flow = flow.map_groups(inputs_by_name)
    inputs = {one: port for port in shapes if (one := input_path(path, port)) not in flow.by_path}
    types = {one: said for one, port in inputs.items() if (said := shapes[port])}
    titles = Titles(
        "", (), {one: spoken(port) for one, port in inputs.items()}, {name: spoken(name) for name, _ in exits}, types=types
    )
    return BlockInside(path, flow, titles)


def inputs_by_name(flow: Flow) -> Flow:
    """Return what is in a frame, where inputs go by their names, as in a figure: no wire leads there from their boxes."""
    return flow.map_edges(by_input_name).map_groups(inputs_by_name)


def without_colors(flow: Flow) -> Flow:
    """Return the inside of a block whose rows have no colors, but for those in frames with a map of layers: that of the repeat
    around the block is nowhere in the drawing.
    """

    def plain_item(item: Item) -> Item:
        match item:
            case Leaf(rows=rows):
                return replace(item, rows=tuple(replace(row, kinds=()) for row in rows))
            case OpenMixture(row=row) if row is not None:
                return replace(item, row=replace(row, kinds=()))
            case Group(kinds=()):
                return item.map_flows(without_colors)
            case _:
                return item

    return flow.map_items(plain_item)


def flows_of(flow: Flow) -> Iterator[Flow]:
    """Yield a diagram and all flows in its frames."""
    yield flow
    for item in flow.items:
        if isinstance(item, Group):
            for inner in item.flows:
                yield from flows_of(inner)


def maker_of(flow: Flow, path: str, graph: TypedGraph, ref: Ref) -> NodeOutput:
    """Return what makes a value of the graph at a path, as a diagram of it shows: where that is a group drawn as its nodes,
    such as a map with a connection around it, one of these.
    """
    at, node = f"{path}.{ref.node}", graph.by_name.get(ref.node)
    while isinstance(node, TypedGroup) and at not in flow.by_path:
        inner, given = node.graph, dict(node.graph.graph.outputs)
        ref = given[ref.port or next(iter(given))]
        at, node = f"{at}.{ref.node}", inner.by_name.get(ref.node)
    return NodeOutput(at, ref.port)


def outputs_of(flow: Flow, path: str, node: TypedGroup) -> Sequence[tuple[str, DiagramSource]] | None:
    """Return what a block gives, by its names; none where something of it is not given by a node that is drawn."""
    first, *others = node.graph.graph.outputs
    if flow.outlet is None:
        return None
    found = [(first[0] or OUTPUT, flow.outlet)]
    items = flow.by_path
    for name, ref in others:
        made = maker_of(flow, path, node.graph, ref)
        if made.path not in items:
            return None
        found.append((name, DiagramSource(made, shape(node.graph.outputs[name]))))
    return found


@dataclass(frozen=True, slots=True)
class BlockPorts:
    """What a block reads, in terms of its inputs."""

    path: str
    """Of the block."""
    names: Mapping[Origin, str]
    """By where a value comes from, the port at which it comes in."""
    shapes: Mapping[str, str]
    """Of what comes in, by the port."""
    merged: bool
    """Whether what comes in at first and later comes in at one port: that of a block in a repeat, not of a repeat itself."""

    def flow(self, flow: Flow) -> Flow:
        """Return what is in the block, which reads inputs where it read what is around the block."""
        changed = flow.with_edges(self.edges(flow.edges)).map_groups(self.flow)
        return changed.map_sinks(lambda sink: replace(sink, edges=tuple(self.edges(sink.edges))))

    def edges(self, edges: Sequence[DiagramEdge]) -> Iterator[DiagramEdge]:
        """Yield edges; of several values that come in at one port, such as at first and later, one."""
        seen: dict[tuple[str, str, str], Origin] = {}
        for edge in edges:
            port = self.names.get(edge.source.origin, "")
            if not port:
                yield edge.reading(self.source(edge.source))
            elif seen.setdefault((port, edge.target, edge.port), edge.source.origin) == edge.source.origin:
                yield replace(edge.reading(self.source(edge.source)), back=False)

    def source(self, source: DiagramSource) -> DiagramSource:
        """Return a value as it is read in a block by itself: by its port, or where it has none by its name."""
        if port := self.names.get(source.origin, ""):
            first = source.at_first and not self.merged
            return DiagramSource(ModelInput(input_path(self.path, port)), self.shapes[port], called=port, at_first=first)
        return self.own(source)

    def given(self, source: DiagramSource) -> DiagramSource:
        """Return a value as the block gives it: by the node in it that makes it, which it may read in the next step too."""
        made_inside = lies_in(source.path, self.path) and not isinstance(source.origin, FrameInput)
        return self.own(source) if made_inside else self.source(source)

    def own(self, source: DiagramSource) -> DiagramSource:
        """Return a value that comes in at no port: as the recipe calls it in the block, or by its name."""
        if not lies_in(source.path, self.path):
            return source.by_name()
        return replace(source, called=source.own_name.removeprefix(f"{self.path}."))


def forked(flow: Flow, inputs: Mapping[str, tuple[str, str]]) -> Flow:
    """Return a flow in which the first of its inputs, each with its title and shape, stands in line if several blocks read it:
    none of these then stands beside others.
    """
    trunk, (title, said) = next(iter(inputs.items()), ("", ("", "")))
    origin = ModelInput(trunk)
    if sum(edge.source.origin == origin and not edge.shape_only for edge in flow.edges) < MIN_FORK:
        return flow
    leaf = Leaf(About(trunk, f"the model's input {title}"), Look(title, (said,) if said else (), "io"))

    def led(source: DiagramSource) -> DiagramSource:
        return replace(source, origin=NodeOutput(trunk)) if source.origin == origin else source

    def led_in(one: Flow) -> Flow:
        return one.map_edges(lambda edge: edge.reading(led(edge.source))).map_groups(led_in)

    whole = led_in(flow)
    return whole.with_items((leaf, *whole.items)).with_exits((name, led(source)) for name, source in flow.exits)


def shape_at(flow: Flow, origins: Collection[Origin]) -> str:
    """Return the shape of what comes in at a port, where all that read it are told the same; what it has at first may be less."""
    read = [edge.source for edge in flow.all_edges() if edge.source.origin in origins]
    said = {one.shape for one in read if not one.at_first} or {one.shape for one in read}
    return said.pop() if len(said) == 1 else ""
