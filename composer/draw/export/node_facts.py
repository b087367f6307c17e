"""What a page tells about each node: the shapes it reads and gives, its parameters, its FLOPs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from blocks.core import size
from composer.cost.flops import FlopCounter
from composer.cost.lengths import lengths_of
from composer.cost.units import in_flops
from composer.draw.build.parameter_counts import ParameterCounts
from composer.draw.build.walks import by_place, first_pass
from composer.draw.paths import plain
from composer.draw.wording import shape
from composer.graph.anatomy import regions
from composer.graph.dims import substitute
from composer.graph.passes.roll_layers.roll_layers import RolledProgram
from composer.graph.task_signature import growing
from composer.graph.typed import TypedBlock, TypedGroup, TypedNode, TypedRepeat, TypedScan
from composer.graph.types import InputTypes, Types
from composer.graph.visit import every_node, walk

Facts = Mapping[str, str]
"""What is said, by what it is about, in order."""


def facts(model: RolledProgram) -> dict[str, Facts]:
    """Return the facts of every node, by its path without passes; of what is in a repeat, those of its first pass that has it."""
    counter = _FactCounter(model)
    found: dict[str, Facts] = {}
    weights = weight_shapes(model)
    for visit in walk(model.program.root, by_place):
        path = plain(visit.path)
        if path not in found:
            found[path] = counter.facts(visit.node, visit.path)
            if isinstance(visit.node, TypedBlock) and (inside := listed(weights, path)):
                found[path] = {**found[path], "weights": inside}
    for piece in dict.fromkeys(name.rpartition(".")[0] for name in weights):  # what an opened block is drawn with
        if piece not in found:
            found[piece] = {"weights": listed(weights, piece)}
    return found


def weight_shapes(model: RolledProgram) -> dict[str, str]:
    """Return the shape of every parameter by its name without passes; in a repeat, that of the first pass that has it."""
    found: dict[str, str] = {}
    for entry in model.parameters:
        found.setdefault(plain(entry.name), " × ".join(map(size, entry.parameter.shape)))
    return found


def listed(weights: Mapping[str, str], path: str) -> str:
    """Return the names and shapes of the parameters at a path and below it."""
    return "; ".join(f"{name[len(path) + 1 :]} {shape}" for name, shape in weights.items() if name.startswith(f"{path}."))


def implied(model: RolledProgram) -> dict[str, tuple[str, ...]]:
    """Return the ports of every node for which the recipe writes nothing, so that they read the node above; no
    name for the first.
    """
    found = (visit for visit in walk(model.program.root, first_pass, every_node) if not visit.in_slot)
    return {visit.path: tuple(_implied(visit.node)) for visit in found}


def _implied(node: TypedNode) -> Iterator[str]:
    if isinstance(node, TypedBlock):
        wires, first = node.node.wires, next(iter(node.part.inputs), "").rstrip("?*")
    else:
        region = regions(node)[0]
        wires, first = region.wires, next((one.name for one in region.graph.graph.inputs), "")
    ports = [wire.port for wire in wires if wire.implied]
    yield from ports
    if first in ports:
        yield ""


class _FactCounter:
    """Says of a node what it reads and gives, holds and costs."""

    def __init__(self, model: RolledProgram) -> None:
        typed = model.program
        lengths = lengths_of(typed, {})
        axis = growing(typed.untyped.recipe.task, typed.inputs)
        self.positions = None if axis is None else substitute(axis, lengths) * lengths.get("batch", 1)
        self.counts, self.flops = ParameterCounts(model.parameters), FlopCounter(lengths)

    def facts(self, node: TypedNode, place: str) -> Facts:
        """Return the facts of a node at a place in the model."""
        reads, gives = reads_and_gives(node)
        rows = {"reads": ports(reads), "gives": ports(gives)}
        if count := self.counts.owned.get(place, 0):
            rows["parameters"] = f"{count:,}"
        elif place in self.counts.tied:
            rows["parameters"] = f"those of {self.counts.tied[place]}"
        if flops := self.flops.node(node).masked:
            rows |= {"FLOPs": in_flops(flops)} if self.positions is None else {"per token": in_flops(flops // self.positions)}
        return {name: text for name, text in rows.items() if text}


def reads_and_gives(node: TypedNode) -> tuple[InputTypes, InputTypes]:
    """Return the types of what a node reads and gives, by port."""
    match node:
        case TypedBlock():
            shown = {*list(node.outputs)[:1], *node.node.requested_outputs}
            return named(node), {name: type_ for name, type_ in node.outputs.items() if name in shown}
        case TypedGroup():
            return {one.name: node.graph.inputs[one.name] for one in node.graph.graph.inputs}, node.graph.outputs
        case TypedRepeat():
            first = node.passes[0]
            return {one.name: first.inputs[one.name] for one in first.graph.inputs}, node.passes[-1].outputs
        case TypedScan():
            return {name: node.graph.inputs[name] for name in node.steps}, node.outputs
        case _:
            assert_never(node)


def named(node: TypedBlock) -> InputTypes:
    """Return the types of what a block reads; what its mask reads, which is no port of the block, by the name of its source."""
    own = {port.rstrip("?*") for port in node.part.inputs}
    sources = {wire.port: str(wire.refs[0]) for wire in node.node.wires if wire.port not in own}
    names = {port: f"{source} (mask)" if source in own else source for port, source in sources.items()}
    return {names.get(port, port): type_ for port, type_ in node.inputs.items()}


def ports(types: InputTypes) -> str:
    """Return the shapes by port; of one port, its shape alone."""
    said = {name: shape(type_) or written(type_) for name, type_ in types.items()}
    said = {name: text for name, text in said.items() if text}
    return ", ".join(f"{name}: {text}" if name and len(said) > 1 else text for name, text in said.items())


def written(type_: Types) -> str:
    """Return what is not one tensor."""
    return " + ".join(filter(None, map(shape, type_))) if isinstance(type_, tuple) else str(type_)
