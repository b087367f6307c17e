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
    PositiveFloat,
    PositiveInt,
    Sizes,
    Slot,
    Units,
    Weights,
    activation_piece,
    declaration,
    grouped,
    linear_piece,
    size,
    torch,
)
from blocks.feed_forward.grouped_ffn import GroupedGatedFeedForward


class GatedFeedForward(Expert, kind="gated_ffn"):
    """Gated feed-forward network (gated MLP, GLU), SwiGLU by default: `y = down(activation(gate(x)) · up(x))`.

    GPT-OSS has `activation: clamped_silu`, `up_limit: 7` and `up_offset: 1`, so `up(x)` is clamped and raised by 1.
    """

    hidden: PositiveInt
    """Hidden width; `intermediate_size` in transformers."""
    activation: Activation = Silu()
    """Activation of the gate: `silu` gives SwiGLU, `gelu` GeGLU, `relu` ReGLU, `sigmoid` GLU."""
    bias: bool = False
    """Whether the projections have a bias."""
    up_limit: PositiveFloat | None = None
    """Bound of `up(x)`, which is clamped to ± up_limit; by default there is none."""
    up_offset: float = 0.0
    """What is added to it then."""

    grouped = GroupedGatedFeedForward
    paper = Paper("GLU Variants Improve Transformer", "arXiv:2002.05202")
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: gated_ffn, hidden: 24, in: x}}
"""
    inputs = {"x": "float[..., dim]"}
    outputs = {"y": "float[..., dim]"}
    units = {"hidden": Units()}

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
        facts = (f"{dim} → {grouped(self.hidden)} → {dim}", *curve, *self._shifts())
        short = name or "GLU"
        return Look(title, facts, "ffn", short=short, brief=(f"{short} {grouped(self.hidden)}", short))

    def icon(self) -> BlockIcon | None:
        return self.activation.icon()

    def inside(self, view: BlockView) -> Sequence[Piece]:
        shifts = self._shifts()
        shift = [Piece("shifted", Look("Shift", shifts, "ffn"), (("up", ""),))] if shifts else []
        return [
            linear_piece(view, "gate", "Linear gate", "$x", "ffn"),
            activation_piece(view, "activation", self.activation, "gate"),
            linear_piece(view, "up", "Linear up", "$x", "ffn"),
            *shift,
            Piece("gated", Look("Product", hue="ffn", sign="×"), (("activation", ""), ("shifted" if shifts else "up", ""))),
            linear_piece(view, "down", "Linear down", "gated", "ffn", ("y",)),
        ]

    @declaration
    def _shifts(self) -> tuple[str, ...]:
        """Return what is done to the half that is not gated."""
        clamp = [] if self.up_limit is None else [f"up in ± {self.up_limit:g}"]
        return (*clamp, *([f"up {self.up_offset:+g}"] if self.up_offset else []))

    def forward(self: Any, x: torch.Tensor) -> Any:
        up = self.up(x)
        if self.up_limit is not None:
            up = up.clamp(-self.up_limit, self.up_limit)
        if self.up_offset:
            up = up + self.up_offset
        return self.down(self.activation(self.gate(x)) * up)
