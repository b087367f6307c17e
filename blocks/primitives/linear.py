"""The linear layer."""

from __future__ import annotations

from blocks.core import Block, BlockView, Call, Init, Look, PositiveInt, Sizes, Tensor, grouped, size


class Linear(Block, kind="linear"):
    """Linear (dense, fully connected) layer on the last axis: `y = x Wᵀ + b`."""

    out: PositiveInt
    """Output width; `out_features` in torch."""
    bias: bool = True
    """Whether `b` is added."""

    is_primitive = True
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: linear, out: 12, in: x}}
"""
    inputs = {"x": "float[..., dim]"}
    outputs = {"y": "float[..., out]"}
    # torch's own initial values: uniform, which makes the variance of the output a third of the input's.
    weights = {
        "weight": Tensor(("out", "dim"), "matrix", Init("uniform", "1 / sqrt(dim)")),
        "bias": Tensor(("out",), "bias", Init("uniform", "1 / sqrt(dim)"), when="bias"),
    }

    def build(self, sizes: Sizes) -> Call:
        return Call("nn.Linear", ("dim", "out"), {"bias": "bias"})

    def look(self, view: BlockView) -> Look:
        bias = " + bias" if self.bias else ""
        return Look(view.head or self.called(), (f"{size(view.sizes['dim'])} → {grouped(self.out)}{bias}",), "embed")
