"""The feed-forward network of the Transformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blocks.activations.self_gated import Gelu
from blocks.core import (
    Activation,
    BlockIcon,
    BlockView,
    Expert,
    F,
    LinearWeights,
    Look,
    Paper,
    Piece,
    PositiveInt,
    Probability,
    Sizes,
    Slot,
    Units,
    Weights,
    activation_piece,
    derived,
    grouped,
    linear_piece,
    size,
    torch,
)
from blocks.feed_forward.grouped_ffn import GroupedFeedForward


class FeedForward(Expert, kind="ffn"):
    """Position-wise feed-forward network (FFN, MLP): `y = down(activation(up(x)))`.

    Published checkpoints call `up` and `down` `c_fc` and `c_proj` (GPT-2), `fc1` and `fc2`, or `wi` and `wo` (T5).
    """

    hidden: PositiveInt = derived("4 * dim")
    """Hidden width; `intermediate_size` or `d_ff` in transformers."""
    activation: Activation = Gelu()
    """Activation between the two projections."""
    bias: bool = True
    """Whether the projections have a bias."""
    dropout: Probability = 0.0
    """Dropout probability after the activation, in training; for dropout on the output, use that of `residual`."""

    grouped = GroupedFeedForward
    paper = Paper("Attention Is All You Need", "arXiv:1706.03762")
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: ffn, hidden: 24, activation: gelu, in: x}}
"""
    inputs = {"x": "float[..., dim]"}
    outputs = {"y": "float[..., dim]"}
    units = {"hidden": Units()}

    def weights(self, sizes: Sizes, wired: frozenset[str]) -> Weights:
        return {
            "up": LinearWeights("dim", "hidden", bias=self.bias),
            "activation": Slot("activation", "float[..., hidden]"),
            "down": LinearWeights("hidden", "dim", bias=self.bias),
        }

    def look(self, view: BlockView) -> Look:
        dim = size(view.sizes["dim"])
        curve = (self.activation.called(),) if isinstance(self.activation, Activation) else ()
        dropout = (f"dropout {self.dropout:g}",) if self.dropout else ()
        facts = (f"{dim} → {grouped(self.hidden)} → {dim}", *curve, *dropout)
        short = f"{''.join(curve)} FFN".strip()
        return Look("Feed-forward", facts, "ffn", short=short, brief=(f"{short} {grouped(self.hidden)}", short))

    def icon(self) -> BlockIcon | None:
        return self.activation.icon()

    def inside(self, view: BlockView) -> Sequence[Piece]:
        pieces = [
            linear_piece(view, "up", "Linear up", "$x", "ffn"),
            activation_piece(view, "activation", self.activation, "up"),
        ]
        if self.dropout:
            pieces.append(Piece("dropout", Look(f"Dropout {self.dropout:g}", quiet=True), (("activation", ""),)))
        return [*pieces, linear_piece(view, "down", "Linear down", pieces[-1].name, "ffn", ("y",))]

    def forward(self: Any, x: torch.Tensor) -> Any:
        h = self.activation(self.up(x))  # [..., hidden]
        if self.dropout:
            h = F.dropout(h, self.dropout, self.training)
        return self.down(h)
