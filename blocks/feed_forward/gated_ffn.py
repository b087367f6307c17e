"""The gated feed-forward network."""

from __future__ import annotations

from typing import Any

from blocks.activations.self_gated import Silu
from blocks.core import Activation, Expert, LinearWeights, Paper, PositiveInt, Sizes, Slot, Weights, torch
from blocks.feed_forward.grouped_ffn import GroupedGatedFeedForward


class GatedFeedForward(Expert, kind="gated_ffn"):
    """Gated feed-forward network (gated MLP, GLU), SwiGLU by default: `y = down(activation(gate(x)) · up(x))`."""

    hidden: PositiveInt
    """Hidden width; `intermediate_size` in transformers."""
    activation: Activation = Silu()
    """Activation of the gate: `silu` gives SwiGLU, `gelu` GeGLU, `relu` ReGLU, `sigmoid` GLU."""
    bias: bool = False
    """Whether the projections have a bias."""

    grouped = GroupedGatedFeedForward
    paper = Paper("GLU Variants Improve Transformer", "arXiv:2002.05202")
    inputs = {"x": "float[..., dim]"}
    outputs = {"y": "float[..., dim]"}

    def weights(self, sizes: Sizes, wired: frozenset[str]) -> Weights:
        return {
            "gate": LinearWeights("dim", "hidden", bias=self.bias),
            "up": LinearWeights("dim", "hidden", bias=self.bias),
            "activation": Slot("activation", "float[..., hidden]"),
            "down": LinearWeights("hidden", "dim", bias=self.bias),
        }

    def forward(self: Any, x: torch.Tensor) -> Any:
        return self.down(self.activation(self.gate(x)) * self.up(x))
