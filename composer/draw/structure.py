"""How a small flow parts and meets, in words: branches that are concatenated or summed, and a shortcut."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from composer.draw.diagram import Flow, Item, Leaf
from composer.draw.edges import DiagramEdge, grouped
from composer.draw.paths import above

POINTWISE = re.compile(r"conv 1(?: × 1)*\b|Linear\b")
"""What a shortcut computes that brings its input to another width: a map of each place by itself."""
GIVES = re.compile(r"\(\d[\d\u00a0]* → (\d[\d\u00a0]*)\)")
"""How many channels a map of channels has and gives."""
SHORTCUT = " + shortcut "
"""What stands between the last block of a branch and a map around it."""
JOINED = {"‖": ("concatenated", "concat"), "+": ("summed",)}
"""What is said of branches by the sign where they meet, from the fullest to the shortest."""
SUM = re.compile(r"\w+(?: \+ \w+)+")
"""A formula that is nothing but a sum."""


@dataclass(frozen=True, slots=True)
class Parallel:
    """Chains of blocks from one value, or each from an input of its own, to one join."""

    branches: tuple[tuple[str, ...], ...]
    """The paths of the blocks of each."""
    join: str
    """The path of the join."""
    sign: str
    """That of the join, or that of a formula there."""
    forked: bool
    """Whether they start from one value, around which one of them may be a shortcut."""


def parallel_part(flow: Flow) -> Parallel | None:
    """Return the first branches of a flow; nothing where there are none."""
    return next(parallel_parts(flow), None)


def parallel_parts(flow: Flow) -> Iterator[Parallel]:
    """Yield the branches of a flow, each of at least one block, that fork from one value, which nothing else reads but sums
    further up, as skip connections do, or start from one input of the flow each, which other blocks only join, and meet.
    """
    items = flow.by_path
    if not all(isinstance(item, Leaf) for item in items.values()):
        return
    reads: dict[str, list[object]] = {}
    readers: dict[object, list[str]] = {}
    for edge in flow.edges:
        if not edge.shape_only and not edge.back:
            source = edge.source.path if edge.source.path in items else edge.source.origin
            reads.setdefault(edge.target, []).append(source)
            readers.setdefault(source, []).append(edge.target)
    met = joins(items, reads)
    for join in met:
        starts, branches = list[object](), list[tuple[str, ...]]()
        for end in reads.get(join, ()):
            chain: list[str] = []
            at = end
            while isinstance(at, str) and len(readers[at]) == 1 and len(reads.get(at, ())) == 1:
                chain.insert(0, at)
                (at,) = reads[at]
            starts.append(at)
            branches.append(tuple(chain))
        if len(branches) < 2 or not all(branches):
            continue
        others = {target for start in starts for target in readers[start]} - {chain[0] for chain in branches}
        forked = len({*starts}) == 1 and all(met.get(other) == "+" for other in others)
        apart = len({*starts}) == len(branches) and items.keys().isdisjoint(starts) and others <= met.keys()
        if forked or apart:
            yield Parallel(tuple(branches), join, met[join], forked)


def behind_skip(flow: Flow) -> tuple[str, ...] | None:
    """Return the norms and activations from a sum to which what comes into a flow goes around its blocks as it is, to what the
    flow gives; none where there is no such sum.
    """
    wires = [edge for edge in flow.edges if not (edge.shape_only or edge.back)]
    reads, readers = grouped(wires, lambda edge: edge.target), grouped(wires, lambda edge: edge.source.path)
    for item in flow.items:
        into = [edge.source.origin for edge in reads.get(item.about.path, ())]
        summed = isinstance(item, Leaf) and item.look.sign == "+" and len(into) > 1
        if summed and flow.entry is not None and into.count(flow.entry) == 1:
            behind = _to_the_end(flow, item.about.path, readers)
            if behind is not None:
                return behind
    return None


def _to_the_end(flow: Flow, path: str, readers: Mapping[str, Sequence[DiagramEdge]]) -> tuple[str, ...] | None:
    """Return the norms and activations from a block to what a flow gives; none where others are on the way."""
    items, found = flow.by_path, list[str]()
    while flow.outlet is not None and path != flow.outlet.path:
        after = items.get(readers[path][0].target) if len(readers.get(path, ())) == 1 else None
        if not isinstance(after, Leaf) or after.look.hue not in ("norm", "ffn") or after.look.brief:
            return None
        path = after.about.path
        found.append(path)
    return None if flow.outlet is None else tuple(found)


def exchanges(flow: Flow) -> bool:
    """Return whether streams go through a flow side by side and exchange what they have: whether two of its ends read several
    values that neither makes of the others, so that the order of its blocks says nothing.
    """
    read = _read_by_items(flow)
    ends = {*read} - {one for sources in read.values() for one in sources}
    behind = {end: reached(end, read) for end in ends if read[end]}
    for one, other in combinations(behind, 2):
        shared = behind[one] & behind[other]
        if len(shared - {source for item in shared for source in read[item]}) > 1:
            return True
    return False


def _read_by_items(flow: Flow) -> dict[str, set[str]]:
    """Return which of its other items each item of a flow reads, by their paths; what any of its blocks reads."""
    found: dict[str, set[str]] = {path: set() for path in flow.by_path}
    for edge in flow.all_edges():
        if not (edge.shape_only or edge.back):
            ends = (next((one for one in reversed(above(path)) if one in found), "") for path in (edge.source.path, edge.target))
            source, target = ends
            if source and target and source != target:
                found[target].add(source)
    return found


def reached(start: str, links: Mapping[str, Collection[str]]) -> set[str]:
    """Return all that is reached from one item of a flow by links, such as what it is made of by what each reads."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = [one for one in links[waiting.pop()] if one not in found]
        found.update(new)
        waiting += new
    return found


def joins(items: Mapping[str, Item], reads: Mapping[str, Sequence[object]]) -> dict[str, str]:
    """Return the signs of the blocks where branches may meet, by their paths, given what each block reads: a formula that does
    nothing but sum all of it is a sum, too.
    """
    found: dict[str, str] = {}
    for path, item in items.items():
        if isinstance(item, Leaf) and item.look.sign in JOINED:
            found[path] = item.look.sign or ""
        elif isinstance(item, Leaf) and SUM.fullmatch(item.look.formula):
            terms = item.look.formula.split(" + ")
            if len({*terms}) == len(reads.get(path, ())) and not any(term.isdigit() for term in terms):
                found[path] = "+"
    return found


def shortcut_of(branches: Sequence[Sequence[tuple[str, ...]]]) -> int | None:
    """Return which of two branches that are summed is a shortcut, given the forms of their blocks: the one that is a single map
    of each place, where the other one is not; nothing for others.
    """
    plain = [len(branch) == 1 and POINTWISE.match(branch[0][-1]) is not None for branch in branches]
    return plain.index(True) if len(branches) == 2 and sum(plain) == 1 else None


def side_by_side(branches: Sequence[Sequence[tuple[str, ...]]], sign: str) -> tuple[str, ...]:
    """Return branches beside each other, given the forms of their blocks, from the fullest form to the number of branches alone.

    >>> side_by_side([[("conv 1 × 1",)], [("Max pooling",), ("conv 3 × 3",)]], "+")
    ('conv 1 × 1 | Max pooling → conv 3 × 3, summed', '1 × 1 | pool → 3 × 3, summed', '2 branches, summed')
    """
    most = max(len(forms) for branch in branches for forms in branch)
    full, *shorter = JOINED[sign]
    found = []
    for at in range(most):
        chains = (" → ".join(forms[min(at, len(forms) - 1)] for forms in branch) for branch in branches)
        found.append(" | ".join(chains))
    kernels = re.sub(r"\b(?:Max|Mean) pooling\b", "pool", re.sub(r"\bconv (?=\d)", "", found[-1]))
    widths = widths_of(branches)
    told = [f"{form}, {full}" for form in found]
    told += [f"{kernels}, {word} · {widths}" for word in (full, *shorter) if widths]
    told += [f"{kernels}, {word}" for word in (full, *shorter)]
    return tuple(dict.fromkeys([*told, f"{len(branches)} branches, {full}"]))


def widths_of(branches: Sequence[Sequence[tuple[str, ...]]]) -> str:
    """Return how many channels each block of branches gives, as a paper's table does; nothing where one branch does not tell any.

    >>> widths_of([[("conv 1 × 1 (192 → 64)",)], [("Max pooling",), ("conv 1 × 1 (192 → 32)",)]])
    '64 | 32 channels'
    """
    told = [[found[1] for forms in branch if (found := GIVES.search(forms[0]))] for branch in branches]
    return f"{' | '.join(map(' → '.join, told))} channels" if all(told) else ""
