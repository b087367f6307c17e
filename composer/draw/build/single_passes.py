"""Repeats whose passes are boxes of their own: those of few passes that blocks around them read one by one, or that all differ in
their sizes and are told by few words; and those that are one box, since a chain of widths tells all of their passes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from composer.draw.build.closed_groups import holds_layers
from composer.draw.build.parallel_passes import is_parallel
from composer.draw.series import OF, as_chain
from composer.draw.style.looks import look
from composer.graph.anatomy import TYPED, wires_of
from composer.graph.ir import Ref
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat
from composer.graph.visit import Fold, Inside, every_node

MAX_PASSES = 5
"""Passes of a repeat that may be boxes above each other: more are longer than the frame that tells what they have in common."""
MIN_READ = 2
"""Passes before the last one that others read: of a single one of alike passes, a wire leads out of the frame."""
MAX_UNLIKE = 4
"""Passes that all differ in their sizes, and are boxes above each other: of more, a list of sizes says what they have in common.
"""
MAX_MAPS = 2
"""Blocks with parameters in such a pass, beside norms, whose numbers one line has room for."""

ShapesInside: TypeAlias = tuple[object, ...]
"""The shapes of all parameters of a graph, in order."""


def drawn_apart(graph: TypedGraph, kept: Callable[[str], bool], known: Collection[str] = ()) -> frozenset[str]:
    """Return the repeats of a graph whose passes are drawn as boxes of their own, but for those that are `kept` together or share
    parameters: the `known` ones; those of which different nodes read different passes; and those of which different passes read
    different passes of such.
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
    apart = {*known} | {name for name, read in readers.items() if _read_one_by_one(read, repeats[name].passes)}
    return frozenset(apart | {name for name, node in repeats.items() if any(_different(node, other) for other in apart)})


def _reads(graph: TypedGraph) -> Iterator[tuple[str, Ref]]:
    """Yield what nodes, passes of repeats and outputs of a graph read, with their names: `up(1)` for a pass."""
    for node in graph.nodes:
        passes = node.node.passes if isinstance(node, TypedRepeat) else ()
        for index, one in enumerate(passes):
            yield from ((f"{node.name}({index})", ref) for wire in one.wires for ref in wire.refs)
        if not passes:
            yield from ((node.name, ref) for wire in wires_of(node.node) for ref in wire.refs)


def _read_one_by_one(readers: Mapping[int, set[str]], passes: Sequence[TypedGraph]) -> bool:
    """Return whether passes before the last one are read, each by others: several, or one where all differ in their sizes."""
    before = [frozenset(names) for index, names in readers.items() if index != len(passes) - 1]
    several = len(before) >= MIN_READ and len({*before}) == len(before)
    return several or (len(before) == 1 and _differ_in_sizes(passes) and all(map(_told_in_words, passes)))


def _different(node: TypedRepeat, other: str) -> bool:
    """Return whether passes of a repeat read different passes of another one."""
    read = [{(ref.index, ref.port) for wire in one.wires for ref in wire.refs if ref.node == other} for one in node.node.passes]
    return node.name != other and all(read) and len({*map(frozenset, read)}) == len(read)


# -- passes that differ in their sizes


def all_differ(graph: TypedGraph, kept: Callable[[str], bool], *, nested: bool) -> Iterator[str]:
    """Yield the repeats of a graph of few passes, one after the other, of which each has parameters of other shapes than all
    others, and whose passes few words tell: a short chain, or what holds repeats, if these are closed: where they may be open,
    since they are `nested`, a frame around them says what they have in common.
    """
    for node in graph.nodes:
        if not isinstance(node, TypedRepeat) or not 1 < len(node.passes) <= MAX_UNLIKE or node.node.share or kept(node.name):
            continue
        if _is_sequence(node) and _differ_in_sizes(node.passes) and all(map(_told_in_words, node.passes)):
            stages = all(map(holds_layers, node.passes))
            in_frames = nested and not _ends_early(node.passes)
            if not in_frames if stages else all(map(_is_short_chain, node.passes)):
                yield node.name


def _ends_early(passes: Sequence[TypedGraph]) -> bool:
    """Return whether passes consist of the same nodes but for the last one, which lacks those at their ends: in frames for both
    kinds, one would seem to stand beside the other.
    """
    *before, last = ([*one.by_name] for one in passes)
    return all(own == before[0] for own in before) and len(last) < len(before[0]) and before[0][: len(last)] == last


def _is_sequence(node: TypedRepeat) -> bool:
    """Return whether each pass of a repeat gives one value, and the next one reads that and no other pass."""
    if is_parallel(node) or any(len(one.outputs) > 1 for one in node.passes):
        return False
    read = [{ref.index for wire in one.wires for ref in wire.refs if ref.node == node.name} for one in node.node.passes]
    return read == [set(), *({index} for index in range(len(read) - 1))]


def _differ_in_sizes(passes: Iterable[TypedGraph]) -> bool:
    """Return whether every graph has parameters, of other shapes than each of the others."""
    sizes = Fold(TYPED, _sizes_of_node, _joined, every_node)
    found = [sizes.graph(one) for one in passes]
    return all(found) and len({*found}) == len(found)


def _sizes_of_node(node: TypedNode, inside: Inside[TypedGraph, ShapesInside, ShapesInside]) -> ShapesInside:
    own = tuple(tuple(one.shape) for one in node.parameters) if isinstance(node, TypedBlock) else ()
    return _joined(None, [own, *inside.passes(), *(sizes for _, sizes in inside.slots)])


def _joined(_: object, several: Iterable[ShapesInside]) -> ShapesInside:
    return tuple(size for sizes in several for size in sizes)


def _told_in_words(graph: TypedGraph) -> bool:
    """Return whether a graph has no attention, and no branch that a block such as `residual` adds: these a figure is to show."""
    return Fold(TYPED, _is_told, lambda _, told: all(told), every_node).graph(graph)


def _is_told(node: TypedNode, inside: Inside[TypedGraph, bool, bool]) -> bool:
    if isinstance(node, TypedBlock):
        return not inside.slots and look(node).hue not in ("attn", "cross", "moe")
    dissolved = isinstance(node, TypedGroup) and node.node.part is not None and node.node.part.dissolved
    return isinstance(node, TypedGroup | TypedRepeat) and not dissolved and all(inside.passes())


def _is_short_chain(graph: TypedGraph) -> bool:
    """Return whether each node of a graph reads what the one before gives, and few have parameters that are no norms."""
    maps = Fold(TYPED, _maps_of_node, lambda _, many: sum(many), every_node)
    chains = Fold(TYPED, lambda _, inside: all(inside.passes()), _is_chain, every_node)
    return chains.graph(graph) and 0 < maps.graph(graph) <= MAX_MAPS


def _maps_of_node(node: TypedNode, inside: Inside[TypedGraph, int, int]) -> int:
    own = isinstance(node, TypedBlock) and bool(node.parameters) and look(node).hue != "norm"
    return own + sum(inside.passes())


def _is_chain(graph: TypedGraph, inside: Iterable[bool]) -> bool:
    """Return whether each node of a graph reads one value, what the one before gives, as those inside of groups do."""
    before = graph.graph.inputs[0].name if graph.graph.inputs else ""
    for node in graph.nodes:
        if [ref.node for wire in wires_of(node.node) for ref in wire.refs] != [before]:
            return False
        before = node.name
    return all(inside) and [ref.node for _, ref in graph.graph.outputs] == [before]


# -- passes that are one box


def in_one_box(graph: TypedGraph, names: Collection[str]) -> frozenset[str]:
    """Return which of the repeats of a graph that `all_differ` are one box: those whose passes are nothing but a block of the
    recipe with one map, from a width to another one from pass to pass, which a chain tells: `Linear 64 → 64 → 128 → 1024`, and of
    which the last one alone is read. What an author writes as a block is known by its name, and its width alone differs.
    """
    found = ((name, graph.by_name[name]) for name in names)
    chains = {name: node for name, node in found if isinstance(node, TypedRepeat) and _chain_of_widths(node)}
    read = {
        ref.node
        for reader, ref in _reads(graph)
        if ref.node in chains
        and reader.partition("(")[0] != ref.node
        and ref.index not in (None, len(chains[ref.node].passes) - 1)
    }
    return frozenset(chains.keys() - read)


def _chain_of_widths(node: TypedRepeat) -> str:
    """Return the chain of widths that tells all passes of a repeat; nothing for others."""
    lone = [graph.nodes[0] for graph in node.passes if len(graph.nodes) == 1]
    kinds = {one.node.part.kind for one in lone if isinstance(one, TypedGroup) and one.node.part is not None}
    if len(lone) < len(node.passes) or len(kinds) != 1:
        return ""
    maps = Fold(TYPED, _facts_of_maps, lambda _, found: tuple(chain.from_iterable(found)), every_node)
    facts = [maps.graph(graph) for graph in node.passes]
    return as_chain([own[0] for own in facts]) if all(len(own) == 1 for own in facts) else ""


def _facts_of_maps(node: TypedNode, inside: Inside[TypedGraph, tuple[str, ...], tuple[str, ...]]) -> tuple[str, ...]:
    """Return what the maps in a node say, one by one."""
    if not isinstance(node, TypedBlock):
        return tuple(chain.from_iterable(inside.passes()))
    own = look(node)
    return (f"{own.title} {OF.join(own.facts)}",) if node.parameters and own.hue != "norm" else ()
