"""Self-gated activations x · g(x), where g rises from 0 to 1: GELU, SiLU and approximations of them."""

from __future__ import annotations

import math
from typing import Any

from blocks.activations.squashing import logistic
from blocks.core import Activation, F, Paper, PositiveFloat, torch

_GELU = Paper("Gaussian Error Linear Units (GELUs)", "arXiv:1606.08415")


class Gelu(Activation, kind="gelu"):
    """Gaussian error linear unit (GELU): `y = x Φ(x)`, with Φ the standard normal distribution function."""

    title = "GELU"
    gated_title = "GeGLU"
    paper = _GELU

    def curve(self, x: float) -> float:
        return x * (1 + math.erf(x / math.sqrt(2))) / 2

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x)


class GeluTanh(Activation, kind="gelu_tanh"):
    """GELU, tanh approximation as in GPT-2: `y = x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))`.

    Transformers calls it `gelu_new` or `gelu_pytorch_tanh`.
    """

    title = "GELU (tanh)"
    gated_title = "GeGLU"
    approximate = True
    paper = _GELU

    def curve(self, x: float) -> float:
        return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x, approximate="tanh")


class QuickGelu(Activation, kind="quick_gelu"):
    """GELU, sigmoid approximation as in CLIP: `y = x σ(1.702 x)`."""

    title = "QuickGELU"
    paper = _GELU

    def curve(self, x: float) -> float:
        return x * logistic(1.702 * x)

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(1.702 * x)


class Silu(Activation, kind="silu"):
    """Sigmoid linear unit (SiLU, Swish): `y = x σ(x)`."""

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
    """SiLU with a clamped input and a slope, as in GPT-OSS: `y = z σ(α z)` with `z = min(x, limit)`.

    GPT-OSS also clamps the linear half of its SwiGLU to ± limit and adds 1 to it: `up_limit` and `up_offset` of `gated_ffn`.
    """

    alpha: PositiveFloat = 1.702
    """Slope α inside the sigmoid: 1 gives SiLU, 1.702 approximates GELU."""
    limit: PositiveFloat = 7.0
    """Upper bound of the input."""

    title = "clamped SiLU"
    paper = Paper("gpt-oss-120b & gpt-oss-20b Model Card", "arXiv:2508.10925")

    def curve(self, x: float) -> float:
        return min(x, self.limit) * logistic(self.alpha * min(x, self.limit))

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        x = x.clamp(max=self.limit)
        return x * torch.sigmoid(self.alpha * x)
