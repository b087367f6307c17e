"""Activations with a bounded range: sigmoid and tanh."""

from __future__ import annotations

import math
from typing import Any

from blocks.core import Activation, torch


class Sigmoid(Activation, kind="sigmoid"):
    """Sigmoid (logistic function), with values in (0, 1): `y = 1 / (1 + e⁻ˣ)`."""

    gated_title = "GLU"

    def curve(self, x: float) -> float:
        return logistic(x)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x)


class Tanh(Activation, kind="tanh"):
    """Hyperbolic tangent, with values in (-1, 1): `y = tanh(x)`."""

    def curve(self, x: float) -> float:
        return math.tanh(x)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x)


def logistic(x: float) -> float:
    """Return the sigmoid of a number."""
    return 1 / (1 + math.exp(-x))
