"""Rectifiers: ReLU and its relatives."""

from __future__ import annotations

import math
from typing import Any

from blocks.core import Activation, F, Paper, PositiveFloat, torch


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


class LeakyRelu(Activation, kind="leaky_relu"):
    """Leaky ReLU, with a small slope below zero: `y = x` for x > 0, else `slope · x`."""

    slope: PositiveFloat = 0.01
    """Slope below zero; torch calls it `negative_slope`. GANs have 0.2, YOLO 0.1."""

    title = "leaky ReLU"
    paper = Paper("Rectifier Nonlinearities Improve Neural Network Acoustic Models", "ICML 2013")

    def curve(self, x: float) -> float:
        return x if x > 0 else self.slope * x

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.leaky_relu(x, self.slope)


class Elu(Activation, kind="elu"):
    """Exponential linear unit (ELU): `y = x` for x > 0, else `alpha · (eˣ - 1)`."""

    alpha: PositiveFloat = 1.0
    """Where it ends far below zero, at `-alpha`."""

    title = "ELU"
    paper = Paper("Fast and Accurate Deep Network Learning by Exponential Linear Units (ELUs)", "arXiv:1511.07289")

    def curve(self, x: float) -> float:
        return x if x > 0 else self.alpha * math.expm1(x)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.elu(x, self.alpha)


class Softplus(Activation, kind="softplus"):
    """Softplus, a smooth approximation of ReLU: `y = log(1 + eˣ)`."""

    paper = Paper("Incorporating Second-Order Functional Knowledge for Better Option Pricing", "NIPS 2000")

    def curve(self, x: float) -> float:
        return math.log1p(math.exp(x))

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.softplus(x)
