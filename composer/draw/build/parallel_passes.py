"""How passes of a repeat read each other: not at all, as experts of one input, or each what the one before returns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

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
    """Return the first input that passes read which are parallel or handed nothing, and that is one value for all, or of which
    each reads another pass of one repeat; nothing where there is none.
    """
    if not is_parallel(node) and first_input(node.passes[0]):
        return ""
    read = set().union(*map(read_inside, node.passes))
    given = [{wire.port: wire.refs for wire in one.wires} for one in node.node.passes]
    led = {port for port in given[0] if _is_one_stream([one.get(port, ()) for one in given])}
    return next((one.name for one in node.passes[0].graph.inputs if one.name in read & led), "")


def _is_one_stream(read: Sequence[Sequence[Ref]]) -> bool:
    """Return whether what passes read is the same for all, or for each of them another of some passes of one repeat that follow
    one another.
    """
    refs = in_order(ref for each in read for ref in each)
    different = len(refs) == len(read) and all(len(each) == 1 for each in read)
    return all(each == read[0] for each in read) or (different and [*consecutive_passes(refs)] == [refs])


def in_order(refs: Iterable[Ref]) -> tuple[Ref, ...]:
    """Return references without repetitions, those to passes in the order of these, as one wire brings all of them."""
    return tuple(sorted(dict.fromkeys(refs), key=lambda ref: -1 if ref.index is None else ref.index))


def never_alone(graph: TypedGraph) -> Iterator[str]:
    """Yield the parallel repeats of a graph whose last pass nothing reads by itself, as the output of all."""
    several = {node.name: len(node.passes) - 1 for node in graph.nodes if isinstance(node, TypedRepeat) and is_parallel(node)}
    if several:
        read = last_passes_read(graph, several)
        yield from (name for name in several if name not in read)


def last_passes_read(graph: TypedGraph, last: dict[str, int]) -> Collection[str]:
    """Return the repeats of which the last pass is read by itself, given its number."""
    lists = [refs for _, refs in _read_together(graph)]
    runs = [same for refs in lists for same in consecutive_passes(refs) if len(same) == 1 and same[0].node in last]
    return {same[0].node for same in runs if same[0].index in (None, last[same[0].node])}


def _read_together(graph: TypedGraph) -> Iterator[tuple[str, tuple[Ref, ...]]]:
    """Yield what is drawn as one wire or one name in a graph: what a port of a node reads, what the passes of a parallel repeat
    read as their stream, and each output of the graph; with the name of the reader, nothing for the graph.
    """
    for node in graph.nodes:
        stream = shared_input(node) if isinstance(node, TypedRepeat) else ""
        wires = wires_of(node.node)
        if stream:
            yield node.name, in_order(ref for wire in wires if wire.port == stream for ref in wire.refs)
        yield from ((node.name, wire.refs) for wire in wires if not stream or wire.port != stream)
    yield from (("", (ref,)) for _, ref in graph.graph.outputs)


# -- what each pass hands on to the next


def only_handed_on(graph: TypedGraph) -> Iterator[str]:
    """Yield the repeats of a graph that give what they return to their next pass, into which it comes from below, and of which
    nothing reads it of the last pass by itself.
    """
    handing = [node for node in graph.nodes if isinstance(node, TypedRepeat) and hands_on(node)]
    if handing:
        alone = [(reader, run[0]) for reader, refs in _read_together(graph) for run in consecutive_passes(refs) if len(run) == 1]
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
