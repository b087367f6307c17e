"""Capturing the state of a run from its objects, and restoring it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from composer.train.run.checkpoint import Checkpoint


def capture(
    model: nn.Module, optimizer: Optimizer, generator: torch.Generator, *, step: int, counters: Mapping[str, Any]
) -> Checkpoint:
    """Return the state after `step` steps; its tensors are those of the objects, not copies."""
    moments = {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }
    return Checkpoint(step, model.state_dict(), moments, random_states(generator), counters)


def restore(checkpoint: Checkpoint, model: nn.Module, optimizer: Optimizer, generator: torch.Generator) -> None:
    """Restore the state that `capture` returned, including the random generators."""
    model.load_state_dict(dict(checkpoint.model))
    parameters = dict(model.named_parameters())
    for key, value in checkpoint.optimizer.items():
        name, moment = key.rsplit("/", 1)
        parameter = parameters[name]
        optimizer.state[parameter][moment] = value.to(parameter.device)
    generator.set_state(checkpoint.random["data"])
    torch.set_rng_state(checkpoint.random["cpu"])
    if "cuda" in checkpoint.random and torch.cuda.is_available():
        torch.cuda.set_rng_state(checkpoint.random["cuda"])


def random_states(generator: torch.Generator) -> dict[str, Tensor]:
    """Return the states of the generators for the order of the data and for dropout on each device."""
    states = {"data": generator.get_state(), "cpu": torch.get_rng_state()}
    return states | ({"cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else {})
