"""The shape of a flow: what stands in line, what at a side, and what side by side."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

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
    read: dict[str, set[str]] = {path: {e.source.path for e in inner_edges(item) if e.upward} for path, item in items.items()}
    streams: dict[str, set[str]] = {path: set() for path in items}
    for edge in flow.edges:
        path = holder(edge.target, items)
        if path and edge.upward:
            read[path].add(edge.source.path)
            if edge.main and edge.target == path:
                streams[path].add(edge.source.path)
    reads = {path: sources & set(items) - {path} for path, sources in read.items()}
    placed: list[str] = []
    left = set(items)
    while left:
        ready = [path for path in left if reads[path].isdisjoint(left)]
        last = placed[-1] if placed else flow.owner
        going_on = [path for path in ready if last in streams[path]]
        placed.append(min(going_on or ready, key=rank.__getitem__))
        left.remove(placed[-1])
    return replace(flow, items=tuple(items[path] for path in placed))


def holder(path: str, items: Container[str]) -> str:
    """The item that a path leads to or into; nothing where it is none of these."""
    steps = path.split(".")
    return next((one for end in range(len(steps), 0, -1) if (one := ".".join(steps[:end])) in items), "")


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
    forks = [flow.owner, *(item.about.path for item in flow.items), ""]
    items = {item.about.path: item for item in flow.items}
    readers, read = _readers(flow, items)
    for fork in forks:
        found = _branches(flow, fork, items, readers, read)
        if found is not None:
            return branched(found)
    return flow


def _branches(flow: Flow, fork: str, items: Mapping[str, Item], readers: Steps, read: Steps) -> Flow | None:
    """The flow with the branches that start at a fork; the fork of no name are the inputs of the model."""
    if fork and len(set(readers.get(fork, ()))) < 2:
        return None
    after = set(items) if fork == "" else _reached(readers, fork) - {fork}
    join = _meeting(fork, after, items, readers, read)
    if join is None:
        return None
    end = items[join]
    before = _reached(read, join)
    between = [path for path in items if path in after and path in before and path != join]
    parts = _components(flow, between)
    if not isinstance(end, Leaf) or end.look.double or not 2 <= len(parts) <= MOST_BRANCHES:
        return None
    flows, ports = [], []
    for part in parts:
        inner = [e for e in flow.edges if e.target in part]
        leaving = [e for e in flow.all_edges() if e.source.path in part and not belongs(e.target, part) and e.upward]
        free = all(e.source.path in part or e.source.chip or (e.source.path == fork and not e.source.port) for e in inner)
        looped = any(e.back and (e.source.path in part or e.target in part) for e in flow.edges)
        exits = looped or any(source.path in part for _, source in flow.exits) or (flow.outlet and flow.outlet.path in part)
        wide = any(isinstance(items[path], Group) for path in part) and len(parts) > 2
        if (
            not free
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


def belongs(path: str, parts: Collection[str]) -> bool:
    """Whether a path is one of some, or lies in one of them."""
    return path in parts or any(path.startswith(f"{part}.") for part in parts)


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


def _meeting(fork: str, after: set[str], items: Mapping[str, Item], readers: Steps, read: Steps) -> str | None:
    """The first block through which every way from the fork goes."""
    starts = {path for path in readers.get(fork, ()) if path in after}
    if fork == "":
        starts = {path for path in items if not any(source in items for source in read.get(path, ()))}
    reached = {start: _reached(readers, start) for start in starts}
    past = {one for one in starts if any(one in reached[other] for other in starts - {one})}
    starts -= past
    if len(starts) < 2:
        return None
    common = set.intersection(*(reached[start] for start in starts))
    return next((path for path in items if path in common and path not in starts | past), None)


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


def aside(flow: Flow) -> tuple[Flow, dict[str, list[tuple[Leaf, Edge, tuple[Edge, ...]]]]]:
    """The flow without the blocks that stand beside another one: those that read nothing that flows, and are read once. With
    each block the ones beside it, the edges from there, and what they read."""
    items = {item.about.path: item for item in flow.items}
    besides: dict[str, list[tuple[Leaf, Edge, tuple[Edge, ...]]]] = {}
    gone: set[str] = set()
    read_of, into = _by(flow.all_edges(), lambda e: e.source.path), _by(flow.edges, lambda e: e.target)
    for path, item in items.items():
        readers, reads = read_of.get(path, []), tuple(into.get(path, ()))
        still = all(e.source.chip or e.source.given for e in reads) and flow.owner not in {e.source.path for e in reads} - {""}
        if isinstance(item, Leaf) and item.look.hue == "io" and not reads:
            continue  # an input of the model
        if not (isinstance(item, Leaf) and not item.look.sign and not item.look.sides and still and len(readers) == 1):
            continue
        reader = items.get(readers[0].target)
        if (
            not isinstance(reader, Leaf)
            or readers[0].source.port
            or readers[0].back
            or any(source.path == path for _, source in flow.exits)
        ):
            continue
        streams = [e for e in into.get(readers[0].target, ()) if e.main and e.source.path not in gone]
        others = [e for e in streams if e.source.path != path and not e.source.chip]
        if not others or (readers[0].main and streams[0].source.path == path and not _flows(others[0].source, flow, items)):
            continue
        if len(besides.get(readers[0].target, [])) < 2:
            besides.setdefault(readers[0].target, []).append((item, readers[0], reads))
            gone.add(path)
    kept = tuple(item for item in flow.items if item.about.path not in gone)
    edges = tuple(e for e in flow.edges if e.target not in gone and (e.source.path not in gone or e.source.chip))
    return replace(flow, items=kept, edges=edges), besides


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
