"""Curves of the form x · g(x), where g rises from 0 to 1: GELU, SiLU and what approximates them."""

from __future__ import annotations

import math
from typing import Any

from blocks.activations.squashing import logistic
from blocks.core import Activation, F, Paper, PositiveFloat, torch

_GELU = Paper("Gaussian Error Linear Units (GELUs)", "arXiv:1606.08415")


class Gelu(Activation, kind="gelu"):
    """A number times the probability that a standard normal one is smaller: `y = x Φ(x)`."""

    title = "GELU"
    gated_title = "GeGLU"
    paper = _GELU

    def curve(self, x: float) -> float:
        return x * (1 + math.erf(x / math.sqrt(2))) / 2

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x)


class GeluTanh(Activation, kind="gelu_tanh"):
    """GELU as GPT-2 approximates it: `y = x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))`."""

    title = "GELU (tanh)"
    gated_title = "GeGLU"
    approximate = True
    paper = _GELU

    def curve(self, x: float) -> float:
        return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x, approximate="tanh")


class QuickGelu(Activation, kind="quick_gelu"):
    """GELU as CLIP approximates it: `y = x σ(1.702 x)`."""

    title = "QuickGELU"
    paper = _GELU

    def curve(self, x: float) -> float:
        return x * logistic(1.702 * x)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(1.702 * x)


class Silu(Activation, kind="silu"):
    """A number times its own sigmoid: `y = x σ(x)`; also called Swish."""

    title = "SiLU"
    gated_title = "SwiGLU"
    paper = Paper(
        "Sigmoid-Weighted Linear Units for Neural Network Function Approximation in Reinforcement Learning", "arXiv:1702.03118"
    )

    def curve(self, x: float) -> float:
        return x * logistic(x)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.silu(x)


class ClampedSilu(Activation, kind="clamped_silu"):
    """SiLU with a slope, of a number cut off above: `y = z σ(α z)` with `z = min(x, limit)`.

    GPT-OSS also clamps the half that is gated, to ± limit, and adds one to it; that is for the block around to do.
    """

    alpha: PositiveFloat = 1.702
    """Slope of the gate: 1 is SiLU, 1.702 comes close to GELU."""
    limit: PositiveFloat = 7.0
    """The largest number that goes in."""

    title = "clamped SiLU"
    paper = Paper("gpt-oss-120b & gpt-oss-20b Model Card", "arXiv:2508.10925")

    def curve(self, x: float) -> float:
        return min(x, self.limit) * logistic(self.alpha * min(x, self.limit))

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        x = x.clamp(max=self.limit)
        return x * torch.sigmoid(self.alpha * x)
