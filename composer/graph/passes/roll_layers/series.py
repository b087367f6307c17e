"""Runs of equal passes in a sequence of nodes, in which each pass reads what the one before returned."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, TypeAlias

from composer.graph.ir import Ref
from composer.graph.passes.roll_layers.node_kinds import Port
from composer.memo import lazy

MIN_SAVED_BOXES = 4
"""Boxes that folding a run must save."""
MAX_PHASES = 3
"""Beginnings of a period that are tried: those where least flows on."""

SeriesValue: TypeAlias = tuple[int, str, int | None]
"""A value of a node of a pass: which node of the pass, its port, and the pass where it is a repeat itself."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read at a port: of the same pass, of the one before, of one further back, or from outside of all."""

    port: Port
    way: Literal["same", "before", "earlier", "elsewhere"]
    value: SeriesValue | None
    """Of a pass."""
    ref: Ref | None = None
    """From outside."""


@dataclass(frozen=True, slots=True)
class Member:
    """A node of the sequence."""

    name: str
    kind: int
    """Equal for equal blocks."""
    reads: tuple[tuple[Port, Ref], ...]
    """Each port with what it reads; of a list, by place."""
    boxes: int
    """How many blocks it stands for."""


@dataclass(frozen=True, slots=True)
class LayerRun:
    """Passes in a row."""

    start: int
    period: int
    """How many nodes a pass has."""
    passes: int
    carried: tuple[SeriesValue, ...]
    """What a pass reads of the one before."""
    saved: int
    """How many boxes folding it saves."""

    @property
    def end(self) -> int:
        """The first node after it."""
        return self.start + self.period * self.passes

    def place(self, index: int) -> tuple[int, int]:
        """Return the pass of a node, and its place in there."""
        return divmod(index - self.start, self.period)

    def window(self, number: int) -> range:
        """Return the nodes of a pass."""
        return range(self.start + number * self.period, self.start + (number + 1) * self.period)


@dataclass(frozen=True)
class LayerSeries:
    """A graph's nodes in their order, among which runs are found."""

    members: Sequence[Member]
    outputs: Sequence[Ref]
    """What the graph returns."""
    alike: bool
    """Whether all passes have to read the same from elsewhere."""

    @lazy
    def places(self) -> Mapping[str, int]:
        """Where each node stands."""
        return {member.name: index for index, member in enumerate(self.members)}

    @lazy
    def numbers(self) -> Sequence[Sequence[str]]:
        """Those in the name of each node."""
        return [re.findall(r"\d+", member.name) for member in self.members]

    @lazy
    def flowing(self) -> Sequence[int]:
        """For each node how many values of nodes below it are read by it or further up."""
        last = {self.places[ref.node]: len(self.members) for ref in self.outputs if ref.node in self.places}
        for index, member in enumerate(self.members):
            for _, ref in member.reads:
                if ref.node in self.places and index > last.get(self.places[ref.node], -1):
                    last[self.places[ref.node]] = index
        steps = [0] * (len(self.members) + 2)
        for made, read in last.items():
            steps[made + 1] += 1
            steps[read + 1] -= 1
        return list(accumulate(steps))

    @lazy
    def readers(self) -> Mapping[int, Sequence[tuple[int, Port]]]:
        """For each node who reads it, and at which port; what the graph returns is read above all nodes."""
        found: dict[int, list[tuple[int, Port]]] = {}
        reads = [(index, port, ref) for index, member in enumerate(self.members) for port, ref in member.reads]
        for index, port, ref in (*reads, *((len(self.members), (None, 0), ref) for ref in self.outputs)):
            if ref.node in self.places:
                found.setdefault(self.places[ref.node], []).append((index, port))
        return found

    def runs(self, low: int, high: int) -> list[LayerRun]:
        """Return the runs between two places, in order; first comes the one that saves most."""
        best = min(self._candidates(low, high), key=lambda run: (-run.saved, len(run.carried), run.start), default=None)
        if best is None:
            return []
        return [*self.runs(low, best.start), best, *self.runs(best.end, high)]

    def _candidates(self, low: int, high: int) -> Iterator[LayerRun]:
        """Yield the best run of each stretch in which kinds of blocks come again after some nodes."""
        kinds = [member.kind for member in self.members]
        found: list[LayerRun] = []

        def folded(start: int, end: int, period: int) -> bool:
            """Return whether a run of a part of the period is there already."""
            return any(one.start < start + period and end <= one.end + period and period % one.period == 0 for one in found)

        for period in range(1, (high - low) // 2 + 1):
            start = low
            for index in range(low, high - period + 1):
                if index < high - period and kinds[index] == kinds[index + period]:
                    continue
                if index - start >= period and not folded(start, index + period, period):
                    run = self._best(start, index + period, period)
                    if run is not None:
                        found.append(run)
                        yield run
                start = index + 1

    def _best(self, low: int, high: int, period: int) -> LayerRun | None:
        """Return the run of a period that carries least; of those, one in which the numbers in names change together."""

        def rank(start: int) -> tuple[int, int, int]:
            steps: set[tuple[str, str]] = set()
            for index in range(start, start + period):
                pairs = zip(self.numbers[index], self.numbers[index + period], strict=False)
                steps |= {(one, next_) for one, next_ in pairs if one != next_}
            return self.flowing[start + period], len(steps), start

        phases = sorted(range(low, min(low + period, high - 2 * period + 1)), key=rank)[:MAX_PHASES]
        found = [(number, run) for number, phase in enumerate(phases) for run in self._from(phase, high, period)]
        ranked = min(found, key=lambda one: (len(one[1].carried), -one[1].saved, one[0]), default=None)
        return ranked and ranked[1]

    def _from(self, start: int, high: int, period: int) -> Iterator[LayerRun]:
        """Yield the runs with a given beginning of the period."""
        while start + 2 * period <= high:
            passes, carried = self._passes(start, high, period)
            boxes = sum(member.boxes for member in self.members[start : start + period])
            if carried and (passes - 1) * boxes >= MIN_SAVED_BOXES:
                yield LayerRun(start, period, passes, carried, (passes - 1) * boxes)
            start += passes * period

    def _passes(self, start: int, high: int, period: int) -> tuple[int, tuple[SeriesValue, ...]]:
        """Return how many passes there are in a row, and what they carry on."""
        second: list[list[Reading]] = []
        entry: dict[SeriesValue, Ref] = {}
        for place in range(period):
            first = self.readings(start, period, 0, place)
            second.append(self.readings(start, period, 1, place))
            if not self._begins(first, second[-1], entry):
                return 1, ()
        if not self._flows(second, entry):
            return 1, ()
        passes = 2
        while start + (passes + 1) * period <= high and all(
            self.members[start + place].kind == self.members[start + passes * period + place].kind
            and self._counted(self.readings(start, period, passes, place)) == self._counted(second[place])
            for place in range(period)
        ):
            passes += 1
        return self._closed(start, period, passes), tuple(sorted(entry, key=str))

    def readings(self, start: int, period: int, number: int, place: int) -> list[Reading]:
        """Return what a node of some pass reads."""
        window = start + number * period
        found: list[Reading] = []
        for port, ref in self.members[window + place].reads:
            source = self.places.get(ref.node, -1)
            if source >= window:
                found.append(Reading(port, "same", (source - window, ref.port, ref.index)))
            elif number and source >= window - period:
                found.append(Reading(port, "before", (source - window + period, ref.port, ref.index)))
            else:
                found.append(Reading(port, "earlier" if source >= start else "elsewhere", None, ref))
        return found

    def _flows(self, readings: Sequence[Sequence[Reading]], entry: Mapping[SeriesValue, Ref]) -> bool:
        """Return whether all that a pass carries on comes from what it was given by the one before: branches side
        by side do not.
        """
        given: set[int] = set()
        for place, several in enumerate(readings):
            if any(one.way == "before" or (one.way == "same" and one.value and one.value[0] in given) for one in several):
                given.add(place)
        return all(place in given for place, *_ in entry)

    def _begins(self, first: Sequence[Reading], second: Sequence[Reading], entry: dict[SeriesValue, Ref]) -> bool:
        """Return whether a node of the first pass is given from elsewhere what the one of the second reads of the first, and is
        equal otherwise; `entry` tells what stands for each carried value at the beginning.
        """
        carried = {one.port: one.value for one in second if one.value and one.way == "before"}
        given = {one.port: one.ref for one in first if one.ref and one.port in carried}
        if carried.keys() != given.keys() or any(entry.setdefault(carried[port], ref) != ref for port, ref in given.items()):
            return False
        rest = [one for one in first if one.port not in carried]
        return self._counted(rest) == self._counted([one for one in second if one.port not in carried])

    def _counted(self, readings: Sequence[Reading]) -> Sequence[Reading]:
        """Return what has to be equal from pass to pass."""
        return readings if self.alike else [one for one in readings if one.way != "elsewhere"]

    def _closed(self, start: int, period: int, passes: int) -> int:
        """Return how many of the passes there are until one is read from elsewhere; lists of what every pass
        gives do not count.
        """
        end = start + passes * period
        listed: dict[tuple[int, Hashable, int], int] = {}
        for index in range(start, end):
            for reader, port in self.readers.get(index, ()):
                if reader >= end:
                    key = (reader, port[0], (index - start) % period)
                    listed[key] = listed.get(key, 0) + 1
        for index in range(start, end - period):
            for reader, port in self.readers.get(index, ()):
                every = port[0] is not None and listed.get((reader, port[0], (index - start) % period)) == passes
                if reader >= end and not every:
                    return (index - start) // period + 1
        return passes
