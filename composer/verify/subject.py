"""What properties are tried on: a recipe, its model in float64 with weights that are nowhere zero, and inputs."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from math import prod
from types import ModuleType
from typing import Any

import torch

from blocks.experts.router import Router
from composer.graph.typed import TypedBlock, TypedProgram
from composer.graph.types import TensorType
from composer.graph.visit import walk
from composer.lower import lower
from composer.lower.model import Model, Module
from composer.verify.inputs import Draw, blocks, draw, draws, shape_of
from composer.verify.recipes import VerifiableRecipe

STEP = 0.3
"""Standard deviation of what is added to every weight, so that gains are not one and biases not zero."""
ROUNDING = 1e-12
"""Relative difference of two float64 computations in the same order."""
REORDERED = 1e-9
"""Relative difference of two float64 computations in another order, such as with a cache."""
NUDGE = 1e-14
"""Relative change of the weights from which the condition of a model is measured."""
MAX_NUMBERS = 2**27
"""Most numbers of an input, or of a value in the model, a GiB in float64."""


@dataclass(frozen=True)
class Violation:
    """A property that does not hold."""

    property: str
    message: str
    """What was observed, in plain words."""


class NotTried(Exception):
    """A property that cannot be tried on a model, with the reason."""


class DoesNotApply(NotTried):
    """A property that says nothing about a model, such as causality about one that generates nothing."""

    def __init__(self) -> None:
        super().__init__("it says nothing about this model")


@dataclass(frozen=True, eq=False)
class Subject:
    """A recipe without errors, and what the properties share."""

    recipe: VerifiableRecipe
    training: bool = False
    """Whether the model is in training, with the same random numbers in every call."""

    @cached_property
    def program(self) -> TypedProgram:
        """The typed program."""
        return self.recipe.program

    @cached_property
    def module(self) -> Module:
        """The generated source."""
        built = vars(self).get("model")
        return lower(self.program) if built is None else built.module

    @cached_property
    def model(self) -> Model[Any]:
        """The model in float64, every weight moved from where it starts."""
        model = self.recipe.compile(dtype=torch.float64, seed=1).train(self.training)
        move_weights(model)
        return model

    @cached_property
    def draws(self) -> tuple[Draw, Draw]:
        """Two ways to draw inputs."""
        return draws(self.program)

    @cached_property
    def selects(self) -> bool:
        """Whether something is selected by rank, where a rounding error can change everything."""
        values = (getattr(block.part, name) for block in blocks(self.program) for name in type(block.part).model_fields)
        return any(isinstance(value, Router) for value in values)

    @cached_property
    def running(self) -> dict[str, torch.Tensor]:
        """The value from which each call is tried, for what every call renews by its declaration: that after a first call."""
        names = [
            f"{visit.path}.{buffer.name}"
            for visit in walk(self.program.root)
            if isinstance(visit.node, TypedBlock) and visit.node.part.renewed_by
            if self.training or visit.node.part.always_renewed()
            for buffer in visit.node.buffers
        ]
        if names:
            model = copy.deepcopy(self.model)
            with torch.no_grad():
                self.call(self.draw(self.draws[0]), model)
        return {name: model.get_buffer(name).clone() for name in names}

    @cached_property
    def padding_rows(self) -> dict[str, int]:
        """The row of each table that has no gradient, by the name of the parameter."""
        return {
            f"{visit.path}.{parameter.name}": parameter.zero_row
            for visit in walk(self.program.root)
            if isinstance(visit.node, TypedBlock)
            for parameter in visit.node.parameters
            if parameter.zero_row is not None
        }

    @cached_property
    def is_random(self) -> bool:
        """Whether something draws random numbers in evaluation too."""
        return any(block.part.is_random for block in blocks(self.program))

    def draw(self, how: Draw) -> dict[str, torch.Tensor]:
        """Return inputs.

        Raises:
            NotTried: an input, or a value in the model, has more numbers than can be computed with, or none.
        """
        for name, type_ in self._values():
            shape = shape_of(type_, how.lengths)
            if min(shape, default=1) < 1:
                raise NotTried(f"`{name}` is empty where positions are as few as the model has places for")
            if (count := prod(shape)) > MAX_NUMBERS:
                raise NotTried(f"`{name}` has {count:,} numbers; give it a smaller axis")
        return draw(self.program, how)

    def _values(self) -> Iterator[tuple[str, TensorType]]:
        """Yield the inputs and the values in the model, by name."""
        yield from self.program.inputs.items()
        for visit in walk(self.program.root, once=True):
            yield from ((visit.path, type_) for type_ in visit.node.outputs.values() if isinstance(type_, TensorType))

    def call(self, given: Mapping[str, torch.Tensor], model: Model[Any] | None = None) -> Any:
        """Return the result of a call.

        Raises:
            NotTried: an index that the model computes is out of range of a table or an axis, or there is too little memory.
        """
        try:
            return (self.model if model is None else model)(**given)
        except IndexError as error:
            raise NotTried(f"for inputs that are drawn, {error}") from None
        except RuntimeError as error:
            if "allocate memory" not in str(error):  # torch has no type of its own for that, on the CPU
                raise
            raise NotTried("it takes more memory than there is") from None

    def outputs(self, given: Mapping[str, torch.Tensor], model: Model[Any] | None = None) -> dict[str, torch.Tensor]:
        """Return the outputs of a call by the recipe's names, and the recipe's losses after them. What every call renews has the
        same value before each.

        Raises:
            NotTried: an output is not finite, so nothing can be compared with it, or the model refuses the inputs.
        """
        called = self.model if model is None else model
        with torch.no_grad():
            for name, value in self.running.items():
                called.get_buffer(name).copy_(value)
        with torch.random.fork_rng(devices=[]) if self.training or self.is_random else nullcontext():
            if self.training or self.is_random:
                torch.manual_seed(0)
            result = self.call(given, called)
        return finite(named(result, self.module.outputs))

    def tolerance(self, given: Mapping[str, torch.Tensor]) -> float:
        """Return by how much two computations in another order may differ: more where tiny changes of the weights do much."""
        before = self.outputs(given)
        with torch.no_grad():
            kept = [parameter.clone() for parameter in self.model.parameters()]
            for number, parameter in enumerate(self.model.parameters()):
                noise = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number), dtype=parameter.dtype)
                parameter.mul_(1 + NUDGE * noise)
            try:
                after = self.outputs(given)
            finally:
                for parameter, value in zip(self.model.parameters(), kept, strict=True):
                    parameter.copy_(value)
        moved = max((difference(before[name], after[name]) for name in before), default=0.0)
        return max(REORDERED, 1000 * moved)


def finite(outputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return outputs with which others can be compared.

    Raises:
        NotTried: one has values that are not finite.
    """
    for name, value in outputs.items():
        if not bool(value.isfinite().all()):
            raise NotTried(f"`{name}` has values that are not finite")
    return outputs


def named(result: Any, fields: tuple[tuple[str, str], ...]) -> dict[str, torch.Tensor]:
    """Return what a model returned by the recipe's names, and its losses after them; without what a session leaves out."""
    found = {name: getattr(result, field) for field, name in fields} | {f"loss {name}": y for name, y in result.losses.items()}
    return {name: value.clone() for name, value in found.items() if value is not None}  # one may be a parameter itself


def move_weights(model: Model[Any]) -> None:
    """Move every weight from where it starts."""
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            generator = torch.Generator().manual_seed(number)
            parameter.add_(STEP * torch.randn(parameter.shape, generator=generator, dtype=torch.float64).to(parameter.dtype))


def difference(one: torch.Tensor, other: torch.Tensor) -> float:
    """Return the largest difference of two tensors, relative to the largest number of the first if that is above one."""
    if one.shape != other.shape:
        return float("inf")
    if not one.numel():
        return 0.0
    if not one.dtype.is_floating_point:
        return 0.0 if torch.equal(one, other) else float("inf")
    return float((one - other).abs().max()) / max(1.0, float(one.abs().max()))


def executed(module: Module) -> Any:
    """Return the class of an exported file, executed by itself as a user would import it."""
    namespace = ModuleType(f"exported_{module.name}").__dict__
    exec(compile(module.text, "<exported>", "exec", dont_inherit=True), namespace)
    return namespace[module.name]
