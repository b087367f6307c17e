"""A compiled recipe: the generated source, and the module that runs it, which knows its recipe."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Generic, Protocol, Self

import torch
from torch import nn
from typing_extensions import TypeVar

from composer.graph.parameters import NamedParameter
from composer.graph.typed import TypedProgram
from composer.lower.model_inputs import DeclaredInput, check_kinds, check_lengths, declared_inputs
from composer.lower.passes.cache_layout import CacheLayout
from composer.lower.short_inputs import too_short
from composer.lower.unknown_ids import unknown_id


@dataclass(frozen=True, slots=True)
class Module:
    """Generated source."""

    text: str
    name: str
    """The model's class."""
    lines: Mapping[int, tuple[str, str]]
    """Line of the text to the node that it computes and the node's place in the recipe."""
    ties: tuple[tuple[str, str], ...]
    """Parameter and the owner that it is, by their names in the `state_dict`."""
    frozen: tuple[str, ...]
    """Parameters that are not trained."""
    outputs: tuple[tuple[str, str], ...]
    """Field of the named tuple and the recipe's name for it."""


@dataclass(frozen=True, slots=True)
class TailSource:
    """The source of a model's end, which computes logits from hidden states."""

    module: Module
    reads: str
    """The module of the model whose argument is what the end reads."""


@dataclass(frozen=True, slots=True)
class Lowering:
    """What the models of a typed program share."""

    module: Module
    parameters: tuple[NamedParameter, ...]
    roles: Mapping[str, str]
    """What each parameter of the `state_dict` is for."""
    cache_layout: CacheLayout | None


class CompilableRecipe(Protocol):
    """What a model needs of its recipe: to be built, and built again where it is unpickled."""

    @property
    def program(self) -> TypedProgram:
        """The graph in which every value has a type."""

    @property
    def task(self) -> str | None:
        """What the model is for."""

    @property
    def _lowering(self) -> Lowering: ...

    def compile(self, device: torch.device | str | None = None, *, seed: int | None = None) -> Model:
        """Return a new model of the recipe."""

    def without_adapters(self) -> CompilableRecipe:
        """Return the recipe without adapters."""

    def _repr_svg_(self) -> str | None: ...


RecipeT = TypeVar("RecipeT", bound=CompilableRecipe, default=CompilableRecipe, covariant=True)


class Model(nn.Module, Generic[RecipeT]):
    """A recipe's module. Calling it takes the recipe's inputs, by order or name, and returns a named tuple: one field per
    output, and `losses`, a mapping of the recipe's own scalars that is empty where there are none. A tensor of another kind of
    numbers or with other axes or lengths than its input raises an `InputError`.

    Its `state_dict` names each tied parameter once, under its owner; ties hold through materializing, loading, copying,
    pickling and tensor parallelism.
    """

    recipe: RecipeT
    """The recipe that it was compiled from."""
    roles: Mapping[str, str]
    """What each parameter of the `state_dict` is for: matrix, embedding, gain, bias, table …"""
    program: TypedProgram
    module: Module
    filename: str
    """The file that tracebacks name for the source."""
    cache_layout: CacheLayout | None
    """What a session caches; None where the task generates no text."""
    tail_source: TailSource | None
    """The source of its end, as soon as `tail` has asked for it."""
    declared_inputs: tuple[DeclaredInput, ...] = ()
    """The inputs, against which each call is held."""
    in_session: bool = False
    """Whether calls belong to a session, which checks lengths itself, but for numbers: some inputs are those of the next tokens,
    others whole.
    """

    @property
    def source(self) -> str:
        """The Python source that runs."""
        return self.module.text

    def attach(self, recipe: CompilableRecipe, program: TypedProgram, lowering: Lowering, filename: str) -> None:
        """Attach what the generated code does not know: where the module comes from, and how to save, load and decode it."""
        self.__dict__.update(recipe=recipe, program=program, module=lowering.module, filename=filename)
        self.__dict__.update(roles=lowering.roles, cache_layout=lowering.cache_layout)
        self.__dict__["declared_inputs"] = declared_inputs(program, tuple(inspect.signature(self.forward).parameters))

    def _repr_svg_(self) -> str | None:
        return self.recipe._repr_svg_()

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

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        tail_source = self.__dict__.get("tail_source")
        known = (self.recipe, self.program, self.module, self.roles, self.cache_layout, self.declared_inputs)
        for shared in (*known, tail_source):
            memo[id(shared)] = shared
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        new.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return new

    def __reduce__(self) -> Any:
        frozen = [name for name, parameter in self.named_parameters() if not parameter.requires_grad]
        return _rebuild, (self.recipe, self.state_dict(), self.training, frozen)


def module_at(model: Model, path: str) -> nn.Module | None:
    """Return the module of a node; None if the generated code has no module for it, as for an operator."""
    found: nn.Module | None = model
    for name in path.split("."):
        found = found._modules.get(name) if found is not None else None
    return found


def own_call() -> Callable[..., Any]:
    """Return `__call__` for a class of models, with code of its own: torch counts how often the same code is compiled, and runs
    what comes after the eighth uncompiled.
    """
    return FunctionType(_call.__code__.replace(), _call.__globals__, "__call__")


def _call(self: Model, *args: Any, **kwargs: Any) -> Any:
    check_kinds(self.program, self.declared_inputs, args, kwargs)
    if torch.compiler.is_compiling():  # which knows no lengths: to compare them would make a program for each
        return nn.Module.__call__(self, *args, **kwargs)
    check_lengths(self.program, self.declared_inputs, args, kwargs, in_session=self.in_session)
    try:
        return nn.Module.__call__(self, *args, **kwargs)
    except Exception as error:
        path, place = _node_of(error, self)
        node = f"{path} ({place})" if path else ""
        named = dict(zip((each.name for each in self.declared_inputs), args, strict=False)) | kwargs
        if (unknown := unknown_id(error, named, node)) is not None:
            raise unknown from None
        note = f"in {node}"
        if path and note not in getattr(error, "__notes__", ()):
            error.add_note(note)
            short = "" if self.in_session else too_short(self.program, path, self.declared_inputs, args, kwargs)
            if short:
                error.add_note(short)
        raise


def _rebuild(recipe: CompilableRecipe, state: Mapping[str, torch.Tensor], training: bool, frozen: list[str]) -> Model:
    model = recipe.compile(device="meta", seed=0)  # with a seed, torch's own generator is left alone
    first = next(iter(state.values()), None)
    model.to_empty(device=torch.get_default_device() if first is None else first.device)
    model.requires_grad_(False)  # weights of 8 bits may not be trained, not even until the next line
    model.load_state_dict(state, assign=True)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name not in frozen)
    return model.train(training)


def _node_of(error: BaseException, model: Model) -> tuple[str, str]:
    """Return the path of the innermost node whose code was running and its place, `recipes/gpt2.yaml:31`; nothing if none was."""
    found = ("", "")
    traceback = error.__traceback__
    paths = {id(module): name for name, module in model.named_modules()}
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code.co_filename == model.filename and traceback.tb_lineno in model.module.lines:
            node, place = model.module.lines[traceback.tb_lineno]
            path = paths.get(id(frame.f_locals.get("self")), "")
            if node:
                found = (f"{path}{'.' if path else ''}{node}", place)
        traceback = traceback.tb_next
    return found
