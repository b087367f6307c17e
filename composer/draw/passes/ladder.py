"""A ladder: a trunk of which several values are read beside it, each by a branch of its own, and what all of these meet in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from composer.draw.diagram import Flow, Leaf
from composer.draw.edges import DiagramEdge, DiagramSource
from composer.draw.passes.heads import output_leaf
from composer.draw.passes.pyramid import wires_between
from composer.draw.paths import belongs, is_output
from composer.draw.structure import reached

MIN_LEVELS = 3
"""Values of the trunk from which on its readers are levels of a ladder."""
MAX_BLOCKS = 80
"""Blocks of a ladder: more have no room on a page."""
MAX_LINE = 3
"""Blocks in line from the trunk to where a level ends or parts: more are no level, but a trunk."""
MAX_DROP = 2
"""Blocks from a level down to the next."""
MAX_ABOVE = 6
"""Blocks that go on from where levels meet: more are what the model is about, to which the levels lead."""


class Drop(NamedTuple):
    """What leads from a level down to the next one."""

    source: str
    """A block in the line of the upper level."""
    blocks: tuple[str, ...]
    """Those on the way, from above."""
    join: str
    """The block in the line of the lower level where it ends."""


class Rung(NamedTuple):
    """One level."""

    tap: str
    """What it reads of the trunk."""
    line: tuple[str, ...]
    """The blocks from there on, one after the other."""
    heads: tuple[str, ...] = ()
    """Those that read the last one side by side, each for the meeting at its place."""
    drop: Drop | None = None
    """What comes down to it from the level above."""
    columns: tuple[int, ...] = ()
    """In which column each block of the line stands, so that all that leads down does so in one."""

    @property
    def last(self) -> str:
        """Where its line ends: a block, or what it reads of the trunk."""
        return self.line[-1] if self.line else self.tap

    @property
    def blocks(self) -> tuple[str, ...]:
        """All that it has beside the trunk, with what leads down to it."""
        return *self.line, *self.heads, *(self.drop.blocks if self.drop else ())


class Ladder(NamedTuple):
    """The parts of such a model; levels count from where the trunk starts."""

    flow: Flow
    """All of it, with a box for each output that a level gives."""
    trunk: Flow
    rungs: tuple[Rung, ...]
    meetings: tuple[Flow, ...]
    """What each of the heads of all levels leads to, or the levels themselves, and all that goes on from there."""


def split_ladder(flow: Flow) -> Ladder | None:
    """Return the parts of a flow, in order, in the form of a ladder: the most levels that are found, of a trunk with the fewest
    ways that join in it, levels that are most alike, and the shortest trunk. None for any other form.

    Before: a(x) b(a) c(b) p(a) q(b) r(c) m(p q r) n(m)
    After:  a(x) b(a) c(b) / p(a) / q(b) / r(c) / m(p q r) n(m)
    """
    reads, readers = wires_between(flow)
    if len(reads) > MAX_BLOCKS or not any(len(edges) >= MIN_LEVELS for edges in reads.values()):
        return None
    sources = {path: [edge.source.path for edge in edges] for path, edges in reads.items()}
    trunks = dict.fromkeys(frozenset({path, *reached(path, sources)}) for path in reads if not is_output(path))
    found = [ladder for trunk in trunks if (ladder := _Parts(flow, trunk, reads, readers).ladder()) is not None]
    return max(found, key=_fitness, default=None)


def _fitness(ladder: Ladder) -> tuple[int, ...]:
    """Return how well a form fits, the first number most."""
    lengths = {len(rung.line) for rung in ladder.rungs}
    return len(ladder.rungs), len(ladder.trunk.items) - len(ladder.trunk.edges), -len(lengths), -len(ladder.trunk.items)


class _Parts:
    """The parts of a flow of which some blocks are taken for the trunk."""

    def __init__(
        self,
        flow: Flow,
        trunk: frozenset[str],
        reads: Mapping[str, Sequence[DiagramEdge]],
        readers: Mapping[str, Sequence[str]],
    ) -> None:
        self.flow, self.trunk, self.reads, self.readers = flow, trunk, reads, readers
        self.taps = [path for path in reads if path in trunk and any(one not in trunk for one in readers[path])]
        self.meetings = [path for path in reads if path not in trunk and len(reads[path]) >= MIN_LEVELS]
        self.above = [{path, *reached(path, readers)} for path in self.meetings]
        self.beside = {*reads} - {*trunk}.union(*self.above)

    def ladder(self) -> Ladder | None:
        """Return them as a ladder, if they are one."""
        levels = self.levels() if len(self.taps) >= MIN_LEVELS and self.meetings else {}
        drops = {drop.join: drop for path in levels if len(self.reads[path]) == 2 and (drop := self.drop(path, levels))}
        rungs = [self.rung(level, levels, drops) for level in range(len(self.taps))] if levels else []
        found = self.aligned(_in_columns([rung for rung in rungs if rung is not None]))
        if not found or len(found) < len(rungs) or not (self.all_meet(found) and self.is_plain(drops) and self.is_apart()):
            return None
        ends = {rung.last for rung in found if not rung.heads}
        if any(source.path in self.beside and (source.path not in ends or source.port) for source in self.flow.returned()):
            return None
        boxed = [(source, output_leaf(name, source)) for name, source in self.flow.exits if source.path in ends]
        edges = (DiagramEdge(source, leaf.about.path, "", True) for source, leaf in boxed)
        flow = self.flow.with_items((*self.flow.items, *(leaf for _, leaf in boxed))).with_edges((*self.flow.edges, *edges))
        flow = flow.with_exits(one for one in flow.exits if one[1].path not in ends)
        return Ladder(flow, flow.only(self.trunk), tuple(found), tuple(map(flow.only, self.above)))

    def levels(self) -> dict[str, int]:
        """Return the level of each block beside the trunk: that of what it reads, the lower one of two. Nothing where one reads
        anything else.
        """
        found: dict[str, int] = {}
        for path in (one for one in self.reads if one in self.beside):
            read = [self.level_of(edge.source.path, found) for edge in self.reads[path]]
            if None in read or not 1 <= len(read) <= 2 or len({*read}) < len(read):
                return {}
            found[path] = min(level for level in read if level is not None)
        return found

    def level_of(self, path: str, levels: Mapping[str, int]) -> int | None:
        """Return the level of what is read of the trunk, or of a block beside it, as far as it is known."""
        return self.taps.index(path) if path in self.taps else levels.get(path)

    def drop(self, join: str, levels: Mapping[str, int]) -> Drop | None:
        """Return what leads down to a block that reads two values, if it comes from the line of the level above."""
        ways = [edge.source.path for edge in self.reads[join]]
        path = max(ways, key=lambda one: self.level_of(one, levels) or 0)
        blocks = list[str]()
        while path in levels and len(self.readers[path]) == len(self.reads[path]) == 1:
            blocks.insert(0, path)
            path = self.reads[path][0].source.path
        next_one = levels.get(path) == levels[join] + 1
        return Drop(path, tuple(blocks), join) if next_one and len(blocks) <= MAX_DROP else None

    def rung(self, level: int, levels: Mapping[str, int], drops: Mapping[str, Drop]) -> Rung | None:
        """Return a level, if it is a line of blocks that ends or parts in heads, where at most one comes down to it."""
        tap, line = self.taps[level], list[str]()
        own = {path for path in levels if levels[path] == level and not is_output(path)}
        own -= {path for drop in drops.values() for path in drop.blocks}
        further, met, ends = list[str](), list[str](), list[str]()
        while len(line) <= MAX_LINE:
            last = line[-1] if line else tap
            further = [path for path in self.readers[last] if path in own]
            met = [path for path in self.readers[last] if path in self.meetings]
            ends = [path for path in self.readers[last] if is_output(path)]
            if len(further) != 1 or met or ends:
                break
            line += further
        joins = [path for path in line if len(self.reads[path]) == 2]
        if len(joins) > 1 or any(path not in drops for path in joins):
            return None
        drop = drops[joins[0]] if joins else None
        if not further and line and met == self.meetings:
            return Rung(tap, tuple(line), (), drop)
        heads = [path for meeting in self.meetings for path in further if self.readers[path] == [meeting]]
        whole = len(heads) == len(further) == len(self.meetings) > 1 and not met and not ends
        return Rung(tap, tuple(line), tuple(heads), drop) if whole else None

    def aligned(self, rungs: Sequence[Rung]) -> list[Rung]:
        """Return levels of which those that nothing leads down from or to stand as far right as most of their blocks are in a
        column with blocks of the same title.
        """
        ends = {path for rung in rungs if rung.drop for path in (rung.drop.source, rung.drop.join)}
        fixed = [rung for rung in rungs if ends.intersection(rung.line)]
        titles = {(place, self.title(path)) for rung in fixed for place, path in zip(rung.columns, rung.line, strict=True)}
        width = max((place + 1 for place, _ in titles), default=0)

        def shifted(rung: Rung) -> Rung:
            if rung in fixed or not len(rung.line) < width:
                return rung

            def alike(by: int) -> int:
                return sum((place + by, self.title(path)) in titles for place, path in zip(rung.columns, rung.line, strict=True))

            by = max(range(width - len(rung.line) + 1), key=lambda one: (alike(one), -one))
            return rung._replace(columns=tuple(place + by for place in rung.columns))

        return [*map(shifted, rungs)]

    def title(self, path: str) -> str:
        """Return what stands in a block."""
        item = self.flow.by_path[path]
        return item.look.title if isinstance(item, Leaf) else ""

    def all_meet(self, rungs: Sequence[Rung]) -> bool:
        """Return whether each meeting reads each level once, and nothing else, and levels hold all that is beside the trunk."""
        columns = zip(*(rung.heads or (rung.last,) for rung in rungs), strict=True)
        read = [sorted(edge.source.path for edge in self.reads[path]) for path in self.meetings]
        held = {path for rung in rungs for path in rung.blocks}
        outputs = {path for path in self.beside if is_output(path)}
        return read == [sorted(column) for column in columns] and held == self.beside - outputs

    def is_plain(self, joins: Collection[str]) -> bool:
        """Return whether levels are blocks that read first outputs by plain wires alone, circles only as the `joins` of two."""
        blocks = [self.flow.by_path[path] for path in (*self.beside, *self.meetings)]
        if not all(isinstance(one, Leaf) and not one.rows and not one.look.sides and not one.model_input for one in blocks):
            return False
        alone = (one for one in blocks if one.about.path in self.beside and one.about.path not in joins)
        signs = any(isinstance(one, Leaf) and one.look.sign for one in alone)
        into = [e for e in self.flow.edges if e.target in self.beside or e.target in self.meetings]
        plain = all(e.upward and not (e.source.port or e.partial or e.shape_only or e.trains) for e in into)
        plain = plain and all(e.source.path in self.reads for e in into)
        first = all(e.main and not e.second_stream for e in into if len(self.reads[e.target]) == 1)
        return plain and first and not signs and all(sink.leaf for sink in self.flow.sinks)

    def is_apart(self) -> bool:
        """Return whether what is inside of the trunk, and of what goes on from each meeting, reads nothing else by a wire."""
        if max(map(len, self.above)) > MAX_ABOVE or sum(map(len, self.above)) > len({*()}.union(*self.above)):
            return False
        return all(map(self.is_closed, (self.trunk, *(part for part in self.above))))

    def is_closed(self, part: Collection[str]) -> bool:
        """Return whether blocks, and all in them, read only each other, but for where levels meet."""
        whole = self.flow.only(part)
        held = {*part, *(edge.target for edge in whole.all_edges())}
        wires = (e for e in whole.all_edges() if not e.source.reference and e.target not in self.meetings)
        return all(belongs(e.source.path, held) or self.is_outside(e.source) for e in wires)

    def is_outside(self, source: DiagramSource) -> bool:
        """Return whether a value is an input of the model that has no box."""
        return source.is_model_input and source.path not in self.reads


def _in_columns(rungs: Sequence[Rung]) -> list[Rung]:
    """Return levels with the columns of their blocks; none where what leads down does not do so in one."""
    joins = {rung.line.index(rung.drop.join) for rung in rungs if rung.drop}
    if len(joins) > 1:
        return []
    sources = {rung.drop.source for rung in rungs if rung.drop}
    found = [(rung, _columns(rung, sources, *joins)) for rung in rungs]
    return [rung._replace(columns=columns) for rung, columns in found if columns is not None]


def _columns(rung: Rung, sources: Collection[str], join: int = 0) -> tuple[int, ...] | None:
    """Return the columns of a level, given the one of joins; what leads down from it leaves a block there, or the wire that
    passes there.
    """
    at = next((place for place, path in enumerate(rung.line) if path in sources), join)
    if at > join or (rung.drop and at < join):
        return None
    return tuple(place if place <= at or at == join else place + join - at for place in range(len(rung.line)))
