"""The gated feed-forward network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blocks.activations.self_gated import Silu
from blocks.core import (
    Activation,
    BlockIcon,
    BlockView,
    Expert,
    LinearWeights,
    Look,
    Paper,
    Piece,
    PositiveInt,
    Sizes,
    Slot,
    Weights,
    activation_piece,
    grouped,
    linear_piece,
    size,
    torch,
)
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

    def look(self, view: BlockView) -> Look:
        dim = size(view.sizes["dim"])
        gate = self.activation if isinstance(self.activation, Activation) else None
        name = gate.gated_title if gate is not None else ""
        curve = (gate.called(),) if gate is not None and (not name or gate.approximate) else ()
        title = f"{name} feed-forward" if name else "Gated feed-forward"
        facts = (f"{dim} → {grouped(self.hidden)} → {dim}", *curve)
        return Look(title, facts, "ffn", short=name or "GLU")

    def icon(self) -> BlockIcon | None:
        return self.activation.icon()

    def inside(self, view: BlockView) -> Sequence[Piece]:
        return [
            linear_piece(view, "gate", "Linear gate", "$x", "ffn"),
            activation_piece(view, "activation", self.activation, "gate"),
            linear_piece(view, "up", "Linear up", "$x", "ffn"),
            Piece("gated", Look("Product", hue="ffn", sign="×"), (("activation", ""), ("up", ""))),
            linear_piece(view, "down", "Linear down", "gated", "ffn", ("y",)),
        ]

    def forward(self: Any, x: torch.Tensor) -> Any:
        return self.down(self.activation(self.gate(x)) * self.up(x))
