"""Adapters (LoRA) of trained models, merged into the weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar, cast

from composer.errors import ComposerError
from composer.graph.ir import Adapter
from composer.graph.parameters import parameters
from composer.graph.passes.adapt import MATRICES
from composer.graph.typed import TypedBlock, TypedProgram
from composer.graph.visit import walk

if TYPE_CHECKING:
    from composer.lower.model import CompilableRecipe, Model

R = TypeVar("R", bound="CompilableRecipe")
A, B = MATRICES


class AdapterError(ComposerError, ValueError):
    """Adapters cannot be merged or written as they are; `hint` says what to do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def adapters_of(typed: TypedProgram) -> dict[str, Adapter]:
    """Return the adapters of a model by the names of the linear maps that have one, `layers.0.attn.body.q`."""
    return dict(_adapters(typed))


def _adapters(typed: TypedProgram) -> Iterator[tuple[str, Adapter]]:
    for visit in walk(typed.root):
        if isinstance(visit.node, TypedBlock):
            for name, adapter in visit.node.adapters.items():
                yield f"{visit.path}.{name}" if name else visit.path, adapter


def merge_adapters(model: Model[R]) -> Model[R]:
    """Return the model of the recipe without adapters, whose weights are `W + alpha / rank · B A`: it computes the same, up to
    rounding.

    Args:
        model: A compiled recipe with `adapters:`, which stays as it is; one without is returned itself.

    Raises:
        AdapterError: A weight with an adapter is tied to another parameter, which would change too.
        Int8Error: The model has weights of 8 bits.

    Examples:
        >>> import composer
        >>> from composer.weights import merge_adapters
        >>> text = "extends: gpt_mini\\nrecipe: gpt_lora\\nadapters: {'*.(q|v)': {rank: 4, alpha: 8}}\\n"
        >>> model = composer.load(text, {"d_model": 16, "n_layers": 1}).compile(seed=0)
        >>> len(model.state_dict()), len(merge_adapters(model).state_dict())
        (14, 10)
    """
    import torch

    from composer.lower.build import compile
    from composer.lower.int8 import refuse_int8

    refuse_int8(model, "be written")
    found = adapters_of(model.program)
    if not found:
        return model
    for entry in parameters(model.program):
        for name in (entry.name, entry.tied_to):
            if entry.tied_to and name.removesuffix(".weight") in found and name.endswith(".weight"):
                message = f"the adapter of {name.removesuffix('.weight')} cannot be merged: {entry.name} is {entry.tied_to}"
                raise AdapterError(f"{message}, so that both would change")
    recipe = cast("R", model.recipe.without_adapters())
    with torch.no_grad():
        state = {name: tensor for name, tensor in model.state_dict().items() if name.rpartition(".")[2] not in MATRICES}
        for name, adapter in found.items():
            weight = state[f"{name}.weight"]
            wide = torch.promote_types(weight.dtype, torch.float32)
            low, high = (model.get_parameter(f"{name}.{which}").to(wide) for which in (A, B))
            state[f"{name}.weight"] = (weight.to(wide) + adapter.scale * high @ low).to(weight.dtype)
        first = next(iter(state.values()))
        merged = compile(recipe, device=first.device, dtype=first.dtype, seed=0, allow_large=True)
        merged.load_state_dict(state)
    return merged.train(model.training)
