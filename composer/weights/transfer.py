"""Loading a published checkpoint into a model, and saving a model as one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composer.atomic_files import StrPath
from composer.diagnostics import Diagnostic, RecipeError, Span
from composer.weights.fit import first_of_each
from composer.weights.mapping import WeightMap, mapping, shapes_of
from composer.weights.other_formats import Tensors
from composer.weights.published_files import ONE, PublishedCheckpoint, type_of, type_span

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from composer.lower import Model


def load_published(
    model: Model, source: StrPath | Mapping[str, Tensor] | Mapping[str, NDArray[Any]], model_type: str | None = None
) -> None:
    """Fill a model's parameters from a published checkpoint.

    Names and shapes are checked first, so a checkpoint of another model changes nothing. Tensors are read one by one, and
    converted to the model's dtype.

    Args:
        model: A compiled recipe with `checkpoints:`.
        source: A file of safetensors, of `torch.save`, of `numpy.savez` or of llama.cpp, a folder with a published checkpoint, or
            tensors or arrays by name.
        model_type: The model type of transformers; by default, that of the folder's `config.json`, or the only one for which the
            recipe has rules.

    Raises:
        RecipeError: The recipe has no rules for this model type, or the checkpoint does not match the model.
        Int8Error: The model has weights of 8 bits, which cannot hold numbers that are not finite.

    Examples:
        >>> import composer
        >>> from composer.weights import load_published, save_published
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> save_published(composer.load("gpt2", tiny).compile(seed=0), "model.safetensors")
        >>> model = composer.load("gpt2", tiny).compile(seed=1)
        >>> load_published(model, "model.safetensors")
    """
    if isinstance(source, Mapping):
        tensors = source if isinstance(source, PublishedCheckpoint) else Tensors(source)
        return _fill(model, tensors, weight_map(model, model_type))
    path = Path(source)
    made = weight_map(model, model_type) if model_type is not None else weight_map(model, type_of(path), type_span(path))
    with PublishedCheckpoint(path) as checkpoint:
        return _fill(model, checkpoint, made)


def save_published(model: Model, path: StrPath, model_type: str | None = None) -> None:
    """Write a model's parameters to a safetensors file, under their published names; adapters are merged into the weights.

    Args:
        model: A compiled recipe with `checkpoints:`.
        path: The file to write, or a folder, in which it is called `model.safetensors`.
        model_type: The model type of transformers; by default, the only one for which the recipe has rules.

    Raises:
        RecipeError: The recipe has no rules for this model type.
        AdapterError: An adapter cannot be merged.
        Int8Error: The model has weights of 8 bits.

    Examples:
        >>> import composer
        >>> from composer.weights import load_published, save_published
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> model = composer.load("gpt2", tiny).compile(seed=0)
        >>> save_published(model, "model.safetensors")
        >>> load_published(model, "model.safetensors")
    """
    from safetensors.torch import save_file

    from composer.weights.adapters import merge_adapters

    model = merge_adapters(model)
    file = Path(path) / ONE if Path(path).is_dir() else Path(path)
    save_file(weight_map(model, model_type).save(model.state_dict()), file, metadata={"format": "pt"})


def _fill(model: Model, tensors: Mapping[str, Tensor], made: WeightMap) -> None:
    import torch

    from composer.lower.int8 import Int8Error, Int8Matrix

    parameters = model.state_dict()
    if wrong := made.check(shapes_of(tensors)) or _other_numbers(parameters, tensors, made):
        raise RecipeError(wrong)
    with torch.no_grad():
        for name, tensor in made.stream(tensors):
            parameter = parameters[name]
            if not isinstance(parameter, Int8Matrix):
                parameter.copy_(tensor)
                continue
            try:
                parameter.fill(tensor)
            except Int8Error as error:
                raise Int8Error(f"{name}: {error}", hint=error.hint) from None


def _other_numbers(parameters: Mapping[str, Tensor], tensors: Mapping[str, Tensor], made: WeightMap) -> list[Diagnostic]:
    """Return an error for published tensors of integers, truths or complex numbers where the model has floats."""
    others: Mapping[str, str] = getattr(tensors, "others", {})
    found = made.found(tensors) if others else {}
    wrong = []
    for move in made.moves if others else ():
        floats = all(parameters[name].is_floating_point() for name in move.ours)
        for name in move.theirs if floats else ():
            if (dtype := others.get(found[name])) is not None:
                message = f"{name} holds numbers of {dtype} in the checkpoint, but floats for this recipe"
                hint = "quantized weights are read from .gguf files alone"
                wrong.append(Diagnostic("checkpoints-dtype", message, move.rule.theirs.span, hint=hint))
    return first_of_each(wrong)


def weight_map(model: Model, model_type: str | None, at: Span | None = None) -> WeightMap:
    recipe = model.program.untyped.recipe
    if recipe.checkpoints is None:
        raise RecipeError(
            [
                Diagnostic(
                    "checkpoints-unknown-type", "this recipe has no rules for published checkpoints", recipe.name_scalar.span
                )
            ]
        )
    ours = {name: tensor for name, tensor in model.state_dict().items() if model.roles.get(name) != "adapter"}
    return mapping(recipe.checkpoints, model_type, shapes_of(ours), model.program.untyped.params, at=at)
