"""Source to a module: executed, built on the meta device, counted, given memory, and filled with initial values."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import torch

from composer.cost.budget import budget
from composer.diagnostics import RecipeError
from composer.graph.parameters import parameters
from composer.lower.emit.module_source import lower
from composer.lower.generated import execute
from composer.lower.initialize import initialize
from composer.lower.int8 import Int8Matrix, to_int8
from composer.lower.model import CompilableRecipe, Model, own_call
from composer.lower.passes.cache_layout import cache_layout

R = TypeVar("R", bound=CompilableRecipe)


def compile(
    recipe: R,
    *,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
    seed: int | None = None,
    allow_large: bool = False,
    int8: bool = False,
) -> Model[R]:
    """Return the recipe as a module with initial weights; with `int8`, those of 8 bits are there to be filled in.

    Raises:
        RecipeError: where the recipe has mistakes, or is larger than its budget.
        TypeError: where the dtype is none of floating point.
    """
    _check_dtype(dtype)
    meta = device is not None and torch.device(device).type == "meta"
    model = on_meta(recipe, allow_large=allow_large or meta)
    if dtype is not None:
        model.to(dtype)
    if int8:
        to_int8(model)
    model.to_empty(device=device if device is not None else torch.get_default_device())
    where = next((p.device for p in model.parameters()), torch.device("cpu"))
    if where.type != "meta":
        tensors = {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers())}
        table = [each for each in parameters(model.program) if not isinstance(tensors[each.name], Int8Matrix)]
        initialize(tensors, table, model.program, _seed(seed))
    return model


def _check_dtype(dtype: object) -> None:
    """Refuse what parameters cannot have as a dtype: torch would take a name such as "float64" for a device."""
    if dtype is None or (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        return
    meant = getattr(torch, dtype, None) if isinstance(dtype, str) else None
    offered = meant if isinstance(meant, torch.dtype) and meant.is_floating_point else torch.float64
    raise TypeError(f"dtype is a floating-point torch.dtype such as {offered}, not {dtype!r}")


def on_meta(recipe: R, *, allow_large: bool = False) -> Model[R]:
    """Return the module on the meta device, which has every shape and takes no memory."""
    typed = recipe.program
    refused = [diagnostic for diagnostic in budget(typed, allow_large=allow_large) if diagnostic.severity == "error"]
    if refused:
        raise RecipeError(refused)
    module = lower(typed)
    namespace, filename = execute(module)
    kind: Any = type(module.name, (Model, namespace[module.name]), {"__module__": namespace["__name__"], "__call__": own_call()})
    with torch.device("meta"):
        model: Model[R] = kind()
    table = parameters(typed)
    roles = {entry.name: entry.parameter.role for entry in table if not entry.tied_to}
    model.attach(recipe, typed, module, filename, roles, cache_layout(typed))
    declared = sum(math.prod(entry.parameter.shape) for entry in table if not entry.tied_to)
    built = sum(parameter.numel() for parameter in model.parameters())
    assert declared == built, f"{declared} parameters are declared, {built} are built"
    return model


def _seed(seed: int | None) -> int:
    return seed if seed is not None else int(torch.randint(2**62, (), dtype=torch.int64))
