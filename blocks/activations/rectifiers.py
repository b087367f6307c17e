"""Rectifiers: ReLU and its relatives."""

from __future__ import annotations

import math
from typing import Any

from blocks.core import Activation, F, Paper, torch


class Relu(Activation, kind="relu"):
    """Rectified linear unit (ReLU): `y = max(x, 0)`."""

    title = "ReLU"
    gated_title = "ReGLU"
    paper = Paper("Rectified Linear Units Improve Restricted Boltzmann Machines", "ICML 2010")

    def curve(self, x: float) -> float:
        return max(x, 0.0)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x)


class ReluSquared(Activation, kind="relu_squared"):
    """Squared ReLU (ReLU²): `y = max(x, 0)²`."""

    title = "ReLU²"
    paper = Paper("Primer: Searching for Efficient Transformers for Language Modeling", "arXiv:2109.08668")

    def curve(self, x: float) -> float:
        return max(x, 0.0) ** 2

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x).square()


class Softplus(Activation, kind="softplus"):
    """Softplus, a smooth approximation of ReLU: `y = log(1 + eˣ)`."""

    paper = Paper("Incorporating Second-Order Functional Knowledge for Better Option Pricing", "NIPS 2000")

    def curve(self, x: float) -> float:
        return math.log1p(math.exp(x))

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.softplus(x)
