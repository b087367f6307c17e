"""What a model reads besides the text that it generates: whether all of it is given and fits, and its rows."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from composer.decode.errors import DecodeError, writes_nothing
from composer.graph.dims import Symbolic, leaves
from composer.graph.typed import TypedProgram
from composer.graph.types import TensorType
from composer.language.tasks import TASKS
from composer.language.wording import counted

EncoderInputs = Mapping[str, Tensor]
"""The inputs of a model besides the generated text, by name, such as `source` [B, S] or `image`, with a row for each text."""


def text_of(model: nn.Module) -> str:
    """Return the name of the input that a model generates.

    Raises:
        DecodeError: The model is not a compiled recipe, or its task is not generative.
    """
    recipe = getattr(model, "recipe", None)
    if recipe is None:
        raise DecodeError(f"generation needs a compiled recipe, not a {type(model).__name__}")
    task = TASKS.get(recipe.task or "")
    if task is None or not task.text:
        raise writes_nothing("generation", recipe.task)
    return task.text


def check_encoder_inputs(model: nn.Module, encoder_inputs: EncoderInputs, rows: int) -> None:
    """Raise `DecodeError` unless `encoder_inputs` has the model's inputs besides the text, with a row for each prompt.

    Args:
        model: A compiled recipe with a generative task.
        encoder_inputs: The inputs.
        rows: The number of prompts.
    """
    text, parameters, types = text_of(model), inspect.signature(model.forward).parameters, types_of(model)
    for name in encoder_inputs:
        if name not in parameters or name == text:
            raise DecodeError(f"the model has no input `{name}` besides `{text}`")
    for name, parameter in parameters.items():
        if name == text:
            continue
        required = parameter.default is parameter.empty
        if (required or name in encoder_inputs) and _is_along(types, name, text):
            raise DecodeError(
                f"the model reads `{name}`, {types[name]}: a value for each token, and generation gives it tokens alone; "
                "call the model in a `session`, with the values of the tokens of each call"
            )
        if required and name not in encoder_inputs:
            told = f": {types[name]}" if name in types else ""
            raise DecodeError(f"the model also reads `{name}`, which is not in `encoder_inputs`{told}")
    lengths: dict[Symbolic, tuple[int, str]] = {}
    for name, value in encoder_inputs.items():
        if not isinstance(value, Tensor):
            raise DecodeError(f"`{name}` is a {type(value).__name__}, and the model reads tensors")
        if name in types:
            _check_type(name, value, types[name])
        if has_rows(model, name) and len(value) != rows:
            raise DecodeError(f"`{name}` has {counted(len(value), 'row')} for {counted(rows, 'prompt')}")
        for size, length in zip(types[name].sizes, value.shape, strict=True) if name in types else ():
            known, other = lengths.setdefault(size, (length, name)) if isinstance(size, Symbolic) else (length, name)
            if known != length:
                raise DecodeError(f"`{name}` has {length} for `{size}`, and `{other}` has {known}")


def _check_type(name: str, value: Tensor, type_: TensorType) -> None:
    kind = "float" if value.dtype.is_floating_point else "bool" if value.dtype == torch.bool else "int"
    fixed = [isinstance(size, int) and size != length for size, length in zip(type_.sizes, value.shape, strict=False)]
    if kind != type_.dtype or value.dim() != len(type_.sizes) or any(fixed):
        shown = ", ".join(map(str, value.shape))
        raise DecodeError(f"`{name}` is {str(value.dtype)[6:]}[{shown}], and the model reads {type_}")


def _is_along(types: Mapping[str, TensorType], name: str, text: str) -> bool:
    """Return whether an input has values along the axis of the generated text."""
    along = leaves(types[text].sizes[1]) if text in types else frozenset()
    return name in types and any(not along.isdisjoint(leaves(size)) for size in types[name].sizes)


def types_of(model: nn.Module) -> Mapping[str, TensorType]:
    """Return the types of the inputs of a model; none for a model that only calls itself a compiled recipe."""
    program = getattr(model, "program", None)
    return program.inputs if isinstance(program, TypedProgram) else {}


def has_rows(model: nn.Module, name: str) -> bool:
    """Return whether an input has a row for each text."""
    types = types_of(model)
    return name not in types or types[name].sizes[:1] == types[text_of(model)].sizes[:1]


def rows_of(model: nn.Module, encoder_inputs: EncoderInputs, rows: Tensor | Sequence[int]) -> EncoderInputs:
    """Return selected rows of the encoder inputs; what has no rows is the same for all texts."""
    return {
        name: value[rows.to(value.device) if isinstance(rows, Tensor) else list(rows)] if has_rows(model, name) else value
        for name, value in encoder_inputs.items()
    }
