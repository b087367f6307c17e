"""Elementwise operations: identity, multiplication by a constant, dropout."""

from __future__ import annotations

from typing import Any

from blocks.core import Block, BlockView, Call, Look, Paper, Probability, Sizes, grouped, torch


class Identity(Block, kind="identity"):
    """Identity: `y = x`."""

    is_primitive = True
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: identity, in: x}}
"""
    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def build(self, sizes: Sizes) -> Call:
        return Call("nn.Identity")

    def inline(self, sizes: Sizes) -> str:
        return "{x}"

    def look(self, view: BlockView) -> Look:
        return Look(self.called(), low=True)


class Scale(Block, kind="scale"):
    """Multiplication by a constant: `y = by · x`."""

    by: float
    """The constant."""

    is_primitive = True
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: scale, by: sqrt(8), in: x}}
"""
    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def look(self, view: BlockView) -> Look:
        short = f"{self.by:.4g}"
        square = round(self.by**-2) if self.by > 0 and float(short) != self.by else 0  # 0.25 is shorter than a root
        root = square > 1 and abs(square * self.by**2 - 1) < 1e-9
        return Look(f"÷ √{grouped(square)}" if root else f"× {short}", hue="merge")

    def forward(self: Any, x: torch.Tensor) -> Any:
        return x * self.by

    def inline(self, sizes: Sizes) -> str:
        return "{x} * {by}"


class Dropout(Block, kind="dropout"):
    """Dropout, which in training zeroes each element with probability `p` and scales the others by `1 / (1 - p)`."""

    p: Probability
    """Probability that an element is zeroed."""

    is_primitive = True
    paper = Paper("Dropout: A Simple Way to Prevent Neural Networks from Overfitting", "JMLR 15 (2014)")
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: dropout, p: 0.1, in: x}}
"""
    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def build(self, sizes: Sizes) -> Call:
        return Call("nn.Dropout", ("p",))

    def look(self, view: BlockView) -> Look:
        return Look(f"{self.called()} {self.p:g}", quiet=True)

    def drop_rate(self) -> float:
        return self.p
