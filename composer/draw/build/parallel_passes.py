"""Repeats whose passes do not read each other: experts of one input, rather than layers."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from composer.draw.build.pass_references import consecutive_passes
from composer.graph.anatomy import wires_of
from composer.graph.typed import TypedGraph, TypedRepeat


def is_parallel(node: TypedRepeat) -> bool:
    """Return whether no pass of a repeat reads what another one gives."""
    if len(node.passes) < 2:
        return False
    given = {wire.port for one in node.node.passes for wire in one.wires for ref in wire.refs if ref.node == node.name}
    return not any(given & read_inside(graph) for graph in node.passes)


def read_inside(graph: TypedGraph) -> set[str]:
    """Return the names of what the nodes and outputs of a graph read."""
    read = {ref.node for node in graph.nodes for wire in wires_of(node.node) for ref in wire.refs}
    return read | {ref.node for _, ref in graph.graph.outputs}


def shared_input(node: TypedRepeat) -> str:
    """Return the first input that parallel passes read and that is one value for all; nothing where there is none."""
    if not is_parallel(node):
        return ""
    read = set().union(*map(read_inside, node.passes))
    given = [{wire.port: wire.refs for wire in one.wires} for one in node.node.passes]
    same = {port for port, refs in given[0].items() if all(one.get(port) == refs for one in given)}
    return next((one.name for one in node.passes[0].graph.inputs if one.name in read & same), "")


def never_alone(graph: TypedGraph) -> Iterator[str]:
    """Yield the parallel repeats of a graph with a shared input whose last pass nothing reads by itself, as the output of all."""
    several = {node.name: len(node.passes) - 1 for node in graph.nodes if isinstance(node, TypedRepeat) and shared_input(node)}
    if several:
        read = last_passes_read(graph, several)
        yield from (name for name in several if name not in read)


def last_passes_read(graph: TypedGraph, last: dict[str, int]) -> Collection[str]:
    """Return the repeats of which the last pass is read by itself, given its number."""
    lists = [wire.refs for node in graph.nodes for wire in wires_of(node.node)]
    lists += [(ref,) for _, ref in graph.graph.outputs]
    runs = [same for refs in lists for same in consecutive_passes(refs) if len(same) == 1 and same[0].node in last]
    return {same[0].node for same in runs if same[0].index in (None, last[same[0].node])}
