"""The typed graph as blocks, frames and edges, as deep as a level shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from blocks.experts.moe import MixtureOfExperts
from blocks.losses.loss import Loss
from blocks.primitives.pointwise import Dropout
from blocks.residual.residual import Residual
from composer.diagnostics import Span
from composer.draw.counts import Counts
from composer.draw.description import settings, whole
from composer.draw.insides import Piece, inside
from composer.draw.layers import Model
from composer.draw.looks import Look, look, router_facts
from composer.draw.merge import merged
from composer.draw.overview import of_group, without_norms
from composer.draw.passes import earlier, named, runs, with_earlier, without_parameters
from composer.draw.scene import About
from composer.draw.structure import Branches, Edge, Fan, Flow, Group, Item, Leaf, Sink, Source, Web
from composer.draw.visits import visited
from composer.draw.words import counted, shape, size, spoken
from composer.graph.ir import Ref, Wire, wires_of
from composer.graph.renewal import SUFFIX
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat, TypedScan, is_renewal
from composer.language.recipe import InputDecl

Level: TypeAlias = Literal["overview", "block", "full"]
LEVELS: tuple[Level, ...] = ("overview", "block", "full")
MANY, FEW = 6, 4
"""Experts of which all are drawn; of more, all but the middle ones, and one less."""
Sources: TypeAlias = tuple[Source, ...]
Values: TypeAlias = dict[str, dict[str, Sources]]
"""What each node of a graph gives, by port; the default under no name."""


@dataclass(frozen=True, slots=True)
class Depth:
    """How much of a model is shown."""

    level: Level = "block"
    opened: frozenset[str] = frozenset()
    """Paths of what is shown from inside, whatever the level."""
    unrolled: bool = False
    """Whether every pass of a repeat is drawn."""
    params: bool = True
    """Whether blocks tell how many parameters they have."""
    spacious: bool = True
    """Whether there is room for what explains itself: more than a few experts of a mixture, and that an input is one."""
    experts: bool = True
    """Whether mixtures of experts are shown from inside."""
    layers: bool = True
    """Whether repeats are."""


def outline(model: Model, depth: Depth) -> Flow:
    """A model's blocks, frames and edges."""
    return Outline(model, depth).model()


@dataclass(slots=True)
class _Drawn:
    """A graph on its way to become a flow."""

    items: list[Item] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    sinks: list[Sink] = field(default_factory=list)


class Outline:
    """Reads graphs into flows. Every path is that of a place in the recipe, without the passes of folded repeats; `places` are
    the paths of all places that a drawn thing stands for, with their passes.
    """

    def __init__(self, model: Model, depth: Depth) -> None:
        self.typed, self.depth = model.typed, depth
        self.counts = Counts(model.parameters, said=depth.params)
        self.starts = model.starts
        self.source = self.typed.program.recipe.name_scalar.span.source
        self.holder: Span | None = None
        self.titles = dict(titles(self.typed.root))
        """What every block is called, by its places in the model and in the drawing."""
        self.routed: set[str] = set()
        """Paths of mixtures of experts."""
        self.mixed: set[str] = set()
        """Paths of blocks in whose place other passes of a repeat have another block: these stand side by side, closed."""
        self.alone: set[str] = set()
        """Paths of groups that are all there is in a pass of a repeat."""

    def model(self) -> Flow:
        """The whole model."""
        root = self.typed.root
        values: Values = {
            one.name: {"": (Source(one.name, shape=shape(self.typed.inputs[one.name]), given=True, word=self.word(one)),)}
            for one in self.typed.program.inputs
        }
        drawn = _Drawn()
        self.graph(root, values, "", [""], drawn)
        outputs = [(name, self.refs((ref,), values)[0]) for name, ref in root.graph.outputs]
        sinks = tuple(replace(sink, edges=tuple(map(by_input_name, sink.edges))) for sink in drawn.sinks)
        flow = Flow("", tuple(drawn.items), tuple(drawn.edges), outputs[0][1], tuple(outputs), sinks)
        return without_norms(flow) if self.depth.level == "overview" else flow

    # -- graphs

    def graph(self, graph: TypedGraph, values: Values, prefix: str, places: Sequence[str], drawn: _Drawn) -> None:
        """Adds all nodes of a graph; `values` are those of its inputs, to which those of its nodes are added."""
        for node in graph.nodes:
            if node.node.dropped:
                values[node.name] = {"": self.refs(node.node.wires[0].refs, values)}  # type: ignore[union-attr]  # no repeat
                continue
            if isinstance(node, TypedBlock) and isinstance(node.part, Dropout):
                read = self.refs(node.node.wires[0].refs, values)
                if self.dissolves(node, node.part, graph, read, drawn):
                    values[node.name] = {"": read}
                    continue
            values[node.name] = self.node(node, values, prefix, places, drawn)

    def dissolves(self, node: TypedBlock, part: Dropout, graph: TypedGraph, read: Sources, drawn: _Drawn) -> bool:
        """Whether a dropout is no box: at a glance, or where words above what it reads can tell it."""
        if not part.p or self.depth.level == "overview":
            return True
        return read_once(node.node.wires[0].refs[0], graph) and said_after(read, f"dropout {part.p:g}", drawn)

    def node(self, node: TypedNode, values: Values, prefix: str, places: Sequence[str], drawn: _Drawn) -> dict[str, Sources]:
        """Adds a node, and gives what can be read of it."""
        path, at = prefix + node.name, [place + node.name for place in places]
        match node:
            case TypedBlock():
                given = self.wires(node.node.wires, values)
                if self.opens(path) and (pieces := inside(node)):
                    return self.pieces(node, pieces, given, path, at, drawn)
                return self.block(node, given, path, at, drawn)
            case TypedGroup():
                return self.group(node, self.wires(node.node.wires, values), path, at, drawn)
            case TypedScan():
                return self.scan(node, self.wires(node.node.wires, values), path, at, drawn)
            case TypedRepeat() if self.depth.unrolled:
                return self.unrolled(node, values, path, at, drawn)
        return self.repeat(node, values, path, at, drawn)

    def opens(self, path: str) -> bool:
        """Whether a block is shown from inside."""
        return (self.depth.level == "full" and path not in self.mixed) or path in self.depth.opened

    def refs(self, refs: Sequence[Ref], values: Values) -> Sources:
        """Where values come from; what lies inside of a frame is called by its name, a range of passes at once."""
        found: list[Source] = []
        for same in runs(refs):
            ports, ref = values[same[0].node], same[0]
            passed = ports.get(f"({ref.index}){ref.port}")
            last = ports.get("last")
            if passed:  # every pass is drawn
                found += [source for one in same for source in ports[f"({one.index}){one.port}"]]
            elif not ref.port and len(same) == 1 and (ref.index is None or (last and last[0].port == str(ref.index))):
                found += ports[""]
            elif last is None and ref.port in ports and not ports[ref.port][0].chip:
                found += ports[ref.port]
            else:
                inner = ports.get(f"|{ref.port}", ports[""])
                found += [replace(source, chip=named(same)) for source in inner]
        return tuple(found)

    def wires(self, wires: Sequence[Wire], values: Values) -> dict[str, Sources]:
        """What each port reads."""
        return {wire.port: self.refs(wire.refs, values) for wire in wires}

    # -- blocks

    def block(
        self, node: TypedBlock, given: Mapping[str, Sources], path: str, places: Sequence[str], drawn: _Drawn
    ) -> dict[str, Sources]:
        """Adds a block as one box."""
        seen = look(node, self.head(path))
        first = next(iter(node.part.inputs), "").rstrip("?*")
        if is_renewal(node) or isinstance(node.part, Loss):
            drawn.sinks.append(self.sink(node, seen, given, path, places))
            return self.ports(node, path)
        item: Item
        shown = self.depth.level != "overview" and (self.depth.experts or path in self.depth.opened)
        if isinstance(node.part, MixtureOfExperts) and shown:
            item = self.fan(node, node.part, path, places)
            self.routed.add(path)
        else:
            item = self.leaf(node, seen, path, places)
        drawn.items.append(item)
        mixes = any(name.endswith("*") for name in node.part.inputs)
        for port, sources in given.items():
            measured = port in node.part.measures
            main = not measured and (mixes or port == first)
            drawn.edges += [Edge(source, path, port, main, measured=measured) for source in sources]
        return self.ports(node, path)

    def ports(self, node: TypedBlock, path: str) -> dict[str, Sources]:
        """What can be read of a block."""
        if not node.outputs:
            return {}
        names = list(node.outputs)
        shapes = {name: shape(type_) for name, type_ in node.outputs.items()}
        ports = {name: (Source(path, name, shapes[name]),) for name in names[1:]}
        first = (Source(path, "", shapes[names[0]]),)
        return {"": first, names[0]: first, **ports}

    def sink(self, node: TypedBlock, seen: Look, given: Mapping[str, Sources], path: str, places: Sequence[str]) -> Sink:
        """What gives nothing that flows on."""
        edges = tuple(Edge(source, path, port, False) for port, sources in given.items() for source in gathered(sources))
        if is_renewal(node):
            return Sink(None, path, f"{node.name.removesuffix(SUFFIX)} in the next call", edges)
        if edges[0].source.path in self.routed:
            seen = replace(seen, facts=("from each router" if edges[0].source.chip else "from the router", *seen.facts))
        return Sink(self.leaf(node, seen, path, places), path, node.name, edges)

    def leaf(self, node: TypedBlock, seen: Look, path: str, places: Sequence[str]) -> Leaf:
        """A block as a box."""
        params = self.counts.shown(places[0])
        if partner := self.partner(places[0]):
            seen = replace(seen, facts=(*seen.facts, partner))
        stream = node.inputs.get(next(iter(node.part.inputs), "").rstrip("?*"), ())
        came = shape(stream[0] if isinstance(stream, tuple) and stream else stream)
        gives = shape(next(iter(node.outputs.values()), ()))
        about = self.about(node, path, places, (seen.title, seen.detail, seen.mask))
        about = replace(about, description=self.description(node, places))
        after = "" if self.depth.level == "overview" else seen.after
        return Leaf(about, seen, params, gives if gives != came else "", after=after)

    def fan(self, node: TypedBlock, part: MixtureOfExperts, path: str, places: Sequence[str]) -> Fan:
        """A mixture of experts with its router, its experts and what all visit."""
        expert, shared = node.slots["expert"], node.slots.get("shared")
        assert isinstance(expert, TypedBlock)
        seen = look(expert)
        count = visited(part)
        whole = self.counts.total([f"{places[0]}.expert"])
        each = [f"{counted(whole // part.experts)} each"] if whole else []
        header = (f"{part.experts} × {seen.short or seen.title}", *each, *seen.facts)
        facts = (f"{node.sizes['dim']} → {part.experts}", *router_facts(part))
        some = ", for example these" if count < part.experts and self.depth.spacious else ""
        gates = [f"{place}.{name}" for place in places for name in part.router.maps]
        router = Leaf(
            replace(self.about(node, f"{path}.router", places, ("Router", *facts)), parameters=self.counts.total(gates)),
            Look("Router", facts, "moe"),
            self.counts.shown_of(gates[: len(part.router.maps)]),
        )
        visited_by_all = None
        if shared is not None:
            at = [f"{place}.shared" for place in places]
            if isinstance(shared, TypedBlock):
                visited_by_all = self.leaf(shared, look(shared), f"{path}.shared", at)
            else:
                about = self.about(shared, f"{path}.shared", at, ("Shared expert",))
                about = replace(about, description=self.description(shared, at))
                visited_by_all = Leaf(about, Look("Shared expert", hue="moe"), self.counts.shown(at[0]))
        about = self.about(node, path, places, ("Mixture of experts", *header, f"{count} of {part.experts} visited"))
        own = self.counts.total(f"{place}.expert" for place in places)
        return Fan(
            replace(about, parameters=own, description=self.description(node, places)),
            router,
            seen,
            ("Sparse MoE", *header, f"{count} of {part.experts} active{some}"),
            part.experts,
            min(count, part.experts),
            MANY if self.depth.spacious else FEW,
            visited_by_all,
            tuple(node.node.wanted),
        )

    def pieces(
        self,
        node: TypedBlock,
        pieces: Sequence[Piece],
        given: Mapping[str, Sources],
        path: str,
        places: Sequence[str],
        drawn: _Drawn,
    ) -> dict[str, Sources]:
        """Adds what a block consists of."""
        values: dict[str, Sources] = {f"${port}": sources for port, sources in given.items()}
        for piece in pieces:
            below = f"{path}.{piece.name}"
            if piece.look.quiet:
                values[piece.name] = values[piece.reads[0][0]]
                said_after(values[piece.name], piece.look.title.lower(), drawn)
                continue
            names = [f"{place}.{name}" for place in places for name in piece.parameters]
            params = self.counts.shown_of(names[: len(piece.parameters)])
            about = self.about(node, below, names, (piece.look.title, piece.look.detail))
            about = replace(about, description=self.description(node, places) if piece is pieces[0] else "")
            drawn.items.append(Leaf(about, piece.look, params))
            for read, port in piece.reads:
                drawn.edges += [Edge(source, below, port, not port or port in "qkv") for source in values.get(read, ())]
            values[piece.name] = (Source(below, shape=piece.shape),)
        gives: dict[str, Sources] = {port: values[piece.name] for piece in pieces for port in piece.gives}
        first = next(iter(node.outputs))
        return {"": gives[first], **gives}

    # -- what holds a graph

    def group(
        self, node: TypedGroup, given: Mapping[str, Sources], path: str, places: Sequence[str], drawn: _Drawn
    ) -> dict[str, Sources]:
        """Adds a group: its nodes where it is a block of a graph such as `residual`, else a frame or one box."""
        part = node.node.part
        below = [f"{place}." for place in places]
        whole = self.depth.level == "full" or path in self.alone
        if part is not None and (issubclass(part, Residual) or (whole and path not in self.depth.opened)):
            values: Values = {name: {"": sources} for name, sources in given.items()}
            holder, self.holder = self.holder, self.holder or node.node.name_span
            self.graph(node.graph, values, f"{path}.", below, drawn)
            self.holder = holder
            outputs = {port: self.refs((ref,), values) for port, ref in node.graph.graph.outputs}
            return {"": next(iter(outputs.values())), **outputs}
        title = spoken(node.name) if part is None else spoken(part.kind)
        closed = (self.depth.level == "overview" or part is not None) and not any(map(holds_layers, node.graph.nodes))
        if closed and path not in self.depth.opened:
            flow, ports = self.flow(node.graph, given, path, below)
            about = self.about(node, path, places, (title,))
            about = replace(about, parameters=self.counts.total(places), description=self.description(node, places))
            item: Item = of_group((flow,), about, title, self.counts.shown(places[0]))
            drawn.items.append(item)
            self.outer_edges(node.graph, given, path, drawn)
        else:
            flow, ports = self.flow(node.graph, given, path, below)
            drawn.items.append(self.frame(node, title, path, places, (flow,)))
            self.inlet_edge(node.graph, given, path, drawn)
        return self.outputs(node.graph, path, ports)

    def scan(
        self, node: TypedScan, given: Mapping[str, Sources], path: str, places: Sequence[str], drawn: _Drawn
    ) -> dict[str, Sources]:
        """Adds a scan: a frame around one step, or one box."""
        title, steps = spoken(node.name), size(node.axis.size)
        before = {name: (Source(f"{path}|{port}", chip="previous step"),) for name, port in node.carried.items()}
        inside = {name: (*given.get(name, ()), *before.get(name, ())) for name in {**given, **before}}
        stream = next((name for name in node.steps if name in given), "")
        flow, ports = self.flow(node.graph, inside, path, [f"{place}." for place in places], stream)
        flow = with_earlier(flow, f"{path}|", ports)
        if self.depth.level == "overview" and path not in self.depth.opened:
            about = replace(self.about(node, path, places, (title,)), parameters=self.counts.total(places))
            drawn.items.append(of_group((flow,), about, f"× {steps} {title}", self.counts.shown(places[0])))
            self.outer_edges(node.graph, given, path, drawn, stream)
        else:
            drawn.items.append(replace(self.frame(node, title, path, places, (flow,)), count=steps))
            self.inlet_edge(node.graph, given, path, drawn, stream)
        return self.outputs(replace(node.graph, outputs=node.outputs), path, ports)

    def frame(self, node: TypedNode, title: str, path: str, places: Sequence[str], flows: tuple[Flow, ...]) -> Group:
        """A frame around flows."""
        each = self.counts.shown(places[0])
        about = replace(self.about(node, path, places, (title, each)), parameters=0)
        return Group(about, (title, each) if each else (title,), flows)

    def flow(
        self, graph: TypedGraph, given: Mapping[str, Sources], path: str, below: Sequence[str], stream: str = ""
    ) -> tuple[Flow, dict[str, Sources]]:
        """What a frame holds, and where what can be read of it comes from. What it is given first comes in from below; the rest
        is read over the border. What comes in first is the first input, or the `stream` that is named.
        """
        values: Values = {}
        for one in graph.graph.inputs:
            if one.name == (stream or first_input(graph)) and one.name in given:
                shapes = {source.shape for source in given[one.name]}
                values[one.name] = {"": (Source(path, shape=shapes.pop() if len(shapes) == 1 else ""),)}
            else:
                values[one.name] = {"": tuple(map(from_far, given.get(one.name, ())))}
        drawn = _Drawn()
        self.graph(graph, values, f"{path}.", below, drawn)
        ports = {port: self.refs((ref,), values) for port, ref in graph.graph.outputs}
        outlet = next(iter(ports.values()))
        whole = Flow(path, tuple(drawn.items), tuple(drawn.edges), outlet[0] if outlet else None, (), tuple(drawn.sinks))
        return whole, {**ports, "": outlet}

    def inlet_edge(self, graph: TypedGraph, given: Mapping[str, Sources], path: str, drawn: _Drawn, stream: str = "") -> None:
        """Adds the edge of what comes in from below."""
        drawn.edges += [Edge(source, path, "", True) for source in given.get(stream or first_input(graph), ())]

    def outer_edges(self, graph: TypedGraph, given: Mapping[str, Sources], path: str, drawn: _Drawn, stream: str = "") -> None:
        """Adds all edges of what is drawn as one box."""
        main = stream or first_input(graph)
        for one in graph.graph.inputs:
            sources = given.get(one.name, ())
            drawn.edges += [Edge(source, path, "" if one.name == main else one.name, one.name == main) for source in sources]

    def outputs(self, graph: TypedGraph, path: str, ports: Mapping[str, Sources]) -> dict[str, Sources]:
        """What can be read of a frame: what it returns; anything else, after a bar, is called by its name."""
        name, type_ = next(iter(graph.outputs.items()))
        whole = (Source(path, shape=shape(type_)),)
        return {"": whole, name: whole, **{f"|{port}": sources for port, sources in ports.items()}}

    # -- repeats

    def repeat(self, node: TypedRepeat, values: Values, path: str, places: Sequence[str], drawn: _Drawn) -> dict[str, Sources]:
        """Adds a repeat, folded: one frame, however many passes."""
        count = len(node.passes)
        self.alone |= {f"{path}.{graph.nodes[0].name}" for graph in node.passes if len(graph.nodes) == 1}
        kinds: dict[int, list[int]] = {}
        for index, graph in enumerate(node.passes):
            kinds.setdefault(id(graph), []).append(index)
        of_passes = [dict(kinds_of(node.passes[passes[0]], f"{path}.")) for passes in kinds.values()]
        self.mixed |= {one for known in of_passes for one, kind in known.items() if {k.get(one) for k in of_passes} != {kind}}
        ordered = sorted(kinds.values(), key=lambda passes: (-len(passes), passes[0]))
        flows: list[Flow] = []
        ports: dict[str, Sources] = {}
        for passes in ordered:
            given = self.given(node, passes, values, path)
            below = list(dict.fromkeys(place + own(node, index, passes is ordered[0]) for place in places for index in passes))
            flow, gives = self.flow(node.passes[passes[0]], given, path, below)
            flows.append(without_parameters(flow) if flows and node.node.share is not None else flow)
            for port, sources in gives.items():
                ports[port] = tuple(dict.fromkeys((*ports.get(port, ()), *sources)))
        flows = [with_earlier(flow, f"{path}|", ports) for flow in flows]
        of = [0] * count
        for number, passes in enumerate(ordered):
            for index in passes:
                of[index] = number
        one = merged(flows, [len(passes) for passes in ordered])
        title = self.layer_title(node, flows)
        each = {self.counts.owned.get(f"{places[0]}.{node.prefix(index)}"[:-1], 0) for index in range(count)}
        most = counted(max(each)) if max(each) else ""
        about = replace(self.about(node, path, places, (f"× {count} {title}", most and f"{most} each")), parameters=0)
        whole = self.counts.total(places)
        closed = self.depth.level == "overview" or not self.depth.layers
        if closed and path not in self.depth.opened:
            name = f"× {count} {title}"
            about = replace(about, parameters=whole, description=self.description(node, places))
            drawn.items.append(of_group(flows, about, name, self.counts.shown_of(places)))
            self.pass_edges(node, values, path, drawn, all_inputs=True)
            return self.outputs(node.passes[-1], path, ports) | {"last": (Source(path, str(count - 1)),)}
        how = "shared" if node.node.share is not None else "each" if len(each) == 1 else ""
        header = (title, *((f"{most} {how}" if how else f"up to {most}",) if most else ()))
        own_active = [
            self.counts.owned.get(f"{places[0]}.{node.prefix(passes[0])}"[:-1], 0)
            - unvisited(flow) // (len(places) * len(passes))
            for flow, passes in zip(flows, ordered, strict=True)
        ]
        if most and any(map(unvisited, flows)):
            header = (*header, f"{'up to ' if len(set(own_active)) > 1 else ''}{counted(max(own_active))} active")
        several = one is None
        heads = tuple((f"{len(passes)} of {count}",) for passes in ordered) if several else ()
        frames = tuple(flows) if several else (one,) if one else ()
        drawn.items.append(Group(about, header, frames, heads, str(count), tuple(of) if len(ordered) > 1 else ()))
        self.pass_edges(node, values, path, drawn, all_inputs=False)
        return self.outputs(node.passes[-1], path, ports) | {"last": (Source(path, str(count - 1)),)}

    def given(self, node: TypedRepeat, passes: Sequence[int], values: Values, path: str) -> dict[str, Sources]:
        """What some passes of a repeat are given, all that any of them is; of an earlier pass by its name."""
        found: dict[str, dict[Source, None]] = {}
        for index in passes:
            for wire in node.node.passes[index].wires:
                named = found.setdefault(wire.port, {})
                for same in runs(wire.refs):
                    if same[0].node == node.name and node.name not in values:
                        named[earlier(same, index, path)] = None
                    else:
                        named.update(dict.fromkeys(self.refs(same, values)))
        return {port: tuple(sources) for port, sources in found.items()}

    def pass_edges(self, node: TypedRepeat, values: Values, path: str, drawn: _Drawn, *, all_inputs: bool) -> None:
        """Adds the edges of a repeat from outside: of what is carried from pass to pass, or of all that it reads."""
        inputs = node.passes[0].graph.inputs
        for index, one in enumerate(inputs):
            if (index == 0 and not one.captured) or all_inputs:
                refs = [ref for each in node.node.passes for wire in each.wires if wire.port == one.name for ref in wire.refs]
                outside = dict.fromkeys(ref for ref in refs if ref.node != node.name)
                main = index == 0
                drawn.edges += [
                    Edge(source, path, "" if main else one.name, main) for source in self.refs(tuple(outside), values)
                ]

    def unrolled(self, node: TypedRepeat, values: Values, path: str, places: Sequence[str], drawn: _Drawn) -> dict[str, Sources]:
        """Adds every pass of a repeat, one after the other."""
        ports: dict[str, Sources] = {}
        around = {**values, node.name: ports}
        for index, graph in enumerate(node.passes):
            inner: Values = {wire.port: {"": self.refs(wire.refs, around)} for wire in node.node.passes[index].wires}
            below = f"{path}.{index}."
            self.graph(graph, inner, below, [place + own(node, index, index == 0) for place in places], drawn)
            for port, ref in graph.graph.outputs:
                ports[f"({index}){port}"] = self.refs((ref,), inner)
            ports[f"({index})"] = self.refs((graph.graph.outputs[0][1],), inner)
        return {**ports, "": ports[f"({len(node.passes) - 1})"]}

    # -- what is said

    def partner(self, place: str) -> str:
        """Whose weights those of the block at a place are: another's by its title where no other has that; or nothing."""
        owner = self.counts.tied.get(place, "") if self.depth.params else ""
        if not owner:
            return ""
        holder, path = max((one for one in self.titles if owner.startswith(f"{one[0]}.")), key=lambda one: len(one[0]))
        title = self.titles[holder, path]
        alone = len({other for (_, other), called in self.titles.items() if called == title}) == 1
        return f"{'weight' if f'{place}.weight' in self.counts.tied else 'weights'} = {title.lower() if alone else path}"

    def about(self, node: TypedNode, path: str, places: Sequence[str], said: Sequence[str]) -> About:
        """What a thing stands for."""
        total = self.counts.total(places)
        tip = [part for part in said if part]
        if total and (each := self.counts.shown(places[0])):
            tip.append(f"{each} parameters")
        return About(path, " — ".join(tip), self.lines(node), total)

    def description(self, node: TypedNode, places: Sequence[str]) -> str:
        """What is set in a block, and how its parameters start; nothing at a glance."""
        if self.depth.level == "overview":
            return ""
        return "; ".join(filter(None, [*settings(node), self.starts.at(places)])) if isinstance(node, TypedBlock) else whole(node)

    def lines(self, node: TypedNode) -> tuple[int, int] | None:
        """Where a node stands in the recipe's text; what is inside of a block, where the block stands."""
        name, whole = node.node.name_span, node.node.span
        if name.source != self.source:
            name = whole = self.holder or name
        if name.source != self.source:
            return None
        return name.line, max(name.line, whole.end_line if whole.source == self.source else name.line)

    def word(self, input_: InputDecl) -> str:
        """What stands behind the name of an input; nothing at a glance."""
        shown = self.depth.level != "overview" and self.depth.spacious
        return "" if not shown else " (optional input)" if input_.optional or input_.default else " (input)"

    def head(self, path: str) -> str:
        """What a map is called that gives the model's logits; nothing for others."""
        outputs = dict(self.typed.root.graph.outputs)
        if str(outputs.get("logits")) != path:
            return ""
        task = self.typed.program.recipe.task or ""
        return "Classifier" if task.endswith("classification") else "LM head"

    def layer_title(self, node: TypedRepeat, flows: Sequence[Flow]) -> str:
        """What one pass of a repeat is called."""
        if not re.fullmatch(r"(layers?|blocks?|encoder|decoder)(_\d+)?", node.name):
            return spoken(node.name)
        looks = [leaf.look for flow in flows for leaf in flow.leaves() if isinstance(leaf, Leaf)]
        masks = [seen.mask for seen in looks if seen.mask and not seen.double]
        if node.name == "decoder" or any(seen.double for seen in looks) or any("causal" in mask for mask in masks):
            return "Decoder layer"
        return "Encoder layer" if node.name == "encoder" or masks else "Layer"


def own(repeat: TypedRepeat, index: int, first: bool) -> str:
    """What follows a repeat's place at a pass; one set of weights is counted where it is drawn first."""
    return f".{repeat.prefix(index)}" if first else f".{index}."


def unvisited(flow: Flow) -> int:
    """How many parameters a token does not meet, in experts that it does not visit."""
    fans = [leaf for leaf in flow.leaves() if isinstance(leaf, Fan)]
    return sum(fan.pool * (fan.experts - fan.visited) // fan.experts for fan in fans)


def gathered(sources: Sources) -> Sources:
    """Values, those of several passes of one block as one."""
    found: dict[tuple[str, str], list[Source]] = {}
    for source in sources:
        found.setdefault((source.path, source.port), []).append(source)
    return tuple(
        same[0] if len(same) == 1 else replace(same[0], chip=f"{path}.{port}" if port else path)
        for (path, port), same in found.items()
    )


def first_input(graph: TypedGraph) -> str:
    """The name of what a graph is handed first; nothing where it only reads what is around it."""
    return next((one.name for one in graph.graph.inputs[:1] if not one.captured), "")


def read_once(ref: Ref, graph: TypedGraph) -> bool:
    """Whether there is one reader of a value in a graph, in whichever passes it is made."""
    read = [one for node in graph.nodes for wire in wires_of(node.node) for one in wire.refs]
    every = [*read, *(one for _, one in graph.graph.outputs)]
    return [(one.node, one.port) for one in every].count((ref.node, ref.port)) == 1


def said_after(read: Sources, said: str, drawn: _Drawn) -> bool:
    """Says above an item what happens to what it gives, if that is what is read."""
    for index, item in enumerate(drawn.items):
        same = [(item.about.path, "", "")] == [(one.path, one.port, one.chip) for one in read]
        if same and not isinstance(item, Branches | Web):
            drawn.items[index] = replace(item, after=f"{item.after}, {said}" if item.after else said)
            return True
    return False


def titles(graph: TypedGraph, place: str = "", path: str = "") -> Iterator[tuple[tuple[str, str], str]]:
    """The titles of all blocks, by their places with passes of repeats, and without."""
    for node in graph.nodes:
        match node:
            case TypedBlock():
                yield (place + node.name, path + node.name), look(node).title
            case TypedGroup() | TypedScan():
                yield from titles(node.graph, f"{place}{node.name}.", f"{path}{node.name}.")
            case TypedRepeat(passes=passes):
                for index, inner in enumerate(passes):
                    yield from titles(inner, f"{place}{node.name}.{node.prefix(index)}", f"{path}{node.name}.")


def kinds_of(graph: TypedGraph, path: str) -> Iterator[tuple[str, str]]:
    """The kind of every block of a pass, by its path."""
    for node in graph.nodes:
        match node:
            case TypedBlock(part=part):
                yield path + node.name, part.kind
            case TypedGroup() | TypedScan():
                yield from kinds_of(node.graph, f"{path}{node.name}.")


def holds_layers(node: TypedNode) -> bool:
    """Whether there is a repeat in a node, which then is a part of the model rather than one block."""
    return isinstance(node, TypedRepeat) or (isinstance(node, TypedGroup) and any(map(holds_layers, node.graph.nodes)))


def by_input_name(edge: Edge) -> Edge:
    """An edge, from an input of the model by its name."""
    return replace(edge, source=from_far(edge.source))


def from_far(source: Source) -> Source:
    """A value as it is called behind a border: an input of the model by its name."""
    return replace(source, chip=source.path) if source.given and not source.chip else source
