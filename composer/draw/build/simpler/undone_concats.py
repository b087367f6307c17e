"""Concatenations that a split undoes: where a frame gives several values as one, and what reads it takes that apart again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from composer.draw.build.levels import Depth
from composer.draw.build.simpler.everywhere import EveryGraph, graph_of
from composer.draw.paths import plain
from composer.graph.anatomy import rebuilt, regions, wires_of, with_wires
from composer.graph.ir import Ref, Wire
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedRepeat, TypedScan
from composer.graph.types import TensorType, each_of

JOINING = frozenset({"concat"})
"""Kinds of blocks that put values one behind the other along an axis."""
SPLITTING = frozenset({"split"})
"""Kinds of blocks that take such a value apart."""
_Frame: TypeAlias = TypedGroup | TypedRepeat | TypedScan


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is not drawn of the values that a frame gives as one."""

    split: str
    """The name of the node that takes them apart."""
    pieces: tuple[str, ...]

    @property
    def said(self) -> str:
        """What is left out, in words."""
        return f"{', '.join(self.pieces)} are concatenated and split"

    @property
    def names(self) -> Mapping[str, str]:
        """What a recipe calls each piece, by the output of the frame that it is in the drawing."""
        return {piece: f"{self.split}.{piece}" for piece in self.pieces}


@dataclass(frozen=True, slots=True)
class Undone:
    """A graph in which each value goes out of its frame by itself."""

    graph: TypedGraph
    left_out: Mapping[str, LeftOut]
    """By the paths of the frames."""


def without_undone_concats(graph: TypedGraph, depth: Depth) -> Undone:
    """Return a graph without the concatenations that frames in it end with and a split beside them undoes, and without these
    splits: what read a piece reads an output of the frame with the name of the piece. Both stay where an option names one of
    them or single passes, or where the frame is to be drawn as its recipe says.
    """
    finder = _Finder(depth)
    return Undone(finder.changed(graph, ""), finder.left_out)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A frame and the split that undoes its concatenation."""

    frame: _Frame
    split: TypedBlock
    concats: tuple[TypedBlock, ...]
    """One in each pass."""


@dataclass(slots=True)
class _Finder(EveryGraph):
    """Looks for such pairs in a graph and in all that it holds."""

    left_out: dict[str, LeftOut] = field(default_factory=dict)

    def own(self, graph: TypedGraph, prefix: str) -> TypedGraph:
        """Return a graph with the pairs among its own nodes undone."""
        for name in [node.name for node in graph.nodes]:
            split = graph.by_name[name]  # which may read another one by now
            if isinstance(split, TypedBlock) and split.part.kind in SPLITTING:
                pair = pair_of(split, graph)
                if pair is not None and not self.shown(pair, prefix):
                    self.left_out[f"{prefix}{pair.frame.name}"] = LeftOut(split.name, tuple(split.outputs))
                    graph = _without(pair, graph)
        return graph

    def shown(self, pair: _Pair, prefix: str) -> bool:
        """Return whether both nodes of a pair are to be drawn."""
        frame, split = plain(f"{prefix}{pair.frame.name}"), plain(f"{prefix}{pair.split.name}")
        passes = len(pair.frame.passes) if isinstance(pair.frame, TypedRepeat) else 0
        if frame in self.depth.whole or (passes and self.depth.passes_of(frame, passes) is not None):
            return True
        return any(map(self.depth.points_at, [split, *(f"{frame}.{one.name}" for one in pair.concats)]))


# -- what a split undoes


def pair_of(split: TypedBlock, graph: TypedGraph) -> _Pair | None:
    """Return the frame whose concatenation a split of the same graph undoes; none where there is no such, where something else
    reads it or another output of the frame, or where a piece is not read.
    """
    (wire,) = split.node.wires
    (ref,) = wire.refs
    frame = graph.by_name.get(ref.node)
    if not isinstance(frame, TypedGroup | TypedRepeat | TypedScan) or not _gives_whole(ref, frame):
        return None
    if isinstance(frame, TypedGroup) and frame.node.part is not None:
        return None
    if [one for one in _read(graph) if one.node == frame.name and not _is_earlier(one, frame)] != [ref]:
        return None
    if {one.port or next(iter(split.outputs)) for one in _read(graph) if one.node == split.name} != split.outputs.keys():
        return None
    found = [_undone(region.graph, split, frame) for region in regions(frame)]
    concats = tuple(one for one in found if one is not None)
    return _Pair(frame, split, concats) if len(concats) == len(found) else None


def _read(graph: TypedGraph) -> Iterator[Ref]:
    """Yield every reference to a value of a graph, from its nodes and its outputs."""
    yield from (ref for node in graph.nodes for wire in wires_of(node.node) for ref in wire.refs)
    yield from (ref for _, ref in graph.graph.outputs)


def _gives_whole(ref: Ref, frame: _Frame) -> bool:
    """Return whether a reference is to what a frame returns in the end."""
    last = {None, len(frame.passes) - 1} if isinstance(frame, TypedRepeat) else {None}
    return ref.index in last and ref.port in ("", next(iter(frame.outputs)))


def _is_earlier(ref: Ref, frame: _Frame) -> bool:
    """Return whether a reference may be what a later pass of a repeat reads, and is to another output than the first."""
    if not isinstance(frame, TypedRepeat) or ref.index in (None, len(frame.passes) - 1):
        return False
    return ref.port not in ("", next(iter(frame.outputs)))


def _undone(inner: TypedGraph, split: TypedBlock, frame: _Frame) -> TypedBlock | None:
    """Return the concatenation that a graph in a frame returns, if a split takes what it joins apart, piece by piece."""
    (name, ref), *others = inner.graph.outputs
    concat = inner.by_name.get(ref.node)
    if not isinstance(concat, TypedBlock) or concat.part.kind not in JOINING:
        return None
    if isinstance(frame, TypedScan) and name in frame.carried.values():
        return None
    if [one.node for one in _read(inner)].count(concat.name) > 1:
        return None
    refs, types = joined(concat)
    pieces = [*split.outputs]
    taken = dict(others)
    if len({*refs}) < len(refs) or any(one.node not in inner.by_name or one.index is not None for one in refs):
        return None
    if any(taken.get(piece, one) != one for piece, one in zip(pieces, refs, strict=False)):
        return None
    axis = _axis_outside(concat, frame)
    own = [one.axes[concat.sizes["dim"]].size for one in types if isinstance(one, TensorType)]
    whole = split.first_input
    same = isinstance(whole, TensorType) and axis == len(whole.axes) + split.sizes["dim"]
    return concat if same and len(refs) == len(types) and own == [*split.sizes["parts"]] else None


def joined(concat: TypedBlock) -> tuple[list[Ref], Sequence[object]]:
    """Return what a concatenation reads, in its order, and the types of that."""
    (wire,) = concat.node.wires
    return [*wire.refs], each_of(concat.inputs[wire.port])


def _axis_outside(concat: TypedBlock, frame: _Frame) -> int:
    """Return along which axis a concatenation joins, counted as of what its frame gives: a scan has one more."""
    axis = int(concat.sizes["dim"])
    return axis + (isinstance(frame, TypedScan) and axis >= frame.place)


# -- without it


def _without(pair: _Pair, graph: TypedGraph) -> TypedGraph:
    """Return a graph in which the frame of a pair gives each piece."""
    frame, split = pair.frame, pair.split
    concats = iter(pair.concats)
    inside: dict[TypedGraph, TypedGraph] = {}
    for region, concat in zip(regions(frame), concats, strict=True):
        inside.setdefault(region.graph, _giving(region.graph, concat, split))
    opened = rebuilt(frame, [inside[region.graph] for region in regions(frame)])
    if isinstance(opened, TypedScan):
        first = next(iter(opened.outputs))
        others = {name: type_ for name, type_ in opened.outputs.items() if name != first}
        opened = replace(opened, outputs={**split.outputs, **{n: t for n, t in others.items() if n not in split.outputs}})
    last = len(frame.passes) - 1 if isinstance(frame, TypedRepeat) else None
    first_piece = next(iter(split.outputs))

    def led(ref: Ref) -> Ref:
        return Ref(frame.name, ref.port or first_piece, last) if ref.node == split.name else ref

    def rewired(wire: Wire, _: int) -> Wire:
        return replace(wire, refs=tuple(map(led, wire.refs)))

    readers = {node.name for node in graph.nodes for wire in wires_of(node.node) for ref in wire.refs if ref.node == split.name}
    nodes = [opened if node is frame else node for node in graph.nodes if node is not split]
    nodes = [with_wires(node, rewired) if node.name in readers else node for node in nodes]
    outputs = tuple((name, led(ref)) for name, ref in graph.graph.outputs)
    return graph_of(graph, nodes, outputs)


def _giving(inner: TypedGraph, concat: TypedBlock, split: TypedBlock) -> TypedGraph:
    """Return a graph that gives what a concatenation joins, by the names of pieces, in place of that."""
    refs, types = joined(concat)
    (name, _), *others = inner.graph.outputs
    pieces = dict(zip(split.outputs, refs, strict=True))
    outputs = (*pieces.items(), *((port, ref) for port, ref in others if port not in pieces))
    typed = dict(zip(split.outputs, types, strict=True)) | {n: t for n, t in inner.outputs.items() if n != name}
    graph = graph_of(inner, [node for node in inner.nodes if node is not concat], outputs)
    return replace(graph, outputs={port: typed[port] for port, _ in outputs})  # type: ignore[misc]
