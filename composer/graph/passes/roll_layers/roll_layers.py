"""Layers that a recipe writes one by one, as the repeat that they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from composer.graph.anatomy import rebuilt, regions, with_nodes
from composer.graph.initial_values import InitDescriptions
from composer.graph.parameters import NamedParameter, parameters
from composer.graph.passes.roll_layers.rewrite import StackRewriter
from composer.graph.passes.roll_layers.rolled_names import UNCHANGED, RolledNames
from composer.graph.passes.roll_layers.stacks import Ownership, StackFinder
from composer.graph.typed import TypedGraph, TypedNode, TypedProgram
from composer.memo import Interned


@dataclass(frozen=True, slots=True)
class RolledProgram:
    """A model as readers are shown it."""

    program: TypedProgram
    parameters: tuple[NamedParameter, ...]
    """By their names in that graph."""
    written: tuple[NamedParameter, ...]
    """The same, by their names in the recipe."""
    starts: InitDescriptions
    names: RolledNames = UNCHANGED
    """From the recipe's names to those."""


def as_written(typed: TypedProgram) -> RolledProgram:
    """Return the model node by node, as the recipe has it."""
    table = parameters(typed)
    return _model(typed, table, table)


def roll_layers(typed: TypedProgram) -> tuple[TypedProgram, RolledNames]:
    """Make every series of equal layers a repeat, for readers: names of parameters and of what the recipe says stay the recipe's.

    Before:
        graph:
          a1: {type: residual, norm: rmsnorm, body: {type: ffn, hidden: 16}}
          a2: {type: residual, norm: rmsnorm, body: {type: ffn, hidden: 16}}
          a3: {type: residual, norm: rmsnorm, body: {type: ffn, hidden: 16}}
    After:
        layers: 3 passes of a

    Returns:
        The program, itself where it has no such layers, and how its nodes are called now.
    """
    root, names = _Folder(parameters(typed)).graph(typed.root, "")
    return (typed, UNCHANGED) if root is typed.root else (replace(typed, root=root), names)


def folded(typed: TypedProgram) -> RolledProgram:
    """Return the model with every series of equal layers as a repeat."""
    table = parameters(typed)
    rolled, names = roll_layers(typed)
    if rolled is typed:
        return _model(typed, table, table)
    called = names.called
    entries = (replace(one, name=called(one.name), tied_to=called(one.tied_to) if one.tied_to else "") for one in table)
    return _model(rolled, tuple(entries), table, names)


def _model(
    typed: TypedProgram, table: tuple[NamedParameter, ...], written: tuple[NamedParameter, ...], names: RolledNames = UNCHANGED
) -> RolledProgram:
    return RolledProgram(typed, table, written, InitDescriptions(typed.untyped, table, written), names)


class _Folder:
    """Folds graphs; layers are looked for in each as it is written."""

    def __init__(self, table: Sequence[NamedParameter]) -> None:
        self.stacks = StackFinder(table)
        self.done: Interned[tuple[TypedGraph, Ownership], tuple[TypedGraph, RolledNames]] = Interned()
        """Of each graph, and of whose parameters it has, what it has become."""

    def graph(self, graph: TypedGraph, place: str) -> tuple[TypedGraph, RolledNames]:
        """Return a graph with its layers folded, whose nodes stand at a place; the graph itself where it has none."""
        return self.done.get((graph, self.stacks.ownership(place)), lambda: self._graph(graph, place))

    def _graph(self, graph: TypedGraph, place: str) -> tuple[TypedGraph, RolledNames]:
        inside = {node.name: self.node(node, place) for node in graph.nodes}
        if stacks := self.stacks.within(graph, place):
            return StackRewriter(graph, inside, stacks, lambda one: self.graph(one, "")).result()
        found = with_nodes(graph, [node for node, _ in inside.values()])
        if found is graph:
            return graph, UNCHANGED
        names = RolledNames({}, {name: below for name, (_, below) in inside.items()})
        return found, names

    def node(self, node: TypedNode, place: str) -> tuple[TypedNode, RolledNames]:
        """Return a node with what is in it folded, and the names there."""
        graphs = regions(node)
        inner = [self.graph(region.graph, f"{place}{node.name}.{region.name}") for region in graphs]
        found = rebuilt(node, [graph for graph, _ in inner])
        if found is node:
            return node, UNCHANGED
        first = inner[0][1]
        if graphs[0].number is None:
            return found, first
        by_pass = {str(number): names for number, (_, names) in enumerate(inner)}
        return found, RolledNames(first.steps, {**first.below, **by_pass})  # a path may leave the pass out
