"""The exponential moving average of weights (Polyak and Juditsky 1992), kept beside the moments of the optimizer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

AVERAGE = "average"
"""The name of the average among the moments of a parameter."""


@torch.no_grad()
def update_averages(optimizer: Optimizer, decay: float) -> None:
    """Move the average of each trained parameter toward its value after a step; it starts as the value after the first."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state[parameter]  # not empty any more: an optimizer sets up its own moments before
            if AVERAGE not in state:
                state[AVERAGE] = parameter.detach().clone()
            else:
                state[AVERAGE].lerp_(parameter.detach(), 1 - decay)


@contextmanager
def averaged(optimizer: Optimizer) -> Iterator[None]:
    """Give the parameters their averages, and afterward their values again."""
    held = [
        (parameter, parameter.data, optimizer.state[parameter][AVERAGE])
        for group in optimizer.param_groups
        for parameter in group["params"]
        if AVERAGE in optimizer.state.get(parameter, {})
    ]
    try:
        for parameter, _, average in held:
            parameter.data = average
        yield
    finally:
        for parameter, value, _ in held:
            parameter.data = value


@torch.no_grad()
def load_averages(model: nn.Module, moments: Mapping[str, Tensor]) -> None:
    """Give the parameters of a model the averages among the moments of a checkpoint."""
    for name, parameter in model.named_parameters():
        average = moments.get(f"{name}/{AVERAGE}")
        if average is not None and average.shape == parameter.shape:
            parameter.copy_(average)
