"""Source to a module: executed, built on the meta device, counted, given memory, and filled with initial values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch.overrides import TorchFunctionMode

from composer.cost.budget import budget
from composer.diagnostics import RecipeError
from composer.graph.parameters import numel, parameters
from composer.graph.typed import TypedProgram
from composer.lower.emit.module_source import lower
from composer.lower.generated import execute
from composer.lower.initialize import initialize
from composer.lower.int8 import Int8Matrix, to_int8
from composer.lower.model import CompilableRecipe, Lowering, Model, own_call
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
    _allocate(model, torch.get_default_device() if device is None else device)
    where = next((p.device for p in model.parameters()), torch.device("cpu"))
    if where.type != "meta":
        tensors = {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers())}
        table = [each for each in recipe._lowering.parameters if not isinstance(tensors[each.name], Int8Matrix)]
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
    lowering = recipe._lowering
    module = lowering.module
    namespace, filename = execute(module)
    kind: Any = type(module.name, (Model, namespace[module.name]), {"__module__": namespace["__name__"], "__call__": own_call()})
    with torch.device("meta"), _Undrawn():
        model: Model[R] = kind()
    model.attach(recipe, typed, lowering, filename)
    declared = numel(lowering.parameters)
    built = sum(parameter.numel() for parameter in model.parameters())
    assert declared == built, f"{declared} parameters are declared, {built} are built"
    return model


def lowering(typed: TypedProgram) -> Lowering:
    """Return what the models of a typed program share."""
    table = parameters(typed)
    roles = {entry.name: entry.parameter.role for entry in table if not entry.tied_to}
    return Lowering(lower(typed), table, roles, cache_layout(typed))


def _seed(seed: int | None) -> int:
    return seed if seed is not None else int(torch.randint(2**62, (), dtype=torch.int64))


def _allocate(model: torch.nn.Module, device: torch.device | str) -> None:
    """Give a model on the meta device memory, as `to_empty` does; that loads torch's symbolic shapes to copy strides."""

    def filled(tensor: torch.Tensor) -> torch.Tensor:
        twofold = isinstance(tensor, Int8Matrix)
        return torch.empty_like(tensor, device=device) if twofold else tensor.new_empty(tensor.shape, device=device)

    model._apply(filled)  # type: ignore[no-untyped-call]  # as in torch's own `to_empty`


class _Undrawn(TorchFunctionMode):
    """Leaves out the initial values of torch's own modules: on the meta device they have none, but torch loads its compiler to
    draw them.
    """

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        filled = given.get("tensor", args[0] if args else None)
        fills = getattr(function, "__module__", "") == "torch.nn.init" and function.__name__.endswith("_")
        return filled if (fills or function in _DRAWS) and filled.is_meta else function(*args, **given)


_DRAWS = frozenset({torch.Tensor.normal_, torch.Tensor.uniform_})
"""What functions of `torch.nn.init` call that modes do not see themselves."""
