"""Sinusoidal positional encoding."""

from __future__ import annotations

from typing import Any, Literal

from blocks.core import (
    Block,
    BlockError,
    BlockView,
    F,
    Look,
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
    """Sinusoidal positional encoding, added to the input: `y = x + table[position_ids]`, where
    `table[p, 2i] = sin(p / base^(2i / dim))` and `table[p, 2i + 1]` is the cosine of the same angle.

    It has no parameters and no maximum length. The table is computed in float32, also under bfloat16.
    """

    base: PositiveFloat = 10000.0
    """Base of the wavelengths, which run from 2π to 2π · base positions."""
    layout: Literal["interleaved", "halves"] = "interleaved"
    """Order of sines and cosines: alternating (`interleaved`, the paper), or all sines and then all cosines (`halves`,
    Marian in transformers). tensor2tensor has the order `halves` too, with `dim - 2` in place of `dim`.
    """
    dropout: Probability = 0.0
    """Dropout probability of the sum, in training."""

    paper = Paper("Attention Is All You Need", "arXiv:1706.03762")
    inputs = {"x": "float[batch, time, dim]", "position_ids?": "int[..., time]"}
    outputs = {"y": "float[batch, time, dim]"}
    position_inputs = {"position_ids": "time"}
    folds_leading = True

    def check(self, sizes: Sizes, wired: frozenset[str]) -> None:
        check_leading_axes(sizes)
        dim = sizes["dim"]
        if not isinstance(dim, int):
            message = f"whether `{dim}` channels can be split into pairs is known only when the model runs"
            raise BlockError(message, hint="give that axis a number, in `inputs` or with a node before this one")
        if dim % 2:
            raise BlockError(f"{dim} channels cannot be split into pairs of a sine and a cosine", hint="use an even width")

    def look(self, view: BlockView) -> Look:
        side = SideLook("base", self.called(), () if self.base == 10000 else (f"base {grouped(self.base)}",))
        after = f"dropout {self.dropout:g}" if self.dropout else ""
        return Look(f"Add {self.called().lower()}", sides=(side,), sign="+", after=after)

    def forward(self: Any, x: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        dtype = torch.promote_types(x.dtype, torch.float32)
        exponents = torch.arange(0, x.shape[-1], 2, dtype=dtype, device=x.device) / x.shape[-1]
        angles = position_ids[..., None].to(dtype) / self.base**exponents  # [T, D/2] or [B, T, D/2]
        waves = [angles.sin(), angles.cos()]
        table = torch.stack(waves, dim=-1).flatten(-2) if self.layout == "interleaved" else torch.cat(waves, dim=-1)
        y = x + table.to(x.dtype)
        return F.dropout(y, self.dropout, self.training) if self.dropout else y
