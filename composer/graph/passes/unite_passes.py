"""Equal passes of a repeat, wherever they are written, as one object."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import assert_never

from composer.graph.anatomy import IR, with_nodes
from composer.graph.ir import BlockNode, Graph, GroupNode, Node, RepeatNode, ScanNode, SlotNode
from composer.graph.passes.compilation import Compilation
from composer.graph.typed import TypedGraph, TypedNode, TypedRepeat
from composer.graph.visit import Fold, Inside, Map
from composer.memo import Numbering


def unite_passes(state: Compilation) -> Compilation:
    """Make equal passes of a repeat one object, wherever they are written: all that is wrong with each has been reported.

    Before:
        graph:
          layers: {repeat: 3, each: {body: [tanh, relu, tanh]}, graph: {a: body}}
    After:
        layers: passes 0 and 2 are one
    """
    assert state.typed is not None
    root = Map(_Uniter().graph).graph(state.typed.root)
    return state if root is state.typed.root else replace(state, typed=replace(state.typed, root=root))


class _Uniter:
    def __init__(self) -> None:
        self.numbers: Numbering[Hashable] = Numbering()
        self.forms = Fold(IR, self._form, self._graph_form)
        """Numbers that are equal for nodes and graphs that are equal but for their places."""

    def graph(self, graph: TypedGraph) -> TypedGraph:
        """Return a graph whose repeats have one object for equal passes."""
        return with_nodes(graph, [self._united(node) for node in graph.nodes])

    def _united(self, node: TypedNode) -> TypedNode:
        if not isinstance(node, TypedRepeat) or all(graph is node.passes[0] for graph in node.passes):
            return node
        first: dict[Hashable, TypedGraph] = {}
        passes = tuple(
            first.setdefault((self.forms.graph(graph.graph), tuple(graph.inputs.items())), graph) for graph in node.passes
        )
        if len(first) == len(set(node.passes)):
            return node
        untyped = tuple(replace(one, graph=graph.graph) for one, graph in zip(node.node.passes, passes, strict=True))
        return replace(node, node=replace(node.node, passes=untyped), passes=passes)

    def _form(self, node: Node, inside: Inside[Graph, int, int]) -> int:
        match node:
            case BlockNode():
                plain = tuple((name, None if isinstance(value, SlotNode) else value) for name, value in node.fields)
                return self.numbers.of((replace(node, fields=()), plain, inside.slots))
            case GroupNode() | ScanNode():
                return self.numbers.of((replace(node, graph=NOTHING), *inside.passes()))
            case RepeatNode():
                of_pass = {region.number: form for several, form in inside.regions for region in several}
                given = tuple((of_pass[number], one.wires) for number, one in enumerate(node.passes))
                return self.numbers.of((replace(node, passes=()), given))
            case _:
                assert_never(node)

    def _graph_form(self, graph: Graph, nodes: list[int]) -> int:
        return self.numbers.of((graph.inputs, tuple(nodes), graph.outputs))


NOTHING = Graph((), (), ())
"""What stands for the graph of a node whose form is a number."""
