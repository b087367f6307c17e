"""Which of the paired nodes read something else."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from composer.diff.changes import PortChange
from composer.diff.flat_graph import SLOT, SLOT_FEED, FlatModel, FlatNode, FlatSource, Read, ports
from composer.diff.fold_passes import NamesOfBoth
from composer.diff.pairing import Pairing

Unequal = tuple[str, tuple[Read, ...], tuple[Read, ...]]
"""A port, and what it reads in each of the models only."""


@dataclass(frozen=True, slots=True)
class Reads:
    """The edges of two models whose nodes are paired."""

    pairing: Pairing

    def image(self, source: FlatSource) -> FlatSource | None:
        """Return the value of the second model that a value of the first one is paired with."""
        other = self.pairing.forward.get(source.node)
        return None if other is None else FlatSource(other, source.port)

    def same(self, one: FlatSource, other: FlatSource) -> bool:
        """Return whether two values are the same, apart from nodes on the way that only one of the models has."""
        if SLOT_FEED in (one, other) or self.image(one) == other:
            return one == other or self.image(one) == other
        ours = _upstream(self.pairing.before, one, self.pairing.forward)
        theirs = _upstream(self.pairing.after, other, self.pairing.backward)
        return ours is not None and theirs is not None and (ours, theirs) != (one, other) and self.image(ours) == theirs

    def changes(self, names: NamesOfBoth) -> Iterator[tuple[PortChange, Hashable, str, str]]:
        """Yield the nodes that read something else, with a key that is equal for the same change in another layer. If all nodes
        of a group that read some value read another one now, the group is yielded in their place."""
        moved: dict[tuple[FlatSource, FlatSource], dict[int, str]] = {}
        for index, other in sorted(self.pairing.forward.items()):
            one, two = self.pairing.before.nodes[index], self.pairing.after.nodes[other]
            for port, ours, theirs in self._ports(one, two):
                if len(ours) == len(theirs) == 1:
                    moved.setdefault((ours[0].source, theirs[0].source), {})[index] = port
                else:
                    sources = [read.source for read in ours], [read.source for read in theirs]
                    yield *_port_change(names, port, sources, (one.path, two.path)), one.path, two.path
        readers = self.pairing.before.readers
        for (source, target), places in moved.items():
            everyone = {index for index, read in readers[source.node] if read.source == source} if source != SLOT_FEED else set()
            for (path, its), port in self._holders(source, target, places, everyone - places.keys()).items():
                yield *_port_change(names, port, ([source], [target]), (path, its)), path, its

    def _holders(
        self, source: FlatSource, target: FlatSource, places: Mapping[int, str], staying: set[int]
    ) -> dict[tuple[str, str], str]:
        """Return, for nodes that all read `target` in place of `source`, the outermost groups that hold none of the
        others, and the port.
        """
        found: dict[tuple[str, str], str] = {}
        for index, port in places.items():
            path, levels = self.pairing.before.nodes[index].path, 0
            while (above := path.rpartition(".")[0]) and not _holds(self.pairing.before, above, {source.node, *staying}):
                path, levels = above, levels + 1
            other = self.pairing.after.nodes[self.pairing.forward[index]].path
            for _ in range(levels):
                above = other.rpartition(".")[0]
                other = other if not above or _holds(self.pairing.after, above, {target.node}) else above
            found.setdefault((path, other), "in" if levels else port)
        return found

    def _ports(self, one: FlatNode, two: FlatNode) -> Iterator[Unequal]:
        """Yield the ports that read something else. If other parts fill a slot, these are the change, and not the port."""
        ours, theirs = dict(ports(one.reads)), dict(ports(two.reads))
        for port in dict.fromkeys([*ours, *theirs]):
            mine, other = ours.get(port, ()), theirs.get(port, ())
            if port.startswith(SLOT) and self._refilled(mine, other):
                continue
            if one.commutes and two.commutes:
                mine, other = self._rest(mine, other)
                if mine or other:
                    yield port, mine, other
            elif len(mine) != len(other):
                yield port, mine, other
            else:
                pairs = zip(mine, other, strict=True)
                yield from ((port, (a,), (b,)) for a, b in pairs if not self.same(a.source, b.source))

    def _refilled(self, mine: Sequence[Read], other: Sequence[Read]) -> bool:
        """Return whether the parts that fill a slot have no partners."""
        return not any(read.source.node in self.pairing.forward for read in mine) and not any(
            read.source.node in self.pairing.backward for read in other
        )

    def _rest(self, mine: Sequence[Read], other: Sequence[Read]) -> tuple[tuple[Read, ...], tuple[Read, ...]]:
        """Return what only one of two sums reads: first without equal values, then without those that are equal apart from nodes
        that only one of the models has.
        """
        rest = list(other)
        for same in (lambda one, two: self.image(one) == two, self.same):
            left = []
            for read in mine:
                equal = (one for one in rest if one.expansion == read.expansion and same(read.source, one.source))
                if (found := next(equal, None)) is not None:
                    rest.remove(found)
                else:
                    left.append(read)
            mine = left
        return tuple(mine), tuple(rest)


def _port_change(
    names: NamesOfBoth,
    port: str,
    sources: tuple[Sequence[FlatSource], Sequence[FlatSource]],
    readers: tuple[str, str],
) -> tuple[PortChange, Hashable]:
    """Return the change of a port, and a key that is equal for the same change in another layer."""
    sides = list(zip(names, sources, readers, strict=True))
    texts = (tuple(side.source(one, reader) for one in several) for side, several, reader in sides)
    places = (tuple(side.place(one, reader) for one in several) for side, several, reader in sides)
    return PortChange(port, *texts), (port, *places)


def _holds(model: FlatModel, path: str, nodes: set[int]) -> bool:
    place = model.places.get(path)  # none for `losses`, in whose names it stands
    return place is None or any(place.start <= node < place.end for node in nodes)


def _upstream(model: FlatModel, source: FlatSource, paired: Mapping[int, int]) -> FlatSource | None:
    """Return the value from which a value comes through nodes that only this model has; none if it begins there."""
    while source.node not in paired:
        above = model.nodes[source.node].primary
        if above is None or above == SLOT_FEED:
            return None
        source = above
    return source
