"""Capturing the state of a run from its objects, and restoring it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from composer.train.errors import TrainingError
from composer.train.run.checkpoint import Checkpoint, Report
from composer.train.run.manifest import name_of
from composer.train.run.tensors import Tensors


def capture(
    model: nn.Module,
    optimizer: Optimizer,
    *,
    step: int,
    tokens: int,
    seconds: float,
    report: Report | None,
) -> Checkpoint:
    """Return the state after `step` steps; its tensors are those of the objects, not copies."""
    moments = {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }
    return Checkpoint(step, model.state_dict(), moments, random_states(), tokens, seconds, report)


def restore(checkpoint: Checkpoint, model: nn.Module, optimizer: Optimizer) -> None:
    """Restore the state that `capture` returned, including the random generators.

    Raises:
        TrainingError: The checkpoint is of another model.
    """
    load_weights(checkpoint.model, checkpoint.step, model)
    parameters = dict(model.named_parameters())
    for key, value in checkpoint.optimizer.items():
        name, _, moment = key.rpartition("/")
        if name not in parameters or not is_moment(value, parameters[name]):
            raise misfit(checkpoint.step, "optimizer", f"`{key}` belongs to no parameter")
        optimizer.state[parameters[name]][moment] = value.to(parameters[name].device)
    generators = {"cpu": torch.set_rng_state}
    if "cuda" in checkpoint.random and torch.cuda.is_available():
        generators["cuda"] = torch.cuda.set_rng_state
    for name, set_state in generators.items():
        set_random_state(checkpoint, name, set_state)


def is_moment(value: Tensor, parameter: Tensor) -> bool:
    """Return whether a tensor may be a state of a parameter: one number, one for each of its, or one for rows of them."""
    of_rows = len(value.shape) == len(parameter.shape)
    return value.dim() == 0 or (
        of_rows and all(size in (1, full) for size, full in zip(value.shape, parameter.shape, strict=True))
    )


def load_weights(weights: Tensors, step: int, model: nn.Module) -> None:
    """Load the weights of the checkpoint after a step.

    Raises:
        TrainingError: The checkpoint is of another model.
    """
    expected = model.state_dict()
    for name in sorted(expected.keys() | weights.keys()):
        if name not in weights:
            raise misfit(step, "model", f"it lacks `{name}`")
        if name not in expected:
            raise misfit(step, "model", f"the model has no `{name}`")
        here, there = (f"{tensor.dtype} {list(tensor.shape)}" for tensor in (weights[name], expected[name]))
        if here != there:
            raise misfit(step, "model", f"`{name}` is {here}, in the model {there}")
    model.load_state_dict(dict(weights))


def set_random_state(checkpoint: Checkpoint, name: str, set_state: Callable[[Tensor], object]) -> None:
    """Restore the state of a random generator.

    Raises:
        TrainingError: There is none, or it is of another form.
    """
    if name not in checkpoint.random:
        raise misfit(checkpoint.step, "random", f"it lacks `{name}`")
    try:
        set_state(checkpoint.random[name])
    except (RuntimeError, TypeError):
        raise misfit(checkpoint.step, "random", f"`{name}` is no state of a random generator") from None


def misfit(step: int, part: str, what: str) -> TrainingError:
    """Return the error of a checkpoint that is not one of this model."""
    return TrainingError(f"{part}.safetensors of {name_of(step)} does not fit the recipe: {what}")


def random_states() -> dict[str, Tensor]:
    """Return the states of the generators on each device, for dropout; the order of the data follows from the step."""
    states = {"cpu": torch.get_rng_state()}
    return states | ({"cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else {})
