"""Root-mean-square normalization."""

from __future__ import annotations

from typing import Any

from blocks.attention.heads import check_split
from blocks.core import ONES, ZEROS, Call, F, Norm, Paper, PositiveFloat, PositiveInt, Sizes, Tensor, Weights, torch


class RMSNorm(Norm, kind="rmsnorm"):
    """Root mean square normalization (RMSNorm) over the channels of each position, without centering:
    `y = x / √(mean(x²) + eps) · weight`.
    """

    eps: PositiveFloat = 1e-6
    """Added to the mean square for numerical stability."""
    affine: bool = True
    """Whether there is a learned gain (`weight`); `elementwise_affine` in torch."""
    unit_offset: bool = False
    """Whether the gain is `1 + weight`, so that weight decay pulls it to 1, as in Gemma."""
    eps_inside: bool = True
    """Whether `eps` is added to the mean square, as in torch; otherwise to its root."""
    groups: PositiveInt = 1
    """Number of groups of channels that each have a mean of their own, as in Mamba-2 and for each head of a RetNet."""

    title = "RMSNorm"
    paper = Paper("Root Mean Square Layer Normalization", "arXiv:1910.07467")
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: rmsnorm, in: x}}
"""

    def weights(self, sizes: Sizes, wired: frozenset[str]) -> Weights:
        return {"weight": Tensor(("dim",), "gain", ZEROS if self.unit_offset else ONES, when="affine")}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        check_split(sizes["dim"], self.groups, "groups", known=True)

    def build(self, sizes: Sizes) -> Call | None:
        if self.unit_offset or not self.eps_inside or self.groups > 1 or not isinstance(sizes["dim"], int):
            return None
        return Call("nn.RMSNorm", ("dim",), {"eps": "eps", "elementwise_affine": "affine"})

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))  # bfloat16 is too coarse for squares and for 1 + weight
        gain = self.weight.to(wide.dtype) if self.affine else None
        if self.unit_offset and gain is not None:
            gain = 1 + gain
        if self.eps_inside and self.groups == 1:
            return F.rms_norm(wide, wide.shape[-1:], gain, self.eps).to(x.dtype)
        if self.groups > 1:
            wide = torch.unflatten(wide, -1, (self.groups, -1))
        if self.eps_inside:
            y = F.rms_norm(wide, wide.shape[-1:], eps=self.eps)
        else:
            # The norm of a row of zeros has gradient zero; that of the root of their mean square would be infinite.
            rms = torch.linalg.vector_norm(wide, dim=-1, keepdim=True) / wide.shape[-1] ** 0.5
            y = wide / (rms + self.eps)
        if self.groups > 1:
            y = y.flatten(-2)
        return (y if gain is None else y * gain).to(x.dtype)
