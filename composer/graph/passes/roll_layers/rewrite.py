"""A graph whose stacks of layers become repeats."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from composer.graph.anatomy import renamed
from composer.graph.ir import Graph, GraphInput, Pass, Ref, RepeatNode, Wire
from composer.graph.passes.roll_layers.node_kinds import Port, reads, rewired, wires
from composer.graph.passes.roll_layers.rolled_names import UNCHANGED, RolledNames
from composer.graph.passes.roll_layers.series import LayerRun, SeriesValue
from composer.graph.passes.roll_layers.stacks import LayerStack
from composer.graph.typed import TypedGraph, TypedGroup, TypedNode, TypedRepeat
from composer.graph.types import Type
from composer.language.recipe.free_names import fresh

LAYERS = "layers"
"""The name of a repeat whose passes have no common name."""


class StackRewriter:
    """One graph while its layers become repeats."""

    def __init__(
        self,
        graph: TypedGraph,
        inside: Mapping[str, tuple[TypedNode, RolledNames]],
        stacks: Sequence[LayerStack],
        fold_pass: Callable[[TypedGraph], tuple[TypedGraph, RolledNames]],
    ) -> None:
        self.graph, self.inside = graph, inside
        """Each node with what is in it folded, and the names there."""
        self.fold_pass = fold_pass
        """Folds what is in a pass."""
        moving = {graph.nodes[index].name for stack in stacks for index in range(stack.run.start, stack.run.end)}
        self.taken = {one.name for one in graph.graph.inputs} | {node.name for node in graph.nodes if node.name not in moving}
        self.at: dict[str, tuple[_Layers, int, int]] = {}
        """Of each node that moves, the repeat, the pass and its place in there."""
        self.stacks = {stack.run.start: _Layers(self, stack) for stack in stacks}
        for layers in self.stacks.values():
            for index in range(layers.run.start, layers.run.end):
                self.at[graph.nodes[index].name] = (layers, *layers.run.place(index))

    def result(self) -> tuple[TypedGraph, RolledNames]:
        """Return the graph, and the names in it."""
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
        names = RolledNames(steps, {name: below for name, (_, below) in self.inside.items()})
        return TypedGraph(inner, self.graph.inputs, tuple(nodes), self.graph.outputs, {n.name: n for n in nodes}), names

    def _rewired(self, node: TypedNode) -> TypedNode:
        lists = {port for port, nth in (port for port, _ in reads(node)) if nth}
        return rewired(node, lambda port, ref: self.moved(ref, listed=port[0] in lists))

    def moved(self, ref: Ref, *, listed: bool = False) -> Ref:
        """Return a reference where layers are folded; the last pass has a number only in a list."""
        if ref.node not in self.at:
            return ref
        layers, number, place = self.at[ref.node]
        last = number == layers.run.passes - 1 and not listed
        return Ref(layers.name, layers.port((place, ref.port, ref.index)), None if last else number)

    def free(self, name: str) -> str:
        """Return a name that nothing else has."""
        found = fresh(name, self.taken)
        self.taken.add(found)
        return found

    def read(self, run: LayerRun) -> set[SeriesValue]:
        """Return what is read of a run from outside."""
        places = {self.graph.nodes[index].name: run.place(index)[1] for index in range(run.start, run.end)}
        others = [node for node in self.graph.nodes if node.name not in places]
        refs = [*(ref for node in others for _, ref in reads(node)), *(ref for _, ref in self.graph.graph.outputs)]
        return {(places[ref.node], ref.port, ref.index) for ref in refs if ref.node in places}


class _Layers:
    """A stack while it becomes a repeat."""

    def __init__(self, fold: StackRewriter, stack: LayerStack) -> None:
        self.fold, self.stack, self.run = fold, stack, stack.run
        self.nodes = fold.graph.nodes[self.run.start : self.run.end]
        self.main = max(self.run.carried, key=lambda value: (value[0], self._first(value), str(value)))
        self.opened = self._opened()
        self.names: list[str] = []
        for place in range(self.run.period):
            self.names.append(fresh(stem([node.name for node in self.nodes[place :: self.run.period]]), self.names))
        self.name = fold.free(self.names[0] if self.opened else LAYERS)
        self.steps: dict[str, tuple[str, ...]] = {}
        """Where every node is now."""

    def _first(self, value: SeriesValue) -> bool:
        """Return whether a value is the first output of a node."""
        place, port, number = value
        return number is None and port in ("", next(iter(self.nodes[place].outputs), ""))

    def _opened(self) -> bool:
        """Return whether each pass is one group, whose graph is then that of the pass."""
        groups = all(isinstance(node, TypedGroup) and node.node.part is None for node in self.nodes)
        return groups and self.run.period == 1 and len(self.run.carried) == 1 and self._first(self.main)

    def port(self, value: SeriesValue) -> str:
        """Return what a value is called among those that the repeat gives; nothing for what is carried on, which comes first."""
        place, port, number = value
        if value == self.main or (place == self.main[0] and self._first(value) and self._first(self.main)):
            return ""
        name = self.names[place] + ("" if number is None else f"({number})")
        return port if self.opened else f"{name}.{port}" if port else name

    def repeat(self) -> TypedRepeat:
        """Return the repeat; equal passes are one object."""
        graphs: dict[Hashable, tuple[TypedGraph, RolledNames, int]] = {}
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
        """Return the nodes of a pass."""
        return self.nodes[number * self.run.period : (number + 1) * self.run.period]

    def _wire(self, name: str, refs: Sequence[Ref]) -> Wire:
        return Wire(name, tuple(self.fold.moved(ref, listed=len(refs) > 1) for ref in refs), self.nodes[0].node.name_span)

    def _group(self, number: int) -> tuple[TypedGraph, RolledNames]:
        """Return the graph of a group, which is first given what is carried."""
        group = cast(TypedGroup, self.fold.inside[self.nodes[number].name][0])
        inputs = group.graph.graph.inputs
        first = min(cast(int, port) for _, (port, _) in self.stack.carried)
        ordered = (replace(inputs[first], captured=False), *inputs[:first], *inputs[first + 1 :])
        return replace(group.graph, graph=replace(group.graph.graph, inputs=ordered)), UNCHANGED

    def _handed(self, number: int, model: int) -> Iterator[tuple[str, Sequence[Ref]]]:
        """Yield what a group is given, by the names in the one whose graph stands for it."""
        own, other = (cast(TypedGroup, self.nodes[one]).graph.graph.inputs for one in (number, model))
        called = {one.name: its.name for one, its in zip(own, other, strict=True)}
        for _, wire in wires(self.nodes[number]):
            yield called[wire.port], wire.refs

    def _given(self, number: int) -> tuple[dict[str, Sequence[Ref]], dict[tuple[int, Port], str]]:
        """Return what a pass is given, by name, what is carried first; and how each port that reads it calls it."""
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
                names[what] = fresh("input" if at in carried else ref.node, [*self.names, *given])
                given[names[what]] = (ref,)
        return given, {at: names[carried.get(at, ref)] for at, ref in outer}

    def _pass(self, number: int) -> tuple[TypedGraph, RolledNames]:
        """Return the graph of a pass."""
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
        return self.fold.fold_pass(replace(graph, outputs=gives))


def stem(names: Sequence[str]) -> str:
    """Return what names have in common that differ in numbers, `norm` for `norm1` and `norm2`; the first
    where they differ otherwise.
    """
    split = [re.split(r"(\d+)", name) for name in names]
    if len({len(parts) for parts in split}) > 1 or any(len(set(parts)) > 1 for parts in list(zip(*split, strict=True))[::2]):
        return names[0]
    same = [alike[0] if len(set(alike)) == 1 else "" for alike in zip(*split, strict=True)]
    found = re.sub(r"_+", "_", "".join(same)).strip("_")
    return found if found.isidentifier() else names[0]
