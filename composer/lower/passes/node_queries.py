"""Values of a typed graph, and what lowering asks about single nodes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, TypeAlias, assert_never

from blocks.core import Part, Tensor, ports
from blocks.core.per_class import per_class
from composer.graph.ir import Ref
from composer.graph.leading_axes import LeadingPart, declared_inputs, leading_part
from composer.graph.typed import TypedBlock, TypedGraph, TypedGroup, TypedNode, TypedRepeat, TypedScan
from composer.graph.types import TensorType

Key: TypeAlias = tuple[str, int, int | None]
"""A value of a graph: its node or input, which of its outputs, and the pass of a repeat; an input has output 0."""


def key_of(graph: TypedGraph, ref: Ref) -> Key:
    """Return the value that a reference names."""
    node = graph.by_name.get(ref.node)
    if node is None:
        return (ref.node, 0, None)
    match node:
        case TypedBlock(outputs=outputs):
            names = list(outputs)
            return (ref.node, names.index(ref.port) if ref.port in names else 0, None)
        case TypedGroup(graph=inner) | TypedScan(graph=inner):
            return (ref.node, position(inner, ref.port), None)
        case TypedRepeat(passes=passes):
            index = len(passes) - 1 if ref.index is None else ref.index
            return (ref.node, position(passes[index], ref.port), index)
        case _:
            assert_never(node)


def position(graph: TypedGraph, port: str) -> int:
    """Return the position of a port among the outputs of a graph."""
    names = [name for name, _ in graph.graph.outputs]
    return names.index(port) if port in names else 0


def is_optional(block: TypedNode, port: str) -> bool:
    """Return whether an input port may be left out."""
    return isinstance(block, TypedBlock) and ports(type(block.part)).get(port) == "?"


def may_be_absent(block: TypedBlock, port: str) -> bool:
    """Return whether an input port may be wired to nothing when the model runs."""
    type_ = block.inputs.get(port)
    return isinstance(type_, TensorType) and type_.optional


@per_class
def takes(part: type[Part]) -> frozenset[str]:
    """Return the ports that `forward` takes; others are read by `prepare` alone."""
    return frozenset(inspect.signature(part.forward).parameters) if part.forward is not None else frozenset()


def inline_fields(block: TypedBlock) -> list[str] | None:
    """Return the fields and constants in a block's one-line forward; None where it needs a module."""
    if block.parameters or block.slots or block.modules:
        return None
    template = block.part.inline(block.sizes)
    known = {*type(block.part).model_fields, *block.sizes}
    return None if template is None else [name for name in re.findall(r"\{(\w+)\}", template) if name in known]


def inline_value(block: TypedBlock, name: str) -> Any:
    """Return the value of a field or a constant in a block's one-line forward."""
    return getattr(block.part, name) if name in type(block.part).model_fields else block.sizes[name]


def folded_ports(block: TypedBlock) -> Mapping[str, LeadingPart]:
    """Return the wired ports of a block whose axes in front are folded into one, each with those that it has."""
    if not block.leading:
        return {}
    declared = declared_inputs(block.part)
    found = {
        port: leading_part(declared[port], type_, block.leading)
        for port, type_ in block.inputs.items()
        if isinstance(type_, TensorType) and port in declared
    }
    return {port: which for port, which in found.items() if which != "none"}


def tensor_names(part: Part, block: TypedBlock) -> list[str]:
    """Return the tensors of a block that its fields leave out, as `bias: false` does; the module has None in their place."""
    weights = part.weights(block.sizes, frozenset(block.inputs)) if callable(part.weights) else part.weights
    present = {parameter.name for parameter in block.parameters}
    return [name for name, weight in weights.items() if isinstance(weight, Tensor) and name not in present]
