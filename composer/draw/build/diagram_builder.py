"""The typed graph as blocks, frames and edges, as deep as a level shows it."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import assert_never

from blocks.core import LoopIcon, Steps, size
from composer.draw.brief.box import widths_in_turn
from composer.draw.build import repeats
from composer.draw.build.blocks import add_block, add_operations, add_pieces, is_identity, operands_of
from composer.draw.build.closed_groups import (
    around_blocks,
    around_box,
    changed_shape,
    first_output,
    first_sentence,
    first_shape,
    first_taken,
    first_words,
    holds_layers,
    is_around_block,
    leading_to,
    lone_box,
    lone_repeats,
    new_shape,
    noise_into,
    outputs_read,
    places_of_blocks,
    stands_elsewhere,
    told_evenly,
    told_once,
    with_one_sentence,
    with_patterns,
)
from composer.draw.build.flow_builder import FlowBuilder
from composer.draw.build.group_places import recurs
from composer.draw.build.levels import Depth, Level
from composer.draw.build.parallel_passes import is_parallel, never_alone, only_handed_on, shared_input
from composer.draw.build.parameter_counts import SHARED_WITH
from composer.draw.build.pass_references import (
    PREVIOUS_STEP,
    join_states,
    read_of_scans,
    resolve_previous_passes,
    with_state_boxes,
    without_parameters,
)
from composer.draw.build.products import with_lengths
from composer.draw.build.resolution import SAME, resolution_of, resolution_of_passes
from composer.draw.build.simpler.idioms import with_idioms
from composer.draw.build.simpler.reductions import Merged, WithinLoss, reduced, tell_merged, tell_reductions
from composer.draw.build.simpler.squeezes import without_squeezes
from composer.draw.build.simpler.undone_concats import LeftOut, without_undone_concats
from composer.draw.build.simpler.unread_inputs import without_unread_inputs
from composer.draw.build.single_passes import all_differ, drawn_apart, in_one_box
from composer.draw.build.skips_told import skips_in_order
from composer.draw.build.steps import StepsBuilder
from composer.draw.build.texts.arrays import tables_in, titled_by_names
from composer.draw.build.texts.captions import Captions, NodePlace
from composer.draw.build.texts.node_names import (
    branch_name,
    own_name,
    read_by_name,
    shown_name,
    told_apart,
    with_names_in_formulas,
    with_names_of_partners,
    without_partners,
)
from composer.draw.build.value_sources import (
    NO_STREAM,
    NodeSources,
    Sources,
    ValueSources,
    by_input_name,
    by_name_if_input,
    called_by,
    captured_inputs,
    edge_into,
    edges_into,
    first_input,
    joins_a_row,
    led_in_once,
    of_frame,
    of_inner_pass,
    only,
    places_of,
    read,
    read_once,
    single_output,
    sources,
    stream_of,
)
from composer.draw.diagram import Flow, Group, Leaf, output_of
from composer.draw.edges import DiagramEdge, DiagramSource, FrameInput, ModelInput, Origin, PreviousPass
from composer.draw.passes.alike_kinds import merge_alike
from composer.draw.passes.merge_kinds import MAX_MAPPED_KINDS
from composer.draw.passes.overview import LAYERS, fold_norms, of_group, only_box, told_alike
from composer.draw.passes.side_inputs import name_starts
from composer.draw.paths import plain
from composer.draw.style.looks import inside, steps
from composer.draw.wording import each_pass, shape
from composer.graph.passes.roll_layers.roll_layers import RolledProgram
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat, TypedScan
from composer.language.wording import counted

MAX_TABLES = 2
"""Tables of a block that stand beside its closed box."""


def build_diagram(model: RolledProgram, depth: Depth) -> Flow:
    """Return a model's blocks, frames and edges."""
    return DiagramBuilder(model, depth).model()


class DiagramBuilder:
    """Reads graphs into flows."""

    def __init__(self, model: RolledProgram, depth: Depth) -> None:
        self.program, self.depth = model.program, depth
        self.captions = Captions(model, depth)
        self.root = without_unread_inputs(self.program.root, depth)
        """What is drawn of the model."""
        self.undone: Mapping[str, LeftOut] = {}
        """What frames leave out that is undone beside them, by their paths."""
        if depth.level == "block":
            found = without_undone_concats(self.root, depth)
            self.root, self.undone = found.graph, found.left_out
        self.within: Mapping[str, WithinLoss] = {}
        """What is drawn in the boxes of losses, by the paths of these."""
        self.merged: Mapping[str, Merged] = {}
        """Which nodes boxes of reductions and idioms stand for beside their own, by their paths."""
        self.called: Mapping[str, str] = {}
        """What formulas call blocks that stand for others too, by the paths of these."""
        if depth.level != "full":
            told = with_idioms(self.root, depth)
            fewer = reduced(told.graph, depth)
            short = without_squeezes(fewer.graph, depth, {**told.merged, **fewer.merged})
            self.root, self.within, self.merged, self.called = short.graph, fewer.within, short.merged, short.names
        self.captions.simplified = self.root is not self.program.root
        self.counts = self.captions.counts
        self.routed: set[str] = set()
        """Paths of mixtures of experts."""
        self.mixed: set[str] = set()
        """Paths of blocks in whose place other passes of a repeat have another block: these stand side by side, closed."""
        self.alone: set[str] = set()
        """Paths of groups that are all there is in a pass of a repeat."""
        self.around: list[str] = []
        """Paths of the repeats around what is read."""
        self.names: dict[str, str] = {}
        """What authors call blocks of their recipes, by their paths; also of those in closed boxes."""
        self.uses: dict[str, str] = {}
        """The titles of these, by their paths."""
        self.groups: dict[str, TypedGroup] = {}
        """And what is in them."""
        self.fewer: set[str] = set()
        """Paths of those that leave out what leads to an output that nothing reads."""
        self.never_alone: set[str] = set()
        """Paths of parallel repeats whose last pass nothing reads by itself."""
        self.handed_on: set[str] = set()
        """Paths of repeats of which the next pass alone reads what each one returns."""
        self.read: set[tuple[str, str]] = set()
        """Which outputs of scans others read, by the paths of these and their names."""
        self.apart: frozenset[str] = frozenset()
        """Paths of repeats of which each pass is a closed box of its own."""
        self.told_inside: dict[str, tuple[str, ...]] = {}
        """What the closed box says that is all there is in such a pass, by the path of the pass."""
        self.in_one: frozenset[str] = frozenset()
        """Paths of repeats that are one closed box, which tells the widths of all passes."""
        self.tables: set[str] = set()
        """Paths of parameters of which rows are picked or compared."""
        self.tapped = False
        """Whether there are such since others read one pass by itself."""
        self.shut = False
        """Whether this is inside of a closed box."""
        self.opened: set[str] = set()
        """Paths of repeats that are all there is in a group which is to be opened."""
        self.lone = lone_repeats(self.program.root)
        """Paths of repeats in groups that have one pass, so that they repeat nothing."""
        self.around_blocks = cache(lambda: around_blocks(self.program.root))
        """Where graphs are nothing but one block of the recipe, looked up in the same way."""
        self.outputs_read = cache(lambda: outputs_read(self.root))
        """Which outputs of nodes something reads, looked up in the same way."""
        self.places = cache(lambda: places_of_blocks(self.program.root))
        """Where each block of the recipe stands, looked up once for all copies of this where it is asked for."""

    def model(self) -> Flow:
        """Return the whole model."""
        root = self.root
        values: ValueSources = {
            one.name: single_output(
                (DiagramSource(ModelInput(one.name), shape(self.program.inputs[one.name]), self.captions.input_suffix(one)),)
            )
            for one in self.program.untyped.inputs
        }
        out = FlowBuilder()
        self.graph(root, values, NodePlace(), out)
        outputs = [(name, sources((ref,), values)[0]) for name, ref in root.graph.outputs]
        told = (tell_reductions(sink, self.within) for sink in out.sinks)
        sinks = tuple(replace(sink, edges=tuple(map(by_input_name, sink.edges))) for sink in told)
        flow = Flow(None, tuple(out.items), tuple(out.edges), outputs[0][1], tuple(outputs), sinks)
        if self.depth.level == "overview":
            return self.with_titles(fold_norms(flow))
        flow = with_names_of_partners(told_apart(flow, self.names, self.uses))
        whole = {path: title for path, title in self.uses.items() if path not in self.fewer}  # others lack what these have
        flow = with_one_sentence(told_once(told_evenly(flow, whole, self.groups)), self.groups)
        flow = with_patterns(flow, self.uses, self.groups)
        flow = name_starts(flow, self.depth.named | self.depth.bright) if self.depth.level == "block" else flow
        return self.with_titles(flow)

    def with_titles(self, flow: Flow) -> Flow:
        """Return a diagram in which what has a name that says more than its kind has it as title."""
        frozen = {plain(path) for path in self.counts.frozen}
        return titled_by_names(flow, self.tables, lambda path: plain(path) not in frozen, self.captions.called)

    def at_level(self, level: Level) -> DiagramBuilder:
        """Return one that goes on with this one's work at another level."""
        other = copy(self)
        other.depth = replace(self.depth, level=level)
        return other

    def inside(self, path: str) -> DiagramBuilder:
        """Return one that goes on inside of a repeat of closed passes, where repeats are boxes."""
        other = copy(self)
        other.depth, other.around = replace(self.depth, nested=False), [*self.around, path]
        return other

    def in_box(self) -> DiagramBuilder:
        """Return one that goes on inside of a closed box, which tells repeats in words."""
        other = self.in_words()
        other.shut = True
        return other

    def in_words(self) -> DiagramBuilder:
        """Return one that goes on inside of what tells formulas as they are written."""
        other = copy(self)
        other.depth = replace(self.depth, operations=False)
        return other

    # -- graphs

    def graph(self, graph: TypedGraph, values: ValueSources, around: NodePlace, out: FlowBuilder) -> None:
        """Add all nodes of a graph; `values` are those of its inputs, to which those of its nodes are added."""
        if not self.around:
            self.never_alone |= {around.inner(name).path for name in never_alone(graph)}
        self.handed_on -= {around.inner(node.name).path for node in graph.nodes}  # in another pass, its readers may be others
        self.handed_on |= {around.inner(name).path for name in only_handed_on(graph)}
        self.read |= {(around.inner(ref.node).path, ref.port) for ref in read_of_scans(graph)}
        self.find_single_passes(graph, around)
        for node in graph.nodes:
            if isinstance(node, TypedBlock) and is_identity(node) and self.is_wire(node, graph, around):
                values[node.name] = single_output(sources(node.node.wires[0].refs, values))
                continue
            if isinstance(node, TypedBlock) and (rate := node.part.drop_rate()) is not None:
                given = sources(node.node.wires[0].refs, values)
                if self.dissolves(node, rate, graph, given, out):
                    values[node.name] = single_output(given)
                    continue
            place = around.inner(node.name)
            values[node.name] = self.node(node, values, place, out)
            if self.called and (name := self.called.get(plain(place.path), "")):
                values[node.name] = called_by(values[node.name], around.inner(name).path)
            if (gone := self.undone.get(place.path)) is not None:
                values[node.name] = replace(values[node.name], names=gone.names)
        self.tables |= {around.inner(name).path for name in tables_in(graph)}
        if self.depth.level != "overview":
            out.items[:] = with_names_in_formulas(out.items, graph, around, self.called)
        out.items[:] = with_lengths(out.items, graph, around)

    def left_out(self, path: str) -> str:
        """Return what a frame leaves out that is undone beside it, in words; nothing for others."""
        return self.undone[path].said if path in self.undone else ""

    def find_single_passes(self, graph: TypedGraph, around: NodePlace) -> None:
        """Note the repeats of a graph whose passes are boxes of their own."""
        if self.depth.level != "block" or self.around or self.shut:
            return

        def kept(name: str) -> bool:
            return self.depth.names(plain(around.inner(name).path))

        unlike = frozenset(all_differ(graph, kept, nested=self.depth.nested) if self.depth.layers else ())
        chains = in_one_box(graph, unlike)
        unlike -= chains
        names = drawn_apart(graph, kept, unlike) if not around.path else unlike
        self.in_one |= {around.inner(name).path for name in chains - names}
        self.tapped |= bool(names - unlike)
        self.apart |= {around.inner(name).path for name in names}

    def is_wire(self, node: TypedBlock, graph: TypedGraph, around: NodePlace) -> bool:
        """Return whether an identity is no box: no formula in its graph names it, and nothing beside that reads it."""
        path = around.inner(node.name).path
        if self.depth.level == "full" or plain(path) in self.depth.named or path in self.mixed:
            return False
        return node.name not in {*read_by_name(graph), *(ref.node for _, ref in graph.graph.outputs)}

    def dissolves(self, node: TypedBlock, rate: float, graph: TypedGraph, given: Sources, out: FlowBuilder) -> bool:
        """Return whether a dropout is no box: at a glance, or where words above what it reads can tell it."""
        if not rate or self.depth.level == "overview" or not self.depth.dropout:
            return True
        return read_once(node.node.wires[0].refs[0], graph) and out.note_dropout(given, f"dropout {rate:g}")

    def node(self, node: TypedNode, values: ValueSources, place: NodePlace, out: FlowBuilder) -> NodeSources:
        """Add a node, and return what can be read of it."""
        match node:
            case TypedBlock():
                if (operands := operands_of(node, values)) is not None:
                    return self.formula(node, operands, values, place, out)
                given = read(node.node.wires, values)
                if self.opens(place.path) and (pieces := inside(node)):
                    return add_pieces(self.captions, node, pieces, given, place, out)
                if self.opens(place.path) and (loops := steps(node)) and self.has_room(loops, place.path):
                    return StepsBuilder(self.captions, node, place).add(loops, given, out)
                if node.part.vocab_field:
                    self.names[place.path] = node.name  # the tables of users and of items are told apart by what for
                gives = add_block(self.captions, node, given, place, out, self.routed, places_of(node, values))
                if self.merged and (merged := self.merged.get(plain(place.path))) is not None:
                    out.items[-1] = tell_merged(out.items[-1], merged)
                return gives
            case TypedGroup():
                return self.group(node, read(node.node.wires, values), place, out)
            case TypedScan():
                return self.scan(node, read(node.node.wires, values), place, out)
            case TypedRepeat():
                alone = self.depth.passes_of(plain(place.path), len(node.passes))
                if alone is not None:
                    return self.unrolled(node, alone, values, place, out)
                if place.path in self.apart:
                    return self.unrolled(node, (), values, place, out)
                if len(node.passes) == 1 and plain(place.path) in self.lone:
                    return self.single_pass(node, values, place, out)
                return self.repeat(node, values, place, out)
            case _:
                assert_never(node)

    def formula(
        self, node: TypedBlock, operands: Mapping[str, Sources], values: ValueSources, place: NodePlace, out: FlowBuilder
    ) -> NodeSources:
        """Add a formula of some operands: as the operations that it consists of where these can be seen, else as one box."""
        pieces = inside(node) if operands and self.shows_operations(place.path) else ()
        if pieces:
            return add_operations(self.captions, node, pieces, operands, place, out)
        given = read(node.node.wires, values)
        return add_block(self.captions, node, given, place, out, self.routed, places_of(node, values))

    def shows_operations(self, path: str) -> bool:
        """Return whether a formula is shown as its operations, if it can be: not where it is to be hidden or called otherwise."""
        if plain(path) in self.depth.named:
            return path in self.depth.opened
        return self.opens(path) or (self.depth.level == "block" and self.depth.operations and path not in self.mixed)

    def opens(self, path: str) -> bool:
        """Return whether a block is shown from inside."""
        return (self.depth.level == "full" and path not in self.mixed) or path in self.depth.opened

    def has_room(self, loops: Sequence[Steps], path: str) -> bool:
        """Return whether loops of two directions may stand side by side."""
        return self.depth.spacious or path in self.depth.opened or not any(loop.beside for loop in loops)

    # -- what holds a graph

    def group(self, node: TypedGroup, given: Mapping[str, Sources], place: NodePlace, out: FlowBuilder) -> NodeSources:
        """Add a group: its nodes where it is a block of a graph such as `residual`, else a frame or one box."""
        part = node.node.part
        path = place.path
        shut = plain(path) in self.depth.closed
        alone = (self.depth.level == "full" or path in self.alone) and not shut
        if part is not None and (part.dissolved or (alone and path not in self.depth.opened)):
            return self.dissolved(node, given, place, out)
        if part is None and node.graph.by_name.keys() == {node.name}:  # around a formula in a slot, which is all there is in it
            return self.dissolved(node, given, place, out)
        if self.depth.level == "block" and is_around_block(node) and self.is_all_there(plain(path)):
            return self.dissolved(node, given, place, out)
        title = self.captions.called(branch_name(path) if part is None else part.kind, part)
        closed = shut or ((self.depth.level == "overview" or part is not None) and not holds_layers(node.graph, self.lone, path))
        boxed = shut and self.depth.level == "full" and not self.depth.shows(path)  # which tells its blocks, and not their maps
        box = closed and not self.depth.shows(path)
        stream = stream_of(node.graph)
        stream = stream if box or not joins_a_row(node.graph, stream, given) else NO_STREAM
        inside = self.at_level("block") if boxed else self
        if path in self.depth.opened and self.depth.level != "overview" and len(node.graph.nodes) == 1:
            self.opened.add(place.inner(node.graph.nodes[0].name).path)
        read = given if box else led_in_once(given, stream, path)
        flow, ports = (inside.in_box() if box else inside).flow(node.graph, read, place, stream)
        self.names[path] = own_name(node, place)
        if part is not None:
            self.uses[path] = title
            self.groups[path] = node
        lone = None if box or self.shut or self.depth.shows(path) or stream == NO_STREAM else lone_box(node, flow)
        if lone is not None:
            whole = self.closed(node, (flow,), title, (title, lone.look.title), lone.params, place)
            out.items.append(around_box(whole, lone))
        elif box:
            if len(ports) > 2:  # the first one, also by its name, and others
                blocks = len(flow.items)
                flow = leading_to(flow, self.sources_read(path, ports))
                self.fewer |= {path} if len(flow.items) < blocks else set()
            beside = self.tables_beside(node, place, flow)
            out.items += [*beside, self.closed_group(node, flow, title, place, [table.about.path for table in beside])]
            out.edges += [DiagramEdge(DiagramSource(output_of(table)), path, "", False) for table in beside]
            out.edges += noise_into(node, path) if self.depth.level == "block" and not self.shut else []
        else:
            out.items.append(self.frame(node, title, place, flow))
            given = only(given, stream)
        out.edges += edges_into(node.graph, given, path, stream, flow.second_streams)
        return of_frame(node.graph, path, ports)

    def sources_read(self, path: str, ports: Mapping[str, Sources]) -> list[DiagramSource]:
        """Return what makes those outputs of a group that something beside it reads."""
        first, read = next(iter(ports)), self.outputs_read().get(plain(path), {*ports})
        return [source for port, ours in ports.items() if port in read or ("" in read and port == first) for source in ours]

    def tables_beside(self, node: TypedGroup, place: NodePlace, flow: Flow) -> list[Leaf]:
        """Return the boxes of tables that stand beside the closed box of a block, given what is in that. One that stands once and
        learns one or two, such as a codebook, is what its model is about.
        """
        path = plain(place.path)
        once = node.node.part is not None and place.all == (path,) and not stands_elsewhere(node, path, self.places())
        if self.depth.level != "block" or self.shut or self.around or not once:
            return []
        inner = (place.inner(name).path for name in sorted(tables_in(node.graph)))
        found = [flow.by_path[path] for path in inner if path in flow.by_path]  # but those that lead to nothing that is read
        boxes = [replace(one, name="", in_formula=False) for one in found if isinstance(one, Leaf) and one.about.parameters]
        return boxes if len(boxes) <= MAX_TABLES else []

    def closed_group(self, node: TypedGroup, flow: Flow, title: str, place: NodePlace, apart: Collection[str]) -> Leaf:
        """Return a group as one closed box, without the tables that stand `apart`, beside it."""
        if not apart:
            return self.closed(node, (flow,), title, (title,), self.counts.shown_whole(place.first), place)
        own = [one for one in (place.inner(inner.name) for inner in node.graph.nodes) if one.path not in apart]
        params = self.counts.shown_of([one.first for one in own])
        box = self.closed(node, (flow.without({*apart}),), title, (title,), params, place, own=[one.first for one in own])
        return replace(box, about=box.about.with_parameters(sum(self.counts.total(one.all) for one in own)))

    def is_all_there(self, path: str) -> bool:
        """Return whether a graph around one block is no frame: it is so in each pass, and no option points at it."""
        return not self.depth.points_at(path) and path in self.around_blocks()

    def dissolved(self, node: TypedGroup, given: Mapping[str, Sources], place: NodePlace, out: FlowBuilder) -> NodeSources:
        """Add the nodes of a group."""
        values: ValueSources = {name: single_output(ours) for name, ours in given.items()}
        self.graph(node.graph, values, place.part_of(node), out)
        outputs = {port: sources((ref,), values) for port, ref in node.graph.graph.outputs}
        return NodeSources({"": next(iter(outputs.values())), **outputs}, inner=outputs)

    def scan(self, node: TypedScan, given: Mapping[str, Sources], place: NodePlace, out: FlowBuilder) -> NodeSources:
        """Add a scan: a frame around one step, or one box."""
        path = place.path
        title, steps = self.captions.called(node.name), size(node.axis.size)
        before = {
            name: (DiagramSource(PreviousPass(path, port, immediate=True), reference=PREVIOUS_STEP),)
            for name, port in node.carried.items()
        }
        starts = {name: tuple(replace(one, at_first=name in before) for one in ours) for name, ours in given.items()}
        both = {name: (*starts.get(name, ()), *before.get(name, ())) for name in {**given, **before}}
        stream = next((name for name in node.steps if name in given), "")
        flow, ports = self.flow(node.graph, both, place, stream)
        if self.depth.level != "overview" and not self.shut:
            flow = with_state_boxes(flow, path, node.graph, node.carried, starts, self.captions.called)
        read = (one.origin for port in ports if (path, port) in self.read for one in ports[port])
        flow = join_states(resolve_previous_passes(flow, path, ports), read)
        main = stream or first_input(node.graph)
        if self.depth.level == "overview" and not self.depth.shows(path):
            name, params = f"× {steps} {title}", self.counts.shown_whole(place.first)
            out.items.append(self.closed(node, (flow,), name, (title,), params, place))
        else:
            out.items.append(replace(self.frame(node, title, place, flow), count=steps))
            given = only(given, main)
        out.edges += edges_into(node.graph, given, path, main, flow.second_streams)
        return of_frame(replace(node.graph, outputs=node.outputs), path, ports)

    def frame(self, node: TypedNode, title: str, place: NodePlace, flow: Flow) -> Group:
        """Return a frame around a flow."""
        each = self.counts.shown_whole(place.first)
        about = self.captions.about(node, place, (title, each)).with_parameters(0)
        about = replace(about, description=self.left_out(place.path))
        flow = without_partners(flow) if each.startswith(SHARED_WITH) else flow
        header = (title, each) if each else (title,)
        return Group(about, header, (flow,), shape=self.frame_shape(node), gives=first_output(node))

    def frame_shape(self, node: TypedNode) -> str:
        """Return the shape of what a frame gives, where it changes; an overview has room for those of boxes alone."""
        return new_shape(node) if self.depth.level != "overview" else ""

    def misleading_shape(self, node: TypedNode) -> str:
        """Return the shape of the first output of a box, where that is called like an input or an output of the model of another
        shape; nothing for others.
        """
        known = {**self.program.inputs, **self.root.outputs}
        name, gives = first_output(node), shape(next(iter(node.outputs.values()), ())) if isinstance(node, TypedGroup) else ""
        return gives if name in known and shape(known[name]) != gives else ""

    def closed(
        self,
        node: TypedNode,
        flows: Sequence[Flow],
        name: str,
        tip: Sequence[str],
        params: str,
        place: NodePlace,
        passes: Sequence[Sequence[int]] = (),
        own: Sequence[str] = (),
        some: tuple[TypedGraph, TypedGraph] | None = None,
    ) -> Leaf:
        """Return a group as one closed box; its tip tells the parameters at `own` paths, by default those of the first node. Of a
        repeat, it may stand for some passes alone, given the first and the last of these.
        """
        gives = changed_shape(*some) if some else new_shape(node)
        resolution = SAME if not gives else resolution_of_passes(*some) if some else resolution_of(node)
        about = self.captions.about(node, place, tip, own)
        said = "; ".join(filter(None, [self.captions.description(node, place), self.left_out(place.path), resolution.said]))
        about = replace(about, parameters=self.counts.total(place.all), description=said)
        part = node.node.part if isinstance(node, TypedGroup) else None
        room = self.depth.spacious and not self.tapped  # each pass is a box, and so is what reads it
        doc = (part.__doc__ or "") if part is not None else ""
        words, sentence = first_words(doc) if room else "", first_sentence(doc)
        told = shown_name(node, place, name) if isinstance(node, TypedGroup) and self.depth.level != "overview" else ""
        found = of_group(flows, about, name, params, words, passes, sentence=sentence)
        if found.look.hue not in LAYERS and recurs(node):
            found = replace(found, look=replace(found.look, hue="rec", icon=LoopIcon()))
        again = self.shut and stands_elsewhere(node, plain(place.path), self.places())
        shape_ = gives or ("" if some else self.misleading_shape(node))
        ends = replace(found, shape=shape_, gives=first_output(node), takes=first_taken(node), places=resolution.places)
        return replace(ends, name=told, elsewhere=again)

    def flow(
        self, graph: TypedGraph, given: Mapping[str, Sources], place: NodePlace, stream: str = ""
    ) -> tuple[Flow, dict[str, Sources]]:
        """Return what a frame holds, and where what can be read of it comes from. What it is given first comes in from below; the
        rest is read over the border. What comes in first is the first input, or the `stream` that is named.
        """
        values: ValueSources = {}
        for one in graph.graph.inputs:
            if one.name == (stream or first_input(graph)) and one.name in given:
                shapes = {source.shape for source in given[one.name]}
                values[one.name] = single_output(
                    (DiagramSource(FrameInput(place.path), shapes.pop() if len(shapes) == 1 else ""),)
                )
            else:
                values[one.name] = single_output(tuple(map(by_name_if_input, given.get(one.name, ()))))
        out = FlowBuilder()
        self.graph(graph, values, place, out)
        ports = {port: sources((ref,), values) for port, ref in graph.graph.outputs}
        outlet = next(iter(ports.values()))
        returned = outlet[0] if outlet else None
        whole = Flow(FrameInput(place.path), tuple(out.items), tuple(out.edges), returned, (), tuple(out.sinks))
        return whole, {**ports, "": outlet}

    # -- repeats

    def repeat(self, node: TypedRepeat, values: ValueSources, place: NodePlace, out: FlowBuilder) -> NodeSources:
        """Add a repeat, folded: one frame, however many passes."""
        path = place.path
        count, kinds = len(node.passes), repeats.passes_by_kind(node)
        folded = not self.depth.layers or (bool(self.around) and not self.depth.nested)
        closed = (self.depth.level == "overview" or folded) and not (self.depth.shows(path) or path in self.opened)
        closed |= path in self.in_one
        lone = [graph.nodes[0] for graph in node.passes if len(graph.nodes) == 1]
        told = closed and (self.shut or not self.apart.isdisjoint(self.around))  # by another box, in few words
        named = {one.name for one in lone if told and stands_elsewhere(one, f"{plain(path)}.{one.name}", self.places())}
        self.alone |= {f"{path}.{one.name}" for one in lone if one.name not in named}
        self.mixed |= repeats.mixed(node, kinds, path)
        looped = path in self.handed_on and repeats.carries_several(node)
        shared = "" if self.around else shared_input(node)  # in a repeat, what is carried there comes in from below
        stream = NO_STREAM if looped else shared
        self.around.append(path)
        flows, ports = (self.in_words() if closed else self).flows(node, kinds, values, place, stream)
        self.around.pop()
        title = repeats.layer_title(node, flows)
        each = repeats.parameters(node, self.counts, place.first)
        parallel = is_parallel(node)
        called = counted(count, f"parallel {title[:1].lower()}{title[1:]}") if parallel else f"× {count} {title}"
        tip = (called, repeats.parameters_of_each(node, each))
        if closed:
            params = repeats.parameters_of_all(node, self.counts, place.first)
            own = "" if self.shut else repeats.own_title(node, title)
            box = replace(self.closed(node, flows, f"{own}{called}", tip, params, place, kinds), parallel=parallel)
            if path in self.in_one:
                single = repeats.single_title(node, flows)
                out.items.append(replace(box, name=node.name, look=replace(box.look, title=f"× {count} {single}")))
            else:
                out.items.append(box)
        else:
            about = self.captions.about(node, place, tip).with_parameters(0)
            about = replace(about, description=self.left_out(path))
            self.names[path] = node.name if repeats.own_title(node, title) else ""
            header = (title, *repeats.parameter_header(node, each, kinds, flows, len(place.all)))
            alike = merge_alike(flows, kinds, inner=bool(self.around))
            mapped = len(kinds) <= MAX_MAPPED_KINDS
            heads = repeats.shares([[kinds[kind] for kind in one.kinds] for one in alike], mapped=mapped)
            frames = tuple(repeats.one_of_each(one.flow, repeats.names_read(node)) for one in alike)
            if path in self.handed_on:  # nothing reads what the last one returns
                of_last = [{index for kind in one.kinds for index in kinds[kind]} == {count - 1} for one in alike]
                frames = tuple(replace(one, outlet=None) if last else one for one, last in zip(frames, of_last, strict=True))
            cells = tuple(one.kinds for one in alike) if len(alike) > 1 and mapped else ()
            whole = Group(about, header, frames, heads, cells, str(count), repeats.kind_of_each(kinds), parallel=parallel)
            goes_on = f"next {each_pass(node.name)[0]}" if path in self.handed_on and not looped else ""
            whole = replace(whole, next_pass=f"next {node.node.index or each_pass(node.name)[0]}")
            widths = "" if parallel else widths_in_turn(flows, kinds)
            out.items.append(replace(whole, shape=self.frame_shape(node), widths=widths, goes_on=goes_on))
        second_streams = set().union(*(flow.second_streams for flow in flows))
        out.edges += repeats.outer_edges(node, values, path, second_streams, stream, all_inputs=closed)
        return of_frame(node.passes[-1], path, ports, last_pass=count - 1)

    def single_pass(self, node: TypedRepeat, values: ValueSources, place: NodePlace, out: FlowBuilder) -> NodeSources:
        """Add the nodes of a repeat's only pass, which repeats nothing."""
        graph, (only,) = node.passes[0], node.node.passes
        inner: ValueSources = {wire.port: single_output(sources(wire.refs, values)) for wire in only.wires}
        below = tuple(one + repeats.pass_suffix(node, 0, first=True) for one in place.all)
        self.graph(graph, inner, replace(place, all=below), out)
        ports = {port: sources((ref,), inner) for port, ref in graph.graph.outputs}
        first = next(iter(ports.values()))
        passes = {(index, port): ours for index in (0, None) for port, ours in ports.items()}
        return NodeSources({"": first}, passes={**passes, (0, ""): first})

    def flows(
        self, node: TypedRepeat, kinds: Sequence[Sequence[int]], values: ValueSources, place: NodePlace, stream: str
    ) -> tuple[list[Flow], dict[str, Sources]]:
        """Return a pass of each kind, into which a `stream` comes from below, and what can be read of them."""
        flows: list[Flow] = []
        ports: dict[str, Sources] = {}
        inputs = repeats.pass_inputs(node)
        for number, passes in enumerate(kinds):
            below = dict.fromkeys(
                one + repeats.pass_suffix(node, index, first=not number) for one in place.all for index in passes
            )
            given = repeats.inputs_of_passes(node, passes, values, place.path, inputs)
            flow, gives = self.flow(node.passes[passes[0]], given, replace(place, all=tuple(below)), stream)
            flow = replace(flow, outlet=None) if place.path in self.never_alone or stream == NO_STREAM else flow
            flows.append(without_parameters(flow) if number and node.node.share is not None else flow)
            for port, ours in gives.items():
                ports[port] = tuple(dict.fromkeys((*ports.get(port, ()), *ours)))
        return [resolve_previous_passes(flow, place.path, ports) for flow in flows], ports

    def unrolled(
        self, node: TypedRepeat, alone: Container[int], values: ValueSources, place: NodePlace, out: FlowBuilder
    ) -> NodeSources:
        """Add some passes of a repeat one after the other, and between them those that follow each other in one box."""
        ports: dict[tuple[int | None, str], Sources] = {}
        around = {**values, node.name: NodeSources({}, passes=ports)}
        apart = place.path in self.apart
        for (drawn, _), some in groupby(range(len(node.passes)), key=lambda index: (index in alone, apart and index)):
            if not drawn:
                ports.update(self.rest(node, [*some], around, place, out))
                continue
            for index in some:
                graph = node.passes[index]
                inner = {wire.port: single_output(sources(wire.refs, around)) for wire in node.node.passes[index].wires}
                below = tuple(one + repeats.pass_suffix(node, index, first=index == 0) for one in place.all)
                self.graph(graph, inner, replace(place, path=f"{place.path}.{index}", all=below), out)
                for port, ref in graph.graph.outputs:
                    ports[index, port] = sources((ref,), inner)
                ports[index, ""] = sources((graph.graph.outputs[0][1],), inner)
        if apart:
            boxes = [item for item in out.items if isinstance(item, Leaf) and item.about.path.rpartition(".")[0] == place.path]
            told = {box.about.path: box for box in told_alike(boxes, self.told_inside)}
            out.items[:] = [told.get(item.about.path, item) for item in out.items]
        return NodeSources({"": ports[len(node.passes) - 1, ""]}, passes=ports)

    def rest(
        self, node: TypedRepeat, passes: list[int], around: ValueSources, place: NodePlace, out: FlowBuilder
    ) -> dict[tuple[int | None, str], Sources]:
        """Add some passes that follow each other as one box, and return what can be read of each."""
        path, apart = f"{place.path}.{passes[0]}", place.path in self.apart
        suffixes = [repeats.pass_suffix(node, index, first=index == 0) for index in passes]
        here = replace(place, path=path, all=tuple(one + suffix for one in place.all for suffix in suffixes))
        kinds = {node.passes[index]: index for index in reversed(passes)}
        given = {index: repeats.inputs_from_outside(node, index, passes, around) for index in passes}
        inside = (self.inside(place.path) if apart else self).in_words()
        self.alone |= {f"{path}.{graph.nodes[0].name}" for graph in kinds if apart and len(graph.nodes) == 1}
        flows = [inside.flow(graph, given[index], here)[0] for graph, index in kinds.items()]
        one, several = repeats.single_title(node, flows) if apart else repeats.layer_title(node, flows), len(passes) > 1
        title = f"× {len(passes)} {one}" if several else repeats.numbered(one, passes[0]) if apart else one
        of_kinds = [[index for index in passes if node.passes[index] == graph] for graph in kinds]
        ends = node.passes[passes[0]], node.passes[passes[-1]]
        box = self.closed(node, flows, title, (title,), self.counts.shown_of(here.all), here, of_kinds, here.all, ends)
        if apart:
            name = "" if one == repeats.layer_title(node, flows) else node.name
            after = repeats.after_last(flows[0])
            changes = any(changed_shape(one, one) for one in node.passes)
            shape = box.shape or (first_shape(ends[1]) if changes else "")  # told by all, where some change it
            facts = tuple(one for one in box.look.facts if one != after)  # which stands above the box
            skips = "" if several else skips_in_order(node.passes[passes[0]], given[passes[0]], out.items)
            facts = (*facts, *filter(None, [skips]))
            only = only_box(flows)
            self.told_inside |= {path: only.look.facts} if only is not None and not only.rows else {}
            out.items.append(replace(box, shape=shape, name=name, after=after, look=replace(box.look, facts=facts)))
        else:
            named = f"{node.name}({passes[0]}:{passes[-1] + 1})" if several else f"{node.name}({passes[0]})"
            out.items.append(replace(box, look=replace(box.look, facts=(named, *box.look.facts)), shape=""))
        second_streams: set[Origin] = set().union(*(flow.second_streams for flow in flows))
        main = first_input(node.passes[passes[0]])
        read = dict.fromkeys((port, one) for index in passes for port, every in given[index].items() for one in every)
        captured = frozenset[str]().union(*(captured_inputs(node.passes[index]) for index in passes))
        out.edges += [edge_into(path, "" if port == main else port, one, second_streams, captured) for port, one in read]
        ports: dict[tuple[int | None, str], Sources] = {}
        for index in passes:
            graph = node.passes[index]
            whole = of_frame(graph, path, {})
            for port in ("", *graph.outputs):
                own = whole.ports.get(port) or (of_inner_pass(graph, path, port),)
                last = index == passes[-1]
                ports[index, port] = own if last else tuple(one.by_name(f"{node.name}({index})") for one in own)
        return ports
