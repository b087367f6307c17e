"""Squashing curves: the whole line goes into an interval."""

from __future__ import annotations

import math
from typing import Any

from blocks.core import Activation, torch


class Sigmoid(Activation, kind="sigmoid"):
    """The logistic curve, into (0, 1): `y = 1 / (1 + e⁻ˣ)`."""

    gated_title = "GLU"

    def curve(self, x: float) -> float:
        return logistic(x)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x)


class Tanh(Activation, kind="tanh"):
    """The hyperbolic tangent, into (-1, 1)."""

    def curve(self, x: float) -> float:
        return math.tanh(x)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x)


def logistic(x: float) -> float:
    """Return the sigmoid of a number."""
    return 1 / (1 + math.exp(-x))
