"""Where values come from: what a drawing can read of each thing in it, and by which name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from composer.draw.build.pass_references import named, runs
from composer.draw.build.wording import shape
from composer.draw.diagram import DiagramEdge, DiagramSource, Net
from composer.graph.anatomy import wires_of
from composer.graph.ir import Ref, Wire
from composer.graph.typed import TypedBlock, TypedGraph

Sources: TypeAlias = tuple[DiagramSource, ...]
ValueSources: TypeAlias = dict[str, dict[str, Sources]]
"""What each node of a graph gives, by port; the default under no name."""


def sources(refs: Sequence[Ref], values: ValueSources) -> Sources:
    """Where values come from; what lies inside of a frame is called by its name, a range of passes at once."""
    found: list[DiagramSource] = []
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


def read(wires: Sequence[Wire], values: ValueSources) -> dict[str, Sources]:
    """What each port reads."""
    return {wire.port: sources(wire.refs, values) for wire in wires}


def of_block(node: TypedBlock, path: str) -> dict[str, Sources]:
    """What can be read of a block."""
    if not node.outputs:
        return {}
    names = list(node.outputs)
    shapes = {name: shape(type_) for name, type_ in node.outputs.items()}
    ports = {name: (DiagramSource(path, name, shapes[name]),) for name in names[1:]}
    first = (DiagramSource(path, "", shapes[names[0]]),)
    return {"": first, names[0]: first, **ports}


def of_frame(graph: TypedGraph, path: str, ports: Mapping[str, Sources]) -> dict[str, Sources]:
    """What can be read of a frame: what it returns; anything else, after a bar, is called by its name."""
    name, type_ = next(iter(graph.outputs.items()))
    whole = (DiagramSource(path, shape=shape(type_)),)
    return {"": whole, name: whole, **{f"|{port}": inner for port, inner in ports.items()}}


def gathered(given: Sources) -> Sources:
    """Values, those of several passes of one block as one."""
    found: dict[Net, list[DiagramSource]] = {}
    for source in given:
        found.setdefault(source.net, []).append(source)
    return tuple(
        same[0] if len(same) == 1 else replace(same[0], chip=f"{path}.{port}" if port else path)
        for (path, port), same in found.items()
    )


def first_input(graph: TypedGraph) -> str:
    """The name of what a graph is handed first; nothing where it only reads what is around it."""
    return next((one.name for one in graph.graph.inputs[:1] if not one.captured), "")


def read_once(ref: Ref, graph: TypedGraph) -> bool:
    """Whether there is one reader of a value in a graph, in whichever passes it is made."""
    inside = [one for node in graph.nodes for wire in wires_of(node.node) for one in wire.refs]
    every = [*inside, *(one for _, one in graph.graph.outputs)]
    return [(one.node, one.port) for one in every].count((ref.node, ref.port)) == 1


def by_input_name(edge: DiagramEdge) -> DiagramEdge:
    """An edge, from an input of the model by its name."""
    return replace(edge, source=from_far(edge.source))


def from_far(source: DiagramSource) -> DiagramSource:
    """A value as it is called behind a border: an input of the model by its name."""
    return replace(source, chip=source.path) if source.given and not source.chip else source
