"""What stays the same while a text is written: what no token of it reaches, such as an encoder and what it reads."""

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
class Fixed:
    """A module that gives the same in every call of a session."""

    module: str
    batch: tuple[int | None, ...]
    """For each value that it gives, where the axis of the batch stands; None where there is none."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How far the text reaches into a model."""

    fixed: tuple[Fixed, ...]
    """The outermost modules that it does not reach."""
    ports: Mapping[str, frozenset[str]]
    """For each block by its path, the ports that it does reach."""


def reach(typed: TypedProgram, axis: Dim) -> Reach:
    """Follow the text, whose `axis` grows, from the inputs that have it."""
    begin = frozenset(name for name, type_ in typed.inputs.items() if any(names(axis) & names(size) for size in type_.sizes))
    batch = next(iter(typed.inputs[name] for name in begin)).sizes[0]
    walk = _Walk(batch)
    walk.graph(flatten(typed).root, begin, "")
    return Reach(tuple(walk.fixed), walk.ports)


class _Walk:
    def __init__(self, batch: Dim) -> None:
        self.batch = batch
        self.fixed: list[Fixed] = []
        self.ports: dict[str, frozenset[str]] = {}

    def graph(self, graph: TypedGraph, reached: frozenset[str], path: str) -> list[bool]:
        """Return which outputs of a graph the text reaches, coming in at the inputs that are `reached`."""
        keys: set[Key] = {(name, 0, None) for name in reached}

        def coming(wires: tuple[Wire, ...]) -> frozenset[str]:
            return frozenset(wire.port for wire in wires if any(key_of(graph, ref) in keys for ref in wire.refs))

        for node in graph.nodes:
            if node.node.dropped or is_renewal(node):
                continue
            place = f"{path}{node.name}"
            match node:
                case TypedBlock():
                    if into := coming(node.node.wires):
                        self.ports[place] = into
                        keys |= {(node.name, index, None) for index, _ in enumerate(node.outputs or ("y",))}
                    else:
                        self.fixed.append(Fixed(place, tuple(map(self._batch, returned(node)))))
                case TypedGroup(graph=inner):
                    found = self._inner(inner, coming(node.node.wires), place)
                    keys |= {(node.name, index, None) for index, hit in enumerate(found) if hit}
                case TypedScan(graph=inner):
                    into = coming(node.node.wires)
                    found = self._inner(inner, into and into | node.carried.keys(), place)
                    keys |= {(node.name, index, None) for index, hit in enumerate(found) if hit}
                case TypedRepeat() if node.node.share is not None:
                    handed = [wire for one in node.node.passes for wire in one.wires]
                    into = coming(tuple(handed))
                    into = into and into | {wire.port for wire in handed if any(ref.node == node.name for ref in wire.refs)}
                    for module, inner in passes_of(node).items():
                        found = self._inner(inner, into, path + module)
                        numbers = [number for number, one in enumerate(node.passes) if one is inner]
                        keys |= {(node.name, index, number) for index, hit in enumerate(found) if hit for number in numbers}
                case TypedRepeat(passes=passes):
                    for number, (one, inner) in enumerate(zip(node.node.passes, passes, strict=True)):
                        found = self._inner(inner, coming(one.wires), f"{place}.{number}")
                        keys |= {(node.name, index, number) for index, hit in enumerate(found) if hit}
                case _:
                    assert_never(node)
        return [key_of(graph, ref) in keys for _, ref in graph.graph.outputs]

    def _inner(self, inner: TypedGraph, reached: frozenset[str], place: str) -> list[bool]:
        if reached:
            return self.graph(inner, reached, f"{place}.")
        self.fixed.append(Fixed(place, tuple(map(self._batch, inner.outputs.values()))))
        return [False] * len(inner.graph.outputs)

    def _batch(self, type_: Type) -> int | None:
        return type_.sizes.index(self.batch) if isinstance(type_, TensorType) and self.batch in type_.sizes else None


def returned(block: TypedBlock) -> Iterator[Type]:
    """Yield the types of what a block's forward gives, in order."""
    for position, (name, type_) in enumerate(block.outputs.items()):
        if position == 0 or name in block.node.requested_outputs or not optional_output(block, name):
            yield type_
