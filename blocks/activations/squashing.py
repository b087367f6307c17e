"""Squashing curves: the whole line goes into an interval."""

from __future__ import annotations

from typing import Any

from blocks.core import Activation, torch


class Sigmoid(Activation, kind="sigmoid"):
    """The logistic curve, into (0, 1): `y = 1 / (1 + e⁻ˣ)`."""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x)


class Tanh(Activation, kind="tanh"):
    """The hyperbolic tangent, into (-1, 1)."""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x)
