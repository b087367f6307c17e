"""The feed-forward layer of the Transformer."""

from __future__ import annotations

from typing import Any

from blocks.activations.self_gated import Gelu
from blocks.core import (
    Activation,
    Expert,
    F,
    LinearWeights,
    Paper,
    PositiveInt,
    Probability,
    Sizes,
    Slot,
    Weights,
    derived,
    torch,
)
from blocks.feed_forward.grouped_ffn import GroupedFeedForward


class FeedForward(Expert, kind="ffn"):
    """Widen, bend, narrow again; each position on its own: `y = down(activation(up(x)))`."""

    hidden: PositiveInt = derived("4 * dim")
    """Width inside the layer."""
    activation: Activation = Gelu()
    """The curve between the two maps."""
    bias: bool = True
    """Whether both maps add a learned vector."""
    dropout: Probability = 0.0
    """Probability of a zero inside the layer, after the activation; what leaves it is for `residual` to drop."""

    grouped = GroupedFeedForward
    paper = Paper("Attention Is All You Need", "arXiv:1706.03762")
    inputs = {"x": "float[..., dim]"}
    outputs = {"y": "float[..., dim]"}

    def weights(self, sizes: Sizes, wired: frozenset[str]) -> Weights:
        return {
            "up": LinearWeights("dim", "hidden", bias=self.bias),
            "activation": Slot("activation", "float[..., hidden]"),
            "down": LinearWeights("hidden", "dim", bias=self.bias),
        }

    def forward(self: Any, x: torch.Tensor) -> Any:
        h = self.activation(self.up(x))  # [..., hidden]
        if self.dropout:
            h = F.dropout(h, self.dropout, self.training)
        return self.down(h)
