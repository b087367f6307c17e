"""Everything a run's next step depends on, out of the live objects and back into them."""

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
    """Return the run after `step` steps; tensors are shared with the live objects until they are written."""
    moments = {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }
    return Checkpoint(step, model.state_dict(), moments, random_states(generator), counters)


def restore(checkpoint: Checkpoint, model: nn.Module, optimizer: Optimizer, generator: torch.Generator) -> None:
    """Put the run back to where `capture` saw it, the random generators included."""
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
    """Return the order of the data, and dropout on either device."""
    states = {"data": generator.get_state(), "cpu": torch.get_rng_state()}
    return states | ({"cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else {})
