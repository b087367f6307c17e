"""Blocks that treat each number alone: nothing, a fixed factor, dropout."""

from __future__ import annotations

from typing import Any

from blocks.core import Block, BlockView, Call, Look, Paper, Probability, Sizes, grouped, torch


class Identity(Block, kind="identity"):
    """What it is given: `y = x`."""

    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def build(self, sizes: Sizes) -> Call:
        return Call("nn.Identity")

    def inline(self) -> str:
        return "{x}"

    def look(self, view: BlockView) -> Look:
        return Look(self.called())


class Scale(Block, kind="scale"):
    """A fixed factor: `y = by · x`."""

    by: float
    """The factor."""

    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def look(self, view: BlockView) -> Look:
        square = round(self.by**-2) if self.by > 0 else 0
        root = square > 1 and abs(square * self.by**2 - 1) < 1e-9
        return Look(f"÷ √{grouped(square)}" if root else f"× {self.by:.4g}", hue="merge")

    def forward(self: Any, x: torch.Tensor) -> Any:
        return x * self.by

    def inline(self) -> str:
        return "{x} * {by}"


class Dropout(Block, kind="dropout"):
    """In training, each number is zero with probability `p`, and the others grow by `1 / (1 - p)`; else nothing."""

    p: Probability
    """Probability of a zero."""

    paper = Paper("Dropout: A Simple Way to Prevent Neural Networks from Overfitting", "JMLR 15 (2014)")
    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def build(self, sizes: Sizes) -> Call:
        return Call("nn.Dropout", ("p",))

    def look(self, view: BlockView) -> Look:
        return Look(f"{self.called()} {self.p:g}", quiet=True)

    def drop_rate(self) -> float:
        return self.p
