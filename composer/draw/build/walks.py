"""Into which graphs inside a node a drawing looks, for `walk`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from composer.graph.anatomy import Region, regions, wires_of
from composer.graph.ir import Wire
from composer.graph.typed import TypedBlock, TypedGraph, TypedProgram, TypedRepeat
from composer.graph.visit import Visit, every_node, walk


def by_place(visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
    """Yield every pass; the paths are the names of the `state_dict`, which passes with one set of weights share."""
    for region in regions(visit.node):
        yield f"{visit.path}.{region.name}", region


def first_pass(visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
    """Yield the first graph inside; the paths are those of the drawing, without passes."""
    for region in regions(visit.node)[:1]:
        yield f"{visit.path}.", region


def each_graph_once(visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
    """Yield each graph inside once, of passes that are alike the first; the paths are those of the drawing, without passes."""
    seen: set[TypedGraph] = set()
    for region in regions(visit.node):
        if region.graph not in seen:
            seen.add(region.graph)
            yield f"{visit.path}.", region


def outside_repeats(visit: Visit) -> Iterator[tuple[str, Region[TypedGraph]]]:
    """Yield the graph inside of what is no repeat."""
    if not isinstance(visit.node, TypedRepeat):
        yield from first_pass(visit)


def model_inputs(graph: TypedGraph, given: Mapping[str, str], prefix: str = "") -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the places of nodes in a drawing, each with the ports that read an input of the model, by its name; `given` are the
    inputs of the graph that are such. Inside of a repeat, this is what the first pass reads.
    """
    for node in graph.nodes:
        path = f"{prefix}{node.name}"
        yield path, _read(wires_of(node), given)
        for region in regions(node)[:1]:
            if inside := _read(region.wires, given):
                yield from model_inputs(region.graph, inside, f"{path}.")


def vocabulary_inputs(program: TypedProgram) -> frozenset[str]:
    """Return the inputs that are ids of a vocabulary: those that a block with a row for each id reads."""
    read = dict(model_inputs(program.root, {one.name: one.name for one in program.untyped.inputs}))
    blocks = (visit for visit in walk(program.root, first_pass, every_node) if isinstance(visit.node, TypedBlock))
    tables = (one.path for one in blocks if isinstance(one.node, TypedBlock) and one.node.part.vocab_field)
    return frozenset(name for path in tables for name in read.get(path, {}).values())


def _read(wires: Iterable[Wire], given: Mapping[str, str]) -> Mapping[str, str]:
    return {wire.port: given[wire.refs[0].node] for wire in wires if len(wire.refs) == 1 and wire.refs[0].node in given}
