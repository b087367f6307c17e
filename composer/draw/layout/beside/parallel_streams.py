"""Parallel streams: each a column of its own, in which order these stand, and what stands between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from composer.draw.layout.beside.order import Name, Ranks
from composer.draw.passes.layers import ItemLink

MIN_COLUMN = 3
"""Items of a stream that has a column of its own; shorter ones stand between columns, or beside one."""
MIN_EXCHANGES = 2
"""How many blocks read values of other streams at least, where these have columns of their own."""
BESIDE, PASSING = 0.4, 0.25
"""How far beside a column something stands that only this one feeds or reads, and a wire that goes on to another column; from
each column to the next it is 1.
"""
LATER = 1e-4
"""How much nearer to a column a wire is for each block that it starts later."""
MIN_JOINED = 3
"""Columns of which one block reads values, so that these may stand in its order."""
MAX_SWEEPS = 8
"""How often all ranks are gone through: few are needed, as each column keeps its place."""


@dataclass(frozen=True, slots=True)
class ParallelStreams:
    """Where streams stand, counted from the left, and all that is between them."""

    places: Mapping[str, float]
    """Of each block; a whole number where it is in a column."""
    columns: Mapping[str, int]
    """Of each block of a long stream, its column."""
    going_on: Mapping[str, str]
    """What follows each block in its column."""
    number: Mapping[str, int]
    """Of each block in the recipe."""
    reach: float = 1.0
    """How many columns level wires go at most."""

    def rows(self, links: Sequence[ItemLink], rank: Mapping[str, int]) -> Ranks:
        """Return what stands in each rank, from the left: columns in their order, and the rest where few wires cross."""
        hops = _hops(links, rank)
        blocks = [*rank.items()]
        names = dict.fromkeys([*blocks, *(one for hop in hops for one in hop)])
        passing = Passing(self, links, rank)
        places = {name: self.places[name[0]] if rank.get(name[0]) == name[1] else passing.place(*name) for name in names}
        rows: list[list[Name]] = [[] for _ in range(max(rank.values()) + 1)]
        for name in sorted(names, key=places.__getitem__):
            rows[name[1]].append(name)
        lanes = {one for one in names if (one[0] in self.columns if rank.get(one[0]) == one[1] else passing.in_column(*one))}
        kept = lanes | {one for one in blocks if (places[one] * 2) % 2 == 1}  # right between two columns
        below: dict[Name, list[Name]] = {}
        above: dict[Name, list[Name]] = {}
        for a, b in hops:
            above.setdefault(a, []).append(b)
            below.setdefault(b, []).append(a)
        for _ in range(MAX_SWEEPS):
            changed = [_exchange(rows, at, lanes, kept, below, above) for at in range(len(rows))]
            if not any(changed):
                break
        return rows

    def may_be_level(self, link: ItemLink, straight: Collection[tuple[str, str]]) -> bool:
        """Return whether a wire may go level: to what goes on a column that it comes to from beside, or from a column to what
        stands between that and another.
        """
        a, b = link.source, link.target
        if a in self.columns and a not in self.going_on:
            return False  # there it ends, as one of several that are joined
        near = 0 < abs(self.places[a] - self.places[b]) <= self.reach
        if b in self.columns:
            return near and any(pair[1] == b for pair in straight)
        return near and a in self.columns and (self.places[b] * 2) % 1 == 0


def parallel_streams(
    streams: Sequence[Sequence[str]],
    links: Sequence[ItemLink],
    ordered: Sequence[str],
    inputs: Sequence[str],
    *,
    as_joined: bool = False,
) -> ParallelStreams | None:
    """Return where streams stand of blocks that are `ordered` as in the recipe: long ones as near to what they exchange values
    with as can be, then in the order of the recipe; those of `inputs` always in their order. With `as_joined`, columns of
    which one block reads several stand in the order in which it does. None where they hardly exchange values.
    """
    number = {path: place for place, path in enumerate(ordered)}
    going_on = {a: b for line in streams for a, b in pairwise(line)}
    lines = _columns(streams, links)
    lines.sort(key=lambda line: number[line[0]])
    fed = iter(sorted((line for line in lines if line[0] in inputs), key=lambda line: inputs.index(line[0])))
    lines = [next(fed) if line[0] in inputs else line for line in lines]
    column = {path: place for place, line in enumerate(lines) for path in line}
    short = [line for line in streams if line[0] not in column]
    near = _exchanges(short, links, column)
    if _lateral(short, links, column, going_on) < MIN_EXCHANGES:
        return None
    order = _nearest(len(lines), near, [place for place, line in enumerate(lines) if line[0] in inputs])
    if as_joined:
        order = _as_joined(order, links, column, [place for place, line in enumerate(lines) if line[0] in inputs])
    columns = {path: order.index(place) for path, place in column.items()}
    places: dict[str, float] = {**columns}
    for line in sorted(short, key=lambda line: number[line[0]]):
        sources = [places[one] for one in _sources(line, links) if one in places]
        ends = [one for one in _targets(line, links) if one in columns]
        place = _between(sources, [columns[one] for one in ends])
        if len(sources) == len(ends) == 1 and abs(sources[0] - columns[ends[0]]) > 1 and _joins_columns(ends[0], links, columns):
            place = sources[0] + (0.5 if sources[0] > columns[ends[0]] else -0.5)  # between columns is no room
        places |= dict.fromkeys(line, place)
    return ParallelStreams(places, columns, going_on, number)


def _columns(streams: Sequence[Sequence[str]], links: Sequence[ItemLink]) -> list[Sequence[str]]:
    """Return the streams that have columns of their own: long ones, but no ways from a block to another, each by itself or by
    short streams, where the stream of the first goes on.
    """
    found = [line for line in streams if len(line) >= MIN_COLUMN]
    by_short = {path: _sources(line, links) for line in streams if len(line) < MIN_COLUMN for path in line}
    ends = {path: {*_targets(line[-1:], links)} for line in found for path in line}

    def is_way(line: Sequence[str]) -> bool:
        sources = {one for path in _sources(line, links) for one in (by_short.get(path) or [path])}
        targets = {*_targets(line, links)}
        one_end = targets == {*_targets(line[-1:], links)} and len(sources) == len(targets) == 1
        return one_end and not any(targets & ends.get(one, set()) for one in sources)

    return [line for line in found if not is_way(line)]


def _lateral(
    short: Sequence[Sequence[str]], links: Sequence[ItemLink], column: Mapping[str, int], going_on: Mapping[str, str]
) -> int:
    """Return how many blocks read a value of another column that goes on, by itself or by a short stream, in a column that began
    below.
    """
    begun = {*going_on.values()}

    def other(a: str, b: str) -> bool:
        return a in column and b in column and column[a] != column[b] and a in going_on and b in begun

    ways = [(a, b) for line in short for a in _sources(line, links) for b in _targets(line, links)]
    return len({b for a, b in (*((link.source, link.target) for link in links), *ways) if other(a, b)})


def _sources(line: Sequence[str], links: Sequence[ItemLink]) -> list[str]:
    return [link.source for link in links if link.target in line and link.source not in line]


def _targets(line: Sequence[str], links: Sequence[ItemLink]) -> list[str]:
    return [link.target for link in links if link.source in line and link.target not in line]


def _between(sources: Sequence[float], targets: Sequence[float]) -> float:
    """Return where a short stream stands: beside what reads it, at the side that it comes from."""
    if not sources or not targets:
        ends = [*sources, *targets] or [0.0]
        return sum(ends) / len(ends) + (BESIDE if len({*ends}) == 1 else 0.0)
    start, end = sum(sources) / len(sources), sum(targets) / len(targets)
    return start + BESIDE if start == end else end + (0.5 if start > end else -0.5)


def _joins_columns(path: str, links: Sequence[ItemLink], columns: Mapping[str, int]) -> bool:
    """Return whether most of several values that a block reads come from columns."""
    read = {link.source for link in links if link.target == path}
    return len(read) > 2 and 2 * sum(one in columns for one in read) > len(read)


def _exchanges(short: Iterable[Sequence[str]], links: Sequence[ItemLink], column: Mapping[str, int]) -> Counter[tuple[int, int]]:
    """Return how many values go from each column to each other one, by themselves or through a short stream."""
    found = Counter(
        (column[link.source], column[link.target]) for link in links if link.source in column and link.target in column
    )
    for line in short:
        ends = [one for one in (*_sources(line, links), *_targets(line, links)) if one in column]
        found.update((column[a], column[b]) for a, b in pairwise(ends))
    return found


def _nearest(count: int, near: Mapping[tuple[int, int], int], kept: Sequence[int]) -> list[int]:
    """Return columns in an order in which values go the shortest ways to others, as near to that of the numbers as can be."""

    def far(order: Sequence[int]) -> int:
        return sum(times * abs(order.index(a) - order.index(b)) for (a, b), times in near.items())

    best = [*range(count)]
    least = far(best)
    changed = True
    while changed:
        changed = False
        for one in range(count):
            rest = [other for other in best if other != one]
            for place in range(count):
                order = [*rest[:place], one, *rest[place:]]
                if [other for other in order if other in kept] == [*kept] and far(order) < least:
                    best, least, changed = order, far(order), True
    return best


def _as_joined(order: Sequence[int], links: Sequence[ItemLink], column: Mapping[str, int], kept: Sequence[int]) -> list[int]:
    """Return columns in an order, those of which one block reads several at each other's places, in the order in which it
    does; some are `kept` where they are.
    """
    read: dict[str, dict[int, None]] = {}
    for link in links:
        if link.source in column and column[link.source] not in kept and link.edge.target == link.target:
            read.setdefault(link.target, {})[column[link.source]] = None
    found = [*order]
    for several in sorted(read.values(), key=len):
        if len(several) >= MIN_JOINED:
            places = sorted(map(found.index, several))
            for place, one in zip(places, several, strict=True):
                found[place] = one
    return found


class Passing:
    """Wires that go past ranks."""

    def __init__(self, whole: ParallelStreams, links: Sequence[ItemLink], rank: Mapping[str, int]) -> None:
        self.whole, self.rank = whole, rank
        self.lowest: dict[float, int] = {}
        for path, column in whole.columns.items():
            self.lowest[column] = min(rank[path], self.lowest.get(column, rank[path]))
        self.readers: dict[str, list[str]] = {}
        self.makers: dict[str, str] = {}
        for link in links:
            self.readers.setdefault(link.net, []).append(link.target)
            self.makers[link.net] = link.source

    def place(self, net: str, at: int) -> float:
        """Return where a value goes past a rank: in its own column or beside it; there, what starts lower is farther out."""
        path, places = self.makers[net], self.whole.places
        own = places[path]
        if self.in_column(net, at):
            return own
        nearest = min((places[one] for one in self.readers[net] if self.rank[one] > at), key=lambda end: abs(end - own))
        if abs(nearest - own) > 1 and nearest in self.lowest and self.is_free(own, nearest, self.rank[path]):
            return nearest + (PASSING if nearest < own else -PASSING)
        aside = (BESIDE if nearest == own else PASSING) - LATER * self.whole.number[path]
        return own + aside if nearest >= own else own - aside

    def is_free(self, own: float, end: float, low: int) -> bool:
        """Return whether all columns between two places begin above a rank, so that a value may go past below them."""
        between = (rank for column, rank in self.lowest.items() if min(own, end) < column < max(own, end))
        return all(rank > low + 1 for rank in between)

    def in_column(self, net: str, at: int) -> bool:
        """Return whether a value goes past a rank in its own column, up to what goes on from it there."""
        reader = self.whole.going_on.get(self.makers[net])
        return reader in self.readers[net] and self.rank[reader] > at

    def turns(self, hop: tuple[Name, Name]) -> bool:
        """Return whether a wire leaves its column on its way from a rank to the next."""
        (path, low), (net, high) = hop
        if net not in self.makers or self.rank.get(net) == high or self.in_column(net, high):
            return False
        return self.rank.get(path) == low or self.in_column(net, low)


def blocked(rows: Ranks, links: Sequence[ItemLink], rank: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield what level wires would connect that have a block between them, or another level wire at their side."""
    taken: dict[tuple[str, bool], str] = {}
    for link in links:
        a, b = link.source, link.target
        if rank[a] == rank[b]:
            row = rows[rank[a]]
            start, end = row.index((a, rank[a])), row.index((b, rank[b]))
            between = row[min(start, end) + 1 : max(start, end)]
            sides = (a, end > start), (b, end < start)
            if any(rank.get(net) == at for net, at in between) or any(side in taken for side in sides):
                yield a, b
            taken |= dict.fromkeys(sides, b)


def _hops(links: Sequence[ItemLink], rank: Mapping[str, int]) -> dict[tuple[Name, Name], None]:
    """Return the ways of wires from each rank to the next."""
    found: dict[tuple[Name, Name], None] = {}
    for link in links:
        low, high = rank[link.source], rank[link.target]
        if low == high:
            continue
        way = [(link.source, low), *((link.net, at) for at in range(low + 1, high)), (link.target, high)]
        found |= dict.fromkeys(pairwise(way))
    return found


def _exchange(
    rows: list[list[Name]],
    at: int,
    lanes: set[Name],
    kept: set[Name],
    below: Mapping[Name, Sequence[Name]],
    above: Mapping[Name, Sequence[Name]],
) -> bool:
    """Swap neighbors in a rank where fewer wires cross then, but no two columns, which are `lanes`, and none of these with a
    block that is `kept` between two of them; return whether there were such.
    """
    row, changed = rows[at], False
    ways = [(below, {one: place for place, one in enumerate(rows[at - 1])})] if at else []
    if at + 1 < len(rows):
        ways.append((above, {one: place for place, one in enumerate(rows[at + 1])}))
    for place in range(len(row) - 1):
        a, b = row[place], row[place + 1]
        if (a in lanes and b in kept) or (b in lanes and a in kept):
            continue
        gain = 0
        for ends, number in ways:
            left, right = [number[one] for one in ends.get(a, ())], [number[one] for one in ends.get(b, ())]
            gain += sum((one > other) - (one < other) for one in left for other in right)
        if gain > 0:
            row[place], row[place + 1], changed = b, a, True
    return changed
