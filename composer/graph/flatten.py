"""Inlining: a library block that is a graph, such as `residual`, is replaced by its nodes, which keep its name before their own.
Its calls so stand in the forward of the layer around it, as a person would write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from composer.graph.anatomy import renamed, with_wires
from composer.graph.ir import Graph, Ref, Wire
from composer.graph.typed import TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat
from composer.graph.visit import Map
from composer.language.recipe.defined_block import is_defined


def flatten(typed: TypedProgram) -> TypedProgram:
    """Return the program with each library block that is a graph replaced by its nodes: `attn` by `attn.norm`, `attn.body` …"""
    return replace(typed, root=Map(_flat).graph(typed.root))


def _flat(graph: TypedGraph) -> TypedGraph:
    """Return the flat graph, given one in whose nodes all graphs are flat."""
    dissolved: dict[str, dict[str, tuple[Ref, ...]]] = {}
    nodes: list[TypedNode] = []
    for node in graph.nodes:
        if isinstance(node, TypedGroup) and _dissolves(node):
            inner = node.graph
            given = {wire.port: _refs(dissolved, wire.refs) for wire in node.node.wires}
            moved = {name: Ref(f"{node.name}.{name}") for name in inner.by_name}
            nodes += [_moved_to(one, f"{node.name}.{one.name}", partial(_moved, moved, given)) for one in inner.nodes]
            outputs = {port: _moved(moved, given, (ref,)) for port, ref in inner.graph.outputs}
            dissolved[node.name] = {**outputs, "": next(iter(outputs.values()))}
        else:
            nodes.append(_moved_to(node, node.name, partial(_refs, dissolved)))
    outputs_ = tuple((name, _refs(dissolved, (ref,))[0]) for name, ref in graph.graph.outputs)
    flat = Graph(graph.graph.inputs, tuple(node.node for node in nodes), outputs_)
    return TypedGraph(flat, graph.inputs, tuple(nodes), graph.outputs, {node.name: node for node in nodes})


def _refs(dissolved: Mapping[str, Mapping[str, tuple[Ref, ...]]], refs: tuple[Ref, ...]) -> tuple[Ref, ...]:
    return tuple(found for ref in refs for found in (dissolved[ref.node][ref.port] if ref.node in dissolved else (ref,)))


def _dissolves(group: TypedGroup) -> bool:
    """Return whether a group is the expansion of a block of the library; one that a recipe defines stays a module."""
    return group.node.part is not None and not is_defined(group.node.part)


def _moved(moved: Mapping[str, Ref], given: Mapping[str, tuple[Ref, ...]], refs: tuple[Ref, ...]) -> tuple[Ref, ...]:
    """Return the references of a dissolved graph, in terms of the graph around it."""
    found: list[Ref] = []
    for ref in refs:
        if ref.node in moved:
            found.append(Ref(moved[ref.node].node, ref.port, ref.index))
        else:
            found.extend(given.get(ref.node, ()))
    return tuple(found)


def _moved_to(node: TypedNode, name: str, read: Callable[[tuple[Ref, ...]], tuple[Ref, ...]]) -> TypedNode:
    """Return the node under another name with its references mapped by `read`; passes still read the passes before them."""

    def rewired(wire: Wire, _: int) -> Wire:
        found: list[Ref] = []
        for ref in wire.refs:
            found += [replace(ref, node=name)] if isinstance(node, TypedRepeat) and ref.node == node.name else read((ref,))
        return replace(wire, refs=tuple(found))

    return renamed(with_wires(node, rewired), name)
