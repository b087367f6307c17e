"""Graph matching: which node of one model is which of the other, by fingerprints, then by alignment, then by neighbors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from composer.diff.align import align
from composer.diff.fingerprints import Fingerprints, fingerprints, kind_label, whole_label
from composer.diff.flat_graph import INPUT, SLOT, SLOT_FEED, FlatModel, FlatNode
from composer.diff.pairing import Pairing
from composer.memo import Numbering

MIN_LIKENESS = 4
"""The lowest score of two nodes with common neighbors that are taken for a changed one."""


def by_structure(before: FlatModel, after: FlatModel) -> Pairing | None:
    """Return the pairing of two models of equal structure, whatever the names; none if the structures differ."""
    numbering: Numbering[Any] = Numbering()
    by_kind = [fingerprints(model, kind_label, numbering, {index: index for index in model.inputs}) for model in (before, after)]
    if sorted(by_kind[0].both) != sorted(by_kind[1].both):
        return None
    pairing = Pairing(before, after)
    by_all = [fingerprints(model, whole_label, numbering, {index: index for index in model.inputs}) for model in (before, after)]
    orders = topological_order(before, by_all[0]), topological_order(after, by_all[1])
    for ours, theirs in (by_all, by_kind):
        _join_equal(pairing, (ours.both, theirs.both), orders)
    return pairing


STRATEGIES: Sequence[Sequence[str]] = (
    ("whole both", "whole up", "whole down", "kind both", "kind up", "kind down"),
    ("whole both", "kind both", "kind up", "whole down", "kind down"),
    ("whole both", "kind both"),
)
"""By which fingerprints nodes are paired, in order. The first finds changed blocks between equal ones, the second added layers,
the third moved nodes."""


def pairings(before: FlatModel, after: FlatModel) -> Iterator[Pairing]:
    """Yield a pairing of two models for each strategy."""
    numbering: Numbering[Any] = Numbering()
    start = Pairing(before, after)
    _pair_inputs(start)
    known: dict[str, tuple[Sequence[Hashable], Sequence[Hashable]]] = {}
    for name, label in (("whole", whole_label), ("kind", kind_label)):
        ours = fingerprints(before, label, numbering, {index: index for index in before.inputs})
        theirs = fingerprints(after, label, numbering, {index: start.backward.get(index, -1 - index) for index in after.inputs})
        known |= {f"{name} {which}": (getattr(ours, which), getattr(theirs, which)) for which in ("both", "up", "down")}
        orders = topological_order(before, ours), topological_order(after, theirs)
    for strategy in STRATEGIES:
        pairing = Pairing(before, after, dict(start.forward), dict(start.backward))
        for name in strategy:
            _join_equal(pairing, known[name], orders, (_path(before), _path(after)))
        align(pairing, *orders)
        while _join_neighbors(pairing):
            pass
        _separate_fillers(pairing)
        yield pairing


def _path(model: FlatModel) -> Callable[[int], str]:
    return lambda index: model.nodes[index].path


def _pair_inputs(pairing: Pairing) -> None:
    """Pair inputs of the same name, then those at the same place."""
    ours, theirs = pairing.before, pairing.after
    named = {theirs.nodes[index].path: index for index in theirs.inputs}
    for index in ours.inputs:
        if (other := named.get(ours.nodes[index].path)) is not None:
            pairing.join(index, other)
    for index, other in zip(ours.inputs, theirs.inputs, strict=False):
        if index not in pairing.forward and other not in pairing.backward:
            pairing.join(index, other)


def topological_order(model: FlatModel, known: Fingerprints) -> list[int]:
    """Return the nodes in a topological order that depends on the structure alone."""
    order: list[int] = list(model.inputs)
    seen = set(order)
    ends = [index for index, read in enumerate(model.readers) if not read and index not in seen]  # losses, next states
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


def _below(model: FlatModel, index: int, known: Fingerprints) -> list[int]:
    """Return the nodes that a node reads, in the order of its ports."""
    node = model.nodes[index]
    read = [one.source.node for one in node.reads if one.source != SLOT_FEED]
    read = sorted(read, key=lambda below: known.both[below]) if node.commutes else read
    return [*read, *sorted((source.node for source in node.edges.values()), key=lambda below: known.both[below])]


def _join_equal(
    pairing: Pairing,
    known: tuple[Sequence[Hashable], Sequence[Hashable]],
    orders: tuple[Sequence[int], Sequence[int]],
    paths: tuple[Callable[[int], str], Callable[[int], str]] | None = None,
) -> None:
    """Pair nodes of equal fingerprints: first those at the same path, then in order."""
    left, right = _by_fingerprint(known[0], orders[0], pairing.forward), _by_fingerprint(known[1], orders[1], pairing.backward)
    for fingerprint, ones in left.items():
        others = right.get(fingerprint, [])
        called = {paths[1](other): other for other in others} if paths else {}
        named = {one: called[paths[0](one)] for one in ones if paths[0](one) in called} if paths else {}
        taken = set(named.values())
        rest = zip([one for one in ones if one not in named], [two for two in others if two not in taken], strict=False)
        for one, other in [*named.items(), *rest]:
            pairing.join(one, other)


def _by_fingerprint(known: Sequence[Hashable], order: Iterable[int], taken: dict[int, int]) -> dict[Hashable, list[int]]:
    found: dict[Hashable, list[int]] = {}
    for index in order:
        if index not in taken:
            found.setdefault(known[index], []).append(index)
    return found


def _join_neighbors(pairing: Pairing) -> bool:
    """Pair nodes whose neighbors are paired, by a matching of the highest weight; return whether there was a pair."""
    import networkx as nx

    between: nx.Graph[tuple[str, int]] = nx.Graph()
    theirs = pairing.after.readers
    right = set(pairing.unpaired_after)
    for one in pairing.unpaired_before:
        near = _around(pairing.before, one)
        images = {(way, pairing.forward[index]) for way, index in near if index in pairing.forward}
        # From the surroundings to the candidates: what reads or is read by the same.
        for way, index in images:
            found = [r for r, _ in theirs[index]] if way == "reads" else _sources(pairing.after, index)
            for other in found:
                if other in right:
                    common = len(images & _around(pairing.after, other))
                    weight = 2 * common + _likeness(pairing, one, other)
                    if weight >= MIN_LIKENESS and _may_be_one(pairing.before.nodes[one], pairing.after.nodes[other]):
                        between.add_edge(("before", one), ("after", other), weight=weight)
    for together in list(nx.connected_components(between)):  # one by one, since the time grows with the cube
        for chosen in nx.max_weight_matching(between.subgraph(together)):
            one, other = sorted(chosen, key=lambda end: end[0] == "after")
            pairing.join(one[1], other[1])
    return bool(between)


def _separate_fillers(pairing: Pairing) -> None:
    """Separate pairs of parts that fill slots of blocks that are no pair."""
    for one, other in list(pairing.forward.items()):
        ours, theirs = _holders(pairing.before, one), _holders(pairing.after, other)
        if {pairing.forward.get(who) for who in ours} != theirs:
            del pairing.forward[one], pairing.backward[other]


def _holders(model: FlatModel, index: int) -> set[int]:
    """Return the block whose slot a node fills, if it fills one."""
    return {who for who, read in model.readers[index] if read.port.startswith(SLOT)}


def _may_be_one(one: FlatNode, other: FlatNode) -> bool:
    return one.kind != INPUT and (one.slot_feed is None) == (other.slot_feed is None)


def _around(model: FlatModel, index: int) -> set[tuple[str, int]]:
    return {("reads", source) for source in _sources(model, index)} | {("read by", who) for who, _ in model.readers[index]}


def _sources(model: FlatModel, index: int) -> list[int]:
    return [read.source.node for read in model.nodes[index].reads if read.source != SLOT_FEED]


def _likeness(pairing: Pairing, one: int, other: int) -> int:
    ours, theirs = pairing.before.nodes[one], pairing.after.nodes[other]
    same_name = ours.path.rpartition(".")[2] == theirs.path.rpartition(".")[2]
    return 2 * (ours.kind == theirs.kind) + same_name + (ours.path == theirs.path)
