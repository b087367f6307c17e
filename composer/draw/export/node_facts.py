"""What a page tells about each node: the shapes it reads and gives, its parameters, its FLOPs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from composer.cost.flops import FlopCounter
from composer.cost.lengths import lengths_of
from composer.cost.units import in_flops
from composer.draw.build.parameter_counts import ParameterCounts
from composer.draw.wording import shape
from composer.graph.dims import substitute
from composer.graph.passes.roll_layers.roll_layers import RolledProgram
from composer.graph.task_signature import growing
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat, TypedScan
from composer.graph.types import Type

Facts = Mapping[str, str]
"""What is said, by what it is about, in order."""


def facts(model: RolledProgram) -> dict[str, Facts]:
    """Return the facts of every node, by its path without passes; of what is in a repeat, those of its first pass that has it."""
    found: dict[str, Facts] = {}
    for path, rows in _Facts(model).graph(model.program.root, "", ""):
        found.setdefault(path, rows)
    return found


def implied(model: RolledProgram) -> dict[str, tuple[str, ...]]:
    """Return the ports of every node for which the recipe writes nothing, so that they read the node above; no
    name for the first.
    """
    return dict(_implied(model.program.root, ""))


def _implied(graph: TypedGraph, path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for node in graph.nodes:
        match node:
            case TypedBlock():
                wires, first = node.node.wires, next(iter(node.part.inputs), "").rstrip("?*")
            case TypedGroup(graph=inner) | TypedScan(graph=inner):
                wires, first = node.node.wires, next((one.name for one in inner.graph.inputs), "")
                yield from _implied(inner, f"{path}{node.name}.")
            case TypedRepeat(passes=passes):
                wires, first = node.node.passes[0].wires, next((one.name for one in passes[0].graph.inputs), "")
                yield from _implied(passes[0], f"{path}{node.name}.")
        ports = [wire.port for wire in wires if wire.implied]
        yield path + node.name, (*ports, *([""] if first in ports else []))


class _Facts:
    def __init__(self, model: RolledProgram) -> None:
        typed = model.program
        lengths = lengths_of(typed, {})
        axis = growing(typed.program.recipe.task, typed.inputs)
        self.positions = None if axis is None else substitute(axis, lengths) * lengths.get("batch", 1)
        self.counts, self.flops = ParameterCounts(model.parameters), FlopCounter(lengths)

    def graph(self, graph: TypedGraph, path: str, place: str) -> Iterator[tuple[str, Facts]]:
        for node in graph.nodes:
            if not node.node.dropped:
                yield from self.node(node, path + node.name, place + node.name)

    def node(self, node: TypedNode, path: str, place: str) -> Iterator[tuple[str, Facts]]:
        reads: Mapping[str, Type | tuple[Type, ...]]
        gives: Mapping[str, Type | tuple[Type, ...]]
        match node:
            case TypedBlock():
                wanted = {*list(node.outputs)[:1], *node.node.requested_outputs}
                reads, gives = node.inputs, {name: type_ for name, type_ in node.outputs.items() if name in wanted}
            case TypedGroup():
                reads, gives = {one.name: node.graph.inputs[one.name] for one in node.graph.graph.inputs}, node.graph.outputs
            case TypedRepeat():
                first = node.passes[0]
                reads, gives = {one.name: first.inputs[one.name] for one in first.graph.inputs}, node.passes[-1].outputs
            case TypedScan():
                reads, gives = {name: node.graph.inputs[name] for name in node.steps}, node.outputs
        rows = {"reads": ports(reads), "gives": ports(gives)}
        if count := self.counts.owned.get(place, 0):
            rows["parameters"] = f"{count:,}"
        elif place in self.counts.tied:
            rows["parameters"] = f"those of {self.counts.tied[place]}"
        if flops := self.flops.node(node).masked:
            rows |= {"FLOPs": in_flops(flops)} if self.positions is None else {"per token": in_flops(flops // self.positions)}
        yield path, {name: text for name, text in rows.items() if text}
        match node:
            case TypedBlock():
                for name, slot in node.slots.items():
                    if slot is not None:
                        yield from self.node(slot, f"{path}.{name}", f"{place}.{name}")
            case TypedGroup() | TypedScan():
                yield from self.graph(node.graph, f"{path}.", f"{place}.")
            case TypedRepeat():
                for index, graph in enumerate(node.passes):
                    yield from self.graph(graph, f"{path}.", f"{place}.{index}.")


def ports(types: Mapping[str, Type | tuple[Type, ...]]) -> str:
    """Return the shapes by port; of one port, its shape alone."""
    said = {name: shape(type_) or written(type_) for name, type_ in types.items()}
    said = {name: text for name, text in said.items() if text}
    return next(iter(said.values())) if len(said) == 1 else ", ".join(f"{name}: {text}" for name, text in said.items())


def written(type_: Type | tuple[Type, ...]) -> str:
    """Return what is not one tensor."""
    return " + ".join(filter(None, map(shape, type_))) if isinstance(type_, tuple) else str(type_)
