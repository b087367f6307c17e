"""Self-gated activations x · g(x), where g rises from 0 to 1: GELU, SiLU and approximations of them."""

from __future__ import annotations

from typing import Any

from blocks.core import Activation, F, Paper, PositiveFloat, torch

_GELU = Paper("Gaussian Error Linear Units (GELUs)", "arXiv:1606.08415")


class Gelu(Activation, kind="gelu"):
    """Gaussian error linear unit (GELU): `y = x Φ(x)`, with Φ the standard normal distribution function."""

    paper = _GELU

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x)


class GeluTanh(Activation, kind="gelu_tanh"):
    """GELU, tanh approximation as in GPT-2: `y = x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))`.

    Transformers calls it `gelu_new` or `gelu_pytorch_tanh`.
    """

    paper = _GELU

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x, approximate="tanh")


class QuickGelu(Activation, kind="quick_gelu"):
    """GELU, sigmoid approximation as in CLIP: `y = x σ(1.702 x)`."""

    paper = _GELU

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(1.702 * x)


class Silu(Activation, kind="silu"):
    """Sigmoid linear unit (SiLU, Swish): `y = x σ(x)`."""

    paper = Paper(
        "Sigmoid-Weighted Linear Units for Neural Network Function Approximation in Reinforcement Learning", "arXiv:1702.03118"
    )

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.silu(x)


class ClampedSilu(Activation, kind="clamped_silu"):
    """SiLU with a clamped input and a slope, as in GPT-OSS: `y = z σ(α z)` with `z = min(x, limit)`.

    GPT-OSS also clamps the linear half of its SwiGLU to ± limit and adds 1 to it; the block around this activation has to do
    that.
    """

    alpha: PositiveFloat = 1.702
    """Slope α inside the sigmoid: 1 gives SiLU, 1.702 approximates GELU."""
    limit: PositiveFloat = 7.0
    """Upper bound of the input."""

    paper = Paper("gpt-oss-120b & gpt-oss-20b Model Card", "arXiv:2508.10925")

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        x = x.clamp(max=self.limit)
        return x * torch.sigmoid(self.alpha * x)
