"""Layer normalization."""

from __future__ import annotations

from typing import Any

from blocks.core import ONES, ZEROS, Call, F, Norm, Paper, PositiveFloat, Sizes, Tensor, Weights, torch


class LayerNorm(Norm, kind="layernorm"):
    """Layer normalization (LayerNorm) over the channels of each position: `y = (x - mean) / √(var + eps) · weight + bias`."""

    eps: PositiveFloat = 1e-5
    """Added to the variance for numerical stability."""
    affine: bool = True
    """Whether there is a learned gain (`weight`), and with `bias` a learned bias; `elementwise_affine` in torch."""
    bias: bool = True
    """Whether there is a learned bias besides the gain."""
    unit_offset: bool = False
    """Whether the gain is `1 + weight`, so that weight decay pulls it to 1, as in Nemotron."""
    eps_inside: bool = True
    """Whether `eps` is added to the variance, as in torch; otherwise to the standard deviation."""

    title = "LayerNorm"
    paper = Paper("Layer Normalization", "arXiv:1607.06450")
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: layernorm, in: x}}
"""

    def weights(self, sizes: Sizes, wired: frozenset[str]) -> Weights:
        if not self.affine:
            return {}
        return {
            "weight": Tensor(("dim",), "gain", ZEROS if self.unit_offset else ONES),
            "bias": Tensor(("dim",), "bias", ZEROS, when="bias"),
        }

    def build(self, sizes: Sizes) -> Call | None:
        if self.unit_offset or not self.eps_inside or not isinstance(sizes["dim"], int):
            return None
        return Call("nn.LayerNorm", ("dim",), {"eps": "eps", "elementwise_affine": "affine", "bias": "bias"})

    def forward(self: Any, x: torch.Tensor) -> Any:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))  # bfloat16 is too coarse for a sum of squares
        if self.eps_inside:
            y = F.layer_norm(wide, wide.shape[-1:], eps=self.eps)
        else:
            centered = wide - wide.mean(-1, keepdim=True)
            # The norm of a row of zeros has gradient zero; that of a square root of their variance would be infinite.
            deviation = torch.linalg.vector_norm(centered, dim=-1, keepdim=True) / centered.shape[-1] ** 0.5
            y = centered / (deviation + self.eps)
        if self.affine:
            y = y * (1 + self.weight.to(wide.dtype) if self.unit_offset else self.weight)
            if self.bias is not None:
                y = y + self.bias
        return y.to(x.dtype)
