"""Repeats whose passes are boxes of their own: those of few passes that blocks around them read one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from composer.graph.anatomy import wires_of
from composer.graph.ir import Ref
from composer.graph.typed import TypedGraph, TypedRepeat

MAX_PASSES = 5
"""Passes of a repeat that may be boxes above each other: more are longer than the frame that tells what they have in common."""
MIN_READ = 2
"""Passes before the last one that others read: of a single one, a wire leads out of the frame."""


def drawn_apart(graph: TypedGraph, kept: Callable[[str], bool]) -> frozenset[str]:
    """Return the repeats of a graph whose passes are drawn as boxes of their own, but for those that are `kept` together or share
    parameters: of some, different nodes read different passes; of others, different passes read different passes of such.
    """
    repeats = {
        node.name: node
        for node in graph.nodes
        if isinstance(node, TypedRepeat) and 1 < len(node.passes) <= MAX_PASSES and not (node.node.share or kept(node.name))
    }
    readers: dict[str, dict[int, set[str]]] = {name: {} for name in repeats}
    for reader, ref in _reads(graph):
        repeat = repeats.get(ref.node)
        if repeat is not None and reader.partition("(")[0] != ref.node:
            index = len(repeat.passes) - 1 if ref.index is None else ref.index
            readers[ref.node].setdefault(index, set()).add(reader)
    apart = {name for name, read in readers.items() if _read_one_by_one(read, len(repeats[name].passes) - 1)}
    return frozenset(apart | {name for name, node in repeats.items() if any(_different(node, other) for other in apart)})


def _reads(graph: TypedGraph) -> Iterator[tuple[str, Ref]]:
    """Yield what nodes, passes of repeats and outputs of a graph read, with their names: `up(1)` for a pass."""
    for node in graph.nodes:
        passes = node.node.passes if isinstance(node, TypedRepeat) else ()
        for index, one in enumerate(passes):
            yield from ((f"{node.name}({index})", ref) for wire in one.wires for ref in wire.refs)
        if not passes:
            yield from ((node.name, ref) for wire in wires_of(node.node) for ref in wire.refs)


def _read_one_by_one(readers: Mapping[int, set[str]], last: int) -> bool:
    """Return whether several passes before the last one are read, each by others."""
    before = [frozenset(names) for index, names in readers.items() if index != last]
    return len(before) >= MIN_READ and len({*before}) == len(before)


def _different(node: TypedRepeat, other: str) -> bool:
    """Return whether passes of a repeat read different passes of another one."""
    read = [{(ref.index, ref.port) for wire in one.wires for ref in wire.refs if ref.node == other} for one in node.node.passes]
    return node.name != other and all(read) and len({*map(frozenset, read)}) == len(read)
