"""Into which graphs inside a node a drawing looks, for `walk`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from composer.graph.anatomy import Region, regions
from composer.graph.typed import TypedBlock, TypedGraph, TypedRepeat
from composer.graph.visit import Visit


def by_place(visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
    """Yield every pass; the paths are the names of the `state_dict`, which passes with one set of weights share."""
    for region in regions(visit.node):
        yield f"{visit.path}.{region.name}", region


def first_pass(visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
    """Yield the first graph inside; the paths are those of the drawing, without passes."""
    for region in regions(visit.node)[:1]:
        yield f"{visit.path}.", region


def outside_repeats(visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
    """Yield the graph inside of what is no repeat."""
    if not isinstance(visit.node, TypedRepeat):
        yield from first_pass(visit)


def model_inputs(graph: TypedGraph, given: Mapping[str, str], prefix: str = "") -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the places of blocks in a drawing, each with the ports that read an input of the model, by its name; `given` are the
    inputs of the graph that are such. Of a repeat, this is what the first pass reads.
    """
    for node in graph.nodes:
        wires = node.node.passes[0].wires if isinstance(node, TypedRepeat) else node.node.wires
        read = {wire.port: given[wire.refs[0].node] for wire in wires if len(wire.refs) == 1 and wire.refs[0].node in given}
        if isinstance(node, TypedBlock):
            yield f"{prefix}{node.name}", read
        for region in regions(node)[:1] if read else ():
            yield from model_inputs(region.graph, read, f"{prefix}{node.name}.")
