"""What to say of a call that fails because an input is shorter than a kernel: which axis, and at which node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from blocks.core import fields
from composer.graph.dims import names, substitute
from composer.graph.typed import TypedBlock, TypedProgram
from composer.graph.types import TensorType, each_of
from composer.graph.visit import walk
from composer.lower.model_inputs import DeclaredInput


def too_short(
    program: TypedProgram, path: str, inputs: Sequence[DeclaredInput], arguments: Sequence[Any], named: Mapping[str, Any]
) -> str:
    """Return which axis of a node is shorter in a call than its kernel, `height is 5 here, of which kernel_size 9 leaves no
    place`; nothing if all outputs have places.

    Args:
        program: The model.
        path: The path of the node.
        inputs: The declared inputs of the model.
        arguments: Those of the call.
        named: Those of the call that are given by name.
    """
    lengths: dict[str, int] = {}
    for place, item in enumerate(inputs):
        value = arguments[place] if place < len(arguments) else named.get(item.name)
        if isinstance(value, torch.Tensor):
            lengths |= {name: length for name, length in zip(item.axes, value.shape, strict=True) if name.isidentifier()}
    block = next((visit.node for visit in walk(program.root) if visit.path == path), None)
    if not isinstance(block, TypedBlock):
        return ""
    before = {name: length for type_ in block.inputs.values() for name, length in _lengths(type_, lengths)}
    after = [each for type_ in block.outputs.values() for each in _lengths(type_, lengths)]
    gone = {name for name, length in after if length <= 0}
    numbers = {key: getattr(block.part, key) for key in fields(type(block.part))}
    spans = {key: value for key, value in numbers.items() if type(value) is int and value not in dict(after).values()}
    for name, length in before.items() if gone else ():
        longer = [f"{key} {value}" for key, value in spans.items() if value > length]
        merged = name and gone.isdisjoint(before) and name not in dict(after)  # places along several axes have become one axis
        if longer and (name in gone or merged):
            return f"{name} is {length} here, of which {' and '.join(longer)} leaves no place"
    return ""


def _lengths(types: Any, known: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the names of axes with their lengths, as far as these are known."""
    axes = [axis for type_ in each_of(types) if isinstance(type_, TensorType) for axis in type_.axes]
    return [(axis.name, substitute(axis.size, known)) for axis in axes if names(axis.size) <= known.keys()]
