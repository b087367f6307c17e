"""A pyramid of features: a trunk, and a way back beside it that takes in a value of the trunk at each level."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from composer.draw.diagram import Flow, Leaf
from composer.draw.edges import DiagramEdge

MAX_ASIDE = 3
"""Blocks in line from one level to the next, or from a level to its output: more are no way back of a pyramid, but a trunk."""


class Pyramid(NamedTuple):
    """The parts of such a model; levels count from the one where the trunk ends."""

    trunk: Flow
    rungs: tuple[Flow, ...]
    """From the trunk to each level: a block, or none."""
    drops: tuple[Flow, ...]
    """From each level to the next: blocks, and the sum there."""
    ends: tuple[Flow, ...]
    """What else reads each level."""


def split_pyramid(flow: Flow) -> Pyramid | None:
    """Return the parts of a flow, in order, in the form of a pyramid: a trunk, of which some values are added to a line
    of blocks, the last one first, at least one of them through a block. None for any other form.

    Before: a(x) b(a) c(b) p(c) q(b) r(q p) s(a) t(s r) u(p) v(r) w(t)
    After:  a(x) b(a) c(b) / p(c) / q(b) / s(a) / r(q p) / t(s r) / u(p) / v(r) / w(t)
    """
    reads, readers = wires_between(flow)
    sums = [path for path in reads if len(reads[path]) == 2]
    first = len(sums) - 1
    while first > 0 and _reads_by_a_line(sums[first], sums[first - 1], reads):
        first -= 1
    found = (_split_at(flow, sums[at:], reads, readers) for at in range(first, len(sums) - 1)) if not flow.sinks else iter(())
    return next((one for one in found if one), None)


def _reads_by_a_line(path: str, before: str, reads: Mapping[str, Sequence[DiagramEdge]]) -> bool:
    """Return whether a sum reads the one before it, by a line of blocks or at once."""
    ways = ((edge.source.path, _line(edge.source.path, reads, {before})) for edge in reads[path])
    return any(_start(way, source, reads) == before for source, way in ways)


def _split_at(
    flow: Flow, sums: Sequence[str], reads: Mapping[str, Sequence[DiagramEdge]], readers: Mapping[str, Sequence[str]]
) -> Pyramid | None:
    """Return the parts of a pyramid with these sums, if it is one; others are in its trunk."""
    lines = [_below(edge.source.path, reads) for edge in reads[sums[0]]]
    both = {path for path in lines[0] if path in lines[1]}
    rung, rest = sorted(([path for path in line if path not in both] for line in lines), key=len)
    turn = _turn(flow, rest, rung, readers)
    if turn is None or any(len(reads[path]) != 1 for path in (*rung, *rest[: turn + 1])):
        return None
    trunk = {*both, *rest[turn + 1 :]}
    rungs, taps, drops = [[rest[turn]], rung], [rest[turn + 1], _start(rung, "", reads)], [[*rest[:turn], sums[0]]]
    for before, path in pairwise(sums):
        ways = [_line(edge.source.path, reads, {before, *trunk}) for edge in reads[path]]
        starts = [_start(way, edge.source.path, reads) for way, edge in zip(ways, reads[path], strict=True)]
        if before not in starts:
            return None
        at = starts.index(before)
        rungs.append(ways[1 - at])
        taps.append(starts[1 - at])
        drops.append([*ways[at], path])
    down = {path for drop in drops for path in drop}
    ends = [_end(level, down, readers) for level in (rest[turn], *sums)]
    parts = [*trunk, *(path for line in (*rungs, *drops, *ends) for path in line)]
    order = [path for path in reads if path in trunk]
    nested = sorted(set(taps), key=order.index, reverse=True) == taps if set(taps) <= trunk else False
    short = max(map(len, rungs)) == 1 and max(map(len, ends)) <= MAX_ASIDE
    if not (nested and short and sorted(parts) == sorted(reads) and are_plain(flow, {*parts} - trunk)):
        return None
    return Pyramid(flow.only(trunk), *(tuple(map(flow.only, lines)) for lines in (rungs, drops, ends)))


def wires_between(flow: Flow) -> tuple[dict[str, list[DiagramEdge]], dict[str, list[str]]]:
    """Return the wires between items into each, and the readers of each."""
    reads: dict[str, list[DiagramEdge]] = {item.about.path: [] for item in flow.items}
    readers: dict[str, list[str]] = {path: [] for path in reads}
    for edge in flow.edges:
        if edge.source.path in reads and edge.target in reads and not edge.source.reference:
            reads[edge.target].append(edge)
            readers[edge.source.path].append(edge.target)
    return reads, readers


def _below(path: str, reads: Mapping[str, Sequence[DiagramEdge]]) -> list[str]:
    """Return a block and all that it depends on, in the order back from it."""
    found = {path}
    for one in reversed([*reads]):
        if one in found:
            found |= {edge.source.path for edge in reads[one]}
    return [one for one in reversed([*reads]) if one in found]


def _line(path: str, reads: Mapping[str, Sequence[DiagramEdge]], stops: Collection[str]) -> list[str]:
    """Return a line of blocks back from one, before any of the `stops`; it ends where a block reads more or less than one."""
    found: list[str] = []
    while path not in stops:
        found.append(path)
        if len(reads[path]) != 1:
            break
        path = reads[path][0].source.path
    return found


def _start(line: list[str], end: str, reads: Mapping[str, Sequence[DiagramEdge]]) -> str:
    """Return where a line comes from, or its end if it has no block; nothing for a line from elsewhere."""
    if not line:
        return end
    return reads[line[-1]][0].source.path if len(reads[line[-1]]) == 1 else ""


def _turn(flow: Flow, rest: list[str], rung: list[str], readers: Mapping[str, Sequence[str]]) -> int | None:
    """Return which block, on the way from the first sum back to the trunk, stands at the level where the trunk ends: one that
    others read too, or else the one that says most of what the block of the next level does.
    """
    like = flow.by_path[rung[0]] if len(rung) == 1 else None
    if not isinstance(like, Leaf):
        return None
    forks = [at for at, path in enumerate(rest[:-1]) if len(readers[path]) > 1]
    blocks = ((at, flow.by_path[path]) for at, path in enumerate(rest[:-1]))
    alike = {
        at: len({*one.look.facts} & {*like.look.facts})
        for at, one in blocks
        if isinstance(one, Leaf) and one.look.title == like.look.title
    }
    return forks[0] if forks else max(alike, key=alike.__getitem__, default=None)


def _end(level: str, own: Collection[str], readers: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what reads a level and is not on the way back."""
    found: list[str] = []
    ways: Sequence[str] = [path for path in readers[level] if path not in own]
    while len(ways) == 1:
        found.append(ways[0])
        ways = readers[ways[0]]
    return found


def are_plain(flow: Flow, paths: Collection[str]) -> bool:
    """Return whether some items are blocks that read nothing but the stream, and give no output that has no box."""
    items = [flow.by_path[path] for path in paths]
    if not all(isinstance(item, Leaf) and not item.rows and not item.look.sides and not item.model_input for item in items):
        return False
    plain = all(
        e.upward and e.main and not (e.source.port or e.partial or e.shape_only or e.second_stream or e.trains)
        for e in flow.edges
        if e.target in paths
    )
    inside = any(e.source.path in paths and e.target not in flow.by_path for e in flow.all_edges())
    return plain and not inside and not any(source.path in paths for _, source in flow.exits)
