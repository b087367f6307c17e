"""Which node of one model is which of the other: by structure first, then by names and places, last by what is likest."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from composer.diff.align import align
from composer.diff.fingerprints import Signs, kind, signs, whole
from composer.diff.flat_graph import HELD, INPUT, SLOT, FlatModel, FlatNode
from composer.diff.pairing import Pairing
from composer.memo import Numbering

CLOSE = 4
"""How much two nodes that stand in the same surroundings must have in common to be one that was changed."""


def by_structure(before: FlatModel, after: FlatModel) -> Pairing | None:
    """Return the pairing of two models of equal structure, whatever things are called; none where the structures differ."""
    numbering: Numbering[Any] = Numbering()
    by_kind = [signs(model, kind, numbering, {index: index for index in model.inputs}) for model in (before, after)]
    if sorted(by_kind[0].both) != sorted(by_kind[1].both):
        return None
    pairing = Pairing(before, after)
    by_all = [signs(model, whole, numbering, {index: index for index in model.inputs}) for model in (before, after)]
    orders = flow(before, by_all[0]), flow(after, by_all[1])
    for ours, theirs in (by_all, by_kind):
        _join_equal(pairing, (ours.both, theirs.both), orders)
    return pairing


WAYS: Sequence[Sequence[str]] = (
    ("whole both", "whole up", "whole down", "kind both", "kind up", "kind down"),
    ("whole both", "kind both", "kind up", "whole down", "kind down"),
    ("whole both", "kind both"),
)
"""What is held to be the same node, first things first: changed blocks in equal surroundings, longer models, moved nodes."""


def pairings(before: FlatModel, after: FlatModel) -> Iterator[Pairing]:
    """Yield pairings of two models that differ, each found in a way of its own."""
    numbering: Numbering[Any] = Numbering()
    start = Pairing(before, after)
    _inputs(start)
    known: dict[str, tuple[Sequence[Hashable], Sequence[Hashable]]] = {}
    for name, label in (("whole", whole), ("kind", kind)):
        ours = signs(before, label, numbering, {index: index for index in before.inputs})
        theirs = signs(after, label, numbering, {index: start.back.get(index, -1 - index) for index in after.inputs})
        known |= {f"{name} {which}": (getattr(ours, which), getattr(theirs, which)) for which in ("both", "up", "down")}
        orders = flow(before, ours), flow(after, theirs)
    for way in WAYS:
        pairing = Pairing(before, after, dict(start.there), dict(start.back))
        for sign in way:
            _join_equal(pairing, known[sign], orders, (_path(before), _path(after)))
        align(pairing, *orders)
        while _join_neighbors(pairing):
            pass
        _part_from_strangers(pairing)
        yield pairing


def _path(model: FlatModel) -> Callable[[int], str]:
    return lambda index: model.nodes[index].path


def _inputs(pairing: Pairing) -> None:
    """Pair inputs of the same name, then of the same place."""
    ours, theirs = pairing.before, pairing.after
    named = {theirs.nodes[index].path: index for index in theirs.inputs}
    for index in ours.inputs:
        if (other := named.get(ours.nodes[index].path)) is not None:
            pairing.join(index, other)
    for index, other in zip(ours.inputs, theirs.inputs, strict=False):
        if index not in pairing.there and other not in pairing.back:
            pairing.join(index, other)


def flow(model: FlatModel, known: Signs) -> list[int]:
    """Return the nodes from the inputs to the outputs in an order that depends on nothing but the structure."""
    order: list[int] = list(model.inputs)
    seen = set(order)
    ends = [index for index, read in enumerate(model.readers) if not read and index not in seen]  # losses, what states become
    for end in [*(sources[0].node for sources in model.outputs.values()), *sorted(ends, key=lambda end: known.both[end])]:
        waiting = [(end, False)]
        while waiting:
            index, done = waiting.pop()
            if done:
                order.append(index)
            elif index not in seen:
                seen.add(index)
                waiting.append((index, True))
                waiting.extend((below, False) for below in reversed(_below(model, index, known)) if below not in seen)
    return order


def _below(model: FlatModel, index: int, known: Signs) -> list[int]:
    """Return what a node reads, in the order of its ports."""
    node = model.nodes[index]
    read = [one.source.node for one in node.reads if one.source != HELD]
    read = sorted(read, key=lambda below: known.both[below]) if node.commutes else read
    return [*read, *sorted((source.node for source in node.edges.values()), key=lambda below: known.both[below])]


def _join_equal(
    pairing: Pairing,
    known: tuple[Sequence[Hashable], Sequence[Hashable]],
    orders: tuple[Sequence[int], Sequence[int]],
    paths: tuple[Callable[[int], str], Callable[[int], str]] | None = None,
) -> None:
    """Join nodes of one sign: first those of one path, then in order."""
    left, right = _by_sign(known[0], orders[0], pairing.there), _by_sign(known[1], orders[1], pairing.back)
    for sign, ones in left.items():
        others = right.get(sign, [])
        called = {paths[1](other): other for other in others} if paths else {}
        named = {one: called[paths[0](one)] for one in ones if paths[0](one) in called} if paths else {}
        taken = set(named.values())
        rest = zip([one for one in ones if one not in named], [two for two in others if two not in taken], strict=False)
        for one, other in [*named.items(), *rest]:
            pairing.join(one, other)


def _by_sign(known: Sequence[Hashable], order: Iterable[int], taken: dict[int, int]) -> dict[Hashable, list[int]]:
    found: dict[Hashable, list[int]] = {}
    for index in order:
        if index not in taken:
            found.setdefault(known[index], []).append(index)
    return found


def _join_neighbors(pairing: Pairing) -> bool:
    """Join what is left between nodes that are joined, so that as much as possible is in common; return whether there was any."""
    import networkx as nx

    between: nx.Graph[tuple[str, int]] = nx.Graph()
    theirs = pairing.after.readers
    right = set(pairing.right)
    for one in pairing.left:
        near = _around(pairing.before, one)
        images = {(way, pairing.there[index]) for way, index in near if index in pairing.there}
        # From the surroundings to the candidates: what reads or is read by the same.
        for way, index in images:
            found = [r for r, _ in theirs[index]] if way == "reads" else _sources(pairing.after, index)
            for other in found:
                if other in right:
                    common = len(images & _around(pairing.after, other))
                    weight = 2 * common + _likeness(pairing, one, other)
                    if weight >= CLOSE and _may_be_one(pairing.before.nodes[one], pairing.after.nodes[other]):
                        between.add_edge(("before", one), ("after", other), weight=weight)
    for together in list(nx.connected_components(between)):  # one by one, since the time grows with the cube
        for chosen in nx.max_weight_matching(between.subgraph(together)):
            one, other = sorted(chosen, key=lambda end: end[0] == "after")
            pairing.join(one[1], other[1])
    return bool(between)


def _part_from_strangers(pairing: Pairing) -> None:
    """Separate what fills slots of different blocks."""
    for one, other in list(pairing.there.items()):
        ours, theirs = _holders(pairing.before, one), _holders(pairing.after, other)
        if {pairing.there.get(who) for who in ours} != theirs:
            del pairing.there[one], pairing.back[other]


def _holders(model: FlatModel, index: int) -> set[int]:
    """Return the block a slot of which a node fills, if it fills one."""
    return {who for who, read in model.readers[index] if read.port.startswith(SLOT)}


def _may_be_one(one: FlatNode, other: FlatNode) -> bool:
    return one.kind != INPUT and (one.fed is None) == (other.fed is None)


def _around(model: FlatModel, index: int) -> set[tuple[str, int]]:
    return {("reads", source) for source in _sources(model, index)} | {("read by", who) for who, _ in model.readers[index]}


def _sources(model: FlatModel, index: int) -> list[int]:
    return [read.source.node for read in model.nodes[index].reads if read.source != HELD]


def _likeness(pairing: Pairing, one: int, other: int) -> int:
    ours, theirs = pairing.before.nodes[one], pairing.after.nodes[other]
    same_name = ours.path.rpartition(".")[2] == theirs.path.rpartition(".")[2]
    return 2 * (ours.kind == theirs.kind) + same_name + (ours.path == theirs.path)
