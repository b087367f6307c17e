"""How passes of a repeat read each other: not at all, as experts of one input, or each what the one before returns."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from composer.draw.build.pass_references import consecutive_passes
from composer.draw.build.value_sources import first_input
from composer.graph.anatomy import wires_of
from composer.graph.ir import Ref
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


# -- what each pass hands on to the next


def only_handed_on(graph: TypedGraph) -> Iterator[str]:
    """Yield the repeats of a graph that give what they return to their next pass, into which it comes from below, and of which
    nothing reads it of the last pass by itself.
    """
    handing = [node for node in graph.nodes if isinstance(node, TypedRepeat) and hands_on(node)]
    if handing:
        lists = [(node.name, wire.refs) for node in graph.nodes for wire in wires_of(node.node)]
        lists += [("", (ref,)) for _, ref in graph.graph.outputs]
        alone = [(reader, run[0]) for reader, refs in lists for run in consecutive_passes(refs) if len(run) == 1]
        for node in handing:
            last = {None, len(node.passes) - 1}
            if not any(reader != node.name and ref.index in last and is_returned(ref, node) for reader, ref in alone):
                yield node.name


def hands_on(node: TypedRepeat) -> bool:
    """Return whether each pass of a repeat reads what the one before returns as what comes into it first."""
    stream = first_input(node.passes[0])
    if not any(stream in read_inside(graph) for graph in node.passes):  # it is led in, and no node reads it
        return False
    read = [
        {ref.index for wire in one.wires if wire.port == stream for ref in wire.refs if is_returned(ref, node)}
        for one in node.node.passes
    ]
    return len(read) > 1 and all(index - 1 in given for index, given in enumerate(read) if index)


def is_returned(ref: Ref, node: TypedRepeat) -> bool:
    """Return whether a reference is to what some pass of a repeat gives first."""
    return ref.node == node.name and ref.port in ("", next(iter(node.passes[0].outputs)))
