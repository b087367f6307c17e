"""What stands side by side in a flow: blocks between a fork and a join."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import TypeAlias

from composer.draw.diagram import Branches, Flow, Item, Leaf
from composer.draw.edges import DiagramEdge
from composer.draw.passes.order import inner_edges, sort_topologically
from composer.draw.paths import belongs, is_output

MAX_BRANCHES = 12
"""Flows that stand beside each other at most."""
MAX_BESIDE_BRANCH = 4
"""Blocks of a branch with something beside it; a longer one is the trunk."""
BranchSteps: TypeAlias = Mapping[str, Sequence[str]]
"""From blocks to blocks, by an edge each."""
Fits: TypeAlias = Callable[[Branches], Branches | None]
"""Returns branches as they are drawn side by side, or nothing where there is no room for them."""


def as_they_are(found: Branches) -> Branches | None:
    """Return branches for which there is room."""
    return found


def group_branches(flow: Flow, beside: Collection[str] = (), fits: Fits = as_they_are) -> Flow:
    """Return the flow with every set of blocks that lie side by side, from a fork to a join, as one item, where it `fits`. Those
    that have something `beside` them stay in the column, unless that stands at the left of all.

    Before: a(x) b(a) c(a) d(b c) e(d)
    After:  a(x) [b(a) | c(a)] d(a) e(d)
    """
    items = flow.by_path
    readers, read = readers_of(flow, items)
    if not any(len(sources) > 1 for sources in read.values()):
        return flow
    meeting = _meeting(items, readers, read) if not flow.owner else None
    far, alone = _foreign(flow, items, read), _reading_names(flow, items, read)
    tree = _dominators(flow, items, read, far)
    for join in list(items):
        for fork in _forks(flow, join, read, far, alone, tree, meeting) if len(set(read.get(join, ()))) > 1 else ():
            between = _between(join, fork, read, tree, far | alone)
            parts = components(read, [path for path in items if path in between])
            found = None if _crowded(parts, beside) else _joined(flow, fork, join, items, parts, fits)
            if found is not None:
                flow = found
                items = flow.by_path
                readers, read = readers_of(flow, items)
                break
    return flow


def _crowded(parts: Sequence[Sequence[str]], beside: Collection[str]) -> bool:
    """Return whether something stands beside blocks where other branches do: anywhere but at the left of a short first one."""
    first = parts[0] if parts and len(parts[0]) <= MAX_BESIDE_BRANCH else ()
    return any(path in beside and path not in first for part in parts for path in part)


@dataclass(frozen=True, slots=True)
class Dominators:
    """For each block the last one before it through which every way to it goes; none stands for what comes before every block."""

    before: Mapping[str | None, str | None]
    depth: Mapping[str | None, int]

    def common(self, one: str | None, other: str | None) -> str | None:
        """Return the last one through which every way to both goes, which may be one of them."""
        while one != other:
            if self.depth[one] < self.depth[other]:
                other = self.before[other]
            else:
                one = self.before[one]
        return one


def _forks(
    flow: Flow, join: str, read: BranchSteps, far: set[str], alone: set[str], tree: Dominators, meeting: str | None
) -> list[str | None]:
    """Return where branches that end in a block may start, the nearest first; none for the inputs of the model."""
    if alone.intersection(read[join]):  # in a frame
        rest = {*read[join]} - alone
        return [None] if rest <= {flow.owner} else [] if flow.owner in rest or rest & far else [flow.owner]
    sources = [source for source in dict.fromkeys(read[join]) if source in tree.depth and source not in far]
    if far & set(read[join]):
        near: list[str | None] = [*sources]
        if flow.owner and len(near) == 1 and _only_begins(sources[0], join, flow.owner, read):
            return [flow.owner]
        outside = reduce(tree.common, near) if len(near) > 1 else _outside(sources, join, read)
        return [outside] if outside in tree.depth and outside not in read[join] else []
    pairs = combinations(sources[:MAX_BRANCHES], 2)
    forks = {fork for pair in pairs if (fork := tree.common(*pair)) not in pair}
    found = sorted(forks, key=lambda path: -tree.depth[path])
    return [fork for fork in found if fork is not None or (join == meeting and found == [None])]


def _foreign(flow: Flow, items: Mapping[str, Item], read: BranchSteps) -> set[str]:
    """Return the blocks that read nothing but values from elsewhere, themselves or through others."""
    given = {e.target for e in flow.edges if e.source.is_model_input and (e.source.reference or not flow.owner)}
    found: set[str] = set()
    for path in items:
        sources = read.get(path, ())
        if sources and path not in given and all(s in found or (s not in items and s != flow.owner) for s in sources):
            found.add(path)
    return found


def _reading_names(flow: Flow, items: Mapping[str, Item], read: BranchSteps) -> set[str]:
    """Return the blocks in a frame that read nothing by a wire, themselves or through others, but inputs of the model by name."""
    named = {e.target for e in flow.edges if e.source.is_model_input} if flow.owner else set[str]()
    found: set[str] = set()
    for path in items if named else ():
        sources = read.get(path, ())
        if all(source in found for source in sources) and (sources or path in named):
            found.add(path)
    return found


def _dominators(flow: Flow, items: Mapping[str, Item], read: BranchSteps, far: set[str]) -> Dominators:
    """Find the dominators in one walk, as blocks stand after all that they read."""
    before: dict[str | None, str | None] = {}
    depth: dict[str | None, int] = {None: 0}
    tree = Dominators(before, depth)
    if flow.owner:
        before[flow.owner], depth[flow.owner] = None, 1
    for path in items:
        sources: list[str | None] = [source for source in read.get(path, ()) if source in depth and source not in far]
        before[path] = reduce(tree.common, sources) if sources else None
        depth[path] = depth[before[path]] + 1
    return tree


def _only_begins(path: str, join: str, owner: str, read: BranchSteps) -> bool:
    """Return whether a block reads nothing but what the flow begins with, and alone does, and nothing but a join reads it."""
    readers = [(reader, source) for reader, sources in read.items() for source in sources if source in (path, owner)]
    return sorted(readers) == sorted([(path, owner), (join, path)])


def _outside(near: Sequence[str], join: str, read: BranchSteps) -> str | None:
    """Return what a block reads that is computed with values from elsewhere, before all that is part of the same block."""
    holder = join.rpartition(".")[0]
    while len(near) == 1 and near[0].rpartition(".")[0] == holder:
        near = read.get(near[0], ())
    return near[0] if len(near) == 1 else None


def _between(join: str, fork: str | None, read: BranchSteps, tree: Dominators, far: set[str]) -> set[str]:
    """Return what lies before a join, back to a fork that comes before all of it, and what is only from elsewhere."""
    found: set[str] = set()
    waiting = [source for source in read[join] if source in far or fork is None or _after(source, fork, tree)]
    while waiting:
        path = waiting.pop()
        if path in tree.depth and path != fork and path not in found:
            found.add(path)
            waiting += read.get(path, ())
    return found


def _after(path: str, fork: str, tree: Dominators) -> bool:
    """Return whether every way to a block goes through a fork."""
    return path in tree.depth and tree.common(path, fork) == fork


def _joined(
    flow: Flow,
    fork: str | None,
    join: str,
    items: Mapping[str, Item],
    parts: Sequence[list[str]],
    fits: Fits,
) -> Flow | None:
    """Return the flow with the branches between a fork and a block where they end; those first that start from values of
    elsewhere, such as the keys and values of a memory.
    """
    end = items[join]
    if not isinstance(end, Leaf) or end.look.double or not 2 <= len(parts) <= MAX_BRANCHES:
        return None
    foreign = [part for part in parts if _from_elsewhere(flow, part, items)] if fork else []
    parts = [*foreign, *(part for part in parts if part not in foreign)]
    if len(foreign) == len(parts):
        return None
    gone = {path for part in parts for path in part}
    source = next((e.source for e in flow.edges if e.source.path == fork and e.target in gone and e.upward), None)
    each = _fed_apart(flow, fork, parts, items) if fork and not foreign else set[DiagramEdge]()
    fed = each or (_fed_alike(flow, parts, items) if fork and not foreign else set[DiagramEdge]())
    flows, ports, places, beside = [], [], [], list[DiagramEdge]()
    apart = {fork} if fork and all(isinstance(items[path], Leaf | Branches) for path in gone) else set()
    for part in parts:
        inner = [e for e in flow.edges if e.target in part]
        deep = [e for path in part for e in inner_edges(items[path])]
        held = {*part, *(e.target for e in deep)}
        outgoing = [e for e in flow.all_edges() if e.source.path in part and not belongs(e.target, held) and e.upward]
        into = {join, *part} if part is parts[0] else {*part}  # a wire back comes in at the left, where no other branch is
        back = {e for e in inner if e.back and e.source.path in into and not e.source.port}
        back |= {e for e in inner if e.source.state and part is parts[0]}
        more = _read_of_start(flow, {*part, join}, items[part[0]]) if fork is None and part in (parts[0], parts[-1]) else []
        outgoing = [e for e in outgoing if e not in more]
        beside += more
        free = all(
            e in back or e in fed or e.source.path in part or e.source.reference or (e.source.path == fork and not e.source.port)
            for e in inner
        )
        closed = all(e.source.reference or belongs(e.source.path, held) for e in deep if e.source.path not in apart)
        looped = any(e.back and e not in back and (e.source.path in part or e.target in part) for e in flow.edges)
        out = any(source.port for _, source in flow.exits if belongs(source.path, part))
        sinks = [sink for sink in flow.sinks if belongs(sink.edges[0].source.path, part)]
        exits = looped or out or any(sink.leaf is None or sink.edges[0].source.path not in part for sink in sinks)
        exits = exits or (flow.outlet is not None and flow.outlet.path in part)
        if (
            not (free or part in foreign)
            or not closed
            or exits
            or len(outgoing) != 1
            or outgoing[0].target != join
            or outgoing[0].source.port
            or not outgoing[0].main
        ):
            return None
        if fork is None and any(e.source.is_model_input and not e.source.reference and e.source.path not in part for e in inner):
            return None
        named = tuple((name, source) for name, source in flow.exits if source.path in part)
        begins = part in foreign or any(e.source.path == fork for e in (*inner, *deep))
        entry = source.origin if source is not None and begins else None
        own = tuple(items[path] for path in items if path in part)
        inner = [replace(e, main=e not in each) for e in inner] if each else inner  # the value of all goes up
        below = Flow(entry, own, tuple(inner), outgoing[0].source, named, tuple(sinks))
        flows.append(group_branches(sort_topologically(below), fits=fits))
        ports.append(outgoing[0].port)
        places.append(outgoing[0].place)
    if beside and _ends_apart(flow, join, {e.target for e in beside}, items):
        return None
    bypass = _bypass(flow, fork, join) if all(one.entry for one in flows) and len(flows) % 2 == 0 and not foreign else None
    joined = fits(Branches(tuple(flows), tuple(ports), end, source, tuple(places), bypass))
    if joined is None:
        return None
    flow = flow.with_edges(e for e in flow.edges if e != bypass)
    fork_edges = [] if source is None else [DiagramEdge(source, join, "", True, forks=True)]
    rest = flow.without(gone).with_item(joined, *fork_edges, *beside)
    rest = rest.with_sinks(sink for sink in flow.sinks if sink.edges[0].source.path not in gone)
    return rest.with_exits((name, source) for name, source in flow.exits if source.path not in gone)


def _bypass(flow: Flow, fork: str | None, join: str) -> DiagramEdge | None:
    """Return what leads from a fork to a join past all branches, where that is one value, and the one that forks."""
    found = [e for e in flow.edges_into(join) if e.source.path == fork and e.upward]
    plain = len(found) == 1 and found[0].main and not (found[0].source.port or found[0].partial or found[0].passage)
    return found[0] if plain else None


def _ends_apart(flow: Flow, join: str, starts: Collection[str], items: Mapping[str, Item]) -> bool:
    """Return whether something leads from some blocks to an output of the model to which nothing leads from a join: a head, which
    would stand above what it does not read.
    """
    readers, _ = readers_of(flow, items)
    apart = {path for start in starts for path in _reached(readers, start)} - _reached(readers, join)
    return any(map(is_output, apart))


def _read_of_start(flow: Flow, held: Collection[str], first: Item) -> list[DiagramEdge]:
    """Return the edges from an input of the model that a branch begins with to blocks of the flow that are not `held` by it."""
    if not (isinstance(first, Leaf) and first.model_input):
        return []
    wires = (e for e in flow.edges if e.source.path == first.about.path and e.target not in held)
    return [e for e in wires if e.main and not e.source.reference]


def _from_elsewhere(flow: Flow, part: Sequence[str], items: Mapping[str, Item]) -> bool:
    """Return whether blocks read one value of another column, the first of them does, and nothing else is read by a wire."""
    inside = {*part}
    outside = [e for e in flow.edges if e.target in inside and e.source.path not in inside and not e.source.reference]
    far = all(e.source.path not in items and e.source.path != flow.owner and e.main for e in outside)
    return far and len(outside) == 1 and outside[0].target == part[0]


def _fed_alike(flow: Flow, parts: Sequence[Sequence[str]], items: Mapping[str, Item]) -> set[DiagramEdge]:
    """Return the edges from one value of another column into branches, each with a block that begins with it and stands beside
    the one that the branch begins with: the value goes below all of them. None where a branch reads others in another way.
    """
    found: list[DiagramEdge] = []
    for part in parts:
        inside = {*part}
        outside = [e for e in flow.edges if e.target in inside and e.source.path not in inside and not e.source.reference]
        far = [e for e in outside if e.source.path not in items and e.source.path != flow.owner and not e.source.is_model_input]
        starts = {e.target for e in outside}
        readers = {e.target for e in flow.edges if e.source.path in starts and e.upward}
        if far and (len(far) != 1 or len(outside) != 2 or len(starts) != 2 or len(readers) != 1):
            return set()
        found += far
    return {*found} if len({e.source.origin for e in found}) == 1 else set()


def _fed_apart(flow: Flow, fork: str, parts: Sequence[Sequence[str]], items: Mapping[str, Item]) -> set[DiagramEdge]:
    """Return the edges from values of another column, one for each of branches that are one block each and read that and what
    forks: uses of a block. None where a branch reads others in another way.
    """
    found: list[DiagramEdge] = []
    for part in parts:
        edges = [e for e in flow.edges if e.target in part and not e.source.reference]
        far = [e for e in edges if e.source.path not in items and e.source.path != flow.owner and not e.source.is_model_input]
        if len(part) > 1 or len(far) != 1 or [e.source.path for e in edges if e not in far] != [fork]:
            return set()
        found += far
    leaves = (items[path] for part in parts for path in part)
    titles = {one.look.title if isinstance(one, Leaf) else "" for one in leaves}
    return {*found} if len(titles) == 1 and titles != {""} and len({e.source.origin for e in found}) == len(found) else set()


def readers_of(flow: Flow, items: Mapping[str, Item]) -> tuple[BranchSteps, BranchSteps]:
    """Return what each block is read by, and what each reads."""
    readers: dict[str, list[str]] = {}
    read: dict[str, list[str]] = {}
    for edge in flow.edges:
        if edge.upward and edge.target in items:
            readers.setdefault(edge.source.path, []).append(edge.target)
            read.setdefault(edge.target, []).append(edge.source.path)
    return readers, read


def _reached(steps: BranchSteps, path: str) -> set[str]:
    """Return a block and all to which steps lead from it."""
    found, waiting = {path}, [path]
    while waiting:
        for other in steps.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def _meeting(items: Mapping[str, Item], readers: BranchSteps, read: BranchSteps) -> str | None:
    """Return the first block through which every way from the inputs of the model goes."""
    starts = {path for path in items if not any(source in items for source in read.get(path, ()))}
    if len(starts) < 2:
        return None
    common = set.intersection(*(_reached(readers, start) for start in starts))
    return next((path for path in items if path in common and path not in starts), None)


def components(read: BranchSteps, between: Sequence[str]) -> list[list[str]]:
    """Return the blocks in sets between which nothing flows, in the order of their first ones, by what each block reads."""
    sets = _DisjointSets(between)
    for path in between:
        for source in read.get(path, ()):
            if source in sets.above:
                sets.unite(path, source)
    parts: dict[str, list[str]] = {}
    for path in between:
        parts.setdefault(sets.root(path), []).append(path)
    return list(parts.values())


def component_counts(flow: Flow, paths: Sequence[str]) -> list[int]:
    """Return into how many such sets the blocks from each place on fall, those from behind the last one too."""
    beside: dict[str, list[str]] = {}
    for edge in flow.edges:
        if edge.upward:
            beside.setdefault(edge.target, []).append(edge.source.path)
            beside.setdefault(edge.source.path, []).append(edge.target)
    sets, counts = _DisjointSets(()), [0]
    for path in reversed(paths):
        sets.above[path] = path
        united = sum(sets.unite(path, other) for other in beside.get(path, ()) if other in sets.above)
        counts.append(counts[-1] + 1 - united)
    return counts[::-1]


class _DisjointSets:
    """A union-find structure, with path halving (van Leeuwen & van der Weide 1977)."""

    def __init__(self, members: Iterable[str]) -> None:
        self.above = {each: each for each in members}
        """For each member another of its set; for one of them itself."""

    def root(self, member: str) -> str:
        above = self.above
        while above[member] != member:
            above[member] = above[above[member]]
            member = above[member]
        return member

    def unite(self, one: str, other: str) -> bool:
        """Make two sets one; return whether they were two."""
        first, second = self.root(one), self.root(other)
        self.above[first] = second
        return first != second
