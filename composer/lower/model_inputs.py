"""What a call gives a model, held against what its recipe declares: numbers of the right kind, with the declared axes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import torch

from composer.errors import ComposerError
from composer.graph.dims import Dim
from composer.graph.typed import TypedProgram

DTYPES: Mapping[str, tuple[torch.dtype, ...]] = {
    "bool": (torch.bool,),
    "int": (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
    "float": (torch.float32, torch.bfloat16, torch.float16, torch.float64),
}
"""What is taken for each declared dtype: the width of the numbers is that of the model, or of `torch.autocast`."""
CASTS = {"bool": "bool", "int": "long", "float": "float"}
"""The method of a tensor that makes each declared dtype."""


class InputError(ComposerError, ValueError):
    """A call of a model gives an input that is not as the recipe declares it; the message says what was given, and what to do."""


class DeclaredInput(NamedTuple):
    """An input of a model, as calls are held against it."""

    name: str
    """As an argument of the model."""
    declared: str
    """Its type as the recipe writes it, such as `bool[batch, time]`."""
    dtype: str
    dtypes: tuple[torch.dtype, ...]
    axes: tuple[str, ...]
    shared: tuple[tuple[int, int], ...]
    """Place of each axis without a number that another axis of the inputs is too, with a number for its name."""


def declared_inputs(program: TypedProgram, arguments: Sequence[str]) -> tuple[DeclaredInput, ...]:
    """Return the inputs of a model, whose arguments have these names."""
    counts = Counter(size for type_ in program.inputs.values() for size in type_.sizes)
    shared: list[Dim] = [size for size, count in counts.items() if count > 1 and not isinstance(size, int)]
    found = []
    for argument, item in zip(arguments, program.untyped.inputs, strict=True):
        type_, written = program.inputs[item.name], program.written_inputs[item.name]
        places = tuple((place, shared.index(size)) for place, size in enumerate(type_.sizes) if size in shared)
        axes = tuple(map(str, written.axes))
        found.append(DeclaredInput(argument, str(written), type_.dtype, DTYPES[type_.dtype], axes, places))
    return tuple(found)


def check_kinds(
    program: TypedProgram, inputs: Sequence[DeclaredInput], arguments: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """Raise `InputError` if a tensor of a call has numbers of another kind than its input, or another number of axes.

    What is no tensor, and what is lacking, is left to the model: it takes numbers for inputs without axes, and None.
    """
    for place, item in enumerate(inputs):
        value = arguments[place] if place < len(arguments) else named.get(item.name)
        if isinstance(value, torch.Tensor) and (value.dtype not in item.dtypes or value.dim() != len(item.axes)):
            _refuse_kind(program, item, value)


def check_lengths(
    program: TypedProgram, inputs: Sequence[DeclaredInput], arguments: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """Raise `InputError` if axes of one name have several lengths in a call whose tensors have the declared axes."""
    lengths: dict[int, int] = {}
    for place, item in enumerate(inputs):
        value = arguments[place] if place < len(arguments) else named.get(item.name)
        if item.shared and isinstance(value, torch.Tensor):
            shape = value.shape
            for axis, name in item.shared:
                length = shape[axis]
                if lengths.setdefault(name, length) != length:
                    given = {**dict(zip((one.name for one in inputs), arguments, strict=False)), **named}
                    alike = [one.name for one in inputs if given.get(one.name) is not None and name in dict(one.shared).values()]
                    _refuse_length(program, item, value, axis, f"that of `{alike[0]}` is {lengths[name]}")


def _refuse_kind(program: TypedProgram, item: DeclaredInput, value: torch.Tensor) -> NoReturn:
    fixes = []
    if value.dtype not in item.dtypes:
        fixes.append(f"pass `{item.name}.{CASTS[item.dtype]}()`")
    if value.dim() != len(item.axes):
        by = (
            "no axes"
            if not item.axes
            else "the axis " + item.axes[0]
            if len(item.axes) == 1
            else "the axes " + ", ".join(item.axes)
        )
        one_row = value.dim() == len(item.axes) - 1 and item.axes[0] == "batch"
        fixes.append(f"give it {by}" + (f", such as `{item.name}[None]` for one row" if one_row else ""))
    raise InputError(f"{_given(program, item, value)}: {', and '.join(fixes)}")


def _refuse_length(program: TypedProgram, item: DeclaredInput, value: torch.Tensor, axis: int, other: str) -> NoReturn:
    raise InputError(f"{_given(program, item, value)}: its {item.axes[axis]} is {value.shape[axis]}, and {other}")


def _given(program: TypedProgram, item: DeclaredInput, value: torch.Tensor) -> str:
    dtype = str(value.dtype).removeprefix("torch.")
    return f"`{item.name}` of {program.name} takes {item.declared}, and was given {dtype}{[*value.shape]}"
