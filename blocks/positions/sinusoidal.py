"""Sinusoidal positional encoding."""

from __future__ import annotations

from typing import Any, Literal

from blocks.attention.heads import check_known
from blocks.core import (
    Block,
    BlockError,
    BlockView,
    F,
    Look,
    NonNegativeInt,
    Paper,
    PositiveFloat,
    Probability,
    SideLook,
    Sizes,
    grouped,
    torch,
)
from blocks.positions.positions import check_leading_axes


class SinusoidalPositions(Block, kind="sinusoidal_positions"):
    """Sinusoidal positional encoding, added to the input: `y = x + table[position_ids + offset]`, where
    `table[p, 2i] = sin(p / base^e)` and `table[p, 2i + 1]` is the cosine of the same angle, with exponents `e = 2i / dim`.

    tensor2tensor has `layout: halves` and `endpoint: true`, as have M2M100 (with `offset: 2`) and Whisper's encoder.

    It has no parameters and no maximum length. The table is computed in float32, also under bfloat16.
    """

    base: PositiveFloat = 10000.0
    """Base of the wavelengths, which run from 2π to 2π · base positions."""
    layout: Literal["interleaved", "halves"] = "interleaved"
    """Order of sines and cosines: alternating (`interleaved`, the paper), or all sines and then all cosines (`halves`,
    Marian in transformers).
    """
    endpoint: bool = False
    """Whether the exponents end at 1, `e = 2i / (dim - 2)`, as in tensor2tensor; in the paper they end before it."""
    first_pair: NonNegativeInt = 0
    """Index i of the first pair of channels: with 1, exponents begin with `2 / dim` in place of 0."""
    offset: NonNegativeInt = 0
    """What is added to positions: 2 in M2M100."""
    dropout: Probability = 0.0
    """Dropout probability of the sum, in training."""

    paper = Paper("Attention Is All You Need", "arXiv:1706.03762")
    example = """
inputs: {x: "float[batch, time, 8]"}
graph: {y: {type: sinusoidal_positions, in: x}}
"""
    inputs = {"x": "float[batch, time, dim]", "position_ids?": "int[..., time]"}
    outputs = {"y": "float[batch, time, dim]"}
    position_inputs = {"position_ids": "time"}
    folds_leading = True

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        check_leading_axes(sizes)
        dim = sizes["dim"]
        check_known(dim, "pairs")
        if self.endpoint and dim == 2:
            raise BlockError("a single pair of channels has no last exponent", field="endpoint", hint="use 4 channels or more")
        if dim % 2:
            raise BlockError(f"{dim} channels cannot be split into pairs of a sine and a cosine", hint="use an even width")

    def look(self, view: BlockView) -> Look:
        side = SideLook("base", self.called(), () if self.base == 10000 else (f"base {grouped(self.base)}",))
        after = f"dropout {self.dropout:g}" if self.dropout else ""
        return Look(f"Add {self.called().lower()}", sides=(side,), sign="+", after=after)

    def forward(self: Any, x: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        dtype = torch.promote_types(x.dtype, torch.float32)
        pairs = x.shape[-1] // 2
        index = torch.arange(self.first_pair, self.first_pair + pairs, dtype=dtype, device=x.device)
        exponents = index / (pairs - 1 if self.endpoint else pairs)
        places = position_ids + self.offset if self.offset else position_ids
        angles = places[..., None].to(dtype) / self.base**exponents  # [T, D/2] or [B, T, D/2]
        waves = [angles.sin(), angles.cos()]
        table = torch.stack(waves, dim=-1).flatten(-2) if self.layout == "interleaved" else torch.cat(waves, dim=-1)
        y = x + table.to(x.dtype)
        return F.dropout(y, self.dropout, self.training) if self.dropout else y
