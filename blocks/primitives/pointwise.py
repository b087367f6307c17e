"""Elementwise operations: identity, multiplication by a constant, dropout."""

from __future__ import annotations

from typing import Any

from blocks.core import Block, Call, Paper, Probability, Sizes, torch


class Identity(Block, kind="identity"):
    """Identity: `y = x`."""

    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def build(self, sizes: Sizes) -> Call:
        return Call("nn.Identity")

    def inline(self) -> str:
        return "{x}"


class Scale(Block, kind="scale"):
    """Multiplication by a constant: `y = by · x`."""

    by: float
    """The constant."""

    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def forward(self: Any, x: torch.Tensor) -> Any:
        return x * self.by

    def inline(self) -> str:
        return "{x} * {by}"


class Dropout(Block, kind="dropout"):
    """Dropout, which in training zeroes each element with probability `p` and scales the others by `1 / (1 - p)`."""

    p: Probability
    """Probability that an element is zeroed."""

    paper = Paper("Dropout: A Simple Way to Prevent Neural Networks from Overfitting", "JMLR 15 (2014)")
    inputs = {"x": "float[...]"}
    outputs = {"y": "float[...]"}

    def build(self, sizes: Sizes) -> Call:
        return Call("nn.Dropout", ("p",))
