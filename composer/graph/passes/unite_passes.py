"""Equal passes of a repeat, wherever they are written, as one object."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator
from dataclasses import replace
from typing import assert_never

from blocks.core import Part
from composer.graph.anatomy import IR, with_nodes
from composer.graph.ir import BlockNode, Graph, GroupNode, Node, RepeatNode, ScanNode, SlotNode
from composer.graph.passes.compilation import Compilation
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat, TypedScan
from composer.graph.types import TensorType, Type, Types
from composer.graph.visit import Fold, Inside, Map, every_pass, walk
from composer.memo import Numbering, lazy


def unite_passes(state: Compilation) -> Compilation:
    """Make equal passes of a repeat one object, wherever they are written: all that is wrong with each has been reported.

    Before:
        graph:
          layers: {repeat: 3, each: {body: [tanh, relu, tanh]}, graph: {a: body}}
    After:
        layers: passes 0 and 2 are one
    """
    assert state.typed is not None
    root = Map(_Uniter(state.typed.root).graph).graph(state.typed.root)
    return state if root is state.typed.root else replace(state, typed=replace(state.typed, root=root))


class _Uniter:
    def __init__(self, root: TypedGraph) -> None:
        self.root = root
        self.numbers: Numbering[Hashable] = Numbering()
        self.forms = Fold(IR, self._form, self._graph_form)
        """Numbers that are equal for nodes and graphs that are equal but for their places."""

    def graph(self, graph: TypedGraph) -> TypedGraph:
        """Return a graph whose repeats have one object for equal passes."""
        return with_nodes(graph, [self._united(node) for node in graph.nodes])

    def _united(self, node: TypedNode) -> TypedNode:
        if not isinstance(node, TypedRepeat) or all(graph is node.passes[0] for graph in node.passes):
            return node
        forms = {graph: self.forms.graph(graph.graph) for graph in node.passes}
        if len(forms) == len({*forms.values()}):
            return node
        first: dict[Hashable, TypedGraph] = {}
        passes = tuple(first.setdefault((forms[graph], self._given(graph)), graph) for graph in node.passes)
        if len(first) == len(set(node.passes)):
            return node
        untyped = tuple(replace(one, graph=graph.graph) for one, graph in zip(node.node.passes, passes, strict=True))
        return replace(node, node=replace(node.node, passes=untyped), passes=passes)

    def _given(self, graph: TypedGraph) -> Hashable:
        """Return what a pass is given, without the names of axes that nothing in the model calls, which may be new in each pass;
        and which axes have met in it by their names.
        """
        given = tuple((name, _nameless(type_, self.words)) for name, type_ in graph.inputs.items())
        return given, tuple(_met(visit.node) for visit in walk(graph, every_pass))

    @lazy
    def words(self) -> set[str]:
        """Every word in what is set in blocks, among them the axes that these call by their names."""
        words: set[str] = set()
        for visit in walk(self.root, every_pass, once=True):
            match visit.node:
                case TypedBlock(part=part):
                    words |= {word for value in _values(part) for word in re.findall(r"\w+", str(value))}
                case TypedScan(axis=axis):
                    words.add(axis.name)
                case TypedGroup() | TypedRepeat():
                    pass
                case _:
                    assert_never(visit.node)
        return words

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


def _values(value: object) -> Iterator[object]:
    """Yield what is set in a part, and in the parts below."""
    match value:
        case Part():
            yield from (inner for name in type(value).model_fields for inner in _values(vars(value).get(name)))
        case list() | tuple():
            yield from (inner for one in value for inner in _values(one))
        case dict():
            yield from (inner for pair in value.items() for inner in _values(pair))
        case _:
            yield value


def _met(node: TypedNode) -> Hashable:
    """Return which axes of several values a node has put in one place."""
    match node:
        case TypedBlock():
            return node.expansions
        case TypedScan():
            return tuple(node.steps.items()), tuple(node.widened.items()), tuple(node.linear.items())
        case TypedGroup() | TypedRepeat():
            return ()
        case _:
            assert_never(node)


def _nameless(types: Types, words: Collection[str]) -> Types:
    """Return the types of an input with none but some names of axes."""
    if isinstance(types, tuple):
        return tuple(_without_names(one, words) for one in types)
    return _without_names(types, words)


def _without_names(type_: Type, words: Collection[str]) -> Type:
    if not isinstance(type_, TensorType):
        return type_
    return type_.renamed({axis.name: "" for axis in type_.axes if axis.name not in words})


NOTHING = Graph((), (), ())
"""What stands for the graph of a node whose form is a number."""
