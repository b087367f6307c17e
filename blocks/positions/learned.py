"""Learned positional embeddings."""

from __future__ import annotations

from typing import Any, Literal

from blocks.core import (
    Block,
    BlockError,
    BlockView,
    F,
    Init,
    Look,
    NonNegativeInt,
    Paper,
    PositiveInt,
    SideLook,
    Sizes,
    Tensor,
    Weights,
    grouped,
    size,
    torch,
)
from blocks.positions.positions import check_leading_axes


class LearnedPositions(Block, kind="learned_positions"):
    """Learned absolute positional embeddings, added to the input: `y = x + weight[position_ids + offset]`.

    A position from `max_length` on has no vector and raises an error when the model runs, on a GPU inside the kernel.
    """

    max_length: PositiveInt
    """Number of positions; `max_position_embeddings` in transformers."""
    offset: NonNegativeInt = 0
    """Rows of the table before that of position 0: 2 in OPT."""
    init: Literal["normal", "sinusoids", "grid_sinusoids"] = "normal"
    """Initial values: from a normal distribution; or sines in the first half of the channels and cosines in the second, of
    wavelengths from 2π to 20000π, which Whisper keeps with `trainable: false`; or, as MAE keeps them, those of the column of a
    patch in one half of the channels and of its row in the other, where the last positions are a square of patches and what is
    in front of them, such as a classification token, starts at zero.
    """

    paper = Paper("Convolutional Sequence to Sequence Learning", "arXiv:1705.03122")
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: learned_positions, max_length: 128, in: x}}
"""
    inputs = {"x": "float[batch, time, dim]", "position_ids?": "int[..., time]"}
    outputs = {"y": "float[batch, time, dim]"}
    position_inputs = {"position_ids": "time"}
    length_field = "max_length"
    folds_leading = True

    def weights(self, sizes: Sizes, wired: frozenset[str]) -> Weights:
        start = Init("normal", 0.02) if self.init == "normal" else Init(self.init, 10000.0)
        return {"weight": Tensor(("max_length + offset", "dim"), "table", start)}

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        check_leading_axes(sizes)
        kinds = {"normal": 1, "sinusoids": 2, "grid_sinusoids": 4}[self.init]
        if isinstance(sizes["dim"], int) and sizes["dim"] % kinds:
            both = " of columns and rows" * (kinds == 4)
            raise BlockError(f"{sizes['dim']} channels cannot be split into sines and cosines{both}", field="init")
        positions = sizes.get("time")
        if isinstance(positions, int) and positions > self.max_length and "position_ids" not in wired:
            raise BlockError(f"{positions} positions need a vector each, there are {self.max_length}", field="max_length")

    def look(self, view: BlockView) -> Look:
        rows = self.max_length + self.offset
        start = " of sinusoids" * (self.init != "normal")
        side = SideLook("weight", self.called(), (f"{grouped(rows)} × {size(view.sizes['dim'])}{start}",), learned=True)
        return Look(f"Add {self.called().lower()}", sides=(side,), sign="+")

    def forward(self: Any, x: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        row = position_ids + self.offset if self.offset else position_ids
        try:
            return x + F.embedding(row, self.weight)  # [B, T, D]
        except IndexError:
            raise IndexError(
                f"position {int(position_ids.max())} has no learned vector: there are {self.max_length}, from 0 on"
            ) from None
