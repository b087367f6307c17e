"""What a compiled recipe is beside its generated code: a plain module that keeps its ties and knows its recipe."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import nn

if TYPE_CHECKING:
    from composer.graph.typed import TypedProgram
    from composer.lower.emit.module_source import Module
    from composer.lower.passes.cache_layout import CacheLayout
    from composer.recipe import Recipe


class Model(nn.Module):
    """A recipe's module. Calling it takes the recipe's inputs, by order or name, and returns a named tuple: one field per
    output, and `losses`, a mapping of the recipe's own scalars that is empty where there are none.

    Its `state_dict` names each tied parameter once, under its owner; ties hold through materializing, loading, copying and
    pickling.
    """

    recipe: Recipe
    """The recipe that it was compiled from."""
    roles: Mapping[str, str]
    """What each parameter of the `state_dict` is for: matrix, embedding, gain, bias, table …"""
    program: TypedProgram
    module: Module
    remembers: CacheLayout | None
    """What a session remembers; None where the task writes nothing."""

    @property
    def source(self) -> str:
        """The Python source that runs."""
        return self.module.text

    def remember(
        self, recipe: Recipe, program: TypedProgram, module: Module, roles: Mapping[str, str], remembers: CacheLayout | None
    ) -> None:
        """Attach what the generated code does not know: where the module comes from, and how to save, load and decode it."""
        self.__dict__.update(recipe=recipe, program=program, module=module, roles=roles, remembers=remembers)
        self.register_state_dict_post_hook(_drop_aliases)  # type: ignore[no-untyped-call]  # untyped in torch
        self.register_load_state_dict_pre_hook(_add_aliases)  # type: ignore[no-untyped-call]  # untyped in torch
        self.register_load_state_dict_post_hook(_retie)  # type: ignore[no-untyped-call]  # untyped in torch

    def _repr_svg_(self) -> str | None:
        return self.recipe._repr_svg_()

    def retie(self) -> None:
        """Make tied parameters one tensor again, the owner's.

        torch forgets ties where it replaces tensors, as `to_empty` does.
        """
        for alias, owner in self.module.ties:
            holder, name = _holder(self, alias)
            holder._parameters[name] = self.get_parameter(owner)

    def get_submodule(self, target: str) -> nn.Module:
        """Return the module at a path.

        Unlike torch's own method, it also finds a node that has the name of a method of `nn.Module`.
        """
        found: nn.Module = self
        for name in target.split(".") if target else ():
            held = found._modules.get(name)
            if held is None:
                raise AttributeError(f"{type(found).__name__} has no module {name!r}")
            found = held
        return found

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]  # untyped in torch
        self.retie()
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return super().__call__(*args, **kwargs)
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            from composer.lower.error_location import locate

            note = locate(error, self)
            if note and note not in getattr(error, "__notes__", ()):
                error.add_note(note)
            raise

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        for shared in (self.recipe, self.program, self.module, self.roles, self.remembers):
            memo[id(shared)] = shared
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        new.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return new

    def __reduce__(self) -> Any:
        frozen = [name for name, parameter in self.named_parameters() if not parameter.requires_grad]
        return _rebuild, (self.recipe, self.state_dict(), self.training, frozen)


def _rebuild(recipe: Recipe, state: Mapping[str, torch.Tensor], training: bool, frozen: list[str]) -> Model:
    from composer.lower.build import materialize, skeleton

    model = skeleton(recipe, allow_large=True)
    first = next(iter(state.values()), None)
    materialize(model, device=None if first is None else first.device, dtype=None)
    model.load_state_dict(state, assign=True)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name not in frozen)
    return model.train(training)


def _holder(model: nn.Module, name: str) -> tuple[nn.Module, str]:
    path, _, leaf = name.rpartition(".")
    return model.get_submodule(path), leaf


def _drop_aliases(module: nn.Module, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    assert isinstance(module, Model)
    for alias, _ in module.module.ties:
        state.pop(prefix + alias, None)


def _add_aliases(module: nn.Module, state: dict[str, Any], prefix: str, *others: Any) -> None:
    assert isinstance(module, Model)
    for alias, owner in module.module.ties:
        if prefix + owner in state:
            state.setdefault(prefix + alias, state[prefix + owner])


def _retie(module: nn.Module, keys: Any) -> None:
    assert isinstance(module, Model)
    module.retie()
