"""Curves of the form x · g(x), where g rises from 0 to 1: GELU, SiLU and what approximates them."""

from __future__ import annotations

from typing import Any

from blocks.core import Activation, F, Paper, PositiveFloat, torch

_GELU = Paper("Gaussian Error Linear Units (GELUs)", "arXiv:1606.08415")


class Gelu(Activation, kind="gelu"):
    """A number times the probability that a standard normal one is smaller: `y = x Φ(x)`."""

    paper = _GELU

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x)


class GeluTanh(Activation, kind="gelu_tanh"):
    """GELU as GPT-2 approximates it: `y = x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))`."""

    paper = _GELU

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x, approximate="tanh")


class QuickGelu(Activation, kind="quick_gelu"):
    """GELU as CLIP approximates it: `y = x σ(1.702 x)`."""

    paper = _GELU

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(1.702 * x)


class Silu(Activation, kind="silu"):
    """A number times its own sigmoid: `y = x σ(x)`; also called Swish."""

    paper = Paper(
        "Sigmoid-Weighted Linear Units for Neural Network Function Approximation in Reinforcement Learning", "arXiv:1702.03118"
    )

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

    paper = Paper("gpt-oss-120b & gpt-oss-20b Model Card", "arXiv:2508.10925")

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        x = x.clamp(max=self.limit)
        return x * torch.sigmoid(self.alpha * x)
