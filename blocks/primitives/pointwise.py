"""Blocks that treat each number alone: nothing, a fixed factor, dropout."""

from __future__ import annotations

from typing import Any

from blocks.core import Block, Call, Paper, Probability, Sizes, torch


class Identity(Block, kind="identity"):
    """What it is given: `y = x`."""

    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def build(self, sizes: Sizes) -> Call:
        return Call("nn.Identity")

    def inline(self) -> str:
        return "{x}"


class Scale(Block, kind="scale"):
    """A fixed factor: `y = by · x`."""

    by: float
    """The factor."""

    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

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
