"""A block that computes one step after another, as the loops that it consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from blocks.core import Look, Steps, size
from composer.cost.units import short
from composer.draw.build.blocks import add_each_piece
from composer.draw.build.flow_builder import FlowBuilder
from composer.draw.build.pass_references import PREVIOUS_STEP, resolve_previous_passes
from composer.draw.build.texts.captions import Captions, NodePlace
from composer.draw.build.value_sources import NodeSources, Sources, by_name_if_input
from composer.draw.diagram import Flow, Group, Leaf
from composer.draw.edges import DiagramEdge, DiagramSource, FrameInput, NodeOutput, Origin, PreviousPass
from composer.draw.passes.merge_kinds import merge_passes
from composer.draw.series import one_each
from composer.draw.wording import shape
from composer.graph.typed import TypedBlock


class StepsBuilder:
    """Reads the loops of a block into a flow: a frame around a step of each, two directions side by side, and a frame around one
    of several layers.
    """

    def __init__(self, captions: Captions, node: TypedBlock, place: NodePlace) -> None:
        self.captions, self.node, self.place = captions, node, place
        self.stream, self.first = next(iter(node.part.inputs)), next(iter(node.outputs))

    def add(self, loops: Sequence[Steps], given: Mapping[str, Sources], out: FlowBuilder) -> NodeSources:
        """Add all loops; outputs beside the first one are called by their names."""
        layers = [list(same) for _, same in groupby(loops, key=lambda one: one.layer)]
        whole = DiagramSource(self.layers(layers, given, out), shape(self.node.outputs[self.first]))
        gives = dict.fromkeys(self.node.outputs, (whole,))
        return NodeSources({"": (whole,), self.first: (whole,)}, inner=gives)

    def layers(self, layers: Sequence[Sequence[Steps]], given: Mapping[str, Sources], out: FlowBuilder) -> Origin:
        """Add all layers, as a frame around one where there are several; return what gives the output."""
        if len(layers) == 1:
            return self.layer(layers[0], given, out, nested=False)
        path, count = self.place.path, len(layers)
        entry = FrameInput(path)
        inside = {port: tuple(map(by_name_if_input, ours)) for port, ours in given.items()}
        inside[self.stream] = (DiagramSource(entry, given[self.stream][0].shape),)
        flows = []
        for layer in layers:
            inner = FlowBuilder()
            end = self.layer(layer, inside, inner, nested=True)
            flows.append(Flow(entry, tuple(inner.items), tuple(inner.edges), DiagramSource(end)))
        merged = merge_passes(flows, one_each(count))
        assert merged is not None  # layers consist of the same pieces
        merged = merged if count == 2 else _without_cells(merged)
        each = [self.captions.counts.total(self.parameters(layer)) for layer in layers]
        most = f"{short(max(each))} each" if len(set(each)) == 1 else f"up to {short(max(each))}"
        header = (f"{self.node.part.called()} layer", *([most] if self.captions.depth.params and max(each) else []))
        about = self.captions.about(self.node, self.place, (f"× {count} {header[0]}",)).with_parameters(0)
        kinds = tuple(range(count)) if count == 2 and len({*each}) > 1 else ()
        out.items.append(Group(about, header, (merged,), count=str(count), kinds=kinds))
        out.edges += [DiagramEdge(source, path, "", True) for source in given[self.stream]]
        return NodeOutput(path)

    def layer(self, loops: Sequence[Steps], given: Mapping[str, Sources], out: FlowBuilder, *, nested: bool) -> Origin:
        """Add the loops of a layer; return what gives its output."""
        if len(loops) == 1:
            place = self.place.inner("step") if nested else self.place
            out.items.append(self.loop(loops[0], given, place, nested=nested))
            out.edges += [DiagramEdge(source, place.path, "", True) for source in given[self.stream]]
            return NodeOutput(place.path)
        places = [self.place.inner(loop.name) for loop in loops]
        for loop, place in zip(loops, places, strict=True):
            out.items.append(self.loop(loop, given, place, nested=nested))
            out.edges += [DiagramEdge(source, place.path, "", True) for source in given[self.stream]]
        joined = self.place.inner("directions").path
        about = self.captions.about(self.node, replace(self.place, path=joined, all=()), ("Concatenation",))
        out.items.append(Leaf(about, Look("Concatenation", hue="io", sign="‖"), after=loops[0].after))
        out.edges += [DiagramEdge(DiagramSource(NodeOutput(place.path)), joined, "", True) for place in places]
        return NodeOutput(joined)

    def loop(self, loop: Steps, given: Mapping[str, Sources], place: NodePlace, *, nested: bool) -> Group:
        """Return the frame around a step."""
        path = place.path
        values = {f"${port}": tuple(map(by_name_if_input, ours)) for port, ours in given.items()}
        values[f"${self.stream}"] = (DiagramSource(FrameInput(path)),)
        for name in {name for piece in loop.pieces for name, _ in piece.reads if name.startswith("@")}:
            values[name] = (DiagramSource(PreviousPass(path, name[1:], immediate=True), reference=PREVIOUS_STEP),)
        inner = FlowBuilder()
        made = add_each_piece(self.captions, self.node, loop.pieces, values, place, inner, self.place)
        ports = {piece.name: made[piece.name] for piece in loop.pieces}
        flow = Flow(FrameInput(path), tuple(inner.items), tuple(inner.edges), made[loop.pieces[-1].name][0])
        steps = size(self.node.sizes[loop.axis])
        params = self.captions.counts.shown_of(self.parameters([loop]))
        header = (loop.title, *([params] if params and not nested else []))
        about = self.captions.about(self.node, replace(place, all=()), (f"× {steps} {loop.title}",))
        after = loop.after if not loop.beside else ""
        return Group(about, header, (resolve_previous_passes(flow, path, ports),), count=steps, after=after)

    def parameters(self, loops: Sequence[Steps]) -> list[str]:
        """Return the names of the parameters of some loops, in the first place that the block stands for."""
        return [f"{self.place.first}.{name}" for loop in loops for piece in loop.pieces for name in piece.parameters]


def _without_cells(flow: Flow) -> Flow:
    """Return a flow whose rows are in no map of layers."""
    bare = flow.map_items(
        lambda item: replace(item, rows=tuple(replace(row, kinds=()) for row in item.rows)) if isinstance(item, Leaf) else item
    )
    return bare.map_groups(_without_cells)
