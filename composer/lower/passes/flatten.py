"""Blocks that are graphs, such as `residual`, written out where they stand: their parts stay under their name, their calls
join those around them, as a person would write a layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from composer.graph.ir import Graph, Pass, Ref, Wire
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedProgram, TypedRepeat, TypedScan
from composer.language.recipe.defined_block import is_defined
from composer.memo import Interned


def flatten(typed: TypedProgram) -> TypedProgram:
    """The program with every block of graphs dissolved; the nodes of `attn` are now called `attn.norm`, `attn.body` …"""
    return replace(typed, root=_Flattening().graph(typed.root))


class _Flattening:
    def __init__(self) -> None:
        self.done: Interned[TypedGraph, TypedGraph] = Interned()

    def graph(self, graph: TypedGraph) -> TypedGraph:
        return self.done.get(graph, lambda: self._flat(graph))

    def _flat(self, graph: TypedGraph) -> TypedGraph:
        dissolved: dict[str, dict[str, tuple[Ref, ...]]] = {}
        nodes: list[TypedNode] = []
        for node in graph.nodes:
            if isinstance(node, TypedGroup) and _dissolves(node):
                inner = self.graph(node.graph)
                given = {wire.port: self._refs(wire.refs, dissolved) for wire in node.node.wires}
                moved = {name: Ref(f"{node.name}.{name}") for name in inner.by_name}
                for one in inner.nodes:
                    nodes.append(_renamed(one, f"{node.name}.{one.name}", lambda refs, m=moved, g=given: _moved(refs, m, g)))
                outputs = {port: _moved((ref,), moved, given) for port, ref in inner.graph.outputs}
                dissolved[node.name] = {**outputs, "": next(iter(outputs.values()))}
            else:
                nodes.append(_renamed(self._inside(node), node.name, lambda refs: self._refs(refs, dissolved)))
        outputs_ = tuple((name, self._refs((ref,), dissolved)[0]) for name, ref in graph.graph.outputs)
        flat = Graph(graph.graph.inputs, tuple(node.node for node in nodes), outputs_)
        return TypedGraph(flat, graph.inputs, tuple(nodes), graph.outputs, {node.name: node for node in nodes})

    def _refs(self, refs: tuple[Ref, ...], dissolved: Mapping[str, Mapping[str, tuple[Ref, ...]]]) -> tuple[Ref, ...]:
        return tuple(found for ref in refs for found in (dissolved[ref.node][ref.port] if ref.node in dissolved else (ref,)))

    def _inside(self, node: TypedNode) -> TypedNode:
        """The node with every graph below it flattened."""
        match node:
            case TypedGroup() | TypedScan():
                return replace(node, graph=self.graph(node.graph))
            case TypedRepeat():
                return replace(node, passes=tuple(self.graph(one) for one in node.passes))
            case TypedBlock(slots=slots):
                return replace(node, slots={name: None if slot is None else self._inside(slot) for name, slot in slots.items()})


def _dissolves(group: TypedGroup) -> bool:
    """Whether a group is the expansion of a block of the library; one that a recipe defines stays a module."""
    return group.node.part is not None and not is_defined(group.node.part) and not group.node.dropped


def _moved(refs: tuple[Ref, ...], moved: Mapping[str, Ref], given: Mapping[str, tuple[Ref, ...]]) -> tuple[Ref, ...]:
    """References of a dissolved graph, in terms of the graph around it."""
    found: list[Ref] = []
    for ref in refs:
        if ref.node in moved:
            found.append(Ref(moved[ref.node].node, ref.port, ref.index))
        else:
            found.extend(given.get(ref.node, ()))
    return tuple(found)


def _renamed(node: TypedNode, name: str, refs: object) -> TypedNode:
    """The node under another name, reading what `refs` makes of its references."""
    read = refs if callable(refs) else tuple

    def wires(old: tuple[Wire, ...]) -> tuple[Wire, ...]:
        return tuple(replace(wire, refs=read(wire.refs)) for wire in old)

    match node:
        case TypedBlock():
            return replace(node, node=replace(node.node, name=name, wires=wires(node.node.wires)))
        case TypedGroup():
            return replace(node, node=replace(node.node, name=name, wires=wires(node.node.wires)))
        case TypedScan():
            return replace(node, node=replace(node.node, name=name, wires=wires(node.node.wires)))
        case TypedRepeat():
            own = node.name

            def renamed(old: tuple[Wire, ...]) -> tuple[Wire, ...]:
                return tuple(
                    replace(
                        w,
                        refs=tuple(
                            r for ref in w.refs for r in ((Ref(name, ref.port, ref.index),) if ref.node == own else read((ref,)))
                        ),
                    )
                    for w in old
                )

            passes = tuple(Pass(one.graph, renamed(one.wires), one.values) for one in node.node.passes)
            return replace(node, node=replace(node.node, name=name, passes=passes))
