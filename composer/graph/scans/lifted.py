"""Blocks of one step of a scan as blocks that compute the same for all steps at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from blocks.core import Part
from composer.graph.ir import BlockNode, Ref
from composer.graph.type_patterns import pattern
from composer.graph.typed import TypedBlock, TypedScan
from composer.graph.types import Axis, PortTypes, TensorType


@dataclass(frozen=True, slots=True)
class Outside:
    """A value that is known outside of the loop: what it is there, and where it has the axis of the steps, if it has."""

    ref: Ref
    type: TensorType
    place: int | None

    def one_step(self) -> TensorType:
        """Return the type of one step."""
        if self.place is None:
            return self.type
        return replace(self.type, axes=(*self.type.axes[: self.place], *self.type.axes[self.place + 1 :]))


def with_axis(type_: TensorType, axis: Axis, place: int) -> TensorType:
    """Return the type of a value with the axis of the steps."""
    return replace(type_, axes=(*type_.axes[:place], axis, *type_.axes[place:]))


def pointwise(
    scan: TypedScan,
    node: TypedBlock,
    name: str,
    given: Sequence[Outside],
    part: Any,
    expansions: Sequence[tuple[int | None, ...]],
) -> tuple[TypedBlock, Outside]:
    """Return a block that computes for all steps what the pointwise `part` computes for one, and its value."""
    rank = len(expansions[0])
    steps = any(one.place is not None for one in given)
    place = min(scan.place, rank) if steps else None
    ways = tuple(with_steps(way, one.place, place) for way, one in zip(expansions, given, strict=True))
    lengths: list[Axis] = [Axis("axis", 1)] * (rank + steps)
    for way, one in zip(ways, given, strict=True):
        for position, own in enumerate(way):
            if own is not None and lengths[position].size == 1:
                lengths[position] = one.type.axes[own]
    types = tuple(one.type for one in given)
    sizes = {"inputs": len(types), **part.constants({"xs": types}, {}), "...": tuple(lengths)}
    first = replace(types[0], axes=tuple(lengths), depends=max(type_.depends for type_ in types))
    outputs = part.output_types({"xs": types}, sizes) or {"y": first}
    output = replace(next(iter(outputs.values())), depends=first.depends)
    spot = node.node.wires[0]
    wires = (replace(spot, refs=tuple(one.ref for one in given), spans=()),)
    fields = node.node.fields if part is node.part else ()
    fresh = f"{scan.name}.{name}"
    moved = BlockNode(fresh, type(part), fields, wires, span=node.node.span, name_span=node.node.name_span)
    block = replace(node, node=moved, part=part, sizes=sizes, inputs={"xs": types}, outputs={"y": output}, expansions=ways)
    return block, Outside(Ref(fresh), output, place)


def is_pointwise(block: TypedBlock) -> bool:
    """Return whether a block computes each number of its output from one number of each input, without parameters."""
    part = block.part
    plain = not block.parameters and not block.slots and not block.node.ties
    several = [ref for wire in block.node.wires for ref in wire.refs]
    return plain and type(part).broadcasts and part.inline(block.sizes) is not None and len(several) == len(block.expansions)


def with_steps(way: tuple[int | None, ...], own: int | None, place: int | None) -> tuple[int | None, ...]:
    """Return where the axes of a value stand, given where it has the axis of the steps, and where the result has it."""
    if place is None:
        return way
    shifted = tuple(axis if axis is None or own is None or axis < own else axis + 1 for axis in way)
    return (*shifted[:place], own, *shifted[place:])


# -- other blocks


def may_be_lifted(block: TypedBlock) -> bool:
    """Return whether a block treats the places of its axes in front alike, so that one more may stand among them."""
    if is_pointwise(block):
        return True
    part, kind = block.part, type(block.part)
    if block.slots or block.buffers or block.leading or block.node.ties or block.copies is not None or len(block.outputs) != 1:
        return False
    if part.is_random or part.batch_dependent or part.cache_slots or part.carry or part.position_inputs or part.renewed_by:
        return False
    if part.per_call(frozenset(block.inputs)):
        return False
    if kind.over_steps is not Part.over_steps:
        return True
    if any(getattr(kind, name) is not getattr(Part, name) for name in ("constants", "output_types", "past_axes")):
        return False
    texts = [*kind.outputs.values(), *(text for port, text in kind.inputs.items() if port.rstrip("?*") in block.inputs)]
    patterns = [pattern(text) for text in texts]
    return (
        not kind.broadcasts and all(one.leading and one.is_shared for one in patterns) and not any("*" in p for p in kind.inputs)
    )


def lifted(scan: TypedScan, node: TypedBlock, given: Sequence[Outside]) -> tuple[TypedBlock, Outside] | None:
    """Return a block that computes for all steps what `node` computes for one, and its value; None if there is none."""
    if is_pointwise(node):
        return pointwise(scan, node, node.name, given, node.part, node.expansions)
    (port, one_step), *_ = node.outputs.items()
    if not isinstance(one_step, TensorType):
        return None
    places = [one.place for one in given]
    part, place = node.part, next((each for each in places if each is not None), None)
    sizes = dict(node.sizes)
    if place is not None and type(part).over_steps is not Part.over_steps:
        place = min(scan.place, len(one_step.axes))
        wider = part.over_steps(places, place)
        if wider is None:
            return None
        part = wider
    elif place is not None:
        front = len(one_step.axes) - len(pattern(next(iter(type(part).outputs.values()))).axes)
        if any(each != place for each in places) or place > front:
            return None
        if "..." in sizes:
            sizes["..."] = (*sizes["..."][:place], scan.axis, *sizes["..."][place:])
    types: dict[str, Any] = {}
    wires, rest = [], list(given)
    for wire in node.node.wires:
        own, rest = rest[: len(wire.refs)], rest[len(wire.refs) :]
        several = isinstance(node.inputs[wire.port], tuple)
        types[wire.port] = tuple(one.type for one in own) if several else own[0].type
        wires.append(replace(wire, refs=tuple(one.ref for one in own), spans=()))
    if part is not node.part:
        sizes |= part.constants(types, sizes)
    type_ = one_step if place is None else with_axis(one_step, scan.axis, place)
    outputs: PortTypes = {port: replace(type_, depends=max(one.type.depends for one in given))}
    fresh = f"{scan.name}.{node.name}"
    fields = node.node.fields if part is node.part else ()
    moved = replace(node.node, name=fresh, wires=tuple(wires), fields=fields)
    return replace(node, node=moved, part=part, sizes=sizes, inputs=types, outputs=outputs), Outside(Ref(fresh), type_, place)
