"""The feed-forward layer with a gate."""

from __future__ import annotations

from typing import Any

from blocks.activations.self_gated import Silu
from blocks.core import Activation, Expert, LinearWeights, Paper, PositiveInt, Sizes, Slot, Weights, torch
from blocks.feed_forward.grouped_ffn import GroupedGatedFeedForward


class GatedFeedForward(Expert, kind="gated_ffn"):
    """Widen twice, gate one half with the activation of the other, narrow again; each position on its own:
    `y = down(activation(gate(x)) · up(x))`.
    """

    hidden: PositiveInt
    """Width inside the layer."""
    activation: Activation = Silu()
    """What gates: SiLU makes SwiGLU, GELU makes GeGLU, ReLU makes ReGLU."""
    bias: bool = False
    """Whether all three maps add a learned vector."""

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
