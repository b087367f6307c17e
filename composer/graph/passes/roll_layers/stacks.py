"""Runs of equal layers in a graph, and what each of them is."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from composer.graph.parameters import NamedParameter, holders
from composer.graph.passes.roll_layers.node_kinds import Kinds, Port, boxes, reads
from composer.graph.passes.roll_layers.series import LayerRun, LayerSeries, Member, SeriesValue
from composer.graph.typed import TypedGraph
from composer.memo import Numbering

MAX_KINDS = 3
"""Kinds of layers that one frame can show, however they differ."""
MAX_FIELD_VALUES = 6
"""Values of a field that a frame lists one by one: layers that differ in nothing else may be of as many kinds."""


Ownership: TypeAlias = tuple[tuple[str, str | int], ...]


@dataclass(frozen=True, slots=True)
class LayerStack:
    """A run of layers, and what each of them is."""

    run: LayerRun
    carried: Mapping[tuple[int, Port], SeriesValue]
    """Which node reads at which port what."""
    kinds: tuple[Hashable, ...]
    """Equal for equal passes."""
    around: tuple[Hashable, ...]
    """What each pass reads from outside of all."""
    shared: bool
    """Whether all have the parameters of the first."""


class StackFinder:
    """Finds layers, by what their nodes compute and whose parameters they have."""

    def __init__(self, table: Sequence[NamedParameter]) -> None:
        self.kinds, self.forms = Kinds(), Kinds(bare=True)
        self.owners: dict[str, list[tuple[str, str]]] = {}
        """Of each path the names of all parameters below, and of whose they are."""
        self.tied: dict[str, list[tuple[str, str]]] = {}
        """Of each place those that are another's."""
        for entry in table:
            for path in holders(entry.name):
                self.owners.setdefault(path, []).append((entry.name, entry.owner))
                if entry.tied_to:
                    self.tied.setdefault(f"{path}.", []).append((entry.name, entry.owner))

    def ownership(self, place: str) -> Ownership:
        """Return whose parameters those below a place are that are another's; equal where only the names
        of owners outside differ.
        """
        outside: Numbering[str] = Numbering()
        return tuple(
            (name.removeprefix(place), owner.removeprefix(place) if owner.startswith(place) else outside.of(owner))
            for name, owner in self.tied.get(place, ())
        )

    def within(self, graph: TypedGraph, place: str) -> list[LayerStack]:
        """Return the layers in a graph: equal ones in a row, or such as have one name but for the number and are
        of a few kinds.
        """
        outputs = [ref for _, ref in graph.graph.outputs]
        nodes = [(node, tuple(reads(node)), count) for node, count in zip(graph.nodes, boxes(graph), strict=True)]
        found: list[LayerStack] = []
        for kind, alike in ((self.kinds.of, True), (self.kinds.similar, False)):
            members = [Member(node.name, kind(node), read, count) for node, read, count in nodes]
            series = LayerSeries(members, outputs, alike)
            found += [self._stack(graph, series, run, place) for run in series.runs(0, len(nodes))]
        kept: list[LayerStack] = []
        for stack in sorted(found, key=lambda one: (-one.run.saved, len(one.run.carried), one.run.start)):
            apart = all(stack.run.end <= one.run.start or one.run.end <= stack.run.start for one in kept)
            if apart and self._distinguishable(graph, stack):
                kept.append(stack)
        return sorted(kept, key=lambda one: one.run.start)

    def _distinguishable(self, graph: TypedGraph, stack: LayerStack) -> bool:
        """Return whether one frame can show the kinds of layers: they are few, or differ in some fields only."""
        kinds, run = len(set(stack.kinds)), stack.run
        forms = {tuple(self.forms.of(graph.nodes[index]) for index in run.window(number)) for number in range(run.passes)}
        fields_only = len(forms) == len(set(stack.around)) == 1 and run.passes > 2
        return kinds <= max(min(MAX_KINDS, run.passes // 2), 1, MAX_FIELD_VALUES if fields_only else 0)

    def _stack(self, graph: TypedGraph, series: LayerSeries, run: LayerRun, place: str) -> LayerStack:
        """Return a run, with what its passes are."""
        passes = range(run.passes)
        carried = {
            (index, one.port): one.value
            for index in range(run.period)
            for one in series.readings(run.start, run.period, 1, index)
            if one.value and one.way == "before"
        }
        whose = [[one for index in run.window(number) for one in self._owned(graph, run, index, place)] for number in passes]
        firsts = [(index, name, "first", index, name) for index, name, *_ in whose[0]]
        shared = bool(firsts) and all(one == firsts for one in whose[1:])
        around = [
            tuple(tuple(self._elsewhere(series, run, number, index, carried)) for index in run.window(number))
            for number in passes
        ]
        kinds: list[Hashable] = []
        for number in passes:
            what = tuple(self.kinds.of(graph.nodes[index]) for index in run.window(number))
            others = () if shared else tuple(one for one in whose[number] if one[2] != "own")
            kinds.append((what, around[number], others))
        return LayerStack(run, carried, tuple(kinds), tuple(around), shared)

    def _elsewhere(
        self, series: LayerSeries, run: LayerRun, number: int, index: int, carried: Mapping[tuple[int, Port], object]
    ) -> Iterator[object]:
        """Yield what a node reads from outside of all passes, but for what the first pass is given instead of what is carried."""
        at = index - run.window(number).start
        for one in series.readings(run.start, run.period, number, at):
            if one.way == "elsewhere" and (at, one.port) not in carried:
                yield one

    def _owned(self, graph: TypedGraph, run: LayerRun, index: int, place: str) -> Iterator[tuple[object, ...]]:
        """Yield the parameters of a node of a run, and whose they are: its own, of its pass, of the first pass, or another's."""
        number, at = run.place(index)
        node = f"{place}{graph.nodes[index].name}"
        ours, firsts = (
            {f"{place}{graph.nodes[one].name}": step for step, one in enumerate(run.window(which))} for which in (number, 0)
        )
        for name, owner in self.owners.get(node, ()):
            other = next((one for one in (*ours, *firsts) if owner.startswith(f"{one}.")), "")
            own = name.removeprefix(f"{node}.")
            if name == owner:
                yield at, own, "own"
            elif other in ours:
                yield at, own, "same", ours[other], owner.removeprefix(f"{other}.")
            elif other:
                yield at, own, "first", firsts[other], owner.removeprefix(f"{other}.")
            else:
                yield at, own, owner
