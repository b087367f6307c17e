"""Repeats whose passes return what the next one reads, and nothing else: no wire leads on above their frames."""

from __future__ import annotations

from collections.abc import Iterator

from composer.draw.build.parallel_passes import read_inside
from composer.draw.build.pass_references import consecutive_passes
from composer.draw.build.value_sources import first_input
from composer.graph.anatomy import wires_of
from composer.graph.ir import Ref
from composer.graph.typed import TypedGraph, TypedRepeat


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
