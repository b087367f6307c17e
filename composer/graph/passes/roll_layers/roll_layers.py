"""Layers that a recipe writes one by one, as the repeat that they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from composer.graph.initial_values import InitialValues
from composer.graph.parameters import NamedParameter, parameters
from composer.graph.passes.roll_layers.rewrite import Fold
from composer.graph.passes.roll_layers.rolled_names import NOTHING, RolledNames
from composer.graph.passes.roll_layers.stacks import Ownership, StackFinder
from composer.graph.typed import TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan
from composer.memo import Interned


@dataclass(frozen=True, slots=True)
class RolledProgram:
    """A model as it is drawn."""

    program: TypedProgram
    parameters: tuple[NamedParameter, ...]
    """By their names in that graph."""
    written: tuple[NamedParameter, ...]
    """The same, by their names in the recipe."""
    starts: InitialValues
    names: RolledNames = NOTHING
    """From the recipe's names to those."""


def as_written(typed: TypedProgram) -> RolledProgram:
    """The model node by node, as the recipe has it."""
    table = parameters(typed)
    return _model(typed, table, table)


def folded(typed: TypedProgram) -> RolledProgram:
    """The model with every series of equal layers as a repeat."""
    table = parameters(typed)
    root, names = _Folder(table).graph(typed.root, "")
    if root is typed.root:
        return _model(typed, table, table)
    called = names.called
    entries = (replace(one, name=called(one.name), tied_to=called(one.tied_to) if one.tied_to else "") for one in table)
    return _model(replace(typed, root=root), tuple(entries), table, names)


def _model(
    typed: TypedProgram, table: tuple[NamedParameter, ...], written: tuple[NamedParameter, ...], names: RolledNames = NOTHING
) -> RolledProgram:
    return RolledProgram(typed, table, written, InitialValues(typed.program, table, written), names)


class _Folder:
    """Folds graphs; layers are looked for in each as it is written."""

    def __init__(self, table: Sequence[NamedParameter]) -> None:
        self.stacks = StackFinder(table)
        self.done: Interned[tuple[TypedGraph, Ownership], tuple[TypedGraph, RolledNames]] = Interned()
        """Of each graph, and of whose parameters it has, what it has become."""

    def graph(self, graph: TypedGraph, place: str) -> tuple[TypedGraph, RolledNames]:
        """A graph with its layers folded, whose nodes stand at a place; the graph itself where it has none."""
        return self.done.get((graph, self.stacks.ownership(place)), lambda: self._graph(graph, place))

    def _graph(self, graph: TypedGraph, place: str) -> tuple[TypedGraph, RolledNames]:
        inside = {node.name: self.node(node, place) for node in graph.nodes}
        if stacks := self.stacks.within(graph, place):
            return Fold(graph, inside, stacks, lambda one: self.graph(one, "")).result()
        nodes = tuple(node for node, _ in inside.values())
        if all(ours is theirs for ours, theirs in zip(nodes, graph.nodes, strict=True)):
            return graph, NOTHING
        names = RolledNames({}, {name: below for name, (_, below) in inside.items()})
        return replace(graph, nodes=nodes, by_name={node.name: node for node in nodes}), names

    def node(self, node: TypedNode, place: str) -> tuple[TypedNode, RolledNames]:
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
                return replace(node, passes=tuple(graph for graph, _ in inner)), RolledNames(first.steps, below)
        return node, NOTHING
