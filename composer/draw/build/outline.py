"""The typed graph as blocks, frames and edges, as deep as a level shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from blocks.core import Piece, size, spoken
from blocks.losses.loss import Loss
from composer.draw.build import repeats
from composer.draw.build.captions import Caption
from composer.draw.build.leaves import fan, leaf, sink
from composer.draw.build.levels import Depth
from composer.draw.build.pass_references import with_earlier, without_parameters
from composer.draw.build.value_sources import (
    Sources,
    ValueSources,
    by_input_name,
    first_input,
    from_far,
    of_block,
    of_frame,
    read,
    read_once,
    sources,
)
from composer.draw.build.wording import counted, shape
from composer.draw.diagram import Branches, DiagramEdge, DiagramSource, Flow, Group, Item, Leaf, Sink, Web
from composer.draw.passes.merge_kinds import merged
from composer.draw.passes.overview import of_group, without_norms
from composer.draw.style.looks import inside, look
from composer.graph.passes.roll_layers.roll_layers import RolledProgram
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat, TypedScan, is_renewal


def outline(model: RolledProgram, depth: Depth) -> Flow:
    """A model's blocks, frames and edges."""
    return Outline(model, depth).model()


@dataclass(slots=True)
class DrawnNode:
    """A graph on its way to become a flow."""

    items: list[Item] = field(default_factory=list)
    edges: list[DiagramEdge] = field(default_factory=list)
    sinks: list[Sink] = field(default_factory=list)

    def say_after(self, read: Sources, said: str) -> bool:
        """Says above an item what happens to what it gives, if that is what is read."""
        for index, item in enumerate(self.items):
            same = [(item.about.path, "", "")] == [(one.path, one.port, one.chip) for one in read]
            if same and not isinstance(item, Branches | Web):
                self.items[index] = replace(item, after=f"{item.after}, {said}" if item.after else said)
                return True
        return False


class Outline:
    """Reads graphs into flows. Every path is that of a place in the recipe, without the passes of folded repeats; `places` are
    the paths of all places that a drawn thing stands for, with their passes.
    """

    def __init__(self, model: RolledProgram, depth: Depth) -> None:
        self.program, self.depth = model.program, depth
        self.told = Caption(model, depth)
        self.counts = self.told.counts
        self.routed: set[str] = set()
        """Paths of mixtures of experts."""
        self.mixed: set[str] = set()
        """Paths of blocks in whose place other passes of a repeat have another block: these stand side by side, closed."""
        self.alone: set[str] = set()
        """Paths of groups that are all there is in a pass of a repeat."""

    def model(self) -> Flow:
        """The whole model."""
        root = self.program.root
        values: ValueSources = {
            one.name: {
                "": (DiagramSource(one.name, shape=shape(self.program.inputs[one.name]), given=True, word=self.told.word(one)),)
            }
            for one in self.program.program.inputs
        }
        drawn = DrawnNode()
        self.graph(root, values, "", [""], drawn)
        outputs = [(name, sources((ref,), values)[0]) for name, ref in root.graph.outputs]
        sinks = tuple(replace(sink, edges=tuple(map(by_input_name, sink.edges))) for sink in drawn.sinks)
        flow = Flow("", tuple(drawn.items), tuple(drawn.edges), outputs[0][1], tuple(outputs), sinks)
        return without_norms(flow) if self.depth.level == "overview" else flow

    # -- graphs

    def graph(self, graph: TypedGraph, values: ValueSources, prefix: str, places: Sequence[str], drawn: DrawnNode) -> None:
        """Adds all nodes of a graph; `values` are those of its inputs, to which those of its nodes are added."""
        for node in graph.nodes:
            if node.node.dropped:
                values[node.name] = {"": sources(node.node.wires[0].refs, values)}  # type: ignore[union-attr]  # no repeat
                continue
            if isinstance(node, TypedBlock) and (rate := node.part.drop_rate()) is not None:
                given = sources(node.node.wires[0].refs, values)
                if self.dissolves(node, rate, graph, given, drawn):
                    values[node.name] = {"": given}
                    continue
            values[node.name] = self.node(node, values, prefix, places, drawn)

    def dissolves(self, node: TypedBlock, rate: float, graph: TypedGraph, given: Sources, drawn: DrawnNode) -> bool:
        """Whether a dropout is no box: at a glance, or where words above what it reads can tell it."""
        if not rate or self.depth.level == "overview":
            return True
        return read_once(node.node.wires[0].refs[0], graph) and drawn.say_after(given, f"dropout {rate:g}")

    def node(
        self, node: TypedNode, values: ValueSources, prefix: str, places: Sequence[str], drawn: DrawnNode
    ) -> dict[str, Sources]:
        """Adds a node, and gives what can be read of it."""
        path, at = prefix + node.name, [place + node.name for place in places]
        match node:
            case TypedBlock():
                given = read(node.node.wires, values)
                if self.opens(path) and (pieces := inside(node)):
                    return self.pieces(node, pieces, given, path, at, drawn)
                return self.block(node, given, path, at, drawn)
            case TypedGroup():
                return self.group(node, read(node.node.wires, values), path, at, drawn)
            case TypedScan():
                return self.scan(node, read(node.node.wires, values), path, at, drawn)
            case TypedRepeat() if self.depth.unrolled:
                return self.unrolled(node, values, path, at, drawn)
        return self.repeat(node, values, path, at, drawn)

    def opens(self, path: str) -> bool:
        """Whether a block is shown from inside."""
        return (self.depth.level == "full" and path not in self.mixed) or path in self.depth.opened

    # -- blocks

    def block(
        self, node: TypedBlock, given: Mapping[str, Sources], path: str, places: Sequence[str], drawn: DrawnNode
    ) -> dict[str, Sources]:
        """Adds a block as one box."""
        seen = look(node, self.told.head(path))
        if is_renewal(node) or isinstance(node.part, Loss):
            drawn.sinks.append(sink(self.told, node, seen, given, path, places, self.routed))
            return of_block(node, path)
        shown = self.depth.level != "overview" and (self.depth.experts or path in self.depth.opened)
        if shown and (mixture := node.part.mixture()) is not None:
            drawn.items.append(fan(self.told, node, mixture, path, places))
            self.routed.add(path)
        else:
            drawn.items.append(leaf(self.told, node, seen, path, places))
        first = next(iter(node.part.inputs), "").rstrip("?*")
        mixes = any(name.endswith("*") for name in node.part.inputs)
        for port, read_there in given.items():
            measured = port in node.part.shape_only_inputs
            main = not measured and (mixes or port == first)
            drawn.edges += [DiagramEdge(source, path, port, main, measured=measured) for source in read_there]
        return of_block(node, path)

    def pieces(
        self,
        node: TypedBlock,
        pieces: Sequence[Piece],
        given: Mapping[str, Sources],
        path: str,
        places: Sequence[str],
        drawn: DrawnNode,
    ) -> dict[str, Sources]:
        """Adds what a block consists of."""
        values: dict[str, Sources] = {f"${port}": ours for port, ours in given.items()}
        for piece in pieces:
            below = f"{path}.{piece.name}"
            if piece.look.quiet:
                values[piece.name] = values[piece.reads[0][0]]
                drawn.say_after(values[piece.name], piece.look.title.lower())
                continue
            names = [f"{place}.{name}" for place in places for name in piece.parameters]
            params = self.counts.shown_of(names[: len(piece.parameters)])
            about = self.told.about(node, below, names, (piece.look.title, piece.look.detail))
            about = replace(about, description=self.told.description(node, places) if piece is pieces[0] else "")
            drawn.items.append(Leaf(about, piece.look, params))
            for name, port in piece.reads:
                drawn.edges += [DiagramEdge(source, below, port, not port or port in "qkv") for source in values.get(name, ())]
            values[piece.name] = (DiagramSource(below),)
        gives: dict[str, Sources] = {port: values[piece.name] for piece in pieces for port in piece.gives}
        first = next(iter(node.outputs))
        return {"": gives[first], **gives}

    # -- what holds a graph

    def group(
        self, node: TypedGroup, given: Mapping[str, Sources], path: str, places: Sequence[str], drawn: DrawnNode
    ) -> dict[str, Sources]:
        """Adds a group: its nodes where it is a block of a graph such as `residual`, else a frame or one box."""
        part = node.node.part
        below = [f"{place}." for place in places]
        alone = self.depth.level == "full" or path in self.alone
        if part is not None and (part.dissolved or (alone and path not in self.depth.opened)):
            return self.dissolved(node, given, path, below, drawn)
        title = spoken(node.name) if part is None else spoken(part.kind)
        closed = (self.depth.level == "overview" or part is not None) and not any(map(holds_layers, node.graph.nodes))
        flow, ports = self.flow(node.graph, given, path, below)
        if closed and path not in self.depth.opened:
            drawn.items.append(self.closed(node, (flow,), title, (title,), self.counts.shown(places[0]), path, places))
        else:
            drawn.items.append(self.frame(node, title, path, places, flow))
            given = only(given, first_input(node.graph))
        drawn.edges += edges_into(node.graph, given, path, first_input(node.graph))
        return of_frame(node.graph, path, ports)

    def dissolved(
        self, node: TypedGroup, given: Mapping[str, Sources], path: str, below: Sequence[str], drawn: DrawnNode
    ) -> dict[str, Sources]:
        """Adds the nodes of a group."""
        values: ValueSources = {name: {"": ours} for name, ours in given.items()}
        with self.told.written_in(node):
            self.graph(node.graph, values, f"{path}.", below, drawn)
        outputs = {port: sources((ref,), values) for port, ref in node.graph.graph.outputs}
        return {"": next(iter(outputs.values())), **outputs}

    def scan(
        self, node: TypedScan, given: Mapping[str, Sources], path: str, places: Sequence[str], drawn: DrawnNode
    ) -> dict[str, Sources]:
        """Adds a scan: a frame around one step, or one box."""
        title, steps = spoken(node.name), size(node.axis.size)
        before = {name: (DiagramSource(f"{path}|{port}", chip="previous step"),) for name, port in node.carried.items()}
        both = {name: (*given.get(name, ()), *before.get(name, ())) for name in {**given, **before}}
        stream = next((name for name in node.steps if name in given), "")
        flow, ports = self.flow(node.graph, both, path, [f"{place}." for place in places], stream)
        flow = with_earlier(flow, f"{path}|", ports)
        main = stream or first_input(node.graph)
        if self.depth.level == "overview" and path not in self.depth.opened:
            name, params = f"× {steps} {title}", self.counts.shown(places[0])
            drawn.items.append(self.closed(node, (flow,), name, (title,), params, path, places))
        else:
            drawn.items.append(replace(self.frame(node, title, path, places, flow), count=steps))
            given = only(given, main)
        drawn.edges += edges_into(node.graph, given, path, main)
        return of_frame(replace(node.graph, outputs=node.outputs), path, ports)

    def frame(self, node: TypedNode, title: str, path: str, places: Sequence[str], flow: Flow) -> Group:
        """A frame around a flow."""
        each = self.counts.shown(places[0])
        about = replace(self.told.about(node, path, places, (title, each)), parameters=0)
        return Group(about, (title, each) if each else (title,), (flow,))

    def closed(
        self,
        node: TypedNode,
        flows: Sequence[Flow],
        name: str,
        tip: Sequence[str],
        params: str,
        path: str,
        places: Sequence[str],
    ) -> Leaf:
        """One box in place of flows."""
        about = self.told.about(node, path, places, tip)
        about = replace(about, parameters=self.counts.total(places), description=self.told.description(node, places))
        return of_group(flows, about, name, params)

    def flow(
        self, graph: TypedGraph, given: Mapping[str, Sources], path: str, below: Sequence[str], stream: str = ""
    ) -> tuple[Flow, dict[str, Sources]]:
        """What a frame holds, and where what can be read of it comes from. What it is given first comes in from below; the rest
        is read over the border. What comes in first is the first input, or the `stream` that is named.
        """
        values: ValueSources = {}
        for one in graph.graph.inputs:
            if one.name == (stream or first_input(graph)) and one.name in given:
                shapes = {source.shape for source in given[one.name]}
                values[one.name] = {"": (DiagramSource(path, shape=shapes.pop() if len(shapes) == 1 else ""),)}
            else:
                values[one.name] = {"": tuple(map(from_far, given.get(one.name, ())))}
        drawn = DrawnNode()
        self.graph(graph, values, f"{path}.", below, drawn)
        ports = {port: sources((ref,), values) for port, ref in graph.graph.outputs}
        outlet = next(iter(ports.values()))
        whole = Flow(path, tuple(drawn.items), tuple(drawn.edges), outlet[0] if outlet else None, (), tuple(drawn.sinks))
        return whole, {**ports, "": outlet}

    # -- repeats

    def repeat(
        self, node: TypedRepeat, values: ValueSources, path: str, places: Sequence[str], drawn: DrawnNode
    ) -> dict[str, Sources]:
        """Adds a repeat, folded: one frame, however many passes."""
        count, kinds = len(node.passes), repeats.alike(node)
        self.alone |= {f"{path}.{graph.nodes[0].name}" for graph in node.passes if len(graph.nodes) == 1}
        self.mixed |= repeats.mixed(node, kinds, path)
        flows, ports = self.flows(node, kinds, values, path, places)
        title = repeats.layer_title(node, flows)
        each = repeats.parameters(node, self.counts, places[0])
        tip = (f"× {count} {title}", f"{counted(max(each))} each" if max(each) else "")
        closed = (self.depth.level == "overview" or not self.depth.layers) and path not in self.depth.opened
        if closed:
            drawn.items.append(self.closed(node, flows, tip[0], tip, self.counts.shown_of(places), path, places))
        else:
            about = replace(self.told.about(node, path, places, tip), parameters=0)
            header = (title, *repeats.said_of_parameters(node, each, kinds, flows, len(places)))
            one = merged(flows, [len(passes) for passes in kinds])
            heads = tuple((f"{len(passes)} of {count}",) for passes in kinds) if one is None else ()
            frames = tuple(flows) if one is None else (one,)
            drawn.items.append(Group(about, header, frames, heads, str(count), repeats.kind_of_each(kinds)))
        drawn.edges += repeats.edges(node, values, path, all_inputs=closed)
        return of_frame(node.passes[-1], path, ports) | {"last": (DiagramSource(path, str(count - 1)),)}

    def flows(
        self, node: TypedRepeat, kinds: Sequence[Sequence[int]], values: ValueSources, path: str, places: Sequence[str]
    ) -> tuple[list[Flow], dict[str, Sources]]:
        """A pass of each kind, and what can be read of them."""
        flows: list[Flow] = []
        ports: dict[str, Sources] = {}
        for number, passes in enumerate(kinds):
            below = dict.fromkeys(place + repeats.own(node, index, first=not number) for place in places for index in passes)
            given = repeats.given(node, passes, values, path)
            flow, gives = self.flow(node.passes[passes[0]], given, path, list(below))
            flows.append(without_parameters(flow) if number and node.node.share is not None else flow)
            for port, ours in gives.items():
                ports[port] = tuple(dict.fromkeys((*ports.get(port, ()), *ours)))
        return [with_earlier(flow, f"{path}|", ports) for flow in flows], ports

    def unrolled(
        self, node: TypedRepeat, values: ValueSources, path: str, places: Sequence[str], drawn: DrawnNode
    ) -> dict[str, Sources]:
        """Adds every pass of a repeat, one after the other."""
        ports: dict[str, Sources] = {}
        around = {**values, node.name: ports}
        for index, graph in enumerate(node.passes):
            inner: ValueSources = {wire.port: {"": sources(wire.refs, around)} for wire in node.node.passes[index].wires}
            below = f"{path}.{index}."
            self.graph(graph, inner, below, [place + repeats.own(node, index, first=index == 0) for place in places], drawn)
            for port, ref in graph.graph.outputs:
                ports[f"({index}){port}"] = sources((ref,), inner)
            ports[f"({index})"] = sources((graph.graph.outputs[0][1],), inner)
        return {**ports, "": ports[f"({len(node.passes) - 1})"]}


def holds_layers(node: TypedNode) -> bool:
    """Whether there is a repeat in a node, which then is a part of the model rather than one block."""
    return isinstance(node, TypedRepeat) or (isinstance(node, TypedGroup) and any(map(holds_layers, node.graph.nodes)))


def only(given: Mapping[str, Sources], name: str) -> dict[str, Sources]:
    """What is given under one name."""
    return {name: given[name]} if name in given else {}


def edges_into(graph: TypedGraph, given: Mapping[str, Sources], path: str, main: str) -> list[DiagramEdge]:
    """The edges of what a frame or a box is given; that of the stream has no port."""
    return [
        DiagramEdge(source, path, "" if one.name == main else one.name, one.name == main)
        for one in graph.graph.inputs
        for source in given.get(one.name, ())
    ]
