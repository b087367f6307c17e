"""xIELU, an activation with two learned parameters."""

from __future__ import annotations

import math
from typing import Any

from blocks.core import Activation, F, Init, Paper, Tensor, torch


class Xielu(Activation, kind="xielu"):
    """xIELU, an activation with two learned slopes: `y = αₚ x² + x/2` for `x > 0`, else `y = αₙ (eˣ - 1 - x) + x/2`, where
    `αₚ > 0` and `αₙ > 1/2`.

    It is the integral of a linear function on the right and of an ELU on the left. The parameters are stored before a softplus,
    `αₚ = softplus(alpha_p)` and `αₙ = 1/2 + softplus(alpha_n)`; both α start at 0.8.
    """

    title = "xIELU"
    paper = Paper("Deriving Activation Functions Using Integration", "arXiv:2411.13010")
    weights = {
        "alpha_p": Tensor((1,), "gain", Init("constant", math.log(math.expm1(0.8)))),
        "alpha_n": Tensor((1,), "gain", Init("constant", math.log(math.expm1(0.8 - 0.5)))),
    }

    def curve(self, x: float) -> float:
        return (0.8 * x * x if x > 0 else 0.8 * (math.expm1(x) - x)) + x / 2  # initial values of both parameters

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        negative = x.clamp(max=0)  # for large x, eˣ would overflow and its gradient be NaN
        right = F.softplus(self.alpha_p) * x.square()
        left = (0.5 + F.softplus(self.alpha_n)) * (torch.expm1(negative) - negative)
        return torch.where(x > 0, right, left) + 0.5 * x
