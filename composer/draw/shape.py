"""The shape of a flow: what stands in line, what at a side, and what side by side."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations, pairwise
from typing import TypeAlias

from composer.draw.paths import above, belongs
from composer.draw.reduction import irreducible, ranks, segments
from composer.draw.structure import Branches, Edge, Flow, Group, Item, Leaf, Source, Web

MOST_BRANCHES = 4
LEAST_WEB, MOST_WEB = 6, 100
"""Blocks of a part that is laid out by itself."""
Steps: TypeAlias = Mapping[str, Sequence[str]]
"""From blocks to blocks, by an edge each."""


def in_line(flow: Flow) -> Flow:
    """The flow in an order in which a block follows what it reads as directly as can be."""
    items = {item.about.path: item for item in flow.items}
    rank = {path: index for index, path in enumerate(items)}
    reads: dict[str, set[str]] = {path: set() for path in items}
    readers: dict[str, list[str]] = {path: [] for path in items}
    streams: dict[str, set[str]] = {path: set() for path in items}
    for edge in (*flow.edges, *(edge for item in flow.items for edge in inner_edges(item))):
        source = edge.source.path
        for path in above(edge.target) if edge.upward else ():
            if path in items and source in items and source not in (path, *reads[path]):
                reads[path].add(source)
                readers[source].append(path)
    for edge in flow.edges:
        if edge.upward and edge.main and edge.target in items:
            streams[edge.target].add(edge.source.path)
    placed: list[str] = []
    ready = {path for path in items if not reads[path]}
    while ready:
        last = placed[-1] if placed else flow.owner
        going_on = [path for path in ready if last in streams[path]]
        placed.append(min(going_on or ready, key=rank.__getitem__))
        ready.remove(placed[-1])
        for path in readers[placed[-1]]:
            reads[path].remove(placed[-1])
            if not reads[path]:
                ready.add(path)
    return replace(flow, items=tuple(items[path] for path in placed))


def bent(flow: Flow) -> tuple[Flow, Flow] | None:
    """The way down and the way up of a flow in the form of a U: a line of blocks in which some on the way down are read once
    more on the way up, the last one first. None for any other form.
    """
    paths = [item.about.path for item in flow.items]
    place = {path: index for index, path in enumerate(paths)}
    if not all(isinstance(item, Leaf) for item in flow.items):
        return None
    wires = [(place[e.source.path], place[e.target]) for e in flow.edges if e.upward and e.main and e.source.path in place]
    skips = sorted((a, b) for a, b in wires if b > a + 1)
    nested = all(a < c and d < b for (a, b), (c, d) in pairwise(skips))
    plain = all((index, index + 1) in wires for index in range(len(paths) - 1))
    if len(skips) < 2 or not nested or not plain or any(e.source.port or e.back for e in flow.edges):
        return None
    turn = skips[-1][0] + 1
    down, up = flow.items[:turn], flow.items[turn:]
    return _half(flow, down), _half(flow, up)


def _half(flow: Flow, items: tuple[Item, ...]) -> Flow:
    paths = {item.about.path for item in items}
    return replace(
        flow,
        items=items,
        edges=tuple(e for e in flow.edges if e.target in paths),
        exits=tuple((name, source) for name, source in flow.exits if source.path in paths),
        sinks=tuple(sink for sink in flow.sinks if sink.edges[0].source.path in paths),
    )


def inner_edges(item: Item) -> list[Edge]:
    """The edges of all that an item holds."""
    return [edge for flow in getattr(item, "flows", ()) for edge in flow.all_edges()]


def branched(flow: Flow) -> Flow:
    """The flow with every set of blocks that lie side by side, from a fork to a join, as one item."""
    items = {item.about.path: item for item in flow.items}
    readers, read = _readers(flow, items)
    if not any(len(sources) > 1 for sources in read.values()):
        return flow
    meeting = _meeting(items, readers, read) if not flow.owner else None
    far = _foreign(flow, items, read)
    tree = _dominators(flow, items, read, far)
    for join in list(items):
        for fork in _forks(join, read, far, tree, meeting) if len(set(read.get(join, ()))) > 1 else ():
            between = _between(join, fork, read, tree, far)
            found = _joined(flow, fork, join, items, _components(flow, [path for path in items if path in between]))
            if found is not None:
                flow = found
                items = {item.about.path: item for item in flow.items}
                readers, read = _readers(flow, items)
                break
    return flow


@dataclass(frozen=True, slots=True)
class Dominators:
    """For each block the last one before it through which every way to it goes."""

    before: Mapping[str, str]
    depth: Mapping[str, int]

    def common(self, one: str, other: str) -> str:
        """The last one through which every way to both goes, which may be one of them."""
        while one != other:
            if self.depth[one] < self.depth[other]:
                other = self.before[other]
            else:
                one = self.before[one]
        return one


def _forks(join: str, read: Steps, far: set[str], tree: Dominators, meeting: str | None) -> list[str]:
    """Where branches that end in a block may start, the nearest first; no name for the inputs of the model."""
    sources = [source for source in dict.fromkeys(read[join]) if source in tree.depth and source not in far]
    if far & set(read[join]):
        outside = _outside(sources, join, read)
        return [outside] if outside and outside not in read[join] else []
    pairs = combinations(sources[:MOST_BRANCHES], 2)
    found = sorted({tree.common(*pair) for pair in pairs} - set(read[join]), key=lambda path: -tree.depth[path])
    return [fork for fork in found if fork != ROOT] + ([""] if join == meeting and found == [ROOT] else [])


ROOT = "|"
"""What comes before every block."""


def _foreign(flow: Flow, items: Mapping[str, Item], read: Steps) -> set[str]:
    """Blocks that read nothing but values from elsewhere, themselves or through others."""
    given = {e.target for e in flow.edges if e.source.given}
    found: set[str] = set()
    for path in items:
        sources = read.get(path, ())
        if sources and path not in given and all(s in found or (s not in items and s != flow.owner) for s in sources):
            found.add(path)
    return found


def _dominators(flow: Flow, items: Mapping[str, Item], read: Steps, far: set[str]) -> Dominators:
    """Found in one walk, as blocks stand after all that they read."""
    before: dict[str, str] = {}
    depth = {ROOT: 0}
    tree = Dominators(before, depth)
    if flow.owner:
        before[flow.owner], depth[flow.owner] = ROOT, 1
    for path in items:
        sources = [source for source in read.get(path, ()) if source in depth and source not in far]
        before[path] = reduce(tree.common, sources) if sources else ROOT
        depth[path] = depth[before[path]] + 1
    return tree


def _outside(near: Sequence[str], join: str, read: Steps) -> str | None:
    """What a block reads that is computed with values from elsewhere, before all that is part of the same block."""
    holder = join.rpartition(".")[0]
    while len(near) == 1 and near[0].rpartition(".")[0] == holder:
        near = read.get(near[0], ())
    return near[0] if len(near) == 1 else None


def _between(join: str, fork: str, read: Steps, tree: Dominators, far: set[str]) -> set[str]:
    """What lies before a join, back to a fork that comes before all of it, and what is only from elsewhere."""
    found: set[str] = set()
    waiting = [source for source in read[join] if source in far or not fork or _after(source, fork, tree)]
    while waiting:
        path = waiting.pop()
        if path in tree.depth and path != fork and path not in found:
            found.add(path)
            waiting += read.get(path, ())
    return found


def _after(path: str, fork: str, tree: Dominators) -> bool:
    """Whether every way to a block goes through a fork."""
    return path in tree.depth and tree.common(path, fork) == fork


def _joined(flow: Flow, fork: str, join: str, items: Mapping[str, Item], parts: Sequence[list[str]]) -> Flow | None:
    """The flow with the branches between a fork and a block where they end; those first that start from values of elsewhere,
    such as the keys and values of a memory.
    """
    end = items[join]
    foreign = [part for part in parts if _from_elsewhere(flow, part, items)] if fork else []
    parts = [*foreign, *(part for part in parts if part not in foreign)]
    if not isinstance(end, Leaf) or end.look.double or not 2 <= len(parts) <= MOST_BRANCHES or len(foreign) == len(parts):
        return None
    flows, ports = [], []
    for part in parts:
        inner = [e for e in flow.edges if e.target in part]
        held = {*part, *(e.target for path in part for e in inner_edges(items[path]))}
        leaving = [e for e in flow.all_edges() if e.source.path in part and not belongs(e.target, held) and e.upward]
        free = all(e.source.path in part or e.source.chip or (e.source.path == fork and not e.source.port) for e in inner)
        looped = any(e.back and (e.source.path in part or e.target in part) for e in flow.edges)
        exits = looped or any(source.path in part for _, source in flow.exits) or (flow.outlet and flow.outlet.path in part)
        wide = any(isinstance(items[path], Group) for path in part) and len(parts) - len(foreign) > 2
        if (
            not (free or part in foreign)
            or exits
            or wide
            or len(leaving) != 1
            or leaving[0].target != join
            or leaving[0].source.port
            or not leaving[0].main
        ):
            return None
        if fork == "" and any(e.source.given and not e.source.chip and e.source.path not in part for e in inner):
            return None
        below = Flow(fork, tuple(items[path] for path in items if path in part), tuple(inner), leaving[0].source)
        flows.append(branched(in_line(below)))
        ports.append(leaving[0].port)
    gone = {path for part in parts for path in part}
    source = next((e.source for e in flow.edges if e.source.path == fork and e.target in gone and e.upward), None)
    joined = Branches(tuple(flows), tuple(ports), end, source)
    edges = [e for e in flow.edges if e.target not in gone and (e.source.path not in gone or e.source.chip)]
    if source is not None:
        edges.append(Edge(source, join, "|", True))
    kept = tuple(joined if path == join else item for path, item in items.items() if path not in gone)
    return replace(flow, items=kept, edges=tuple(edges))


def _from_elsewhere(flow: Flow, part: Sequence[str], items: Mapping[str, Item]) -> bool:
    """Whether blocks read one value of another column, the first of them does, and nothing else is read by a wire."""
    outside = [e for e in flow.edges if e.target in part and e.source.path not in part and not e.source.chip]
    far = all(e.source.path not in items and e.source.path != flow.owner and not e.source.given and e.main for e in outside)
    return far and len(outside) == 1 and outside[0].target == part[0]


def _readers(flow: Flow, items: Mapping[str, Item]) -> tuple[Steps, Steps]:
    """What each block is read by, and what each reads."""
    readers: dict[str, list[str]] = {}
    read: dict[str, list[str]] = {}
    for edge in flow.edges:
        if edge.upward and edge.target in items:
            readers.setdefault(edge.source.path, []).append(edge.target)
            read.setdefault(edge.target, []).append(edge.source.path)
    return readers, read


def _reached(steps: Steps, path: str) -> set[str]:
    """A block and all to which steps lead from it."""
    found, waiting = {path}, [path]
    while waiting:
        for other in steps.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def _meeting(items: Mapping[str, Item], readers: Steps, read: Steps) -> str | None:
    """The first block through which every way from the inputs of the model goes."""
    starts = {path for path in items if not any(source in items for source in read.get(path, ()))}
    if len(starts) < 2:
        return None
    common = set.intersection(*(_reached(readers, start) for start in starts))
    return next((path for path in items if path in common and path not in starts), None)


def _components(flow: Flow, between: Sequence[str]) -> list[list[str]]:
    """Blocks in sets between which nothing flows, in the order of their first ones."""
    group = {path: path for path in between}

    def root(path: str) -> str:
        while group[path] != path:
            path = group[path]
        return path

    for edge in flow.edges:
        if edge.source.path in group and edge.target in group and edge.upward:
            group[root(edge.target)] = root(edge.source.path)
    parts: dict[str, list[str]] = {}
    for path in between:
        parts.setdefault(root(path), []).append(path)
    return list(parts.values())


def woven(flow: Flow, besides: Container[str], fits: Callable[[Web], bool]) -> Flow:
    """The flow, in line, with what is irreducible, or has many branches, and is rather wide than long, as one item for each such
    part that fits; of `besides`, which have something beside them, nothing is in one."""
    paths = [flow.owner, *(item.about.path for item in flow.items)]
    place = {path: number for number, path in enumerate(paths) if path or not number}
    wires: list[tuple[int, int]] = []
    for item in flow.items:
        own = [e for e in flow.edges if e.target == item.about.path]
        sources = {e.source.path for e in (*own, *inner_edges(item)) if e.upward}
        wires += [(place[one], place[item.about.path]) for one in sources if one in place and place[one] < place[item.about.path]]
    for low, high in reversed(list(segments(len(paths), wires))):
        inside = [(a, b) for a, b in wires if low <= a and b <= high]
        wide = LEAST_WEB <= high - low <= MOST_WEB and 5 * ranks(low, high, inside)[-1] <= 4 * (high - low)
        alone = not any(path in besides for path in paths[low + 1 : high + 1])
        many = sum(a == low and b < high for a, b in inside) > MOST_BRANCHES
        if wide and alone and (many or irreducible(low, high, inside) != {(low, high)}):
            web = _web(flow, paths[low], flow.items[low:high])
            flow = _with_web(flow, web) if web is not None and fits(web) else flow
    return flow


def _web(flow: Flow, fork: str, items: Sequence[Item]) -> Web | None:
    """Some items as one, where they read nothing but each other, the fork, and what goes by its name."""
    own = {item.about.path for item in items}
    join = items[-1]
    inner = tuple(e for e in flow.edges if e.target in own)
    sources = {e.source for e in inner if e.source.path == fork and e.upward}
    others = any(e.upward and e.source.path not in own and e.source not in sources for e in inner)
    odd = any(e.back or e.source.port for e in flow.all_edges() if e.source.path in own or e.target in own)
    outside = [source for _, source in flow.exits] + [sink.edges[0].source for sink in flow.sinks]
    outside += [flow.outlet] if flow.outlet else []
    read = {source.path for source in outside}
    wired = [e for e in inner if e.upward]
    between = own <= {e.target for e in wired} and own - {join.about.path} <= {e.source.path for e in wired}
    simple = between and all(isinstance(item, Leaf) and not item.look.sides for item in items)
    said = any(isinstance(item, Leaf) and item.after for item in items[:-1])
    if not isinstance(join, Leaf) or len(sources) != 1 or others or odd or not simple or said or read & (own - {join.about.path}):
        return None
    (source,) = sources
    return Web(Flow(fork, tuple(items), inner, Source(join.about.path)), join, source)


def _with_web(flow: Flow, web: Web) -> Flow:
    """The flow with a part as one item."""
    own = {item.about.path for item in web.flow.items}
    kept = tuple(web if item is web.join else item for item in flow.items if item is web.join or item.about.path not in own)
    edges = tuple(e for e in flow.edges if e.target not in own)
    return replace(flow, items=kept, edges=(*edges, Edge(web.fork, web.join.about.path, "|", True)))


@dataclass(frozen=True, slots=True)
class Asides:
    """A flow without the blocks that read nothing that flows, and where these stand."""

    flow: Flow
    beside: Mapping[str, Sequence[tuple[Leaf, Edge, tuple[Edge, ...]]]]
    """With each block the ones beside it, the edges from there, and what they read."""
    standing: Mapping[str, tuple[Leaf, tuple[Edge, ...]]]
    """What is read by several blocks, or over a border, and so stands below the first of its readers; with what it reads."""


def aside(flow: Flow, sent: Collection[tuple[str, str]] = ()) -> Asides:
    """A flow, and what stands beside it; not what is `sent` to other columns."""
    items = {item.about.path: item for item in flow.items}
    besides: dict[str, list[tuple[Leaf, Edge, tuple[Edge, ...]]]] = {}
    standing: dict[str, tuple[Leaf, tuple[Edge, ...]]] = {}
    gone: set[str] = set()
    read_of, into = _by(flow.all_edges(), lambda e: e.source.path), _by(flow.edges, lambda e: e.target)
    for path, item in items.items():
        readers, reads = read_of.get(path, []), tuple(into.get(path, ()))
        streams = [e for e in reads if not e.measured]
        still = all(e.source.chip or e.source.given for e in streams)
        still = still and flow.owner not in {e.source.path for e in streams} - {""}
        if isinstance(item, Leaf) and item.look.hue == "io" and not reads:
            continue  # an input of the model
        if not (isinstance(item, Leaf) and not item.look.sign and not item.look.sides and still and readers):
            continue
        if any(source.path == path for _, source in flow.exits) or any(e.source.port or e.back for e in readers):
            continue
        reader = items.get(readers[0].target)
        if len(readers) > 1 or reader is None or any(e.measured and e.upward and not e.source.given for e in reads):
            stays = {(path, "")} & {*sent, *((e.source.path, "") for sink in flow.sinks for e in sink.edges)}
            if not (stays or any(e.main or e.source.chip for e in readers)):
                standing[path] = item, reads
                gone.add(path)
            continue
        if not isinstance(reader, Leaf):
            continue
        streams = [e for e in into.get(readers[0].target, ()) if e.main and e.source.path not in gone]
        others = [e for e in streams if e.source.path != path and not e.source.chip]
        if not others or (readers[0].main and streams[0].source.path == path and not _flows(others[0].source, flow, items)):
            continue
        if len(besides.get(readers[0].target, [])) < 2:
            besides.setdefault(readers[0].target, []).append((item, readers[0], reads))
            gone.add(path)
    kept = tuple(item for item in flow.items if item.about.path not in gone)
    paths = gone - set(standing)
    edges = tuple(e for e in flow.edges if e.target not in gone and (e.source.path not in paths or e.source.chip))
    return Asides(replace(flow, items=kept, edges=edges), besides, standing)


def _by(edges: Iterable[Edge], key: Callable[[Edge], str]) -> dict[str, list[Edge]]:
    """Edges by one of their ends."""
    found: dict[str, list[Edge]] = {}
    for edge in edges:
        found.setdefault(key(edge), []).append(edge)
    return found


def _flows(source: Source, flow: Flow, items: Mapping[str, Item]) -> bool:
    """Whether a value comes from a block that reads what flows."""
    wired = [e for e in flow.edges if e.upward]
    return source.path == flow.owner or any(e.target == source.path and e.source.path in items for e in wired)
