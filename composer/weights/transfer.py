"""Loading a published checkpoint into a model, and saving a model as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from composer.atomic_files import StrPath
from composer.diagnostics import Diagnostic, RecipeError, Span
from composer.language.name_patterns import folded
from composer.weights.checkpoint_mistakes import them
from composer.weights.fit import first_of_each
from composer.weights.mapping import WeightMap, mapping, shapes_of
from composer.weights.other_formats import Tensors
from composer.weights.published_files import ONE, PublishedCheckpoint, type_of, type_span

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray
    from torch import Tensor

    from composer.lower import Model


Published: TypeAlias = "StrPath | Mapping[str, Tensor] | Mapping[str, NDArray[Any]]"


def load_published(
    model: Model,
    source: StrPath | Mapping[str, Tensor] | Mapping[str, NDArray[Any]],
    model_type: str | None = None,
    *,
    allow_nonfinite: bool = False,
) -> None:
    """Fill a model's parameters from a published checkpoint.

    Names, shapes and numbers are checked first, so a checkpoint of another model, or a damaged one, changes nothing. Tensors are
    read one by one, and converted to the model's dtype.

    Args:
        model: A compiled recipe with `checkpoints:`.
        source: A file of safetensors, of `torch.save`, of `numpy.savez` or of llama.cpp, a folder with a published checkpoint, or
            tensors or arrays by name.
        model_type: The model type of transformers; by default, that of the folder's `config.json`, or the only one for which the
            recipe has rules.
        allow_nonfinite: Whether numbers are loaded that are infinite or no numbers, or that are infinite in the model's dtype.

    Raises:
        RecipeError: The recipe has no rules for this model type, the checkpoint does not match the model, or it has a number that
            is not finite or too large for the model's dtype.
        Int8Error: The model has weights of 8 bits, which cannot hold numbers that are not finite.

    Examples:
        >>> import composer
        >>> from composer.weights import load_published, save_published
        >>> tiny = {"n_layers": 2, "d_model": 32, "n_heads": 4, "vocab": 61, "context": 16}
        >>> save_published(composer.load("gpt2", tiny).compile(seed=0), "model.safetensors")
        >>> model = composer.load("gpt2", tiny).compile(seed=1)
        >>> load_published(model, "model.safetensors")
    """
    with _opened(model, source, model_type) as (tensors, made):
        _check(model, tensors, made)
        if not allow_nonfinite:
            _check_numbers(model, tensors, made)
        _check_matrices(model, tensors, made)
        _fill(model, tensors, made)


def fill_new(model: Model, source: Published, *, allow_nonfinite: bool = False) -> None:
    """Fill the parameters of a model that is thrown away after an error, as `load_published` does, reading each tensor once.

    Args:
        model: The model, which nobody else has yet.
        source: As for `load_published`.
        allow_nonfinite: As for `load_published`.

    Raises:
        RecipeError: As for `load_published`.
        Int8Error: As for `load_published`.
    """
    with _opened(model, source, None) as (tensors, made):
        _check(model, tensors, made)
        if not _fill(model, tensors, made) and not allow_nonfinite:
            _check_numbers(model, tensors, made)


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


@contextmanager
def _opened(model: Model, source: Published, model_type: str | None) -> Iterator[tuple[Mapping[str, Tensor], WeightMap]]:
    """Yield the tensors of a checkpoint, and how the model reads them."""
    if isinstance(source, Mapping):
        tensors = source if isinstance(source, PublishedCheckpoint) else Tensors(source)
        yield tensors, weight_map(model, model_type)
        return
    path = Path(source)
    made = weight_map(model, model_type) if model_type is not None else weight_map(model, type_of(path), type_span(path))
    with PublishedCheckpoint(path) as checkpoint:
        yield checkpoint, made


def _check(model: Model, tensors: Mapping[str, Tensor], made: WeightMap) -> None:
    """Raise `RecipeError` unless names, shapes and kinds of numbers fit, which the headers of files tell."""
    if wrong := made.check(shapes_of(tensors)) or _other_numbers(model.state_dict(), tensors, made):
        raise RecipeError(wrong)


def _check_numbers(model: Model, tensors: Mapping[str, Tensor], made: WeightMap) -> None:
    """Raise `RecipeError` for the tensors with numbers that are not finite, as they are or in the model's dtype.

    Of matrices of 8 bits, see `_check_matrices`.
    """
    from composer.lower.int8 import Int8Matrix

    parameters = model.state_dict()
    refuse_numbers(made, tensors, {name: each.dtype for name, each in parameters.items() if not isinstance(each, Int8Matrix)})


def refuse_numbers(made: WeightMap, tensors: Mapping[str, Tensor], dtypes: Mapping[str, torch.dtype] | None = None) -> None:
    """Raise `RecipeError` for the tensors of a checkpoint with numbers that are not finite.

    Args:
        made: How a model reads the checkpoint.
        tensors: The checkpoint; what the model does not read, or what has no dtype, is not looked at.
        dtypes: The dtypes of the model's parameters, in which the numbers must be finite too; by default, as they are.
    """
    found = made.found(tensors)
    names: dict[tuple[int, str], list[str]] = {}
    for move in made.moves:
        for name in move.theirs if dtypes is None or move.ours[0] in dtypes else ():
            if flaw := _flaw(tensors[found[name]], None if dtypes is None else dtypes[move.ours[0]]):
                names.setdefault((id(move.rule), flaw), []).append(name)
    rules = {id(move.rule): move.rule for move in made.moves}
    if wrong := [_of_numbers(each, flaw, rules[rule].theirs.span) for (rule, flaw), each in names.items()]:
        raise RecipeError(wrong)


def _check_matrices(model: Model, tensors: Mapping[str, Tensor], made: WeightMap) -> None:
    """Raise `Int8Error` for the first matrix of 8 bits that cannot hold its numbers, before any of them is filled."""
    from composer.lower.int8 import NOT_HELD, WITHOUT, Int8Error, Int8Matrix

    matrices = {name: each for name, each in model.state_dict().items() if isinstance(each, Int8Matrix)}
    for name, tensor in made.stream(tensors) if matrices else ():
        if name in matrices and not matrices[name].holds(tensor):
            raise Int8Error(f"{name}: {NOT_HELD}", hint=WITHOUT)


def _flaw(tensor: Tensor, dtype: torch.dtype | None) -> str:
    """Return what numbers a tensor has that a model in this dtype cannot compute with; nothing if there are none."""
    import torch

    if not is_finite(tensor):
        return "that are not finite"
    if dtype is None or is_finite(tensor.to(dtype)):
        return ""
    return f"beyond the range of {str(dtype).removeprefix('torch.')}, whose largest is {torch.finfo(dtype).max:g}"


def is_finite(tensor: Tensor) -> bool:
    """Return whether all numbers of a tensor are finite; those of one without storage are."""
    if tensor.is_meta or not tensor.numel() or not tensor.is_floating_point():
        return True
    # the least and the largest are found in a tenth of the time of `isfinite`, and without memory: both are NaN if any is
    ends = (tensor.float() if tensor.element_size() == 1 else tensor).aminmax()  # which torch does not have for float8
    return all(bool(each.isfinite()) for each in ends)


def _of_numbers(names: Sequence[str], flaw: str, span: Span) -> Diagnostic:
    """Return the error for published tensors with numbers that no model can compute with."""
    message = f"{folded(names)} {'has' if len(names) == 1 else 'have'} numbers {flaw}"
    wide = "load the model in a dtype of a wider range, such as dtype=torch.bfloat16" * flaw.startswith("beyond")
    way = wide or "the file is damaged, or its training diverged"
    return Diagnostic(
        "checkpoints-value", message, span, hint=f"{way}; in Python, allow_nonfinite=True loads {them(names)} all the same"
    )


def _fill(model: Model, tensors: Mapping[str, Tensor], made: WeightMap) -> bool:
    """Fill the parameters, and return whether all of their numbers are finite."""
    import torch

    from composer.lower.int8 import Int8Error, Int8Matrix

    parameters, finite = model.state_dict(), True
    with torch.no_grad():
        for name, tensor in made.stream(tensors):
            parameter = parameters[name]
            if not isinstance(parameter, Int8Matrix):
                parameter.copy_(tensor)
                finite = finite and is_finite(parameter)
                continue
            try:
                parameter.fill(tensor)
            except Int8Error as error:
                raise Int8Error(f"{name}: {error}", hint=error.hint) from None
    return finite


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
