"""Fixed nodes: while a text is generated, no token of it reaches them, as with an encoder, so a session computes them once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from composer.graph.dims import Dim, names
from composer.graph.ir import Wire
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedProgram, TypedRepeat, TypedScan, is_renewal
from composer.graph.types import TensorType, Type
from composer.lower.passes.flatten import flatten
from composer.lower.passes.node_queries import Key, key_of, optional_output
from composer.lower.passes.shared_weights import passes_of


@dataclass(frozen=True, slots=True)
class FixedNode:
    """A module whose outputs are the same in every call of a session."""

    module: str
    batch: tuple[int | None, ...]
    """For each output, the position of the batch axis; None where there is none."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What depends on the text that is generated."""

    fixed: tuple[FixedNode, ...]
    """The outermost modules that do not depend on it."""
    ports: Mapping[str, frozenset[str]]
    """For each block by its path, the ports that do."""


def reach(typed: TypedProgram, axis: Dim) -> Reach:
    """Follow the text, whose `axis` grows, from the inputs that have this axis."""
    start = frozenset(name for name, type_ in typed.inputs.items() if any(names(axis) & names(size) for size in type_.sizes))
    batch = next(iter(typed.inputs[name] for name in start)).sizes[0]
    reachability = _Reachability(batch)
    reachability.graph(flatten(typed).root, start, "")
    return Reach(tuple(reachability.fixed), reachability.ports)


class _Reachability:
    def __init__(self, batch: Dim) -> None:
        self.batch = batch
        self.fixed: list[FixedNode] = []
        self.ports: dict[str, frozenset[str]] = {}

    def graph(self, graph: TypedGraph, reached: frozenset[str], path: str) -> list[bool]:
        """Return for each output of a graph whether the text reaches it through the inputs that are `reached`."""
        keys: set[Key] = {(name, 0, None) for name in reached}

        def reached_ports(wires: tuple[Wire, ...]) -> frozenset[str]:
            return frozenset(wire.port for wire in wires if any(key_of(graph, ref) in keys for ref in wire.refs))

        for node in graph.nodes:
            if is_renewal(node):
                continue
            place = f"{path}{node.name}"
            match node:
                case TypedBlock():
                    if into := reached_ports(node.node.wires):
                        self.ports[place] = into
                        keys |= {(node.name, index, None) for index, _ in enumerate(node.outputs or ("y",))}
                    else:
                        self.fixed.append(FixedNode(place, tuple(map(self._batch, returned(node)))))
                case TypedGroup(graph=inner):
                    found = self._inner(inner, reached_ports(node.node.wires), place)
                    keys |= {(node.name, index, None) for index, hit in enumerate(found) if hit}
                case TypedScan(graph=inner):
                    into = reached_ports(node.node.wires)
                    found = self._inner(inner, into and into | node.carried.keys(), place)
                    keys |= {(node.name, index, None) for index, hit in enumerate(found) if hit}
                case TypedRepeat() if node.node.share is not None:
                    handed = [wire for one in node.node.passes for wire in one.wires]
                    into = reached_ports(tuple(handed))
                    into = into and into | {wire.port for wire in handed if any(ref.node == node.name for ref in wire.refs)}
                    for module, inner in passes_of(node).items():
                        found = self._inner(inner, into, path + module)
                        numbers = [number for number, one in enumerate(node.passes) if one is inner]
                        keys |= {(node.name, index, number) for index, hit in enumerate(found) if hit for number in numbers}
                case TypedRepeat(passes=passes):
                    for number, (one, inner) in enumerate(zip(node.node.passes, passes, strict=True)):
                        found = self._inner(inner, reached_ports(one.wires), f"{place}.{number}")
                        keys |= {(node.name, index, number) for index, hit in enumerate(found) if hit}
                case _:
                    assert_never(node)
        return [key_of(graph, ref) in keys for _, ref in graph.graph.outputs]

    def _inner(self, inner: TypedGraph, reached: frozenset[str], place: str) -> list[bool]:
        if reached:
            return self.graph(inner, reached, f"{place}.")
        self.fixed.append(FixedNode(place, tuple(map(self._batch, inner.outputs.values()))))
        return [False] * len(inner.graph.outputs)

    def _batch(self, type_: Type) -> int | None:
        return type_.sizes.index(self.batch) if isinstance(type_, TensorType) and self.batch in type_.sizes else None


def returned(block: TypedBlock) -> Iterator[Type]:
    """Yield the types of what a block's forward returns, in order."""
    for position, (name, type_) in enumerate(block.outputs.items()):
        if position == 0 or name in block.node.requested_outputs or not optional_output(block, name):
            yield type_
