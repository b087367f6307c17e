"""Blocks as users write them: with helpers that are annotated, that call each other, and that have defaults of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import nn

from blocks.core import Block, Init, LinearWeights, PositiveInt, Tensor

Pair: TypeAlias = tuple[torch.Tensor, torch.Tensor]
HALF = 0.5
LIMITS: Sequence[float] = (-3.0, 3.0)


def halves(x: torch.Tensor, at: int | None = None) -> Pair:
    """Return both halves of the channels."""
    middle: int = x.shape[-1] // 2 if at is None else at
    return x[..., :middle], x[..., middle:]


def applied(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, *, times: int = 1) -> torch.Tensor:
    """Return a function applied several times."""
    for _ in range(times):
        x = function(x)
    return x


class Swapped(Block, kind="swapped"):
    """Exchanges both halves of the channels, and scales them by a vector that is bounded."""

    times: PositiveInt = 3
    """How often the halves are exchanged."""

    inputs = {"x": "float[batch, time, dim]"}
    outputs = {"y": "float[batch, time, dim]"}
    weights = {"gain": Tensor(("dim",), "gain", Init("constant", 1.0))}

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        def swapped(of: torch.Tensor) -> torch.Tensor:
            first, second = halves(of)
            return torch.cat([second, first], dim=-1)

        return applied(swapped, x, times=self.times) * self.gain.clamp(*LIMITS) * HALF


class Bottleneck(Block, kind="bottleneck"):
    """A narrow pair of linear maps, with a gate of its own."""

    hidden: PositiveInt
    """Width in between."""

    inputs = {"x": "float[batch, time, dim]"}
    outputs = {"y": "float[batch, time, dim]"}
    weights = {
        "down": LinearWeights("dim", "hidden"),
        "up": LinearWeights("hidden", "dim"),
        "scale": Tensor((), "gain", Init("constant", 1.0)),
    }

    @staticmethod
    def bounded(x: torch.Tensor, most: float = math.pi) -> torch.Tensor:
        """Return the tensor within bounds."""
        return most * torch.tanh(x / most)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = nn.functional.silu(self.down(x))
        return self.bounded(self.up(hidden)) * self.scale


OWN = (Swapped, Bottleneck)
"""All of them."""
