"""Activations with a bounded range: sigmoid and tanh."""

from __future__ import annotations

from typing import Any

from blocks.core import Activation, torch


class Sigmoid(Activation, kind="sigmoid"):
    """Sigmoid (logistic function), with values in (0, 1): `y = 1 / (1 + e⁻ˣ)`."""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x)


class Tanh(Activation, kind="tanh"):
    """Hyperbolic tangent, with values in (-1, 1): `y = tanh(x)`."""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x)
