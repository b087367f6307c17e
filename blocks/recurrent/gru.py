"""The gated recurrent unit."""

from __future__ import annotations

from typing import Any, ClassVar

from blocks.core import BlockView, Paper, Piece, declaration, store_carry, torch
from blocks.recurrent.gates import gru_pieces, wired
from blocks.recurrent.recurrent import Recurrent


class GRU(Recurrent, kind="gru"):
    """Gated recurrent unit (GRU): `h = (1 - z) · n + z · h'`, with h' the previous state,
    `z = σ(W_iz x + b_iz + W_hz h' + b_hz)`, `r = σ(W_ir x + b_ir + W_hr h' + b_hr)` and
    `n = tanh(W_in x + b_in + r · (W_hn h' + b_hn))`; y is h at every position.

    The weights of r, z and n are stacked in one matrix, in this order. The equations are torch's: the paper multiplies h' by r
    before the map, and swaps z and 1 - z. With `biases: one` there are no b_hz, b_hr and b_hn.

    At padding, where `valid` is false, the state stays and y is zero, wherever in a row it is. The output `h` then holds the
    state after the last valid position and, for the backward direction, that after the first.
    """

    title = "GRU"
    gates: ClassVar[int] = 3

    paper = Paper("Learning Phrase Representations using RNN Encoder-Decoder", "arXiv:1406.1078")
    inputs = {"x": "float[batch, time, dim]", "h?": "float[batch, states, hidden]", "valid?": "bool[batch, time]"}
    outputs = {"y": "float[batch, time, hidden]", "h?": "float[batch, states, hidden]"}
    carry = {"h": "float[batch, states, hidden]"}

    @declaration
    def pieces(self, maps: Piece, view: BlockView) -> tuple[Piece, ...]:
        return gru_pieces(maps, ("@y", *wired("h", view)))

    def forward(self: Any, x: torch.Tensor, h: torch.Tensor | None = None, valid: torch.Tensor | None = None) -> Any:
        before = self.before("h", h, x)
        if valid is None:
            y, h = self.all_layers(torch.gru, x, before)
        else:
            y, h = self.padded(x, valid, before)
        h = h.transpose(0, 1)  # [B, layers · directions, hidden]
        store_carry(self, x.shape[1], h=h)
        return (y, h) if "h" in self.requested_outputs else y

    def one_direction(self: Any, x: torch.Tensor, h: torch.Tensor, weights: list[torch.Tensor], padding: torch.Tensor) -> Any:
        return self.call(torch.gru, x, h, weights)
