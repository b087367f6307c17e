"""Layers that a recipe writes one by one, as the repeat that they are."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from composer.draw.kinds import Kinds, Port, boxes, reads, rewired, wires
from composer.draw.merge import MOST_TOLD
from composer.draw.series import Member, Run, Series, Value
from composer.draw.starts import Starts
from composer.graph.ir import Graph, GraphInput, Pass, Ref, RepeatNode, Wire
from composer.graph.parameters import NamedParameter, parameters
from composer.graph.typed import TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan
from composer.graph.types import Type

MOST_KINDS = 3
"""Kinds of layers that one frame tells apart whatever they are."""
LAYERS = "layers"
"""What a repeat is called whose passes have no name."""


@dataclass(frozen=True, slots=True)
class Names:
    """How the nodes of a graph are called where its layers are folded."""

    steps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of what has moved, the way to it: `norm3` is at `layers`, `2`, `norm`."""
    below: Mapping[str, Names] = field(default_factory=dict)
    """Of what has a graph of its own, the names in there; of a repeat, by pass."""

    def called(self, path: str) -> str:
        """A path as it is after folding."""
        found: list[str] = []
        here = self
        for step in path.split("."):
            found += here.steps.get(step, (step,))
            here = here.below.get(step, NOTHING)
        return ".".join(found)


NOTHING = Names()


@dataclass(frozen=True, slots=True)
class Model:
    """A model as it is drawn."""

    typed: TypedProgram
    parameters: tuple[NamedParameter, ...]
    """By their names in that graph."""
    written: tuple[NamedParameter, ...]
    """The same, by their names in the recipe."""
    starts: Starts
    names: Names = NOTHING
    """From the recipe's names to those."""


def as_written(typed: TypedProgram) -> Model:
    """The model node by node, as the recipe has it."""
    table = parameters(typed)
    return _model(typed, table, table)


def folded(typed: TypedProgram) -> Model:
    """The model with every series of equal layers as a repeat."""
    table = parameters(typed)
    root, names = _Folder(table).graph(typed.root, "")
    if root is typed.root:
        return _model(typed, table, table)
    called = names.called
    entries = (replace(one, name=called(one.name), tied_to=called(one.tied_to) if one.tied_to else "") for one in table)
    return _model(replace(typed, root=root), tuple(entries), table, names)


def _model(
    typed: TypedProgram, table: tuple[NamedParameter, ...], written: tuple[NamedParameter, ...], names: Names = NOTHING
) -> Model:
    return Model(typed, table, written, Starts(typed.program, table, written), names)


@dataclass(frozen=True, slots=True)
class Stack:
    """A run of layers, and what each of them is."""

    run: Run
    carried: Mapping[tuple[int, Port], Value]
    """Which node reads at which port what."""
    kinds: tuple[Hashable, ...]
    """Equal for equal passes."""
    around: tuple[Hashable, ...]
    """What each pass reads from outside of all."""
    shared: bool
    """Whether all have the parameters of the first."""


class _Folder:
    """Folds graphs, the outer ones first."""

    def __init__(self, table: Sequence[NamedParameter]) -> None:
        self.kinds, self.forms = Kinds(), Kinds(bare=True)
        self.done: dict[int, tuple[TypedGraph, Names]] = {}
        self.kept: list[TypedGraph] = []
        self.owners: dict[str, list[tuple[str, str]]] = {}
        """Of each path the names of all parameters below, and of whose they are."""
        for entry in table:
            steps = entry.name.split(".")
            for end in range(1, len(steps)):
                self.owners.setdefault(".".join(steps[:end]), []).append((entry.name, entry.owner))

    def graph(self, graph: TypedGraph, place: str) -> tuple[TypedGraph, Names]:
        """A graph with its layers folded, whose nodes stand at a place; the graph itself where it has none."""
        if id(graph) not in self.done:
            self.kept.append(graph)
            self.done[id(graph)] = self._graph(graph, place)
        return self.done[id(graph)]

    def _graph(self, graph: TypedGraph, place: str) -> tuple[TypedGraph, Names]:
        if stacks := self._stacks(graph, place):
            return _Fold(self, graph, place, stacks).result()
        inside = [self.node(node, place) for node in graph.nodes]
        nodes = tuple(node for node, _ in inside)
        if all(ours is theirs for ours, theirs in zip(nodes, graph.nodes, strict=True)):
            return graph, NOTHING
        names = Names({}, {node.name: below for node, below in inside})
        return replace(graph, nodes=nodes, by_name={node.name: node for node in nodes}), names

    def node(self, node: TypedNode, place: str) -> tuple[TypedNode, Names]:
        """A node with what is in it folded, and the names there."""
        match node:
            case TypedGroup() | TypedScan():
                graph, names = self.graph(node.graph, f"{place}{node.name}.")
                return (node if graph is node.graph else replace(node, graph=graph)), names
            case TypedRepeat(passes=passes):
                inner = [self.graph(one, f"{place}{node.name}.{node.prefix(number)}") for number, one in enumerate(passes)]
                if all(graph is one for (graph, _), one in zip(inner, passes, strict=True)):
                    return node, NOTHING
                first = inner[0][1]  # a path may leave the pass out
                below = {**first.below, **{str(number): names for number, (_, names) in enumerate(inner)}}
                return replace(node, passes=tuple(graph for graph, _ in inner)), Names(first.steps, below)
        return node, NOTHING

    def _stacks(self, graph: TypedGraph, place: str) -> list[Stack]:
        """The layers in a graph: equal ones in a row, or such as have one name but for the number and are of a few kinds."""
        outputs = [ref for _, ref in graph.graph.outputs]
        nodes = [(node, tuple(reads(node)), boxes([node])) for node in graph.nodes]
        found: list[Stack] = []
        for kind, alike in ((self.kinds.of, True), (self.kinds.akin, False)):
            members = [Member(node.name, kind(node), read, count) for node, read, count in nodes]
            series = Series(members, outputs, alike)
            found += [self._stack(graph, series, run, place) for run in series.runs(0, len(nodes))]
        kept: list[Stack] = []
        for stack in sorted(found, key=lambda one: (-one.run.saved, len(one.run.carried), one.run.start)):
            apart = all(stack.run.end <= one.run.start or one.run.end <= stack.run.start for one in kept)
            if apart and self._told(graph, stack):
                kept.append(stack)
        return sorted(kept, key=lambda one: one.run.start)

    def _told(self, graph: TypedGraph, stack: Stack) -> bool:
        """Whether one frame can tell the kinds of layers apart: they are few, or differ in some fields only."""
        kinds, run = len(set(stack.kinds)), stack.run
        forms = {tuple(self.forms.of(graph.nodes[index]) for index in run.window(number)) for number in range(run.passes)}
        fields_only = len(forms) == len(set(stack.around)) == 1 and run.passes > 2
        return kinds <= max(min(MOST_KINDS, run.passes // 2), 1, MOST_TOLD if fields_only else 0)

    def _stack(self, graph: TypedGraph, series: Series, run: Run, place: str) -> Stack:
        """A run, with what its passes are."""
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
        return Stack(run, carried, tuple(kinds), tuple(around), shared)

    def _elsewhere(
        self, series: Series, run: Run, number: int, index: int, carried: Mapping[tuple[int, Port], object]
    ) -> Iterator[object]:
        """What a node reads from outside of all passes, but for what the first pass is given instead of what is carried."""
        at = index - run.window(number).start
        for one in series.readings(run.start, run.period, number, at):
            if one.way == "elsewhere" and (at, one.port) not in carried:
                yield one

    def _owned(self, graph: TypedGraph, run: Run, index: int, place: str) -> Iterator[tuple[object, ...]]:
        """The parameters of a node of a run, and whose they are: its own, the first pass's, or another's."""
        at = run.place(index)[1]
        node = f"{place}{graph.nodes[index].name}"
        firsts = {f"{place}{graph.nodes[one].name}": one - run.start for one in run.window(0)}
        for name, owner in self.owners.get(node, ()):
            other = next((one for one in firsts if owner.startswith(f"{one}.")), "")
            own = name.removeprefix(f"{node}.")
            if name == owner:
                yield at, own, "own"
            elif other:
                yield at, own, "first", firsts[other], owner.removeprefix(f"{other}.")
            else:
                yield at, own, owner


class _Fold:
    """One graph while its layers become repeats."""

    def __init__(self, folder: _Folder, graph: TypedGraph, place: str, stacks: Sequence[Stack]) -> None:
        self.folder, self.graph = folder, graph
        self.inside = {node.name: folder.node(node, place) for node in graph.nodes}
        moving = {graph.nodes[index].name for stack in stacks for index in range(stack.run.start, stack.run.end)}
        self.taken = {one.name for one in graph.graph.inputs} | {node.name for node in graph.nodes if node.name not in moving}
        self.at: dict[str, tuple[_Layers, int, int]] = {}
        """Of each node that moves, the repeat, the pass and its place in there."""
        self.stacks = {stack.run.start: _Layers(self, stack) for stack in stacks}
        for layers in self.stacks.values():
            for index in range(layers.run.start, layers.run.end):
                self.at[graph.nodes[index].name] = (layers, *layers.run.place(index))

    def result(self) -> tuple[TypedGraph, Names]:
        """The graph, and the names in it."""
        nodes: list[TypedNode] = []
        steps: dict[str, tuple[str, ...]] = {}
        for index, node in enumerate(self.graph.nodes):
            if layers := self.stacks.get(index):
                nodes.append(layers.repeat())
                steps |= layers.steps
            if node.name not in self.at:
                nodes.append(self._rewired(self.inside[node.name][0]))
        outputs = tuple((name, self.moved(ref)) for name, ref in self.graph.graph.outputs)
        inner = Graph(self.graph.graph.inputs, tuple(node.node for node in nodes), outputs)
        names = Names(steps, {name: below for name, (_, below) in self.inside.items()})
        return TypedGraph(inner, self.graph.inputs, tuple(nodes), self.graph.outputs, {n.name: n for n in nodes}), names

    def _rewired(self, node: TypedNode) -> TypedNode:
        lists = {port for port, nth in (port for port, _ in reads(node)) if nth}
        return rewired(node, lambda port, ref: self.moved(ref, listed=port[0] in lists))

    def moved(self, ref: Ref, *, listed: bool = False) -> Ref:
        """A reference where layers are folded; the last pass has a number only in a list."""
        if ref.node not in self.at:
            return ref
        layers, number, place = self.at[ref.node]
        last = number == layers.run.passes - 1 and not listed
        return Ref(layers.name, layers.port((place, ref.port, ref.index)), None if last else number)

    def free(self, name: str) -> str:
        """A name that nothing else has."""
        found = first_free(name, self.taken)
        self.taken.add(found)
        return found

    def read(self, run: Run) -> set[Value]:
        """What is read of a run from outside."""
        places = {self.graph.nodes[index].name: run.place(index)[1] for index in range(run.start, run.end)}
        others = [node for node in self.graph.nodes if node.name not in places]
        refs = [*(ref for node in others for _, ref in reads(node)), *(ref for _, ref in self.graph.graph.outputs)]
        return {(places[ref.node], ref.port, ref.index) for ref in refs if ref.node in places}


class _Layers:
    """A stack while it becomes a repeat."""

    def __init__(self, fold: _Fold, stack: Stack) -> None:
        self.fold, self.stack, self.run = fold, stack, stack.run
        self.nodes = fold.graph.nodes[self.run.start : self.run.end]
        self.main = max(self.run.carried, key=lambda value: (value[0], self._first(value), str(value)))
        self.opened = self._opened()
        self.names: list[str] = []
        for place in range(self.run.period):
            self.names.append(first_free(stem([node.name for node in self.nodes[place :: self.run.period]]), self.names))
        self.name = fold.free(self.names[0] if self.opened else LAYERS)
        self.steps: dict[str, tuple[str, ...]] = {}
        """Where every node is now."""

    def _first(self, value: Value) -> bool:
        """Whether a value is what a node gives first."""
        place, port, number = value
        return number is None and port in ("", next(iter(self.nodes[place].outputs), ""))

    def _opened(self) -> bool:
        """Whether each pass is one group, whose graph is then that of the pass."""
        groups = all(isinstance(node, TypedGroup) and node.node.part is None and not node.node.dropped for node in self.nodes)
        return groups and self.run.period == 1 and len(self.run.carried) == 1 and self._first(self.main)

    def port(self, value: Value) -> str:
        """What a value is called among those that the repeat gives; nothing for what is carried on, which comes first."""
        place, port, number = value
        if value == self.main or (place == self.main[0] and self._first(value) and self._first(self.main)):
            return ""
        name = self.names[place] + ("" if number is None else f"({number})")
        return port if self.opened else f"{name}.{port}" if port else name

    def repeat(self) -> TypedRepeat:
        """The repeat; equal passes are one object."""
        graphs: dict[Hashable, tuple[TypedGraph, Names, int]] = {}
        passes: list[Pass] = []
        typed: list[TypedGraph] = []
        for number, kind in enumerate(self.stack.kinds):
            if kind not in graphs:
                graphs[kind] = (*(self._group(number) if self.opened else self._pass(number)), number)
            graph, names, model = graphs[kind]
            given = self._handed(number, model) if self.opened else self._given(number)[0].items()
            typed.append(graph)
            passes.append(Pass(graph.graph, tuple(self._wire(name, ref) for name, ref in given)))
            head = (self.name,) if self.stack.shared and not number else (self.name, str(number))
            for node, name in zip(self._nodes(number), self.names, strict=True):
                self.steps[node.name] = head if self.opened else (*head, *names.steps.get(name, (name,)))
        first, *_, last = sorted(self.nodes, key=lambda node: node.node.name_span.line)
        named, whole = first.node.name_span, last.node.span
        span = replace(named, end_line=whole.end_line, end_column=whole.end_column) if whole.source == named.source else named
        share = named if self.stack.shared else None
        return TypedRepeat(RepeatNode(self.name, tuple(passes), share=share, span=span, name_span=named), tuple(typed))

    def _nodes(self, number: int) -> Sequence[TypedNode]:
        """The nodes of a pass."""
        return self.nodes[number * self.run.period : (number + 1) * self.run.period]

    def _wire(self, name: str, refs: Sequence[Ref]) -> Wire:
        return Wire(name, tuple(self.fold.moved(ref, listed=len(refs) > 1) for ref in refs), self.nodes[0].node.name_span)

    def _group(self, number: int) -> tuple[TypedGraph, Names]:
        """The graph of a group, which is first given what is carried."""
        group = cast(TypedGroup, self.fold.inside[self.nodes[number].name][0])
        inputs = group.graph.graph.inputs
        first = min(cast(int, port) for _, (port, _) in self.stack.carried)
        ordered = (replace(inputs[first], captured=False), *inputs[:first], *inputs[first + 1 :])
        return replace(group.graph, graph=replace(group.graph.graph, inputs=ordered)), NOTHING

    def _handed(self, number: int, model: int) -> Iterator[tuple[str, Sequence[Ref]]]:
        """What a group is given, by the names in the one whose graph stands for it."""
        own, other = (cast(TypedGroup, self.nodes[one]).graph.graph.inputs for one in (number, model))
        called = {one.name: its.name for one, its in zip(own, other, strict=True)}
        for _, wire in wires(self.nodes[number]):
            yield called[wire.port], wire.refs

    def _given(self, number: int) -> tuple[dict[str, Sequence[Ref]], dict[tuple[int, Port], str]]:
        """What a pass is given, by name, what is carried first; and how each port that reads it calls it."""
        own = {node.name for node in self._nodes(number)}
        outer = [
            ((place, port), ref)
            for place, node in enumerate(self._nodes(number))
            for port, ref in reads(node)
            if ref.node not in own
        ]
        carried = self.stack.carried
        outer.sort(key=lambda one: (one[0] not in carried, carried.get(one[0]) != self.main))
        names: dict[object, str] = {}
        given: dict[str, Sequence[Ref]] = {}
        for at, ref in outer:
            what = carried.get(at, ref)
            if what not in names:
                names[what] = first_free("input" if at in carried else ref.node, [*self.names, *given])
                given[names[what]] = (ref,)
        return given, {at: names[carried.get(at, ref)] for at, ref in outer}

    def _pass(self, number: int) -> tuple[TypedGraph, Names]:
        """The graph of a pass."""
        around, nodes = self.fold.graph, self._nodes(number)
        given, called = self._given(number)
        types = {name: around.type_of(ref) for name, (ref,) in given.items()}
        carried = {called[at] for at in self.stack.carried}
        inputs = tuple(GraphInput(name, isinstance(types[name], tuple), name not in carried) for name in given)
        places = {node.name: place for place, node in enumerate(nodes)}
        found: list[TypedNode] = []
        for place, node in enumerate(nodes):

            def here(port: Port, ref: Ref, place: int = place) -> Ref:
                own = ref.node in places
                return replace(ref, node=self.names[places[ref.node]]) if own else Ref(called[place, port])

            found.append(renamed(rewired(self.fold.inside[node.name][0], here), self.names[place]))
        values = sorted({*self.run.carried, *self.fold.read(self.run)}, key=lambda value: (self.port(value) != "", str(value)))
        outputs = {self.port(value): Ref(self.names[value[0]], *value[1:]) for value in reversed(values)}
        ordered = tuple(reversed(outputs.items()))
        graph = TypedGraph(
            Graph(inputs, tuple(node.node for node in found), ordered),
            types,
            tuple(found),
            {},
            {node.name: node for node in found},
        )
        gives = {name: cast(Type, graph.type_of(ref)) for name, ref in ordered}
        return self.fold.folder.graph(replace(graph, outputs=gives), "")


def renamed(node: TypedNode, name: str) -> TypedNode:
    """The node under another name."""
    return replace(node, node=replace(node.node, name=name))  # type: ignore[arg-type]  # each kind with its own


def first_free(name: str, taken: Collection[str]) -> str:
    """The name, with a number where it is taken."""
    return next(one for one in (name, *(f"{name}_{n}" for n in range(2, len(taken) + 3))) if one not in taken)


def stem(names: Sequence[str]) -> str:
    """What names have in common that differ in numbers, `norm` for `norm1` and `norm2`; the first where they differ otherwise."""
    split = [re.split(r"(\d+)", name) for name in names]
    if len({len(parts) for parts in split}) > 1 or any(len(set(parts)) > 1 for parts in list(zip(*split, strict=True))[::2]):
        return names[0]
    same = [alike[0] if len(set(alike)) == 1 else "" for alike in zip(*split, strict=True)]
    found = re.sub(r"_+", "_", "".join(same)).strip("_")
    return found if found.isidentifier() else names[0]
